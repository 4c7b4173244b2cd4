//! A reply, typed and with its original bytes.

use std::time::SystemTime;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use svc_model::endpoint::Tally;
use svc_model::json::{self, NodeBudget};

use crate::error::{Error, ErrorKind, Failure};

/// The bytes of memory that the values of a reply may take, in addition to its own bytes: three
/// bytes of JSON can become a hundred. No real reply comes near this limit.
const REPLY_MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The reply of a call: its value, and the original bytes.
///
/// The bytes are exact ASCII JSON. Pass them on if evidence must not change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawReply<T> {
    /// The typed value.
    pub value: T,
    /// The unchanged body.
    pub bytes: Bytes,
    /// How often the request was sent.
    pub attempts: u32,
    /// The id that the service gave the request, which is also in its log; `None` if the answer has
    /// none.
    pub request_id: Option<String>,
}

impl<T> RawReply<T> {
    /// Returns the reply if it accounts for exactly the items of its request.
    pub(crate) fn checked(self, tally: Option<Tally>) -> Result<Self, Error> {
        let Some(Tally {
            requested,
            returned,
        }) = tally.filter(|tally| !tally.is_whole())
        else {
            return Ok(self);
        };
        let failure = Failure {
            request_id: self.request_id,
            ..Failure::new(ErrorKind::Incomplete {
                requested,
                returned,
            })
        };
        Err(failure.after(self.attempts))
    }
}

/// The body of a success, with its metadata.
#[derive(Clone, Debug)]
pub(crate) struct Success {
    pub(crate) bytes: Bytes,
    pub(crate) in_protobuf: bool,
    pub(crate) attempts: u32,
    pub(crate) request_id: Option<String>,
    pub(crate) answered_at: Option<SystemTime>,
}

impl Success {
    /// Reads the body as a reply.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<RawReply<T>, Error> {
        // The service writes ASCII. The parser accepts other encodings, but callers may pass the
        // bytes on unchanged, so they must be UTF-8.
        if str::from_utf8(&self.bytes).is_err() || self.bytes.contains(&0) {
            return Err(self.unreadable());
        }
        // Only an export of OTLP is answered in protobuf, and that answer says no more than its
        // status.
        let body = if self.in_protobuf {
            b"{}"
        } else {
            &*self.bytes
        };
        let budget = NodeBudget::new(REPLY_MEMORY_BYTES_MAX);
        let value = json::from_written_within(body, &budget)
            .map_err(|error| self.fail(Failure::new(ErrorKind::Unreadable).caused_by(error)))?;
        Ok(RawReply {
            value,
            bytes: self.bytes.clone(),
            attempts: self.attempts,
            request_id: self.request_id.clone(),
        })
    }

    /// Returns the error for a body that is not a valid reply of the route.
    pub(crate) fn unreadable(&self) -> Error {
        self.fail(Failure::new(ErrorKind::Unreadable))
    }

    fn fail(&self, failure: Failure) -> Error {
        let request_id = self.request_id.clone();
        Failure {
            request_id,
            ..failure
        }
        .after(self.attempts)
    }
}
