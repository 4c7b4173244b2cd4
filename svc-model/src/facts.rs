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
use crate::usage::{CallSource, CallUsage};

/// Declares the kinds of fact. Each has a text for the kind and one for its count, which is a
/// member of [`FactTables`], and of [`SessionFactTables`] if its facts are events of a Session.
macro_rules! kinds {
    (@kind $kind:ident $member:ident) => {
        FactTable::$kind
    };
    ($(
        #[doc = $of_kind:literal]
        $kind:ident = $wire:literal,
        #[doc = $of_count:literal]
        $(#[$form:meta])*
        $member:ident $(and Session: $(#[$of_form:meta])* $of_session:ident)?,
    )+) => {
        closed_set! {
            /// The kinds of fact, one table each. A Session is not a fact, so it cannot be
            /// quarantined.
            pub enum FactTable {
                $(#[doc = $of_kind] $kind = $wire,)+
            }
        }

        /// How many facts are stored, by kind.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[cfg_attr(not(feature = "service"), non_exhaustive)]
        pub struct FactTables {
            $(#[doc = $of_count] $(#[$form])* pub $member: FactCount,)+
        }

        impl FactTables {
            /// Returns the counts of one kind.
            pub fn get(&self, table: FactTable) -> FactCount {
                match table {
                    $(FactTable::$kind => self.$member,)+
                }
            }

            /// Returns the kinds and their counts, without kinds that are absent from an answer while
            /// there are no facts.
            pub fn shown(self) -> impl Iterator<Item = (FactTable, FactCount)> {
                let counts = FactTable::ALL.iter();
                let counts = counts.map(move |table| (*table, self.get(*table)));
                counts.filter(|(table, count)| !table.is_absent_at_zero() || !count.is_zero())
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
                    $($member: count(FactTable::$kind)?,)+
                })
            }
        }

        /// How many facts name a Session, by kind. Other kinds of fact are not about a single
        /// Session, or name it only through a note.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[cfg_attr(not(feature = "service"), non_exhaustive)]
        pub struct SessionFactTables {
            $($(#[doc = $of_count] $(#[$of_form])* pub $of_session: FactCount,)?)+
        }

        #[cfg(feature = "service")]
        impl SessionFactTables {
            /// The kinds that are counted.
            pub const KINDS: &'static [FactTable] = &[$($(kinds!(@kind $kind $of_session),)?)+];

            /// Builds the counts by calling `count` for each of [`Self::KINDS`].
            ///
            /// # Errors
            ///
            /// The first error of `count`.
            pub fn try_from_fn<E>(
                mut count: impl FnMut(FactTable) -> Result<FactCount, E>,
            ) -> Result<Self, E> {
                Ok(Self {
                    $($($of_session: count(FactTable::$kind)?,)?)+
                })
            }
        }
    };
}

kinds! {
    /// Calls of a model, copied from a gateway.
    InferenceCalls = "inference_calls",
    /// Calls of a model.
    inference_calls and Session: inference_calls,

    /// Proposed edits that a person, or a rule of theirs, accepted or rejected.
    DeveloperDecisions = "developer_decisions",
    /// Accepted and rejected edits.
    developer_decisions and Session: developer_decisions,

    /// Results of CI runs.
    CiOutcomes = "ci_outcomes",
    /// Results of CI runs.
    ci_outcomes,

    /// Pushes to a forge.
    Pushes = "pushes",
    /// Pushes to a forge.
    pushes,

    /// Merged pull requests.
    PullRequestMerges = "pull_request_merges",
    /// Merged pull requests.
    pull_request_merges,

    /// Pull requests that were opened, were reopened or got a new head.
    PullRequestRevisions = "pull_request_revisions",
    /// Pull requests that were opened, were reopened or got a new head.
    pull_request_revisions,

    /// Applied edits, compared with a later version of their files.
    EditObservations = "edit_observations",
    /// Applied edits, compared with a later version of their files.
    edit_observations and Session: edit_observations,

    /// Edits that a person refused, with the proposed text.
    RejectedEdits = "rejected_edits",
    /// Edits that a person refused.
    rejected_edits and Session: rejected_edits,

    /// Refused edits that were retried successfully.
    RetryLinkages = "retry_linkages",
    /// Refused edits that were retried successfully.
    retry_linkages and Session: retry_linkages,

    /// Notes on commits that name a Session.
    SessionCommitObservations = "session_commit_observations",
    /// Notes on commits that name a Session.
    session_commit_observations,

    /// Renames of repositories, as the forge reported them.
    RepositoryRenames = "repository_renames",
    /// Renames of repositories.
    repository_renames,

    /// Clients' reports that a model was called, without what was said.
    UsageReceipts = "usage_receipts",
    /// Clients' reports that a model was called. Absent while there are none.
    #[serde(default, skip_serializing_if = "FactCount::is_zero")]
    usage_receipts and Session:
        #[serde(default, skip_serializing_if = "FactCount::is_zero")]
        usage_receipts,
}

/// How many facts of one kind are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FactCount {
    /// The number of all facts, including quarantined ones.
    pub total: u64,
    /// The number of facts that are not quarantined.
    pub visible: u64,
}

impl FactTable {
    /// Returns whether answers that count facts lack the kind while there are none.
    const fn is_absent_at_zero(self) -> bool {
        matches!(self, Self::UsageReceipts)
    }
}

impl FactCount {
    /// Returns whether there are no facts.
    pub const fn is_zero(&self) -> bool {
        self.total == 0
    }
}

/// How many Sessions and facts the organization has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FactsCounts {
    /// The number of Sessions that some fact names.
    pub sessions: u64,
    /// The facts, by kind.
    pub tables: FactTables,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
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
}

impl Request for SessionRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::SESSION_ID,];

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

/// How many facts name one Session. For an unknown Session, every count is 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionFactsCounts {
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The facts, by kind.
    pub tables: SessionFactTables,
}

/// The metadata of one visible call. What the gateway did not report is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionInferenceCall {
    /// The id of the call.
    #[cfg_attr(feature = "schema", schemars(with = "crate::id::InferenceCallId"))]
    pub inference_call_id: FactId,
    /// The id that the gateway or the model gave the call; null if unknown.
    pub model_call_id: Option<String>,
    /// The kind of gateway that the call was copied from.
    pub gateway_provider: Open<GatewayProvider>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_source: Option<Open<CallSource>>,
    /// The agent or program that made the call; absent if its source does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its cost and the kinds of its tokens.
    #[serde(flatten)]
    pub usage: CallUsage,
}

/// The visible calls of one Session, by observation time, then by id. At most 1,000; a Session with
/// more is declined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionInferenceCalls {
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The calls. Empty for an unknown Session.
    pub inference_calls: Vec<SessionInferenceCall>,
}

closed_set! {
    /// The coding agent that a developer works with.
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
    /// Where an edit was proposed to the developer.
    pub enum InteractionMode {
        /// By the agent, in the course of its own work. It does not say whether a person was asked.
        Agent = "agent",
        /// As a proposal in the editor.
        Inline = "inline",
    }
}

/// The tool calls that the model requested in one visible call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityCall {
    /// The distinct ids of the tool calls, sorted. Empty if there are none, or if the content of
    /// the call was erased.
    pub tool_call_ids: Vec<String>,
    /// When the content of the call was erased, and the ids with it. Absent if it was not erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased_at: Option<Instant>,
}

/// One visible decision about a proposed edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityDecision {
    /// The agent that proposed the edit.
    pub agent_harness: Open<AgentHarness>,
    /// Whether the edit was accepted.
    pub accepted: bool,
    /// Whether a person decided, rather than a rule.
    pub explicit: bool,
    /// Where the edit was proposed.
    pub interaction_mode: Open<InteractionMode>,
    /// The agent's id of the tool call that the decision is about; null if unknown.
    pub call_id: Option<String>,
}

/// One visible edit observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityEdit {
    /// The agent that made the edit.
    pub agent_harness: Open<AgentHarness>,
    /// The agent's id of the tool call that made the edit.
    pub call_id: String,
}

/// What an agent harness can compare with its own records of a Session: no content, no paths, no
/// users and no fact ids. At most 50 calls, 1,000 decisions and 1,000 edit observations; a Session
/// with more is declined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CompatibilityEvidence {
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The visible calls, by observation time, then by id.
    pub inference_calls: Vec<CompatibilityCall>,
    /// The visible decisions, by time, then by id.
    pub developer_decisions: Vec<CompatibilityDecision>,
    /// The visible edit observations, by time, then by id.
    pub edit_observations: Vec<CompatibilityEdit>,
}
