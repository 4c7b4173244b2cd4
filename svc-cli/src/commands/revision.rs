//! Parses commits on the command line.

use svc_model::repository::CommitSha;

use super::note::repository;
use crate::error::CommandError;

/// Parses a commit: its full id, or inside a clone any name that git knows, such as `HEAD`, a
/// branch or a short id.
pub(crate) fn commit(argument: &str, text: &str) -> Result<CommitSha, CommandError> {
    CommitSha::new(&full(text)).ok_or_else(|| {
        CommandError::argument(
            argument,
            "must be 40 or 64 hexadecimal digits, or the name of a commit in the current clone",
        )
        .hint(
            "run it in a clone of the repository, or give the whole id: svc session SESSION --json",
        )
    })
}

/// Returns the full id of the commit that git resolves this text to, or the text itself if there is
/// none. For a full id, git is not asked.
pub(crate) fn full(text: &str) -> String {
    let is_full = CommitSha::new(text).is_some();
    let found = if is_full {
        None
    } else {
        // Without git or outside a clone, only full ids are accepted.
        repository::commit(text).ok()
    };
    found.unwrap_or_else(|| text.to_owned())
}
