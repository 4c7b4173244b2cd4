use svc_model::id::FactId;
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryProvider};
use svc_model::time::Instant;

/// A push to a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The id of the fact.
    pub push_id: FactId,
    /// The kind of forge.
    pub provider: RepositoryProvider,
    /// The name of the repository on this fact; empty when the forge sent none.
    pub repo: String,
    /// The identity of the repository, when the forge sent one.
    pub repository: Option<RepositoryIdentity>,
    /// Where the repository is fetched from, without user info; empty when the forge sent nothing.
    pub clone_url: String,
    /// The ref with its `refs/heads/`.
    pub r#ref: String,
    /// The commit that the branch was at; all zeros when the push made it.
    pub before_sha: CommitSha,
    /// The commit that the branch is at.
    pub after_sha: CommitSha,
    /// Whether the branch was moved to where it could not be reached by adding commits.
    pub forced: bool,
    /// When the service received it.
    pub captured_at: Instant,
}
