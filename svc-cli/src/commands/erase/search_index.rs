//! Waits until the search index of this machine holds nothing of what was erased.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use svc_engine::search::{SearchFile, SearchPathError, state_of};

use crate::commands::place::OpenedLedger;

/// How long a server may take.
const WAIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(200);

/// What became of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErasedIndex {
    /// There is none.
    None,
    /// It was deleted, because no server used it. The next one builds it.
    Deleted,
    /// Its server has erased the words.
    Followed,
    /// Its server may still hold the words.
    Pending,
}

impl ErasedIndex {
    /// Returns the word for programs, unless there is no index.
    pub(super) const fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Deleted => Some("deleted"),
            Self::Followed => Some("erased"),
            Self::Pending => Some("pending"),
        }
    }

    /// Returns the words for people, unless there is no index.
    pub(super) const fn sentence(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Deleted => Some("deleted: the next server builds it anew"),
            Self::Followed => Some("erased from the index of the server on this machine"),
            Self::Pending => Some(
                "not yet erased: its server has not followed; to see what hinders it, run svc capture",
            ),
        }
    }
}

/// Deletes the index if no server uses it, and waits for its server otherwise.
pub(super) fn erase(opened: &OpenedLedger) -> ErasedIndex {
    let Some(path) = opened.search_index().filter(|path| path.exists()) else {
        return ErasedIndex::None;
    };
    match SearchFile::lock(path) {
        Ok(file) => match file.remove() {
            Ok(()) => ErasedIndex::Deleted,
            Err(_) => ErasedIndex::Pending,
        },
        Err(SearchPathError::InUse { .. }) => wait(opened, path),
        Err(_) => ErasedIndex::Pending,
    }
}

fn wait(opened: &OpenedLedger, path: &Path) -> ErasedIndex {
    let revision = opened
        .ledger
        .snapshot()
        .and_then(|mut snapshot| snapshot.revisions());
    let Ok(revisions) = revision else {
        return ErasedIndex::Pending;
    };
    let end = Instant::now() + WAIT;
    while Instant::now() < end {
        let state = state_of(path, &opened.org_id).ok().flatten();
        if state.is_some_and(|state| state.has_erased(revisions.erasure.revision)) {
            return ErasedIndex::Followed;
        }
        thread::sleep(PAUSE);
    }
    ErasedIndex::Pending
}
