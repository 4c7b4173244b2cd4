//! Commits at which Sessions were observed.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, SessionId};
use svc_model::repository::{CommitSha, RepositoryDecline};

/// An observation of a Session at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCommit {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The repository, or why it cannot be determined.
    pub repository: Result<Lifetime, RepositoryDecline>,
    /// The commit.
    pub commit_sha: CommitSha,
}

/// Which pairs of a commit and a Session were observed.
#[derive(Clone, Debug, Default)]
pub struct ObservedEdges<'o> {
    repositories: HashMap<&'o Lifetime, Commits<'o>, RandomState>,
}

type Commits<'o> = HashMap<&'o CommitSha, Sessions<'o>, RandomState>;
type Sessions<'o> = HashMap<&'o SessionId, Vec<FactId>, RandomState>;

impl<'o> ObservedEdges<'o> {
    /// Collects the observations whose repository is known.
    pub fn new(observed: &'o [ObservedCommit]) -> Self {
        let mut edges = Self::default();
        for observation in observed {
            if let Ok(repository) = &observation.repository {
                edges
                    .repositories
                    .entry(repository)
                    .or_default()
                    .entry(&observation.commit_sha)
                    .or_default()
                    .entry(&observation.session_id)
                    .or_default()
                    .push(observation.observation_id);
            }
        }
        edges
    }

    /// Returns the observations of an edge; empty if it was not observed.
    pub fn of(
        &self,
        repository: &Lifetime,
        commit_sha: &CommitSha,
        session_id: &SessionId,
    ) -> &[FactId] {
        self.repositories
            .get(repository)
            .and_then(|commits| commits.get(commit_sha)?.get(session_id))
            .map_or(&[], Vec::as_slice)
    }
}
