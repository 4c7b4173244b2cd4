//! Commits, as a person names them.

use svc_model::repository::CommitSha;

use super::note::repository;
use crate::error::CommandError;

/// Reads a commit: its full id, or, in a clone, what git knows it by: `HEAD`, a branch, the first
/// digits of its id.
pub(crate) fn commit(argument: &str, text: &str) -> Result<CommitSha, CommandError> {
    CommitSha::new(&full(text)).ok_or_else(|| {
        CommandError::argument(
            argument,
            "must be 40 or 64 hexadecimal digits, or name a commit of the clone that svc is called in",
        )
    })
}

/// Returns the full id of the commit that git knows by this text, or the text when there is none. Git
/// is not asked about a full id.
pub(crate) fn full(text: &str) -> String {
    let is_full = CommitSha::new(text).is_some();
    let found = if is_full {
        None
    } else {
        // Without git, and outside a clone, only full ids are commits.
        repository::commit(text).ok()
    };
    found.unwrap_or_else(|| text.to_owned())
}
