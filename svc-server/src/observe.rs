//! Logging: a line per request, and the events within it, without content or secrets.
//!
//! Each request has a span: its id (`x-request-id`, the sender's or our own, also in the answer),
//! its route, and once they are known its client and authority. Every event has it, those of
//! capture and of the blocking thread of a read included. Unknown paths and methods are observed as
//! all other requests.

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::Request as HttpRequest;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use futures_util::FutureExt as _;
use svc_engine::clock::Ids;
use svc_engine::store::StoreError;
use svc_model::problem::Problem;
use tracing::field::{Empty, Field, Visit};
use tracing::{Event, Instrument as _, Span, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::app::App;
use crate::auth::Caller;
use crate::env::LogFormat;
use crate::handler::Handler;
use crate::problem::CauseLogged;
use crate::settings::Settings;
use crate::{head, problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Starts logging to standard error. A second call, as in tests, changes nothing.
pub(crate) fn start(settings: &Settings) {
    let filter = filter(&settings.log);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let started = match settings.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().map_event_format(JsonLine).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging.already_started");
    }
}

/// A line of JSON that keeps the causes of errors. The library's own format writes only the first
/// text of an error, and the cause of a failure of the store is never in that one.
struct JsonLine(Format<Json>);

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut causes = Causes::default();
        event.record(&mut causes);
        if causes.0.is_empty() {
            return self.0.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        // What is before the fields is the time and the level, and neither contains the word.
        let (before, fields) = line.split_once(FIELDS).ok_or(fmt::Error)?;
        write!(writer, "{before}{FIELDS}")?;
        for (name, value) in causes.0 {
            write!(writer, "\"{name}\":{value},")?;
        }
        writer.write_str(fields)
    }
}

const FIELDS: &str = "\"fields\":{";

/// The causes of the errors of an event: for a field `error`, the texts of its sources under
/// `error.sources`, as in the text format, and the code of the database's answer under
/// `error.sqlstate`.
#[derive(Default)]
struct Causes(Vec<(String, serde_json::Value)>);

impl Visit for Causes {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}

    fn record_error(&mut self, field: &Field, error: &(dyn Error + 'static)) {
        let chain = std::iter::successors(Some(error), |error| (*error).source());
        let sources: Vec<_> = chain.clone().skip(1).map(ToString::to_string).collect();
        if !sources.is_empty() {
            let name = format!("{field}.sources");
            self.0.push((name, sources.into()));
        }
        // Of several, the outermost knows the cause of all.
        let mut codes = chain.filter_map(|error| error.downcast_ref::<StoreError>()?.sqlstate());
        if let Some(code) = codes.next() {
            self.0.push((format!("{field}.sqlstate"), code.into()));
        }
    }
}

/// Returns the log filter. The library of the Model Context Protocol logs whole messages at
/// `debug`, including captured content. At `warn` it logs what it refuses, with names and addresses
/// as callers wrote them. Each message is a request, which has its own line, so the library's
/// logging is disabled.
fn filter(text: &str) -> tracing_subscriber::EnvFilter {
    let filter = tracing_subscriber::EnvFilter::new(text);
    match "rmcp=off".parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}

/// The part of generated request ids that identifies this process.
static PROCESS: OnceLock<String> = OnceLock::new();
/// The part that identifies a request.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the id of a request: the sender's if it is short and plain, or else a generated one.
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

/// How a request is recorded in the log and the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The route's name in the log and in the counts: the path as it is declared.
    pub(crate) name: &'static str,
    /// Whether it answers only callers with a credential.
    pub(crate) is_closed: bool,
}

/// Answers a request, even if its handler panics: the panic is logged and answered with 503.
/// Everything logged meanwhile has the request's id, route and caller.
///
/// No cache may store an answer of a closed route. The header is set here because every answer
/// passes here, even those that no handler gives.
pub(crate) async fn request(
    route: Route,
    app: App,
    request: HttpRequest,
    handler: Handler,
) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    // At the highest level, so that every log line belongs to a request's span.
    let span = tracing::error_span!(
        "request",
        request_id = id.to_str().unwrap_or_default(),
        route = route.name,
        client = Empty,
        authority = Empty
    );
    let observed = async {
        let answered = match head::check(request.headers()) {
            Ok(()) => {
                let answer = handler(app.clone(), request);
                AssertUnwindSafe(answer).catch_unwind().await
            }
            Err(problem) => Ok(problem::answer(&problem)),
        };
        let response = answered.unwrap_or_else(|_| {
            tracing::error!("request.panicked");
            problem::answer(&Problem::StoreUnavailable)
        });
        let status = response.status().as_u16();
        app.counts.answered(route.name, status);
        let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        // One line a request: who waits for a store sends again and again.
        let is_logged = response.extensions().get::<CauseLogged>().is_some();
        if status >= 500 && !is_logged {
            tracing::warn!(status, duration_us, "request.answered");
        } else {
            tracing::debug!(status, duration_us, "request.answered");
        }
        response
    };
    let mut response = observed.instrument(span).await;
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if route.is_closed {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Adds the caller to the log lines of a request.
pub(crate) fn caller(caller: &Caller) {
    let span = Span::current();
    span.record("client", caller.client_id.as_str());
    span.record("authority", caller.authority.as_str());
}

/// Adds the forge as the signer to the log lines of a request.
pub(crate) fn forge() {
    Span::current().record("authority", "forge");
}

#[cfg(test)]
mod tests;
