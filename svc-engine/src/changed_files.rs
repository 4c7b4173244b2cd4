//! The files that commits changed, from the mirrors, for the search index.

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_engine_mirror::{MirrorReading, ReadError};
use svc_engine_search::ChangedFiles;
use svc_model::repository::CommitSha;

/// Reads the mirrors of an organization, if it has any.
#[derive(Debug)]
pub(crate) struct MirroredFiles(pub(crate) Option<MirrorReading>);

impl ChangedFiles for MirroredFiles {
    fn of(
        &mut self,
        repository: &Lifetime,
        commits: &[CommitSha],
        deadline: &Deadline,
    ) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        if let Err(error) = self.read(repository, commits, deadline, &mut found) {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "search.files_of_commits_not_read");
        }
        found
    }
}

impl MirroredFiles {
    fn read(
        &self,
        repository: &Lifetime,
        commits: &[CommitSha],
        deadline: &Deadline,
        found: &mut Vec<(usize, String)>,
    ) -> Result<(), ReadError> {
        let Some(mirrors) = &self.0 else {
            return Ok(());
        };
        let Some(mut mirror) = mirrors.open(repository, deadline)? else {
            return Ok(());
        };
        mirror.changes(commits, |place, changes| {
            let changes = changes.ok().flatten().unwrap_or_default().into_iter();
            let paths = changes.filter_map(|change| String::from_utf8(change.path).ok());
            found.extend(paths.map(|path| (place, path)));
        })
    }
}
