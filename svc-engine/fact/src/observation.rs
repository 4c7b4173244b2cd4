use svc_model::id::{FactId, SessionId};
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

/// A captured link between a Session and a commit, read from a commit note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCommitObservation {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session that the note names.
    pub session_id: SessionId,
    /// The name of the repository in the push that led to the note.
    pub repo: RepositoryName,
    /// The identity of the repository in that push.
    pub repository: Option<RepositoryIdentity>,
    /// The commit that carries the note.
    pub commit_sha: CommitSha,
    /// The push that led to the note.
    pub source_push_id: FactId,
    /// The notes ref that it was read from.
    pub notes_ref: String,
    /// When the service read it.
    pub captured_at: Instant,
}
