//! Commit notes become the Sessions that they name.
//!
//! Two kinds are read, each from a ref of its own: the notes of this service, whose grammar is
//! strict because such a note must never carry more than ids, and the authorship notes of git-ai,
//! of which only the agents' own Session ids are taken. A note says what somebody claims; it is
//! evidence and no authority.

mod git_ai;
#[cfg(test)]
mod laws;
mod stamp;
mod svc;

pub use stamp::{Stamp, StampError, addition};

use svc_model::id::SessionId;

/// Bytes of a note of this service.
pub const SVC_NOTE_BYTES_MAX: usize = 65_536;
/// Bytes of a git-ai note: its contract promises senders no more.
pub const GIT_AI_NOTE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Distinct Sessions of a git-ai note. A note of this service holds no more for its size.
pub const GIT_AI_SESSIONS_MAX: usize = 1_024;

/// A ref whose notes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotesRef {
    /// The notes of this service.
    Svc,
    /// The authorship notes of git-ai.
    GitAi,
}

impl NotesRef {
    /// Every ref, in the order in which a Session that both name is observed.
    pub const ALL: [Self; 2] = [Self::Svc, Self::GitAi];

    /// Returns the name of the ref.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Svc => "refs/notes/svc",
            Self::GitAi => "refs/notes/ai",
        }
    }

    /// Returns the ref of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Returns how many bytes a note may have.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Svc => SVC_NOTE_BYTES_MAX,
            Self::GitAi => GIT_AI_NOTE_BYTES_MAX,
        }
    }

    /// Returns the distinct Sessions that a note names, in its order. A Session id that is none
    /// drops only itself.
    ///
    /// # Errors
    ///
    /// When the note is not one of this kind; then nothing of it counts.
    pub fn sessions(self, note: &[u8]) -> Result<Vec<SessionId>, NoteError> {
        if note.len() > self.bytes_max() {
            return Err(NoteError::TooLarge);
        }
        // A text in another encoding would be read as something that no tool shows to people.
        if note.contains(&0) {
            return Err(NoteError::NotJson);
        }
        let text = String::from_utf8_lossy(note);
        match self {
            Self::Svc => svc::sessions(&text),
            Self::GitAi => git_ai::sessions(&text),
        }
    }
}

/// Why a note is ignored. Nothing of the note is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// It has more bytes than a note of its kind may have.
    #[error("it is too large")]
    TooLarge,
    /// It is not the JSON that its kind consists of.
    #[error("it is not JSON")]
    NotJson,
    /// A member is missing, is more than the kind has, or is not what it should be.
    #[error("it is not of the expected shape")]
    Shape,
    /// It names more than [`GIT_AI_SESSIONS_MAX`] Sessions.
    #[error("it names too many Sessions")]
    TooManySessions,
}

/// The distinct Sessions of a note, in the order in which they were named.
#[derive(Debug, Default)]
struct Sessions {
    named: Vec<SessionId>,
    known: std::collections::HashSet<SessionId>,
}

impl Sessions {
    /// Adds a Session, unless the text is no Session id.
    fn add(&mut self, session_id: &svc_model::json::Text) {
        let session_id = session_id.as_str().map(SessionId::new);
        if let Some(Ok(session_id)) = session_id
            && self.known.insert(session_id.clone())
        {
            self.named.push(session_id);
        }
    }
}
