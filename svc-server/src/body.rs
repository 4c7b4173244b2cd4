//! Reads a body within its limits on size, time and memory, whatever length its headers announce.
//!
//! An incomplete body (a half-closed connection, a reset, a broken chunk) ends the request and
//! stores nothing, so half of a batch is never taken for the whole. Without a valid credential,
//! bytes are only counted, so a flood costs no memory; an unauthenticated body of any size is 401
//! or 413.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use svc_model::endpoint::ContentEncoding;
use svc_model::problem::Problem;
use tokio::time::timeout_at;

use crate::gzip::{self, Inflater};
use crate::places::{BodyMemory, ConnectionPlace};
use crate::signature::Check;

/// The number of bytes that are inflated at once, which is so small that they become at most a few
/// MiB before those are reserved.
const STEP_BYTES: usize = 4 * 1024;

/// What to do with the bytes of a body.
pub(crate) enum BodyUse<'a> {
    /// Return them.
    Bytes,
    /// Only count them: the caller has no valid credential.
    Nothing,
    /// Return them, and pass them to the check that identifies the sender. Until then, the sender
    /// may be anybody.
    Unverified(&'a mut Check),
}

/// Reads a body of at most `bytes_max` bytes, and decodes it while it arrives.
///
/// A caller must be identified before it learns whether its body can be decoded, so that result is
/// kept in [`BodyContent`].
///
/// # Errors
///
/// If the body is too large, incomplete or too slow, or if no memory is free.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
    encodings: &[ContentEncoding],
    mut body_use: BodyUse<'_>,
    place: &ConnectionPlace,
) -> Result<BodyContent, Problem> {
    let mut received = match body_use {
        BodyUse::Bytes | BodyUse::Unverified(_) => ReceivedBody::new(headers, encodings, bytes_max),
        BodyUse::Nothing => ReceivedBody::Nothing,
    };
    let mut memory = place.body_memory();
    let mut length = 0;
    while let Some(data) = next(&mut body, place).await? {
        length += data.len();
        if length > bytes_max {
            return Err(Problem::BodyTooLarge);
        }
        place.body_received(data.len());
        if let BodyUse::Unverified(check) = &mut body_use {
            check.update(&data);
        }
        for step in received.steps(data) {
            received.take(step)?;
            if memory.hold(received.bytes()).await.is_err() {
                return Err(give_up(&body_use, place).await);
            }
        }
    }
    place.body_complete();
    let content = received.finish()?;
    Ok(BodyContent { content, memory })
}

/// Waits for the next bytes. `None` at the end of the body.
async fn next(body: &mut Body, place: &ConnectionPlace) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = match place.deadline() {
            // Received bytes extend the deadline, so it is read again each time.
            Some(due) => timeout_at(due, body.frame()).await,
            None => Ok(body.frame().await),
        };
        let Some(frame) = frame.map_err(|_| Problem::BodyTimeout)? else {
            return Ok(None);
        };
        // Half of a body must never pass for the whole.
        let frame = frame.map_err(|_| Problem::BodyIncomplete)?;
        // Anything else is trailers, which have no meaning here.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// Ends a body for which no memory is free. A stranger's connection is closed without an answer,
/// because a stranger must not learn the reason.
async fn give_up(body_use: &BodyUse<'_>, place: &ConnectionPlace) -> Problem {
    match body_use {
        BodyUse::Bytes | BodyUse::Nothing => Problem::CapacityExceeded,
        BodyUse::Unverified(_) => {
            place.end();
            std::future::pending().await
        }
    }
}

/// A complete body: its content, or why it cannot be decoded, and the memory that it holds.
pub(crate) struct BodyContent {
    content: Result<Bytes, Problem>,
    memory: BodyMemory,
}

impl BodyContent {
    /// Records that the sender is known.
    pub(crate) fn sender_is_known(&mut self) {
        self.memory.sender_is_known();
    }

    /// Returns the content, and the memory that it holds.
    ///
    /// # Errors
    ///
    /// If the body does not match its content encoding, or the route does not support that
    /// encoding.
    pub(crate) fn decoded(self) -> Result<(Bytes, BodyMemory), Problem> {
        Ok((self.content?, self.memory))
    }
}

/// The received part of a body.
enum ReceivedBody {
    /// Plain content: the first piece alone, or all bytes once there is a second piece.
    Plain {
        first: Option<Bytes>,
        rest: Vec<u8>,
        /// The bytes to reserve when a second piece arrives.
        room: usize,
        bytes_max: usize,
    },
    /// Content that is being inflated.
    Gzip(Box<Inflater>),
    /// Only counted.
    Nothing,
    /// It cannot be decoded, so it is only counted.
    Undecodable(Problem),
}

impl ReceivedBody {
    fn new(headers: &HeaderMap, encodings: &[ContentEncoding], bytes_max: usize) -> Self {
        match encoding(headers, encodings) {
            Ok(None) => Self::Plain {
                first: None,
                rest: Vec::new(),
                room: announced(headers, bytes_max),
                bytes_max,
            },
            Ok(Some(ContentEncoding::Gzip)) => Self::Gzip(Box::new(Inflater::new(bytes_max))),
            Err(UnsupportedEncoding) => Self::Undecodable(Problem::UnsupportedEncoding),
        }
    }

    /// Cuts bytes into pieces small enough to be inflated before their memory is reserved.
    fn steps(&self, mut data: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let step = match self {
            Self::Gzip(_) => STEP_BYTES,
            Self::Plain { .. } | Self::Nothing | Self::Undecodable(_) => data.len(),
        };
        std::iter::from_fn(move || {
            let taken = data.split_to(step.min(data.len()));
            (!taken.is_empty()).then_some(taken)
        })
    }

    /// Takes the next bytes. The only possible error is that the content is too large.
    fn take(&mut self, data: Bytes) -> Result<(), Problem> {
        match self {
            Self::Plain {
                first,
                rest,
                room,
                bytes_max,
            } => match first.take() {
                // Most bodies arrive in one piece, which is not copied.
                None if rest.is_empty() => *first = Some(data),
                None => {
                    gzip::make_room(rest, data.len(), *bytes_max);
                    rest.extend_from_slice(&data);
                }
                Some(before) => {
                    rest.reserve_exact((*room).max(before.len() + data.len()));
                    rest.extend_from_slice(&before);
                    rest.extend_from_slice(&data);
                }
            },
            Self::Gzip(inflater) => match inflater.take(&data) {
                Ok(()) => {}
                Err(Problem::BodyTooLarge) => return Err(Problem::BodyTooLarge),
                Err(problem) => *self = Self::Undecodable(problem),
            },
            Self::Nothing | Self::Undecodable(_) => {}
        }
        Ok(())
    }

    /// Returns how many bytes of memory the content uses.
    fn bytes(&self) -> usize {
        match self {
            Self::Plain { first, rest, .. } => {
                first.as_ref().map_or(0, Bytes::len) + rest.capacity()
            }
            Self::Gzip(inflater) => inflater.bytes(),
            Self::Nothing | Self::Undecodable(_) => 0,
        }
    }

    /// Returns the content. The only possible outer error is that it is too large.
    fn finish(self) -> Result<Result<Bytes, Problem>, Problem> {
        let content = match self {
            Self::Plain { first, rest, .. } => Ok(first.unwrap_or_else(|| rest.into())),
            Self::Gzip(inflater) => inflater.finish(),
            Self::Nothing => Ok(Bytes::new()),
            Self::Undecodable(problem) => Err(problem),
        };
        match content {
            Err(Problem::BodyTooLarge) => Err(Problem::BodyTooLarge),
            content => Ok(content),
        }
    }
}

/// The route does not know the content encoding, or there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnsupportedEncoding;

/// Returns the encoding of a body. A route without encodings ignores the header and takes the body
/// as it is.
fn encoding(
    headers: &HeaderMap,
    known: &[ContentEncoding],
) -> Result<Option<ContentEncoding>, UnsupportedEncoding> {
    let mut found = None;
    if known.is_empty() {
        return Ok(found);
    }
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let value = value.to_str().map_err(|_| UnsupportedEncoding)?;
        for name in value.split(',').map(str::trim) {
            if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                continue;
            }
            let name = name.to_ascii_lowercase();
            let encoding = known
                .iter()
                .find(|known| known.as_str() == name.strip_prefix("x-").unwrap_or(&name));
            if found.is_some() || encoding.is_none() {
                return Err(UnsupportedEncoding);
            }
            found = encoding.copied();
        }
    }
    Ok(found)
}

/// Returns the announced length, limited to what any sender may use, as a hint for allocating
/// memory.
fn announced(headers: &HeaderMap, bytes_max: usize) -> usize {
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map_or(0, |length: usize| length.min(bytes_max).min(1024 * 1024))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_body_has_at_most_one_known_encoding() {
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
            assert_eq!(found(values, &gzip), Err(UnsupportedEncoding), "{values:?}");
            assert_eq!(found(values, &[]), Ok(None), "{values:?}");
        }
        let mut headers = HeaderMap::new();
        let odd = HeaderValue::from_bytes(b"gzip\xff").unwrap();
        headers.insert(header::CONTENT_ENCODING, odd);
        assert_eq!(encoding(&headers, &gzip), Err(UnsupportedEncoding));
    }
}
