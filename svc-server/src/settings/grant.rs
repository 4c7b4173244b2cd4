//! What a configured retrieval token may read.

use svc_model::id::SessionId;

/// The Sessions that context routes may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// None, so the context routes are closed.
    None,
    /// One Session, which requests need not name.
    Single(SessionId),
    /// Several Sessions, sorted.
    Plural(Vec<SessionId>),
}

impl Grant {
    /// Returns the Sessions.
    pub fn sessions(&self) -> &[SessionId] {
        match self {
            Self::None => &[],
            Self::Single(session_id) => std::slice::from_ref(session_id),
            Self::Plural(session_ids) => session_ids,
        }
    }
}
