//! The files of commits, which mirrors know.

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_store::tables_with_files;
use svc_model::facts::FactTable;
use svc_model::repository::CommitSha;

/// Names the files that commits changed.
pub trait ChangedFiles: Send {
    /// Returns the paths of the files that commits of a repository changed, with the index of the
    /// commit. Nothing is said of a commit that cannot be read.
    fn of(
        &mut self,
        repository: &Lifetime,
        commits: &[CommitSha],
        deadline: &Deadline,
    ) -> Vec<(usize, String)>;
}

/// Returns the kinds of fact whose quarantine changes what the index has.
pub fn followed_tables() -> impl Iterator<Item = FactTable> {
    tables_with_files().chain([
        FactTable::InferenceCalls,
        FactTable::SessionCommitObservations,
    ])
}
