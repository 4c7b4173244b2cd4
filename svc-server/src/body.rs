//! Reading a body within its cap, whatever its headers say.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use svc_model::problem::Problem;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::signature::Check;

/// Bytes that are still read and dropped after the cap, so that a sender which does not listen
/// while it sends gets its answer rather than a reset connection.
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(5);

/// Bytes up to which every body is kept whose signature may still turn out to hold.
const UNVERIFIED_BYTES_MAX: usize = 256 * 1024;
/// How long a larger one may take from there on. The forge itself gives up sooner.
const UNVERIFIED_FOR: Duration = Duration::from_secs(30);

/// What is done with the bytes of a body.
pub(crate) enum Keep<'a> {
    /// They are returned.
    Bytes,
    /// They are only counted: the caller has no valid credential.
    Nothing,
    /// They are returned, and shown to the check that will say whether the sender is known. Until
    /// then it may be anybody, so few large bodies are kept at once, and none for long.
    Unverified {
        /// The check of the signature.
        check: &'a mut Check,
        /// Permits to keep a large body.
        large: &'a Semaphore,
    },
}

/// Reads a body of at most `bytes_max`.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
    mut keep: Keep<'_>,
) -> Result<Bytes, Problem> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut length = 0;
    let mut room = None;
    loop {
        let next = match &room {
            None => body.frame().await,
            // What has come until then has another signature.
            Some((_, end)) => timeout_at(*end, body.frame()).await.unwrap_or_default(),
        };
        let Some(frame) = next else { break };
        // A sender that goes away has no use for an answer.
        let Ok(data) = frame
            .map_err(drop)
            .and_then(|frame| frame.into_data().map_err(drop))
        else {
            continue;
        };
        length += data.len();
        if length > bytes_max {
            drain(body).await;
            return Err(Problem::BodyTooLarge);
        }
        match &mut keep {
            Keep::Bytes => {}
            Keep::Nothing => continue,
            Keep::Unverified { check, large } => {
                if length > UNVERIFIED_BYTES_MAX && room.is_none() {
                    let permit = large.acquire().await.ok();
                    room = Some((permit, Instant::now() + UNVERIFIED_FOR));
                }
                check.update(&data);
            }
        }
        match first.take() {
            // Most bodies arrive in one piece, which is not copied.
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(before) => {
                rest.reserve(announced(headers, bytes_max).max(before.len() + data.len()));
                rest.extend_from_slice(&before);
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}

/// Returns the announced length as a hint for memory, no more than a sender has to earn.
fn announced(headers: &HeaderMap, bytes_max: usize) -> usize {
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map_or(0, |length: usize| length.min(bytes_max).min(1024 * 1024))
}

async fn drain(mut body: Body) {
    let drained = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > DRAINED_BYTES_MAX {
                return;
            }
        }
    };
    // Running out of time is as good as running out of bytes.
    drop(tokio::time::timeout(DRAINED_FOR, drained).await);
}
