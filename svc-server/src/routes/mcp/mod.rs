//! `POST /mcp`: the Model Context Protocol over streamable HTTP, without sessions.
//!
//! Size, credential and authority are checked as on every route, and then who the request was meant
//! for: a page in a browser that was led to this server by a name of its own is refused. Each message
//! is answered whole, so the limits of every other route hold here too.

mod refusal;
mod service;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use svc_mcp::McpServer;
use svc_model::endpoint::{Access, Grant, Method};
use svc_model::problem::Problem;

use self::service::Asker;
use super::Routes;
use crate::admission::{self, Encoding};
use crate::app::App;
use crate::auth::{self, Sender};
use crate::settings::{Host, McpSettings};
use crate::{body, observe, places, problem};

/// The path.
const PATH: &str = "/mcp";
/// Who may call it. Whether a grant is configured is said by the tools that need one.
const ACCESS: Access = Access::Context(Grant::Configured);
/// The most bytes of a message. A read of 32 references is the largest; the rest is the protocol's.
const BODY_BYTES_MAX: usize = 256 * 1024;

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
            let mut response = answer.unwrap_or_else(|problem| problem::answer(&problem));
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }) as std::pin::Pin<Box<dyn Future<Output = Response> + Send>>
    });
    routes.insert(PATH, Method::Post, handler);
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
        .unwrap_or_else(places::Place::detached);
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
        // A stranger learns nothing but that it is one.
        Err(problem) => return Err(sender.identify().err().unwrap_or(problem)),
    };
    let caller = sender.identify()?.ok_or(Problem::Unauthorized)?;
    auth::authorize(ACCESS, &caller)?;
    let (content, _memory) = content.decoded()?;
    let bytes = admission::estimate(&content, Encoding::Json);
    let _held = admission::admit(&app.work, bytes, admission::WAIT).await?;
    // The caller is known; nothing behind this has a use for the token, or could log it.
    parts.headers.remove(header::AUTHORIZATION);
    // The memory that replies take is held until the answer is written.
    let asker = Arc::new(Asker::new(app, caller));
    let server = McpServer::new(Arc::clone(&asker));
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let request = HttpRequest::from_parts(parts, Full::new(content));
    let response = service.handle(request).await;
    drop(asker);
    Ok(response.map(Body::new))
}
