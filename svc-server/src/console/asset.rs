//! The style sheet and the icon. They are built into the program, and their names change with their
//! content, so browsers may cache them indefinitely.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use svc_model::problem::Problem;

use super::answer::{ConsoleRequest, Referrer, protect, refusal};
use super::text::hexadecimal;

/// Bytes of the digest in a file's name.
const DIGEST_BYTES: usize = 8;

/// A file that pages load.
pub(super) struct Asset {
    /// The path of the file.
    pub(super) path: String,
    content_type: &'static str,
    content: &'static str,
}

impl Asset {
    fn new(name: &str, kind: &str, content_type: &'static str, content: &'static str) -> Self {
        let digest = Sha256::digest(content.as_bytes());
        let digest = hexadecimal(digest.iter().take(DIGEST_BYTES));
        let path = format!("/console/assets/{name}-{digest}{kind}");
        Self {
            path,
            content_type,
            content,
        }
    }
}

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let style = include_str!("../../assets/console.css");
    Asset::new("console", ".css", "text/css; charset=utf-8", style)
});

pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let icon = include_str!("../../assets/console.svg");
    Asset::new("icon", ".svg", "image/svg+xml", icon)
});

/// Answers with the file of the given current name.
pub(super) async fn asset(asked: ConsoleRequest) -> Response {
    let asset = [&STYLE, &ICON]
        .into_iter()
        .find(|asset| asset.path == asked.path);
    let Some(asset) = asset else {
        return refusal(&Problem::NotFound, asked.caller.as_ref());
    };
    let mut response = Response::new(Body::from(asset.content));
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(asset.content_type);
    headers.insert(header::CONTENT_TYPE, content_type);
    let keep = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, keep);
    protect(&mut response, Referrer::Never);
    response
}
