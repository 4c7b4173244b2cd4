//! The checks for every page, in one order, and the writing of answers.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use maud::Markup;
use svc_model::problem::Problem;

use super::layout::{self, Page, Section};
use super::link::Link;
use super::visit::Visit;
use super::{refused, sign_in};
use crate::app::App;
use crate::auth::Caller;
use crate::body::BodyUse;
use crate::dispatch::query_parameters;
use crate::handler::Handler;
use crate::{body, observe, places, problem};

/// The content security policy of a page: it may load our style sheet and icon, and submit forms to
/// the console.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";
/// The maximum size of a form in bytes. The sign-in form is the largest.
const FORM_BYTES_MAX: usize = 4 * 1024;
/// The maximum size of a page in bytes.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Whether the browser sends a referrer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Referrer {
    /// Never.
    Never,
    /// Only to this service, and only so that the browser sends a form's origin.
    Here,
}

/// A request to the console, including its body.
pub(super) struct ConsoleRequest {
    pub(super) app: App,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) form: bytes::Bytes,
    pub(super) place: places::ConnectionPlace,
    pub(super) now: Instant,
    pub(super) caller: Option<Caller>,
}

impl ConsoleRequest {
    /// Checks the host of a request, identifies the sender, and reads the body.
    async fn read(app: App, request: HttpRequest) -> Result<Self, Response> {
        let (mut parts, content) = request.into_parts();
        let place = parts
            .extensions
            .remove()
            .unwrap_or_else(places::ConnectionPlace::detached);
        let Some(console) = app.console.as_ref() else {
            return Err(problem::answer(&Problem::NotFound));
        };
        if !console.is_host(&parts.headers) {
            return Err(document(
                StatusCode::FORBIDDEN,
                Referrer::Never,
                layout::bare("Wrong host", &refused::host()),
            ));
        }
        let now = Instant::now();
        let ids = sign_in::cookies(&parts.headers, &sign_in::SIGNED_IN);
        let caller = console.signed_in.find(&ids, now);
        if let Some(caller) = &caller {
            place.sender_is_known();
            observe::caller(caller);
        }
        let body_use = if parts.method == Method::POST {
            BodyUse::Bytes
        } else {
            BodyUse::Nothing
        };
        let content = body::read(
            &parts.headers,
            content,
            FORM_BYTES_MAX,
            &[],
            body_use,
            &place,
        )
        .await;
        let form = match content.and_then(body::BodyContent::decoded) {
            // The form is too small to need a memory reservation.
            Ok((form, _memory)) => form,
            Err(problem) => return Err(refusal(&problem, caller.as_ref())),
        };
        Ok(Self {
            app,

            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: parts.headers,
            form,
            place,
            now,
            caller,
        })
    }
}

/// Binds a function that answers everyone.
pub(super) fn open<F, A>(function: F) -> Handler
where
    F: Fn(ConsoleRequest) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    Arc::new(move |app, request| {
        let function = function.clone();
        Box::pin(async move {
            match ConsoleRequest::read(app, request).await {
                Ok(asked) => function(asked).await,
                Err(response) => response,
            }
        })
    })
}

/// Binds a page for signed-in users. Others are redirected to the sign-in form.
pub(super) fn signed_in<F, A>(function: F) -> Handler
where
    F: Fn(Visit) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Page, Problem>> + Send + 'static,
{
    open(move |asked: ConsoleRequest| {
        let function = function.clone();
        async move {
            let Some(caller) = asked.caller else {
                return see_other(&sign_in::link(&asked.path, &asked.query));
            };
            let query = query_parameters(&asked.query);
            let visit = Visit::new(asked.app, caller.clone(), query);
            match function(visit.clone()).await {
                Ok(page) => show(&page, &caller),
                Err(problem) => refusal(&problem, Some(&caller)),
            }
        }
    })
}

/// Writes a page.
fn show(page: &Page, caller: &Caller) -> Response {
    let status = page
        .problem
        .as_ref()
        .map_or(StatusCode::OK, problem::status);
    let markup = layout::page(page, Some(caller));
    if markup.0.len() > PAGE_BYTES_MAX {
        return refusal(&Problem::ReplyTooLarge, Some(caller));
    }
    let referrer = if page.section == Section::SignOut {
        Referrer::Here
    } else {
        Referrer::Never
    };
    let mut response = document(status, referrer, markup);
    if let Some(problem) = &page.problem {
        add_retry_after(&mut response, problem);
    }
    response
}

/// Writes a page that explains a refusal.
pub(super) fn refusal(problem: &Problem, caller: Option<&Caller>) -> Response {
    let page = Page::refused(problem);
    let markup = layout::page(&page, caller);
    let mut response = document(problem::status(problem), Referrer::Never, markup);
    add_retry_after(&mut response, problem);
    response
}

fn add_retry_after(response: &mut Response, problem: &Problem) {
    if *problem == Problem::CapacityExceeded {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// Redirects to another page of the console.
pub(super) fn see_other(link: &Link) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::from_str(link.as_str());
    let location = location.unwrap_or_else(|_| HeaderValue::from_static("/console"));
    response.headers_mut().insert(header::LOCATION, location);
    protect(&mut response, Referrer::Never);
    response
}

/// Returns a document with the common headers.
pub(super) fn document(status: StatusCode, referrer: Referrer, markup: Markup) -> Response {
    let mut response = Response::new(Body::from(markup.into_string()));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    protect(&mut response, referrer);
    response
}

/// Adds the security headers. Browsers may not store the answer.
pub(super) fn protect(response: &mut Response, referrer: Referrer) {
    let headers = response.headers_mut();
    let referrer = match referrer {
        Referrer::Never => "no-referrer",
        Referrer::Here => "same-origin",
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, referrer),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}
