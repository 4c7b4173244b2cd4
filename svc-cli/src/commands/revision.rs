//! Parses commits on the command line.

use svc_engine::capture::repository_url::host_and_path;
use svc_model::repository::{CommitSha, RepositoryName};

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

/// Returns the repository of the current clone, by the URL of its `origin`, if the clone has this
/// commit.
pub(crate) fn repository_of(commit: &CommitSha) -> Option<RepositoryName> {
    // Without git or outside a clone, there is none.
    repository::commit(commit.as_str()).ok()?;
    let url = repository::git(&["remote", "get-url", "origin"]).ok()?;
    RepositoryName::new(host_and_path(&url)?.1)
}
