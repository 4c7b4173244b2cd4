//! `POST /mcp`: the Model Context Protocol over streamable HTTP, without sessions.
//!
//! Size, credential and authority are checked as on every route. Then the host is checked: a
//! browser page that reached this server under a host name of its own is refused. Each message is
//! answered as a whole, so the limits of the other routes apply here too.

mod refusal;
mod service;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use svc_mcp::McpServer;
use svc_model::endpoint::{Access, Grant, Method};
use svc_model::problem::Problem;

use self::service::Asker;
use super::Routes;
use crate::admission::{self, Encoding};
use crate::app::App;
use crate::auth::{self, Sender};
use crate::host::{Host, PageOrigin};
use crate::settings::McpSettings;
use crate::{body, observe, places, problem};

/// The path of the route.
const PATH: &str = "/mcp";
/// Who may call the route. The tools that need a grant refuse by themselves if none is configured.
const ACCESS: Access = Access::Context(Grant::Configured);
/// The maximum bytes of a message. The largest is a read of 32 references; the rest is for the
/// protocol.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// The JSON-RPC codes for a body that is not JSON, and for one that is not a message.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
/// The media types that the library asks for. Every answer is JSON, whatever the client accepts.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The maximum bytes of a refusal by the library.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// Adds the route.
pub(super) fn add(routes: &mut Routes, settings: &McpSettings) {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(settings.hosts.iter().map(Host::as_str))
        .with_allowed_origins(settings.origins.iter().map(String::as_str))
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX);
    let handler = Arc::new(move |app, request| -> _ {
        let config = config.clone();
        Box::pin(async move {
            let answer = answer(app, request, config).await;
            answer.unwrap_or_else(|problem| problem::answer(&problem))
        }) as std::pin::Pin<Box<dyn Future<Output = Response> + Send>>
    });
    routes.insert(PATH, Method::Post, false, handler);
}

async fn answer(
    app: App,
    request: HttpRequest,
    config: StreamableHttpServerConfig,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let place = parts
        .extensions
        .remove()
        .unwrap_or_else(places::ConnectionPlace::detached);
    let sender = Sender::of(ACCESS, &app.tokens, &app.webhook_keys, &parts.headers);
    let mut sender = sender.confirmed(&app.engine).await;
    if let Some(caller) = sender.caller() {
        place.sender_is_known();
        observe::caller(caller);
    }
    let content = body::read(
        &parts.headers,
        body,
        BODY_BYTES_MAX,
        &[],
        sender.body_use(),
        &place,
    );
    let content = match content.await {
        Ok(content) => content,
        Err(Problem::BodyTooLarge) => return Err(Problem::BodyTooLarge),
        // A stranger learns only that it is one.
        Err(problem) => return Err(sender.identify().err().unwrap_or(problem)),
    };
    let caller = sender.identify()?.ok_or(Problem::Unauthorized)?;
    auth::authorize(ACCESS, &caller)?;
    let (content, _memory) = content.decoded()?;
    let bytes = admission::estimate(&content, Encoding::Json);
    let _held = admission::admit(&app.work, bytes, admission::WAIT).await?;
    // The caller is known. Nothing after this needs the token, and nothing should log it.
    parts.headers.remove(header::AUTHORIZATION);
    let host = Host::of_target(&parts.uri, &parts.headers);
    let host = host.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let Some(host) = host else {
        let why = "Forbidden: the host of the request is not allowed";
        return Ok(error(StatusCode::FORBIDDEN, INVALID_REQUEST, why));
    };
    // The library reads the header only, and refuses clients that do not list both its media types.
    parts.headers.insert(header::HOST, host);
    parts.headers.insert(header::ACCEPT, ACCEPTED);
    // A page of this very service. Its host is checked anyway, so its origin need not be.
    if is_of_its_host(&parts.headers) {
        parts.headers.remove(header::ORIGIN);
    }
    // The memory for replies is held until the answer is written.
    let asker = Arc::new(Asker::new(app, caller));
    let server = McpServer::new(Arc::clone(&asker));
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let message = is_json(&parts.headers).then(|| content.clone());
    let request = HttpRequest::from_parts(parts, Full::new(content));
    let response = service.handle(request).await;
    drop(asker);
    let response = response.map(Body::new);
    if response.headers().contains_key(header::CONTENT_TYPE) || !response.status().is_client_error()
    {
        return Ok(response);
    }
    Ok(refused(response, message).await)
}

/// Turns the library's refusal, which is a bare text, into an error of the protocol. `message` is
/// present if the request declared its body as JSON.
///
/// The library answers a message that it cannot read with an unsupported media type, even if it is
/// JSON, such as an array of messages, which current revisions do not have.
async fn refused(response: Response, message: Option<Bytes>) -> Response {
    let (mut parts, body) = response.into_parts();
    // The library's own sentence, which repeats nothing from the message.
    let text = axum::body::to_bytes(body, REFUSAL_BYTES_MAX).await;
    let text = text.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let (code, why) = match (parts.status, message) {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(message)) => {
            parts.status = StatusCode::BAD_REQUEST;
            match serde_json::from_slice::<IgnoredAny>(&message) {
                Ok(_) => (INVALID_REQUEST, "not one message of the protocol"),
                Err(_) => (PARSE_ERROR, "not JSON"),
            }
        }
        _ => (INVALID_REQUEST, text.trim()),
    };
    let (of_error, body) = error(parts.status, code, why).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(of_error.headers);
    Response::from_parts(parts, body)
}

/// Returns an error of the protocol.
fn error(status: StatusCode, code: i32, why: &str) -> Response {
    let error = serde_json::json!({
        "jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why},
    });
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Returns whether a request comes from a page of the host that it names.
fn is_of_its_host(headers: &HeaderMap) -> bool {
    let host = Host::of(headers);
    PageOrigin::of(headers).is_some_and(|origin| host.is_some_and(|host| origin.is_of(&host)))
}

/// Returns whether a request declares its body as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
