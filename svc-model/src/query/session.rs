use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter::{TRUE, Truth, asks};
#[cfg(feature = "schema")]
use super::selector::counts_by_decline;
use super::{AttributionSource, CommitLink, Found, LifetimeIdentity, Unknown};
use crate::closed_set;
use crate::facts::{AgentHarness, InteractionMode};
use crate::field::Violations;
use crate::id::{FactId, SessionId};
use crate::ingest::{CiProvider, CiResult, GatewayProvider};
use crate::json::{Json, Text, WriteError};
use crate::open::{Open, Vocabulary};
use crate::parameter::{Declared, Parameter, parameters};
use crate::repository::{Branch, CommitSha, RepositoryDecline, RepositoryProvider};
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;

/// Asks for what was captured of a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDossierRequest {
    /// The Session; a slash in it is percent-encoded.
    pub session_id: SessionId,
    /// Whether to include the files of events, and the pushes and CI outcomes that were delivered
    /// with a commit at which no push left its branch.
    pub explain: bool,
}

impl SessionDossierRequest {
    /// Returns a request with `explain` set.
    pub const fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            explain: true,
        }
    }
}

impl SessionDossierRequest {
    const SESSION_ID: Declared<SessionId> = Declared::path(
        "session_id",
        "The Session; a slash in it is percent-encoded.",
    );
    const EXPLAIN: Declared<Truth> = asks(
        "explain",
        "`true` includes the files of events, and the pushes and CI outcomes that were delivered \
         with a commit at which no push left its branch; by default `false`.",
    );
    /// The path and query parameters.
    pub(crate) const PARAMETERS: &'static [Parameter] =
        parameters![Self::SESSION_ID, Self::EXPLAIN,];
}

impl Request for SessionDossierRequest {
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let session_id = Self::SESSION_ID.read(incoming, v);
        let explain = Self::EXPLAIN.read(incoming, v);
        Ok(violations.finish(|| {
            Some(Self {
                session_id: session_id?,
                explain: explain.is_some_and(Truth::get),
            })
        })?)
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let outgoing = Self::SESSION_ID.write(Outgoing::default(), &self.session_id);
        Ok(Self::EXPLAIN.write_any(outgoing, self.explain.then_some(&TRUE)))
    }
}

/// How many events of one kind a Session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct EventCount {
    /// All events, visible and quarantined.
    pub total: u64,
    /// Events in the timeline.
    pub visible: u64,
    /// Quarantined events.
    pub quarantined: u64,
}

/// How many events of each kind a Session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct EventCoverage {
    /// Model calls.
    pub inference_calls: EventCount,
    /// Developer decisions.
    pub developer_decisions: EventCount,
    /// Edit observations.
    pub edit_observations: EventCount,
    /// Rejected edits.
    pub rejected_edits: EventCount,
    /// Retry linkages.
    pub retry_linkages: EventCount,
}

impl EventCoverage {
    /// Returns whether a gap is there although events of its kind were captured: all are quarantined.
    #[cfg(feature = "service")]
    pub fn has_quarantined(&self, gap: &Open<Gap>) -> bool {
        let Open::Known(gap) = gap else {
            return false;
        };
        let events = match gap {
            Gap::NoInferenceCalls => self.inference_calls,
            Gap::NoDeveloperDecisions => self.developer_decisions,
            Gap::NoEditObservations => self.edit_observations,
            Gap::NoRejectedEdits => self.rejected_edits,
            Gap::NoRetryLinkages => self.retry_linkages,
            Gap::NoCommit | Gap::NoPushes | Gap::NoCiOutcomes => return false,
        };
        events.quarantined > 0
    }

    /// Returns the counts, in the order of their members.
    pub const fn counts(&self) -> [EventCount; 5] {
        [
            self.inference_calls,
            self.developer_decisions,
            self.edit_observations,
            self.rejected_edits,
            self.retry_linkages,
        ]
    }
}

closed_set! {
    /// What was not captured of a Session. It may have happened nevertheless.
    pub enum Gap {
        /// No visible model call.
        NoInferenceCalls = "no_inference_calls_observed",
        /// No visible decision.
        NoDeveloperDecisions = "no_developer_decisions_observed",
        /// No visible edit observation.
        NoEditObservations = "no_edit_observations_observed",
        /// No visible rejected edit.
        NoRejectedEdits = "no_rejected_edits_observed",
        /// No visible retry linkage.
        NoRetryLinkages = "no_retry_linkages_observed",
        /// No commit of the Session was observed.
        NoCommit = "session_commit_unobserved",
        /// A commit was observed, but no push that ends at one.
        NoPushes = "no_exact_push_receipts_observed",
        /// A commit was observed, but no CI outcome of one.
        NoCiOutcomes = "no_ci_outcomes_observed",
    }
}

closed_set! {
    /// The tool of a retried edit.
    pub enum RetryTool {
        /// A change of a file.
        Edit = "Edit",
        /// A whole file.
        Write = "Write",
    }
}

/// One captured event of a Session, without content and user, and without its path unless
/// requested. Unknown members are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "event_type", rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum TimelineEvent {
    /// A model call.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    InferenceCall {
        /// The id of the fact.
        fact_id: FactId,
        /// When the call was observed.
        occurred_at: Instant,
        /// The kind of gateway.
        gateway_provider: Open<GatewayProvider>,
        /// The provider of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_provider: Option<String>,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tokens of the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<i64>,
        /// Tokens of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<i64>,
        /// Duration in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<i64>,
        /// The gateway's or the model's own id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_call_id: Option<String>,
    },
    /// A decision about a proposed edit.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    DeveloperDecision {
        /// The id of the fact.
        fact_id: FactId,
        /// When it was decided, by the sender's clock.
        occurred_at: Instant,
        /// The agent.
        agent_harness: Open<AgentHarness>,
        /// Whether the edit was accepted.
        accepted: bool,
        /// Whether a person decided, rather than a rule.
        explicit: bool,
        /// Where the edit was proposed.
        interaction_mode: Open<InteractionMode>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, if known and requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The commit that was checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_sha: Option<CommitSha>,
    },
    /// What became of the file of an applied edit.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    EditObservation {
        /// The id of the fact.
        fact_id: FactId,
        /// When it was observed, by the sender's clock.
        occurred_at: Instant,
        /// The agent.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, if known and requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call.
        call_id: String,
        /// Whether the lines added by something other than the agent were measured.
        external_lines_added_present: bool,
        /// Whether the lines removed by something other than the agent were measured.
        external_lines_removed_present: bool,
        /// Lines added by something other than the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_lines_added: Option<i64>,
        /// Lines removed by something other than the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_lines_removed: Option<i64>,
    },
    /// An edit that a person refused.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    RejectedEdit {
        /// The id of the fact.
        fact_id: FactId,
        /// When it was refused, by the sender's clock.
        occurred_at: Instant,
        /// The agent.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, if known and requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call.
        call_id: String,
    },
    /// A refused edit that was retried successfully.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    RetryLinkage {
        /// The id of the fact.
        fact_id: FactId,
        /// When the accepted call was made, by the sender's clock.
        occurred_at: Instant,
        /// The agent.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, if known and requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The tool.
        tool_name: Open<RetryTool>,
        /// The agent's id of the refused call.
        rejected_call_id: String,
        /// The agent's id of the accepted call.
        accepted_call_id: String,
    },
}

/// The kinds of event on the wire.
const EVENT_TYPES: [&str; 5] = [
    "inference_call",
    "developer_decision",
    "edit_observation",
    "rejected_edit",
    "retry_linkage",
];

impl Vocabulary for TimelineEvent {
    fn word(&self) -> &'static str {
        self.event_type()
    }

    fn unknown_word(value: &Json) -> Option<&str> {
        let kind = value.as_object()?.get("event_type")?.as_str()?;
        (!EVENT_TYPES.contains(&kind)).then_some(kind)
    }
}

impl TimelineEvent {
    /// Removes the path of the file.
    pub fn hide_path(&mut self) {
        match self {
            Self::InferenceCall { .. } => {}
            Self::DeveloperDecision { file_path, .. }
            | Self::EditObservation { file_path, .. }
            | Self::RejectedEdit { file_path, .. }
            | Self::RetryLinkage { file_path, .. } => *file_path = None,
        }
    }

    /// Returns the path of the file, if known and requested.
    pub fn file_path(&self) -> Option<&str> {
        match self {
            Self::InferenceCall { .. } => None,
            Self::DeveloperDecision { file_path, .. }
            | Self::EditObservation { file_path, .. }
            | Self::RejectedEdit { file_path, .. }
            | Self::RetryLinkage { file_path, .. } => file_path.as_deref(),
        }
    }

    /// Returns when it occurred.
    pub const fn occurred_at(&self) -> Instant {
        match self {
            Self::InferenceCall { occurred_at, .. }
            | Self::DeveloperDecision { occurred_at, .. }
            | Self::EditObservation { occurred_at, .. }
            | Self::RejectedEdit { occurred_at, .. }
            | Self::RetryLinkage { occurred_at, .. } => *occurred_at,
        }
    }

    /// Returns the id of the fact.
    pub const fn fact_id(&self) -> FactId {
        match self {
            Self::InferenceCall { fact_id, .. }
            | Self::DeveloperDecision { fact_id, .. }
            | Self::EditObservation { fact_id, .. }
            | Self::RejectedEdit { fact_id, .. }
            | Self::RetryLinkage { fact_id, .. } => *fact_id,
        }
    }

    /// Returns the kind of event on the wire.
    pub const fn event_type(&self) -> &'static str {
        match self {
            Self::InferenceCall { .. } => "inference_call",
            Self::DeveloperDecision { .. } => "developer_decision",
            Self::EditObservation { .. } => "edit_observation",
            Self::RejectedEdit { .. } => "rejected_edit",
            Self::RetryLinkage { .. } => "retry_linkage",
        }
    }
}

/// An observed link between the Session and a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributedCommit {
    /// A name of the repository: of all its names, the first in alphabetical order.
    pub repo: String,
    /// The commit.
    pub commit_sha: CommitSha,
    /// Always empty, because an observed link needs no inference.
    pub attribution_sources: Vec<Open<AttributionSource>>,
    /// The observations, sorted; at least one.
    pub session_commit_observation_ids: Vec<FactId>,
    /// The identity of the repository; absent if it is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
    /// The visible pushes that brought the commit, whether they left a branch there or at a later
    /// commit, sorted. Present on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_by_push_ids: Option<Vec<FactId>>,
}

closed_set! {
    /// How a push relates to a commit.
    pub enum PushMatch {
        /// The push left its branch at the commit.
        AfterSha = "after_sha",
        /// The push brought the commit, and left its branch at a later one.
        Brought = "brought",
    }
}

/// A push that brought a commit of the Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DossierPush {
    /// The id of the fact.
    pub push_id: FactId,
    /// The kind of forge.
    pub provider: Open<RepositoryProvider>,
    /// The name of the repository on this fact.
    pub repo: String,
    /// The ref with its `refs/heads/`.
    pub r#ref: String,
    /// The branch's previous commit.
    pub before_sha: CommitSha,
    /// The branch's new commit.
    pub after_sha: CommitSha,
    /// Whether the push was forced, that is, not a fast-forward.
    pub forced: bool,
    /// When the service received it.
    pub captured_at: Instant,
    /// How it relates to the commit: `after_sha` in `pushes`.
    pub match_kind: Open<PushMatch>,
    /// The identity of the repository; absent if it is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
}

/// The outcome of a run at a commit of the Session, without the sender's free text. Unknown members
/// are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DossierCiOutcome {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: Open<CiProvider>,
    /// Its id of the run.
    pub run_id: String,
    /// The attempt, as it was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_attempt: Option<i64>,
    /// The name of the repository on this fact, in lower case.
    pub repo: String,
    /// The commit that was checked.
    pub commit_sha: CommitSha,
    /// The branch that was checked; may be empty.
    pub branch: Branch,
    /// The normalised result.
    pub result: Open<CiResult>,
    /// The name of the workflow; may be empty.
    pub workflow_name: Text,
    /// The system's id of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The URL of the run's page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<Text>,
    /// The system's own word for the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_result: Option<Text>,
    /// The kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Text>,
    /// The pull request of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_number: Option<i64>,
    /// When the service received it.
    pub captured_at: Instant,
    /// The link to the commit, with the boundary of this reply.
    pub commit_query: CommitLink,
    /// The identity of the repository; absent if it is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
}

/// Everything that was captured of a Session, as metadata: no content, no user, and no paths unless
/// requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionDossier {
    /// Always true.
    pub found: Found,
    /// The Session, trimmed.
    pub session_id: SessionId,
    /// When its first fact was received, or observed if it is a call. Quarantined facts count.
    pub first_observed_at: Instant,
    /// The same for its last fact.
    pub last_observed_at: Instant,
    /// How many events of each kind there are.
    pub coverage: EventCoverage,
    /// How many events are quarantined and therefore not in the timeline.
    pub omitted_events: u64,
    /// Of how many facts of the Session, quarantined ones included, the content was erased. The facts are
    /// there as before. Absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased: Option<u64>,
    /// What was not captured, in a fixed order.
    pub gaps: Vec<Open<Gap>>,
    /// The visible events by time, then kind, then id.
    pub timeline: Vec<Open<TimelineEvent>>,
    /// The commits that were observed, by repository, then commit.
    pub attributed_commits: Vec<AttributedCommit>,
    /// The pushes that left a branch at one of them, by capture, then id.
    pub pushes: Vec<DossierPush>,
    /// The CI outcomes of them, by capture, then id.
    pub ci_outcomes: Vec<DossierCiOutcome>,
    /// The pushes that brought one of the commits and left their branch at a later one, by capture,
    /// then id. Present on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivering_pushes: Option<Vec<DossierPush>>,
    /// The CI outcomes of the commits at which these pushes left their branches, by capture, then
    /// id. Present on request, unless there are more than 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivering_ci_outcomes: Option<Vec<DossierCiOutcome>>,
    /// 1 if no commit was observed, else 0.
    pub session_commit_unobserved: u64,
    /// How many observations of this Session name a repository that cannot be determined, by
    /// reason.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_decline"))]
    pub repository_skipped: BTreeMap<Open<RepositoryDecline>, u64>,
}

/// A Session that no fact names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct UnknownSession {
    /// Always false.
    pub found: Unknown,
}

/// What was captured of a Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum SessionAnswer {
    /// A fact names it, possibly a quarantined one.
    Known(Box<SessionDossier>),
    /// No fact names it.
    Unknown(UnknownSession),
}

impl SessionAnswer {
    /// The answer for a Session that no fact names.
    pub const UNKNOWN: Self = Self::Unknown(UnknownSession { found: Unknown });

    /// Returns the dossier of a known Session.
    pub fn dossier(self) -> Option<SessionDossier> {
        match self {
            Self::Known(dossier) => Some(*dossier),
            Self::Unknown(_) => None,
        }
    }
}
