//! Halves of calls: what a client logged of a request or of a response, before it is known which of
//! them belong together. No half is a fact.

use svc_model::id::{SessionId, UserId};
use svc_model::json::Object;
use svc_model::time::Instant;

/// What identifies a half: a digest of its organization, Session, side, time and sequence.
pub type HalfKey = [u8; 16];

/// A digest of canonical messages.
pub type MessagesDigest = [u8; 16];

/// Which side of a call a half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HalfSide {
    /// The body of a request.
    Request,
    /// The body of a response.
    Response,
}

/// The tool calls of one message of an assistant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledTools {
    /// The digest of the messages before it. Nothing comes before a response's own.
    pub before: MessagesDigest,
    /// The ids of the calls.
    pub ids: Vec<String>,
}

/// What is known of a half without its body: all that tells which halves belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfOutline {
    /// What identifies it.
    pub key: HalfKey,
    /// Its side.
    pub side: HalfSide,
    /// The Session.
    pub session_id: SessionId,
    /// Why the client made the call, in its own words; empty if it did not say.
    pub query_source: String,
    /// The model, as the client names it.
    pub model: Option<String>,
    /// The person's prompt that led to the call.
    pub prompt_id: Option<String>,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// When the client logged it, by its clock.
    pub occurred_at: Instant,
    /// Its number within the client's process.
    pub sequence: Option<i64>,
    /// The provider's id of the request. Only a response has one.
    pub request_id: Option<String>,
    /// When the service received it.
    pub captured_at: Instant,
    /// The digest of the messages of a request, without its system prompt.
    pub messages: MessagesDigest,
    /// The digest of the messages of a request and its system prompt.
    pub input: MessagesDigest,
    /// The tool calls in the messages of a request, or those of a response.
    pub called_tools: Vec<CalledTools>,
}

impl HalfOutline {
    /// Returns whether the client logged this half before another one. Sequences restart with the
    /// client's process, so the time counts first.
    pub fn is_before(&self, other: &Self) -> bool {
        self.moment() < other.moment()
    }

    /// Returns when the client logged it, to be compared.
    pub const fn moment(&self) -> (Instant, Option<i64>) {
        (self.occurred_at, self.sequence)
    }
}

/// A half with its body.
#[derive(Clone, Debug, PartialEq)]
pub struct CallHalf {
    /// What is known of it.
    pub outline: HalfOutline,
    /// The body, with credentials redacted.
    pub body: Object,
}

/// What became of a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfState {
    /// It waits for its other half.
    Open,
    /// It has its other half, but others may still be told by it.
    Witness,
}

/// A half that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHalf {
    /// What is known of it.
    pub outline: HalfOutline,
    /// What became of it.
    pub state: HalfState,
    /// The canonical bytes of its body.
    pub byte_count: u64,
    /// When something may become of it without another half: an open half may be settled, and a
    /// witness is no longer needed.
    pub due_at: Instant,
}
