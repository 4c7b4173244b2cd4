//! Counts of facts and the metadata of a Session's facts.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::field::Violations;
use crate::id::{FactId, SessionId};
use crate::ingest::GatewayProvider;
use crate::json::WriteError;
use crate::open::Open;
use crate::parameter::{Declared, Parameter, parameters};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

closed_set! {
    /// The kinds of fact, each a table. Sessions are not facts and cannot be quarantined.
    pub enum FactTable {
        /// Model calls copied from a gateway.
        InferenceCalls = "inference_calls",
        /// Accepted and rejected proposals.
        DeveloperDecisions = "developer_decisions",
        /// Results of CI runs.
        CiOutcomes = "ci_outcomes",
        /// Pushes to a forge.
        Pushes = "pushes",
        /// Merged pull requests.
        PullRequestMerges = "pull_request_merges",
        /// Opened and synchronized pull requests.
        PullRequestRevisions = "pull_request_revisions",
        /// Applied edits, and what became of their files.
        EditObservations = "edit_observations",
        /// Edits that a person refused.
        RejectedEdits = "rejected_edits",
        /// Refused edits that were retried successfully.
        RetryLinkages = "retry_linkages",
        /// Observed links between Sessions and commits.
        SessionCommitObservations = "session_commit_observations",
        /// Repository rename receipts.
        RepositoryRenames = "repository_renames",
    }
}

/// How many facts of one kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FactCount {
    /// All facts, including quarantined ones.
    pub total: u64,
    /// Facts that are not quarantined.
    pub visible: u64,
}

/// The counts of every kind of fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FactTables {
    /// Model calls.
    pub inference_calls: FactCount,
    /// Developer decisions.
    pub developer_decisions: FactCount,
    /// CI outcomes.
    pub ci_outcomes: FactCount,
    /// Pushes.
    pub pushes: FactCount,
    /// Merged pull requests.
    pub pull_request_merges: FactCount,
    /// Pull request revisions.
    pub pull_request_revisions: FactCount,
    /// Edit observations.
    pub edit_observations: FactCount,
    /// Rejected edits.
    pub rejected_edits: FactCount,
    /// Retry linkages.
    pub retry_linkages: FactCount,
    /// Session commit observations.
    pub session_commit_observations: FactCount,
    /// Repository rename receipts.
    pub repository_renames: FactCount,
}

impl FactTables {
    /// Returns the counts of one kind.
    pub fn get(&self, table: FactTable) -> FactCount {
        match table {
            FactTable::InferenceCalls => self.inference_calls,
            FactTable::DeveloperDecisions => self.developer_decisions,
            FactTable::CiOutcomes => self.ci_outcomes,
            FactTable::Pushes => self.pushes,
            FactTable::PullRequestMerges => self.pull_request_merges,
            FactTable::PullRequestRevisions => self.pull_request_revisions,
            FactTable::EditObservations => self.edit_observations,
            FactTable::RejectedEdits => self.rejected_edits,
            FactTable::RetryLinkages => self.retry_linkages,
            FactTable::SessionCommitObservations => self.session_commit_observations,
            FactTable::RepositoryRenames => self.repository_renames,
        }
    }

    /// Builds the counts by calling `count` for each kind.
    ///
    /// # Errors
    ///
    /// The first error of `count`.
    pub fn try_from_fn<E>(
        mut count: impl FnMut(FactTable) -> Result<FactCount, E>,
    ) -> Result<Self, E> {
        Ok(Self {
            inference_calls: count(FactTable::InferenceCalls)?,
            developer_decisions: count(FactTable::DeveloperDecisions)?,
            ci_outcomes: count(FactTable::CiOutcomes)?,
            pushes: count(FactTable::Pushes)?,
            pull_request_merges: count(FactTable::PullRequestMerges)?,
            pull_request_revisions: count(FactTable::PullRequestRevisions)?,
            edit_observations: count(FactTable::EditObservations)?,
            rejected_edits: count(FactTable::RejectedEdits)?,
            retry_linkages: count(FactTable::RetryLinkages)?,
            session_commit_observations: count(FactTable::SessionCommitObservations)?,
            repository_renames: count(FactTable::RepositoryRenames)?,
        })
    }
}

/// The counts of the organization's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FactsCounts {
    /// Known Sessions.
    pub sessions: u64,
    /// Facts by kind.
    pub tables: FactTables,
    /// The high-water mark of the quarantine log in the snapshot of this answer.
    pub quarantine_revision: u64,
}

/// A request that names a Session in its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SessionRequest {
    /// The Session; a slash in it is percent-encoded.
    pub session_id: SessionId,
}

impl SessionRequest {
    const SESSION_ID: Declared<SessionId> = Declared::path(
        "session_id",
        "The Session; a slash in it is percent-encoded.",
    );
    /// The path parameters.
    pub(crate) const PARAMETERS: &'static [Parameter] = parameters![Self::SESSION_ID,];
}

impl Request for SessionRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let session_id = Self::SESSION_ID.read(incoming, &mut violations);
        Ok(violations.finish(|| {
            Some(Self {
                session_id: session_id?,
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        Ok(Self::SESSION_ID.write(Outgoing::default(), &self.session_id))
    }
}

/// The counts of the kinds of fact that name a Session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionFactTables {
    /// Model calls.
    pub inference_calls: FactCount,
    /// Developer decisions.
    pub developer_decisions: FactCount,
    /// Edit observations.
    pub edit_observations: FactCount,
    /// Rejected edits.
    pub rejected_edits: FactCount,
    /// Retry linkages.
    pub retry_linkages: FactCount,
}

/// The counts of one Session's facts. An unknown Session has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionFactsCounts {
    /// The Session, trimmed.
    pub session_id: SessionId,
    /// Its facts by kind.
    pub tables: SessionFactTables,
}

/// The metadata of one visible call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionInferenceCall {
    /// The id of the call.
    #[cfg_attr(feature = "schema", schemars(with = "crate::id::InferenceCallId"))]
    pub inference_call_id: FactId,
    /// The gateway's or the model's own id of the call.
    pub model_call_id: Option<String>,
    /// The kind of gateway.
    pub gateway_provider: Open<GatewayProvider>,
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
}

/// The visible calls of one Session by observation time, then id. At most 1,000.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionInferenceCalls {
    /// The Session, trimmed.
    pub session_id: SessionId,
    /// Its calls.
    pub inference_calls: Vec<SessionInferenceCall>,
}

closed_set! {
    /// The agent that a developer works with.
    pub enum AgentHarness {
        /// Claude Code.
        ClaudeCode = "claude-code",
        /// GitHub Copilot.
        Copilot = "copilot",
        /// Codex.
        Codex = "codex",
        /// Cursor.
        Cursor = "cursor",
        /// pi.
        Pi = "pi",
    }
}

closed_set! {
    /// How the developer worked with the agent.
    pub enum InteractionMode {
        /// The agent acted on its own.
        Agent = "agent",
        /// A proposal in the editor.
        Inline = "inline",
    }
}

/// The tool calls that one visible call requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityCall {
    /// Distinct ids, sorted.
    pub tool_call_ids: Vec<String>,
    /// When the content of the call was erased, and the ids with it. Absent as long as it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased_at: Option<Instant>,
}

/// One visible decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityDecision {
    /// The agent.
    pub agent_harness: Open<AgentHarness>,
    /// Whether the proposal was accepted.
    pub accepted: bool,
    /// Whether a person decided.
    pub explicit: bool,
    /// How the developer worked with the agent.
    pub interaction_mode: Open<InteractionMode>,
    /// The tool call that the decision is about.
    pub call_id: Option<String>,
}

/// One visible edit observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityEdit {
    /// The agent.
    pub agent_harness: Open<AgentHarness>,
    /// The tool call that made the edit.
    pub call_id: String,
}

/// What an agent harness can compare with its own records of a Session: no content, no paths, no
/// users, no fact ids. At most 50 calls, 1,000 decisions and 1,000 edit observations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityEvidence {
    /// The Session, trimmed.
    pub session_id: SessionId,
    /// Its visible calls by observation time, then id.
    pub inference_calls: Vec<CompatibilityCall>,
    /// Its visible decisions by time, then id.
    pub developer_decisions: Vec<CompatibilityDecision>,
    /// Its visible edit observations by time, then id.
    pub edit_observations: Vec<CompatibilityEdit>,
}
