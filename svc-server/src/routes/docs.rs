//! The documentation: pages of our own without a script or style from elsewhere.

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

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
pub(super) fn add(router: Router) -> Router {
    const HTML: &str = "text/html; charset=utf-8";
    router
        .route(
            "/openapi.json",
            get(async || {
                page(
                    "application/json",
                    include_str!("../../../schemas/openapi.json"),
                )
            }),
        )
        .route(
            "/docs",
            get(async || page(HTML, include_str!("../../assets/docs.html"))),
        )
        .route(
            "/redoc",
            get(async || page(HTML, include_str!("../../assets/docs.html"))),
        )
        .route(
            "/docs/docs.css",
            get(async || {
                page(
                    "text/css; charset=utf-8",
                    include_str!("../../assets/docs.css"),
                )
            }),
        )
        .route(
            "/docs/docs.js",
            get(async || {
                page(
                    "text/javascript; charset=utf-8",
                    include_str!("../../assets/docs.js"),
                )
            }),
        )
}
