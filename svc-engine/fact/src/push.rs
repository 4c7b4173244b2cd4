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
    /// The name of the repository in this fact; empty if the forge sent none.
    pub repo: String,
    /// The identity of the repository, if the forge sent one.
    pub repository: Option<RepositoryIdentity>,
    /// The clone URL, without user info; empty if the forge sent none.
    pub clone_url: String,
    /// The ref, including `refs/heads/`.
    pub r#ref: String,
    /// The branch's previous commit; all zeros if the push created the branch.
    pub before_sha: CommitSha,
    /// The branch's new commit.
    pub after_sha: CommitSha,
    /// Whether the push was forced, that is, not a fast-forward.
    pub forced: bool,
    /// When the service received it.
    pub captured_at: Instant,
}
