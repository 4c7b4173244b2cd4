//! What the service says of itself: a line a request, without content and without secrets.

use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::Request as HttpRequest;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures_util::FutureExt as _;
use svc_engine::clock::Ids;
use svc_model::problem::Problem;

use crate::app::App;
use crate::dispatch::Handler;
use crate::problem;
use crate::settings::{LogFormat, Settings};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Starts logging to standard error. A second call, as tests make, changes nothing.
pub(crate) fn start(settings: &Settings) {
    let filter = tracing_subscriber::EnvFilter::new(&settings.log);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let started = match settings.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// The part of our own request ids that tells this process from others.
static PROCESS: OnceLock<String> = OnceLock::new();
/// The part that tells one request from another.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the id of a request: the sender's, when it is short and plain, else one of our own.
fn request_id(request: &HttpRequest) -> HeaderValue {
    let plain = |value: &&HeaderValue| {
        (1..=128).contains(&value.len())
            && value
                .as_bytes()
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    if let Some(given) = request.headers().get(REQUEST_ID).filter(plain) {
        return given.clone();
    }
    let process = PROCESS.get_or_init(|| {
        let mut id = Ids::random().fresh().simple().to_string();
        id.truncate(12);
        id
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    HeaderValue::from_str(&format!("{process}-{number}"))
        .unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// Answers a request, whatever its handler does: a panic is logged and answered 503.
pub(crate) async fn request(
    route: &'static str,
    app: App,
    request: HttpRequest,
    handler: Handler,
) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    let answered = AssertUnwindSafe(handler(app.clone(), request))
        .catch_unwind()
        .await;
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!(
            route,
            request_id = id.to_str().unwrap_or_default(),
            "request.panicked"
        );
        problem::answer(&Problem::StoreUnavailable)
    });
    let status = response.status().as_u16();
    app.counts.answered(route, status);
    let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let request_id = id.to_str().unwrap_or_default();
    if status >= 500 {
        tracing::warn!(route, status, duration_us, request_id, "request");
    } else {
        tracing::debug!(route, status, duration_us, request_id, "request");
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
}
