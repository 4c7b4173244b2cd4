use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use prost::Message as _;
use svc_model::ingest::{PROTOBUF, is_protobuf};
use svc_model::json;
use svc_model::problem::{Detail, ProblemBody};

use crate::dispatch::{Handle, bind};
use crate::handler::Handler;

/// Returns the handler of a route of OTLP. A request in protobuf gets an answer in protobuf.
pub(super) fn handler<E: Handle>() -> Handler {
    let inner = bind::<E>();
    Arc::new(move |app, request: HttpRequest| {
        let speaks_protobuf = sends_protobuf(request.headers());
        let answer = inner(app, request);
        Box::pin(async move {
            let response = answer.await;
            if speaks_protobuf {
                in_protobuf(response).await
            } else {
                response
            }
        })
    })
}

fn sends_protobuf(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.to_str().is_ok_and(is_protobuf))
}

/// `google.rpc.Status`, as OTLP over HTTP uses it: the error message for people.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Converts an answer to protobuf: an empty response message, or a `Status`.
async fn in_protobuf(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let message = if parts.status == StatusCode::OK {
        Vec::new()
    } else {
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        let message = text(&body.unwrap_or_default());
        Status { message }.encode_to_vec()
    };
    let content_type = HeaderValue::from_static(PROTOBUF);
    parts.headers.insert(header::CONTENT_TYPE, content_type);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(message))
}

/// Returns the fixed text of a problem.
fn text(body: &[u8]) -> String {
    match json::from_slice(body).map(|problem: ProblemBody| problem.detail) {
        Ok(Detail::Text(text)) => text.into_owned(),
        Ok(Detail::Code(detail)) => detail.message.unwrap_or_default().into_owned(),
        Ok(Detail::Fields(_) | Detail::Declined(_)) | Err(_) => String::new(),
    }
}
