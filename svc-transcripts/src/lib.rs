//! Reads the transcripts that coding agents keep on disk: bytes become calls.
//!
//! The formats are internal to the agents and change every month. So a line or member of a kind that
//! is not known is counted and never an error, and a file in which nothing known is left is named.
//! There is no I/O and no clock here: the caller gives the lines of a file in order, each with its
//! offset, and may go on later from a [`Bookmark`].

mod agent;
mod bookmark;
mod content;
mod context;
mod conversation;
mod cut;
mod format;
mod reader;
mod tally;
mod value;

use serde::{Deserialize, Serialize};
use svc_model::id::SessionId;
use svc_model::ingest::{ContinuedCall, SentCall};

pub use self::agent::Agent;
pub use self::reader::TranscriptReader;
pub use self::tally::Tally;

/// A call that a transcript has.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptCall {
    /// The Session that it belongs to.
    pub session_id: SessionId,
    /// The Session that this Session continues, if the file says so.
    pub continues: Option<ContinuedCall>,
    /// The version of the agent that wrote it.
    pub agent_version: Option<String>,
    /// The call.
    pub call: SentCall,
}

/// From where a later reading of the same file goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The offset of the first line to give to the reader.
    pub offset: u64,
    /// What the reader has to know of the lines before it: bounded, whatever the size of the file.
    pub state: String,
}

/// The error for a line that builds on a line that the reader no longer has. The file must be read
/// again from its start, by a reader that keeps everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line builds on one that is no longer known; read the file from its start")]
pub struct Lost;
