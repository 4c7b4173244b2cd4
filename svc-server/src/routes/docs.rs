//! The documentation: pages of our own without a script or style from elsewhere.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use svc_model::endpoint::Method;

use super::Routes;
use crate::handler::Handler;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn page(content_type: &'static str, body: &'static str) -> Response {
    (
        StatusCode::OK,
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::from_static(POLICY),
            ),
            (
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            ),
        ],
        body,
    )
        .into_response()
}

/// Adds the documentation routes.
pub(super) fn add(routes: &mut Routes) {
    const HTML: &str = "text/html; charset=utf-8";
    const PAGE: &str = include_str!("../../assets/docs.html");
    let pages = [
        (
            "/openapi.json",
            "application/json",
            include_str!("../../../schemas/openapi.json"),
        ),
        ("/docs", HTML, PAGE),
        ("/redoc", HTML, PAGE),
        (
            "/docs/docs.css",
            "text/css; charset=utf-8",
            include_str!("../../assets/docs.css"),
        ),
        (
            "/docs/docs.js",
            "text/javascript; charset=utf-8",
            include_str!("../../assets/docs.js"),
        ),
    ];
    for (path, content_type, body) in pages {
        let handler: Handler =
            Arc::new(move |_, _| Box::pin(async move { page(content_type, body) }));
        routes.insert(path, Method::Get, handler);
    }
}
