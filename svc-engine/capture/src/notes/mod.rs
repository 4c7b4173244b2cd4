//! Reads which Sessions commit notes name.
//!
//! Two kinds of notes are read, each from its own ref. The notes of this service have a strict
//! grammar, because such a note must never contain more than ids. Of the authorship notes of
//! git-ai, only the agents' own Session ids are read. A note is a claim of its author: it is
//! evidence, but carries no authority.

mod git_ai;
#[cfg(test)]
mod laws;
mod stamp;
mod svc;

pub use stamp::{Stamp, StampError, addition};

use svc_model::id::SessionId;

/// Maximum bytes of a note of this service.
pub const SVC_NOTE_BYTES_MAX: usize = 65_536;
/// Maximum bytes of a git-ai note, as its specification promises to writers.
pub const GIT_AI_NOTE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum distinct Sessions in a git-ai note. A note of this service cannot have more, because of
/// its size limit.
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
    /// Every ref. A Session in both notes of a commit is observed in this order.
    pub const ALL: [Self; 2] = [Self::Svc, Self::GitAi];

    /// Returns the name of the ref.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Svc => "refs/notes/svc",
            Self::GitAi => "refs/notes/ai",
        }
    }

    /// Returns the ref with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Returns the maximum bytes of a note.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Svc => SVC_NOTE_BYTES_MAX,
            Self::GitAi => GIT_AI_NOTE_BYTES_MAX,
        }
    }

    /// Returns the distinct Sessions of a note, in the order of the note. Invalid Session ids are
    /// ignored.
    ///
    /// # Errors
    ///
    /// If the note is not of this kind. Then nothing in it counts.
    pub fn sessions(self, note: &[u8]) -> Result<Vec<SessionId>, NoteError> {
        if note.len() > self.bytes_max() {
            return Err(NoteError::TooLarge);
        }
        // Text in another encoding would be read differently from how tools show it.
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

/// Why a note is ignored. It repeats nothing from the note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The note is larger than its kind allows.
    #[error("it is too large")]
    TooLarge,
    /// The note is not the JSON that its kind requires.
    #[error("it is not JSON")]
    NotJson,
    /// A member is missing, invalid or unknown for this kind.
    #[error("it is not of the expected shape")]
    Shape,
    /// The note names more than [`GIT_AI_SESSIONS_MAX`] Sessions.
    #[error("it names too many Sessions")]
    TooManySessions,
}

/// The distinct Sessions of a note, in the order of their first occurrence.
#[derive(Debug, Default)]
struct Sessions {
    named: Vec<SessionId>,
    known: std::collections::HashSet<SessionId>,
}

impl Sessions {
    /// Adds a Session if the text is a Session id.
    fn add(&mut self, session_id: &svc_model::json::Text) {
        let session_id = session_id.as_str().map(SessionId::new);
        if let Some(Ok(session_id)) = session_id
            && self.known.insert(session_id.clone())
        {
            self.named.push(session_id);
        }
    }
}
