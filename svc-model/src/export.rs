//! Exported facts: one JSON object per line, for other programs.

use serde::Serialize;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

use crate::evidence::{LeftOut, Message};
use crate::facts::{AgentHarness, InteractionMode};
use crate::id::{FactId, SessionId, UserId};
use crate::ingest::{CiProvider, CiResult, GatewayProvider};
use crate::json::{Json, Text};
use crate::query::ObservationSource;
use crate::repository::{
    Branch, CommitSha, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::time::Instant;
use crate::usage::{CallSource, CallUsage, UsageSource};

/// One visible fact, by its kind. Whatever people, models or machines wrote is in `content`, which
/// is present only on request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(extend("type" = "object", "properties" = {
    "inexact": {
        "description": "The places, as JSON Pointers, whose text has U+FFFD instead of half a surrogate pair; the place of an object if the name of a member has it. Absent if there are none.",
        "type": "array",
        "items": { "type": "string" }
    }
})))]
pub enum ExportedFact {
    /// A call of a model.
    InferenceCalls(Box<ExportedCall>),
    /// A proposed edit that was accepted or rejected.
    DeveloperDecisions(Box<ExportedDecision>),
    /// The result of a CI run.
    CiOutcomes(Box<ExportedCiOutcome>),
    /// A push to a forge.
    Pushes(Box<ExportedPush>),
    /// A merged pull request.
    PullRequestMerges(Box<ExportedMerge>),
    /// A state of a pull request: opened, reopened, or with a new head.
    PullRequestRevisions(Box<ExportedRevision>),
    /// An applied edit, and its file at a later check.
    EditObservations(Box<ExportedEdit>),
    /// An edit that a person refused.
    RejectedEdits(Box<ExportedRejection>),
    /// A refused edit and the edit that was accepted instead.
    RetryLinkages(Box<ExportedRetry>),
    /// A link between a Session and a commit.
    SessionCommitObservations(Box<ExportedObservation>),
    /// A renamed repository.
    RepositoryRenames(Box<ExportedRename>),
    /// A client's report that a model was called.
    UsageReceipts(Box<ExportedUsageReceipt>),
}

/// Declares what is exported of each kind of fact.
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
    /// A call of a model.
    pub struct ExportedCall {
        /// The id of the fact.
        pub inference_call_id: FactId,
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The kind of gateway that the call was copied from.
        pub gateway_provider: GatewayProvider,
        /// The id that the gateway or the model gave the call; null if unknown.
        pub model_call_id: Option<String>,
        /// The provider of the model, as the gateway names it; null if unknown.
        pub model_provider: Option<String>,
        /// The model, as the gateway names it; null if unknown.
        pub model: Option<String>,
        /// The number of input tokens; null if unknown.
        pub input_tokens: Option<i64>,
        /// The number of output tokens; null if unknown.
        pub output_tokens: Option<i64>,
        /// The duration of the call in milliseconds; null if unknown.
        pub duration_ms: Option<i64>,
        /// Where the call was captured; absent if a gateway sent it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub capture_source: Option<CallSource>,
        /// The agent or program that made the call; absent if its source does not say so.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub agent: Option<String>,
        /// Its cost and the kinds of its tokens.
        #[serde(flatten)]
        pub usage: CallUsage,
        /// The provider's id of the response; absent if unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub response_id: Option<String>,
        /// The provider's id of the request; absent if unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub request_id: Option<String>,
        /// When the call was observed, by the sender's clock; when the service received it, if the
        /// sender gave no time.
        pub observed_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// The size of the canonical input messages in bytes. 2, the size of an empty list, if they
        /// were erased.
        pub input_bytes: u64,
        /// The size of the canonical output messages in bytes. 2, the size of an empty list, if
        /// they were erased.
        pub output_bytes: u64,
        /// What the capture left out of the messages, by kind.
        pub left_out: LeftOut,
        /// `true` if the request of the call never arrived, so that only the answer is known; absent
        /// otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub input_unpaired: Option<bool>,
        /// The working directory of the agent; absent if unknown or erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cwd: Option<String>,
        /// The branch that was checked out there; absent if unknown or erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub git_branch: Option<String>,
        /// The agent's id of the subagent that made the call; absent if unknown or erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub subagent: Option<String>,
        /// When the content was erased. Nobody has it any more. Absent if it was not erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// What was sent and answered. Present only if content was requested, and not after an
        /// erasure.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<CallContent>,
    }

    /// The messages and the payload of a call.
    pub struct CallContent {
        /// The messages that were sent to the model.
        pub input_messages: Vec<Message>,
        /// The messages that the model answered.
        pub output_messages: Vec<Message>,
        /// The complete payload of the gateway, redacted.
        pub raw: Json,
    }

    /// The payload of the sender.
    pub struct RawContent {
        /// The payload, redacted.
        pub raw: Json,
    }

    /// A proposed edit that was accepted or rejected.
    pub struct ExportedDecision {
        /// The id of the fact.
        pub decision_id: FactId,
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The agent that proposed the edit.
        pub agent_harness: AgentHarness,
        /// The path of the file, as the agent wrote it. Empty if unknown.
        pub file_path: String,
        /// Whether the edit was accepted.
        pub accepted: bool,
        /// Whether a person decided, rather than a rule.
        pub explicit: bool,
        /// Where the edit was proposed.
        pub interaction_mode: InteractionMode,
        /// The commit that was checked out; null if unknown.
        pub commit_sha: Option<CommitSha>,
        /// The agent's id of the tool call that proposed the edit; null if unknown.
        pub call_id: Option<String>,
        /// The share of the edit that was still present at a later check, from 0 to 1; null if not
        /// measured.
        pub edit_retention_score: Option<f64>,
        /// The milliseconds between the edit and that check; null without a score, or if unknown.
        pub observation_delay_ms: Option<i64>,
        /// When it was decided, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When the content was erased. Nobody has it any more. Absent if it was not erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The sender's payload, redacted. Present only if content was requested, and not after an
        /// erasure.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }

    /// An applied edit, and its file at a later check.
    pub struct ExportedEdit {
        /// The id of the fact.
        pub observation_id: FactId,
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The agent that made the edit.
        pub agent_harness: AgentHarness,
        /// The agent's id of the tool call that made the edit.
        pub call_id: String,
        /// The path of the file, as the agent wrote it.
        pub file_path: String,
        /// The number of lines that something other than the agent added; null if not measured.
        pub external_lines_added: Option<i64>,
        /// The number of lines that something other than the agent removed; null if not measured.
        pub external_lines_removed: Option<i64>,
        /// When the file was checked, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When the content was erased. Nobody has it any more. Absent if it was not erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The texts. Present only if content was requested, and not after an erasure.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<EditContent>,
    }

    /// The text of an edit, and its file at a later check.
    pub struct EditContent {
        /// The text that the edit inserted.
        pub applied_text: Text,
        /// The whole file at the later check. Empty if the file was gone.
        pub observed_file_text: Text,
        /// The rest of the sender's payload, redacted.
        pub raw: Json,
    }

    /// An edit that a person refused.
    pub struct ExportedRejection {
        /// The id of the fact.
        pub rejection_id: FactId,
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The agent that proposed the edit.
        pub agent_harness: AgentHarness,
        /// The agent's id of the tool call that proposed the edit.
        pub call_id: String,
        /// The path of the file, as the agent wrote it.
        pub file_path: String,
        /// When it was refused, by the sender's clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// When the content was erased. Nobody has it any more. Absent if it was not erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The text. Present only if content was requested, and not after an erasure.
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
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The agent that made both calls.
        pub agent_harness: AgentHarness,
        /// The tool of both calls.
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
        /// When the content was erased. Nobody has it any more. Absent if it was not erased.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content_erased_at: Option<Instant>,
        /// The sender's payload, redacted. Present only if content was requested, and not after an
        /// erasure.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }

    /// A push to a forge.
    pub struct ExportedPush {
        /// The id of the fact.
        pub push_id: FactId,
        /// The kind of forge.
        pub provider: RepositoryProvider,
        /// The name of the repository on this fact. It may have another name today.
        pub repo: String,
        /// The identity of the repository; null if the forge sent none.
        pub repository: Option<RepositoryIdentity>,
        /// The clone URL of the repository.
        pub clone_url: String,
        /// The full ref, with `refs/heads/`.
        pub r#ref: String,
        /// The previous commit of the branch; all zeros if the push created the branch.
        pub before_sha: CommitSha,
        /// The new commit of the branch.
        pub after_sha: CommitSha,
        /// Whether the push was forced, that is, not a fast-forward.
        pub forced: bool,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// The pull request that a fact is about, as the fact describes it.
    pub struct ExportedPullRequest {
        /// The kind of forge.
        pub provider: RepositoryProvider,
        /// The name of the base repository on this fact.
        pub repo: String,
        /// The identity of the base repository; null if the forge sent none.
        pub repository: Option<RepositoryIdentity>,
        /// The number of the pull request in the base repository, from 1.
        pub pr_number: i64,
        /// The name of the head repository; null if it was deleted.
        pub head_repo: Option<String>,
        /// The identity of the head repository; null if the forge sent none.
        pub head_repository: Option<RepositoryIdentity>,
        /// The head branch.
        pub head_ref: Branch,
        /// The commit of the head branch.
        pub head_sha: CommitSha,
        /// The base branch.
        pub base_ref: Branch,
        /// The commit of the base branch.
        pub base_sha: CommitSha,
    }

    /// A state of a pull request: opened, reopened, or with a new head.
    pub struct ExportedRevision {
        /// The id of the fact.
        pub revision_id: FactId,
        /// The pull request.
        pub pull_request: ExportedPullRequest,
        /// The head before this one; null unless a push changed the head and the forge names the
        /// head before.
        pub previous_head_sha: Option<CommitSha>,
        /// The forge's id of the delivery; null if it sent none.
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
        /// The forge's id of the delivery; null if it sent none.
        pub source_event_id: Option<String>,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// A repository that was renamed.
    pub struct ExportedRename {
        /// The id of the fact.
        pub rename_id: FactId,
        /// The identity of the repository, which the rename did not change.
        pub repository: RepositoryIdentity,
        /// The old name.
        pub old_repo: RepositoryName,
        /// The new name.
        pub new_repo: RepositoryName,
        /// The forge's id of the delivery; null if it sent none.
        pub source_event_id: Option<String>,
        /// When the repository was renamed, by the forge's clock; null if unknown.
        pub occurred_at: Option<Instant>,
        /// When the service received it.
        pub captured_at: Instant,
    }

    /// A client's report that a model was called, without what was said.
    pub struct ExportedUsageReceipt {
        /// The id of the fact.
        pub usage_receipt_id: FactId,
        /// The id of the Session.
        pub session_id: SessionId,
        /// The user; null if unknown.
        pub user_id: Option<UserId>,
        /// The client that reported the call.
        pub source: UsageSource,
        /// The subagent or the skill that made the call; null if the client named none.
        pub agent: Option<String>,
        /// Why the client made the call, in its own words; null if it does not say.
        pub query_source: Option<String>,
        /// The model; null if unknown.
        pub model: Option<String>,
        /// The provider of the model; null if unknown.
        pub model_provider: Option<String>,
        /// The provider's id of the request; null if unknown.
        pub request_id: Option<String>,
        /// The provider's id of the response; null if unknown.
        pub response_id: Option<String>,
        /// The client's id of the request; null if unknown.
        pub client_request_id: Option<String>,
        /// Input tokens that were neither read from a cache nor written to one; null if unknown.
        pub input_tokens_uncached: Option<i64>,
        /// Input tokens that were read from a cache; null if unknown.
        pub cache_read_tokens: Option<i64>,
        /// Input tokens that were written to a cache; null if unknown.
        pub cache_write_tokens: Option<i64>,
        /// Those of them that the cache keeps for five minutes; null if unknown.
        pub cache_write_5m_tokens: Option<i64>,
        /// Those of them that the cache keeps for an hour; null if unknown.
        pub cache_write_1h_tokens: Option<i64>,
        /// All output tokens, including reasoning; null if unknown.
        pub output_tokens: Option<i64>,
        /// The output tokens that were reasoning; null if unknown.
        pub reasoning_tokens: Option<i64>,
        /// The cost in micro-USD as the client reported it, at list price; null if it reported none.
        pub cost_usd_micros: Option<i64>,
        /// The duration of the call in milliseconds; null if unknown.
        pub duration_ms: Option<i64>,
        /// The service tier, if it is not the usual one; null otherwise.
        pub tier: Option<String>,
        /// When the client made the report, by its clock.
        pub occurred_at: Instant,
        /// When the service received it.
        pub captured_at: Instant,
        /// The trace of the call; null unless it was reported by a span.
        pub trace_id: Option<String>,
        /// The span of the call; null unless it was reported by a span.
        pub span_id: Option<String>,
        /// The number of the client's report within its process; null if it has none.
        pub sequence: Option<i64>,
    }

    /// A link between a Session and a commit: a note on the commit names the Session, or the Session's
    /// client reported the commit.
    pub struct ExportedObservation {
        /// The id of the fact.
        pub observation_id: FactId,
        /// The Session.
        pub session_id: SessionId,
        /// The name of the repository on the push that led to the link.
        pub repo: RepositoryName,
        /// The identity of the repository on that push; null if the push has none.
        pub repository: Option<RepositoryIdentity>,
        /// The commit.
        pub commit_sha: CommitSha,
        /// The push that led to the link.
        pub source_push_id: FactId,
        /// The ref that the note was read from; null if the link comes from no note.
        pub notes_ref: Option<String>,
        /// When the service found the link.
        pub captured_at: Instant,
        /// Where the link comes from. Absent if it comes from a note.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<ObservationSource>,
    }

    /// The result of a CI run.
    pub struct ExportedCiOutcome {
        /// The id of the fact.
        pub outcome_id: FactId,
        /// The CI system.
        pub provider: CiProvider,
        /// The CI system's id of the run.
        pub run_id: String,
        /// The number of the attempt, from 1; null if the sender gave none.
        pub run_attempt: Option<i64>,
        /// The name of the repository on this fact. It may have another name today.
        pub repo: String,
        /// The identity of the repository; null if the sender gave none.
        pub repository: Option<RepositoryIdentity>,
        /// The full id of the commit that was checked.
        pub commit_sha: CommitSha,
        /// The branch that was checked. May be empty.
        pub branch: Branch,
        /// The name of the workflow. May be empty.
        pub workflow_name: Text,
        /// The CI system's id of the workflow; null if unknown.
        pub workflow_id: Option<String>,
        /// The path of the workflow's definition; null if unknown.
        pub workflow_path: Option<String>,
        /// The normalised result.
        pub result: CiResult,
        /// The URL of the run's page; null if unknown.
        pub run_url: Option<Text>,
        /// The CI system's own word for the result; null if unknown.
        pub provider_result: Option<Text>,
        /// The kind of failure, as the sender names it; null if unknown.
        pub error_type: Option<Text>,
        /// The sender's free text about the failure, redacted; null if there is none.
        pub reason: Option<Text>,
        /// The type of the event that reported the outcome; null if unknown.
        pub source_event_type: Option<Text>,
        /// The version of the specification of that event; null if unknown.
        pub source_spec_version: Option<Text>,
        /// The id of that event; null if unknown.
        pub source_event_id: Option<String>,
        /// The number of the pull request that the run belongs to; null if unknown.
        pub pr_number: Option<i64>,
        /// Whether a signature proves it. Otherwise somebody with a token reported it.
        pub signed: bool,
        /// When the service received it.
        pub captured_at: Instant,
        /// The payload of the forge, redacted; an empty object if a pipeline reported the run.
        /// Present only if content was requested.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub content: Option<RawContent>,
    }
}
