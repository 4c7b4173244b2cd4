use svc_model::id::{FactId, SessionId};
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// A captured link between a Session and a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCommitObservation {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The name of the repository in the push that led to the link.
    pub repo: RepositoryName,
    /// The identity of the repository in that push.
    pub repository: Option<RepositoryIdentity>,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The push that led to the link.
    pub source_push_id: FactId,
    /// Where the link comes from.
    pub origin: ObservationOrigin,
    /// When the service found it.
    pub captured_at: Instant,
}

/// Where a link between a Session and a commit comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservationOrigin {
    /// A note on the commit names the Session. It was read from this notes ref.
    Note(String),
    /// The Session's client reported the commit, and exactly one commit of the mirrors fits.
    Telemetry,
}
