use svc_model::id::FactId;
use svc_model::repository::{Branch, CommitSha, RepositoryIdentity, RepositoryProvider};
use svc_model::time::Instant;

/// The identity of a pull request, and its commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// The kind of forge.
    pub provider: RepositoryProvider,
    /// The name of the base repository in this fact.
    pub repo: String,
    /// The identity of the base repository, if the forge sent one.
    pub repository: Option<RepositoryIdentity>,
    /// The number of the pull request, from 1.
    pub pr_number: i64,
    /// The name of the head repository; absent if that repository was deleted.
    pub head_repo: Option<String>,
    /// The identity of the head repository, if the forge sent one.
    pub head_repository: Option<RepositoryIdentity>,
    /// The head branch.
    pub head_ref: Branch,
    /// Its commit.
    pub head_sha: CommitSha,
    /// The base branch.
    pub base_ref: Branch,
    /// Its commit.
    pub base_sha: CommitSha,
}

/// A pull request when it was opened, or after a push changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestRevision {
    /// The id of the fact.
    pub revision_id: FactId,
    /// The pull request.
    pub pull_request: PullRequest,
    /// The head before the push that changed it.
    pub previous_head_sha: Option<CommitSha>,
    /// The forge's id of the delivery.
    pub source_event_id: Option<String>,
    /// When the service received it.
    pub captured_at: Instant,
}

/// A merged pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestMerge {
    /// The id of the fact.
    pub merge_id: FactId,
    /// The pull request.
    pub pull_request: PullRequest,
    /// The commit that contains the merged work.
    pub merge_commit_sha: CommitSha,
    /// When it was merged, by the forge's clock.
    pub merged_at: Instant,
    /// The forge's id of the delivery.
    pub source_event_id: Option<String>,
    /// When the service received it.
    pub captured_at: Instant,
}
