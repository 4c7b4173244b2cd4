//! Exported facts: one JSON object per line, for other programs.

use serde::Serialize;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

use crate::evidence::{LeftOut, Message};
use crate::facts::{AgentHarness, InteractionMode};
use crate::id::{FactId, SessionId, UserId};
use crate::ingest::{CiProvider, CiResult, GatewayProvider};
use crate::json::{Json, Text};
use crate::repository::{
    Branch, CommitSha, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::time::Instant;

/// One visible fact, by its kind. Text that people, models or machines wrote is in `content`, which
/// is present only on request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExportedFact {
    /// A model call.
    InferenceCalls(Box<ExportedCall>),
    /// An accepted or rejected proposal.
    DeveloperDecisions(Box<ExportedDecision>),
    /// The result of a CI run.
    CiOutcomes(Box<ExportedCiOutcome>),
    /// A push to a forge.
    Pushes(Box<ExportedPush>),
    /// A merged pull request.
    PullRequestMerges(Box<ExportedMerge>),
    /// A state of a pull request.
    PullRequestRevisions(Box<ExportedRevision>),
    /// What became of an edit.
    EditObservations(Box<ExportedEdit>),
    /// An edit that a person refused.
    RejectedEdits(Box<ExportedRejection>),
    /// A refused edit and the edit that was accepted instead.
    RetryLinkages(Box<ExportedRetry>),
    /// A commit that a note links to a Session.
    SessionCommitObservations(Box<ExportedObservation>),
    /// A renamed repository.
    RepositoryRenames(Box<ExportedRename>),
}

/// Declares what is exported of a kind of fact.
macro_rules! exported {
    ($(
        $(#[$of_type:meta])+
        pub struct $name:ident {
            $($(#[$of_member:meta])+ pub $member:ident: $type:ty,)+
        }
    )+) => {$(
        $(#[$of_type])+
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[cfg_attr(not(feature = "service"), non_exhaustive)]
        pub struct $name {
            $($(#[$of_member])+ pub $member: $type,)+
        }
    )+};
}

exported! {
    /// A model call.
    pub struct ExportedCall {
        /// The id of the fact.
        pub inference_call_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The user.
        pub user_id: Option<UserId>,
        /// The kind of gateway.
        pub gateway_provider: GatewayProvider,
        /// The gateway's or the model's own id of the call.
        pub model_call_id: Option<String>,
        /// The provider of the model.
        pub model_provider: Option<String>,
        /// The model.
        pub model: Option<String>,
        /// Tokens of the prompt.
        pub input_tokens: Option<i64>,
        /// Tokens of the answer.
        pub output_tokens: Option<i64>,
        /// Duration in milliseconds.
        pub duration_ms: Option<i64>,
        /// When it was observed, by the sender's clock; else when it was received.
        pub observed_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// Bytes of the canonical input messages: 2, of an empty list, once they were erased.
        pub input_bytes: u64,
        /// Bytes of the canonical output messages, as of the input.
        pub output_bytes: u64,
        /// What the capture left out of them.
        pub left_out: LeftOut,
        /// When its content was erased. Then there is none, and nobody has it any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// What was sent and answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<CallContent>,
    }

    /// What was sent to the model, and what it answered.
    pub struct CallContent {
        /// What was sent to the model.
        pub input_messages: Vec<Message>,
        /// What the model answered.
        pub output_messages: Vec<Message>,
        /// The gateway's complete payload, redacted.
        pub raw: Json,
    }

    /// What the sender sent, redacted.
    pub struct RawContent {
        /// The sender's payload, redacted.
        pub raw: Json,
    }

    /// An accepted or rejected proposal.
    pub struct ExportedDecision {
        /// The id of the fact.
        pub decision_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The user.
        pub user_id: Option<UserId>,
        /// The agent.
        pub agent_harness: AgentHarness,
        /// The path of the file, as the agent wrote it; empty if unknown.
        pub file_path: String,
        /// Whether the edit was accepted.
        pub accepted: bool,
        /// Whether a person decided, rather than a rule.
        pub explicit: bool,
        /// Where the edit was proposed.
        pub interaction_mode: InteractionMode,
        /// The commit that was checked out.
        pub commit_sha: Option<CommitSha>,
        /// The agent's id of the tool call.
        pub call_id: Option<String>,
        /// The share of the edit that was still present at a later check, from 0 to 1.
        pub edit_retention_score: Option<f64>,
        /// Milliseconds between the edit and that check; present only with a score.
        pub observation_delay_ms: Option<i64>,
        /// When it was decided, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When its content was erased. Then there is none, and nobody has it any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The sender's payload, redacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }

    /// What became of an edit.
    pub struct ExportedEdit {
        /// The id of the fact.
        pub observation_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The user.
        pub user_id: Option<UserId>,
        /// The agent.
        pub agent_harness: AgentHarness,
        /// The agent's id of the tool call.
        pub call_id: String,
        /// The path of the file, as the agent wrote it.
        pub file_path: String,
        /// Lines added by something other than the agent; null if not measured.
        pub external_lines_added: Option<i64>,
        /// Lines removed by something other than the agent; null if not measured.
        pub external_lines_removed: Option<i64>,
        /// When it was observed, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When its content was erased. Then there is none, and nobody has it any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The texts.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<EditContent>,
    }

    /// The text of an edit and of its file later.
    pub struct EditContent {
        /// The text that the edit inserted.
        pub applied_text: Text,
        /// The later content of the file; empty if the file was gone.
        pub observed_file_text: Text,
        /// The rest of the sender's payload, redacted.
        pub raw: Json,
    }

    /// An edit that a person refused.
    pub struct ExportedRejection {
        /// The id of the fact.
        pub rejection_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The user.
        pub user_id: Option<UserId>,
        /// The agent.
        pub agent_harness: AgentHarness,
        /// The agent's id of the tool call.
        pub call_id: String,
        /// The path of the file, as the agent wrote it.
        pub file_path: String,
        /// When it was refused, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When its content was erased. Then there is none, and nobody has it any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The text.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RejectionContent>,
    }

    /// The text of a refused edit.
    pub struct RejectionContent {
        /// The text that was proposed.
        pub proposed: Text,
        /// The rest of the sender's payload, redacted.
        pub raw: Json,
    }

    /// A refused edit and the edit that was accepted instead.
    pub struct ExportedRetry {
        /// The id of the fact.
        pub retry_linkage_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The user.
        pub user_id: Option<UserId>,
        /// The agent.
        pub agent_harness: AgentHarness,
        /// The tool.
        pub tool_name: String,
        /// The path of the file, as the agent wrote it.
        pub file_path: String,
        /// The agent's id of the refused call.
        pub rejected_call_id: String,
        /// The agent's id of the accepted call.
        pub accepted_call_id: String,
        /// When the accepted call was made, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When its content was erased. Then there is none, and nobody has it any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The sender's payload, redacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }

    /// A push to a forge.
    pub struct ExportedPush {
        /// The id of the fact.
        pub push_id: FactId,
        /// The kind of forge.
        pub provider: RepositoryProvider,
        /// The name of the repository on this fact.
        pub repo: String,
        /// The identity of the repository, if the forge sent one.
        pub repository: Option<RepositoryIdentity>,
        /// The clone URL of the repository.
        pub clone_url: String,
        /// The ref with its `refs/heads/`.
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

    /// What a fact says about its pull request.
    pub struct ExportedPullRequest {
        /// The kind of forge.
        pub provider: RepositoryProvider,
        /// The name of the base repository on this fact.
        pub repo: String,
        /// The identity of the base repository, if the forge sent one.
        pub repository: Option<RepositoryIdentity>,
        /// The number of the pull request, from 1.
        pub pr_number: i64,
        /// The name of the head repository; null if that repository was deleted.
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

    /// A state of a pull request.
    pub struct ExportedRevision {
        /// The id of the fact.
        pub revision_id: FactId,
        /// The pull request.
        pub pull_request: ExportedPullRequest,
        /// The head before the push that changed it.
        pub previous_head_sha: Option<CommitSha>,
        /// The forge's id of the delivery.
        pub source_event_id: Option<String>,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// A merged pull request.
    pub struct ExportedMerge {
        /// The id of the fact.
        pub merge_id: FactId,
        /// The pull request.
        pub pull_request: ExportedPullRequest,
        /// The commit that contains the merged work.
        pub merge_commit_sha: CommitSha,
        /// When it was merged, by the forge's clock.
        pub merged_at: Instant,
        /// The forge's id of the delivery.
        pub source_event_id: Option<String>,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// A renamed repository.
    pub struct ExportedRename {
        /// The id of the fact.
        pub rename_id: FactId,
        /// The repository.
        pub repository: RepositoryIdentity,
        /// The old name.
        pub old_repo: RepositoryName,
        /// The new name.
        pub new_repo: RepositoryName,
        /// The forge's id of the delivery.
        pub source_event_id: Option<String>,
        /// When it was renamed, if known.
        pub occurred_at: Option<Instant>,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// A commit that a note links to a Session.
    pub struct ExportedObservation {
        /// The id of the fact.
        pub observation_id: FactId,
        /// The Session that the note names.
        pub session_id: SessionId,
        /// The name of the repository on the push that led to the note.
        pub repo: RepositoryName,
        /// The identity of the repository on that push.
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

    /// The result of a CI run.
    pub struct ExportedCiOutcome {
        /// The id of the fact.
        pub outcome_id: FactId,
        /// The CI system.
        pub provider: CiProvider,
        /// Its id of the run.
        pub run_id: String,
        /// The attempt, if there is one.
        pub run_attempt: Option<i64>,
        /// The name of the repository on this fact.
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
        /// The type of the event that reported the outcome.
        pub source_event_type: Option<Text>,
        /// The version of the specification of that event.
        pub source_spec_version: Option<Text>,
        /// The id of that event.
        pub source_event_id: Option<String>,
        /// The pull request of the run.
        pub pr_number: Option<i64>,
        /// When the service received it.
        pub captured_at: Instant,
        /// The forge's payload, redacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }
}
