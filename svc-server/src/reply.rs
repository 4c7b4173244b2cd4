//! Answers in JSON, written within their route's maximum, and counted as memory until they are
//! sent.
//!
//! A reply of more than 256 KiB takes its bytes from a budget until the client has read it, so slow
//! readers hold up only others who ask for large replies too.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use svc_model::endpoint::Endpoint;
use svc_model::json::{self, WriteError};
use svc_model::problem::Problem;

use crate::admission;
use crate::memory::{MemoryBudget, ReservedBytes};
use crate::problem;

/// Bytes of memory for all large replies that are being sent.
pub(crate) const REPLIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A larger reply is written in a way that does not block other requests, and is counted while it
/// is sent.
const SMALL_BYTES_MAX: usize = 256 * 1024;

/// Returns a JSON answer.
pub(crate) fn respond(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Writes a route's reply. Other requests continue while it writes a large one.
///
/// # Errors
///
/// If the reply is larger than this many bytes, or contains a number that is not finite.
pub(crate) fn write<E: Endpoint>(reply: &E::Reply, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let mut written = json::to_vec(reply, bytes_max.min(SMALL_BYTES_MAX));
    if matches!(written, Err(WriteError::Budget)) && bytes_max > SMALL_BYTES_MAX {
        written = tokio::task::block_in_place(|| json::to_vec(reply, bytes_max));
    }
    written.map_err(|error| problem::of_write(error, E::OVERSIZE.clone()))
}

/// Returns a reply as an answer. The memory of a large one is taken from the budget of all replies
/// until it is sent, so a client that reads slowly holds up only those who ask for large replies
/// too.
///
/// # Errors
///
/// If the memory is not free in time.
pub(crate) async fn send(replies: &MemoryBudget, body: Vec<u8>) -> Result<Response, Problem> {
    if body.len() <= SMALL_BYTES_MAX {
        return Ok(respond(StatusCode::OK, body));
    }
    let held = admission::admit(replies, body.len(), admission::WAIT).await?;
    let body = Bytes::from_owner(LargeReply { body, _held: held });
    Ok(respond(StatusCode::OK, body))
}

/// A large reply, and its memory.
struct LargeReply {
    body: Vec<u8>,
    _held: Option<ReservedBytes>,
}

impl AsRef<[u8]> for LargeReply {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_large_reply_holds_its_memory_until_it_is_sent() {
        let replies = MemoryBudget::new(3 * SMALL_BYTES_MAX);
        let large = || vec![b' '; 2 * SMALL_BYTES_MAX];
        let first = send(&replies, large()).await.unwrap();
        let mut second = Box::pin(send(&replies, large()));
        assert!((&mut second).now_or_never().is_none(), "it waits");
        let small = send(&replies, vec![b' '; SMALL_BYTES_MAX]).now_or_never();
        assert!(small.expect("it does not wait").is_ok());
        drop(first);
        let second = second.await.unwrap();
        let sent = axum::body::to_bytes(second.into_body(), usize::MAX).await;
        assert_eq!(sent.unwrap().len(), 2 * SMALL_BYTES_MAX);
        assert!(replies.try_acquire(replies.bytes_max()).is_some());
    }
}
