//! Reading a body within its cap, whatever its headers say of its length.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use svc_model::endpoint::ContentEncoding;
use svc_model::problem::Problem;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::gzip::Inflater;
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

/// Reads a body of at most `bytes_max`, as it comes and decoded.
///
/// The size is the only thing that a body is refused for here. Whether it could be decoded comes
/// after who sent it, so that is for the caller to ask of the content.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
    encodings: &[ContentEncoding],
    mut keep: Keep<'_>,
) -> Result<Content, Problem> {
    let mut content = match keep {
        Keep::Bytes | Keep::Unverified { .. } => Received::new(headers, encodings, bytes_max),
        Keep::Nothing => Received::Nothing,
    };
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
        if content.take(data) == Err(Problem::BodyTooLarge) {
            drain(body).await;
            return Err(Problem::BodyTooLarge);
        }
    }
    content.finish()
}

/// A whole body: its content, or that it could not be decoded.
pub(crate) struct Content(Result<Bytes, Problem>);

impl Content {
    /// Returns the content.
    ///
    /// # Errors
    ///
    /// When the body is not encoded as it says, or in a way that the route does not know.
    pub(crate) fn decoded(self) -> Result<Bytes, Problem> {
        self.0
    }
}

/// What has come of a body.
enum Received {
    /// The content as it is: its first piece, and the others once there are any.
    Plain {
        first: Option<Bytes>,
        rest: BytesMut,
        /// Bytes to make room for when a second piece comes.
        room: usize,
    },
    /// The content that is being inflated.
    Gzip(Box<Inflater>),
    /// The bytes are only counted.
    Nothing,
    /// There is no content to be had; the bytes are only counted.
    Undecodable,
}

impl Received {
    fn new(headers: &HeaderMap, encodings: &[ContentEncoding], bytes_max: usize) -> Self {
        match encoding(headers, encodings) {
            Ok(None) => Self::Plain {
                first: None,
                rest: BytesMut::new(),
                room: announced(headers, bytes_max),
            },
            Ok(Some(ContentEncoding::Gzip)) => Self::Gzip(Box::new(Inflater::new(bytes_max))),
            Err(Undecodable) => Self::Undecodable,
        }
    }

    /// Takes the next bytes. The only error is that the content is too large.
    fn take(&mut self, data: Bytes) -> Result<(), Problem> {
        match self {
            Self::Plain { first, rest, room } => match first.take() {
                // Most bodies arrive in one piece, which is not copied.
                None if rest.is_empty() => *first = Some(data),
                None => rest.extend_from_slice(&data),
                Some(before) => {
                    rest.reserve((*room).max(before.len() + data.len()));
                    rest.extend_from_slice(&before);
                    rest.extend_from_slice(&data);
                }
            },
            Self::Gzip(inflater) => match inflater.take(&data) {
                Ok(()) => {}
                Err(Problem::BodyTooLarge) => return Err(Problem::BodyTooLarge),
                Err(_) => *self = Self::Undecodable,
            },
            Self::Nothing | Self::Undecodable => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Content, Problem> {
        let content = match self {
            Self::Plain { first, rest, .. } => Ok(first.unwrap_or_else(|| rest.freeze())),
            Self::Gzip(inflater) => inflater.finish(),
            Self::Nothing => Ok(Bytes::new()),
            Self::Undecodable => Err(Problem::MalformedEncoding),
        };
        match content {
            Err(Problem::BodyTooLarge) => Err(Problem::BodyTooLarge),
            content => Ok(Content(content)),
        }
    }
}

/// The content encoding is none of those that the route knows, or is several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Undecodable;

/// Returns how a body is encoded. Where no encoding is known the header is not looked at: the body
/// is taken as it is.
fn encoding(
    headers: &HeaderMap,
    known: &[ContentEncoding],
) -> Result<Option<ContentEncoding>, Undecodable> {
    let mut found = None;
    if known.is_empty() {
        return Ok(found);
    }
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let value = value.to_str().map_err(|_| Undecodable)?;
        for name in value.split(',').map(str::trim) {
            if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                continue;
            }
            let name = name.to_ascii_lowercase();
            let encoding = known
                .iter()
                .find(|known| known.as_str() == name.strip_prefix("x-").unwrap_or(&name));
            if found.is_some() || encoding.is_none() {
                return Err(Undecodable);
            }
            found = encoding.copied();
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn an_encoding_is_known_by_its_name_and_only_one_is_taken() {
        let found = |values: &[&'static str], known: &[ContentEncoding]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            encoding(&headers, known)
        };
        let gzip = [ContentEncoding::Gzip];
        for values in [&[][..], &[""], &["identity"], &["Identity, "], &[" ,"]] {
            assert_eq!(found(values, &gzip), Ok(None), "{values:?}");
        }
        for values in [
            &["gzip"][..],
            &["GZip"],
            &["x-gzip"],
            &["identity, gzip"],
            &["", "gzip"],
        ] {
            let expected = Ok(Some(ContentEncoding::Gzip));
            assert_eq!(found(values, &gzip), expected, "{values:?}");
            assert_eq!(found(values, &[]), Ok(None), "{values:?}");
        }
        for values in [
            &["br"][..],
            &["deflate"],
            &["zstd"],
            &["gzip, gzip"],
            &["gzip", "br"],
        ] {
            assert_eq!(found(values, &gzip), Err(Undecodable), "{values:?}");
            assert_eq!(found(values, &[]), Ok(None), "{values:?}");
        }
        let mut headers = HeaderMap::new();
        let odd = HeaderValue::from_bytes(b"gzip\xff").unwrap();
        headers.insert(header::CONTENT_ENCODING, odd);
        assert_eq!(encoding(&headers, &gzip), Err(Undecodable));
    }
}
