//! Up to which moment the facts of repositories reach.

use svc_model::time::Instant;

use super::column::Columns;
use super::{Snapshot, StoreError};

/// The latest visible fact of a kind. It is found from the end of an index that only this question
/// uses, whence the expression; only quarantined facts are stepped over.
macro_rules! latest {
    ($table:literal) => {
        concat!(
            "SELECT f.captured_at_us FROM visible_",
            $table,
            " f WHERE f.org_id || '' = $1 ORDER BY f.captured_at_us DESC LIMIT 1"
        )
    };
}

/// Every kind of fact that names a repository.
const LATEST: [&str; 6] = [
    latest!("pushes"),
    latest!("ci_outcomes"),
    latest!("session_commit_observations"),
    latest!("pull_request_revisions"),
    latest!("pull_request_merges"),
    latest!("repository_renames"),
];

impl Snapshot<'_> {
    /// Returns when the latest visible fact that names a repository was received; nothing when there
    /// is none.
    pub fn latest_repository_fact(&mut self) -> Result<Option<Instant>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        let mut latest = None;
        for sql in LATEST {
            let found = self.connection()?.first(sql, &keys, |row| {
                Columns::of(row, "a fact of a repository", &["captured_at_us"]).next()
            })?;
            latest = latest.max(found);
        }
        Ok(latest)
    }
}
