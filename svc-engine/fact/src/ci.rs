use svc_model::id::FactId;
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::{Json, Text};
use svc_model::repository::{Branch, CommitSha, RepositoryIdentity};
use svc_model::time::Instant;

/// The outcome of one CI run: metadata only, no logs.
#[derive(Clone, Debug, PartialEq)]
pub struct CiOutcome {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: CiProvider,
    /// The system's id of the run.
    pub run_id: String,
    /// The attempt. An absent one is a value of its own.
    pub run_attempt: Option<i64>,
    /// The name of the repository in this fact; empty if the forge sent none.
    pub repo: String,
    /// The identity of the repository, if the sender gave one.
    pub repository: Option<RepositoryIdentity>,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The branch.
    pub branch: Branch,
    /// The name of the workflow; may be empty.
    pub workflow_name: Text,
    /// The system's id of the workflow.
    pub workflow_id: Option<String>,
    /// The path of the workflow's definition.
    pub workflow_path: Option<String>,
    /// The normalised result.
    pub result: CiResult,
    /// The URL of the run's page.
    pub run_url: Option<Text>,
    /// The system's own word for the result.
    pub provider_result: Option<Text>,
    /// The kind of failure.
    pub error_type: Option<Text>,
    /// Free text about the failure, redacted.
    pub reason: Option<Text>,
    /// The type of the event that the outcome was taken from.
    pub source_event_type: Option<Text>,
    /// The version of the specification of that event.
    pub source_spec_version: Option<Text>,
    /// The id of that event.
    pub source_event_id: Option<String>,
    /// The pull request of the run.
    pub pr_number: Option<i64>,
    /// Whether a signature proves it. Otherwise somebody with a token reported it.
    pub signed: bool,
    /// When the service received it.
    pub captured_at: Instant,
    /// What the forge said about the run, redacted; empty for a vendor's outcome.
    pub raw: Json,
}
