//! A reply, typed and as it came.

use bytes::Bytes;

/// The reply of a call: its value, and the bytes that it was read from.
///
/// The bytes are exact JSON in ASCII. Whoever passes evidence on passes these on, and nothing is
/// lost on the way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawReply<T> {
    /// The typed value.
    pub value: T,
    /// The body as it came.
    pub bytes: Bytes,
    /// How often the request was sent.
    pub attempts: u32,
    /// The service's own name of the request, by which its log knows it.
    pub request_id: Option<String>,
}
