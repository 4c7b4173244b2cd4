//! The documentation: Swagger UI at `/docs`, and a page for reading at `/redoc`. Everything that
//! they load is built into this program.
//!
//! A `Content-Security-Policy` allows what is served beside the pages and the service itself: no
//! inline script, no inline style, no other host.

use std::io::Read as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderValue, Response as HttpResponse, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::read::GzDecoder;
use svc_model::endpoint::Method;

use super::Routes;
use crate::handler::Handler;
use crate::schemas::{OPENAPI, OPENAPI_3_0, PUBLISHED};

/// The content security policy of the pages: they may load the files beside them and call this
/// service.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JSON: &str = "application/json";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// The content coding of the compressed files.
const GZIP: &str = "gzip";

macro_rules! asset {
    ($name:literal) => {
        EmbeddedFile::Plain(include_bytes!(concat!("../../assets/", $name)))
    };
}
macro_rules! of_swagger_ui {
    ($name:literal) => {
        EmbeddedFile::Compressed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))
    };
}

/// An embedded file.
#[derive(Clone, Copy, Debug)]
enum EmbeddedFile {
    Plain(&'static [u8]),
    /// In gzip.
    Compressed(&'static [u8]),
}

/// Every path of the documentation, with its content type.
const PAGES: &[(&str, &str, EmbeddedFile)] = &[
    ("/docs", HTML, asset!("docs.html")),
    ("/docs/docs.css", CSS, asset!("docs.css")),
    ("/docs/docs.js", JAVASCRIPT, asset!("docs.js")),
    (
        "/docs/swagger-ui.css",
        CSS,
        of_swagger_ui!("swagger-ui.css"),
    ),
    (
        "/docs/swagger-ui-bundle.js",
        JAVASCRIPT,
        of_swagger_ui!("swagger-ui-bundle.js"),
    ),
    ("/redoc", HTML, asset!("redoc.html")),
    ("/redoc/redoc.css", CSS, asset!("redoc.css")),
    ("/redoc/redoc.js", JAVASCRIPT, asset!("redoc.js")),
];

/// Returns whether a client accepts gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let words = values.filter_map(|value| value.to_str().ok());
    let mut words = words.flat_map(|value| value.split(','));
    words.any(|word| {
        let (coding, quality) = word.split_once(';').unwrap_or((word, ""));
        let refused = quality.trim().trim_end_matches(['0', '.']) == "q=";
        coding.trim().eq_ignore_ascii_case(GZIP) && !refused
    })
}

fn answer(content_type: &'static str, content: EmbeddedFile, headers: &HeaderMap) -> Response {
    let mut body = Body::empty();
    let mut coding = None;
    match content {
        EmbeddedFile::Plain(bytes) => body = Bytes::from_static(bytes).into(),
        EmbeddedFile::Compressed(bytes) if takes_gzip(headers) => {
            body = Bytes::from_static(bytes).into();
            coding = Some(GZIP);
        }
        EmbeddedFile::Compressed(bytes) => {
            let mut plain = Vec::new();
            // The embedded file is valid gzip.
            if GzDecoder::new(bytes).read_to_end(&mut plain).is_ok() {
                body = plain.into();
            }
        }
    }
    let mut response = HttpResponse::new(body);
    let mut set = |name, value| response.headers_mut().insert(name, value);
    set(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    set(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    set(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if matches!(content, EmbeddedFile::Compressed(_)) {
        set(
            header::VARY,
            HeaderValue::from_name(header::ACCEPT_ENCODING),
        );
    }
    if let Some(coding) = coding {
        set(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// Adds the documentation routes.
pub(super) fn add(routes: &mut Routes) {
    let documents = [
        ("/openapi.json", OPENAPI),
        ("/openapi-3.0.json", OPENAPI_3_0),
    ];
    let schemas = PUBLISHED.iter().map(|schema| (schema.path, schema.text));
    let documents = documents.into_iter().chain(schemas);
    let documents =
        documents.map(|(path, text)| (path, JSON, EmbeddedFile::Plain(text.as_bytes())));
    for (path, content_type, content) in PAGES.iter().copied().chain(documents) {
        let handler: Handler = Arc::new(move |_, request: HttpRequest| {
            let response = answer(content_type, content, request.headers());
            Box::pin(async move { response })
        });
        routes.insert(path, Method::Get, true, handler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        for (given, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate, gzip;q=1.0", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(given));
            assert_eq!(takes_gzip(&headers), expected, "{given}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
