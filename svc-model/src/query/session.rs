use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter::{TRUE, Truth, asks};
#[cfg(feature = "schema")]
use super::selector::counts_by_decline;
use super::{
    AttributionSource, CommitLink, Found, LifetimeIdentity, ObservationSource, SupersededOutcome,
    Unknown,
};
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
use crate::usage::{CallSource, CallUsage, JoinBasis, TokenCounts, UsageSource};

/// Asks for everything that was captured of one Session.
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
}

impl Request for SessionDossierRequest {
    const PARAMETERS: &'static [Parameter] = parameters![Self::SESSION_ID, Self::EXPLAIN,];

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
    /// The number of all events, visible and quarantined.
    pub total: u64,
    /// The number of visible events, which are in the timeline.
    pub visible: u64,
    /// The number of quarantined events, which are not in the timeline.
    pub quarantined: u64,
}

/// How many events of each kind a Session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct EventCoverage {
    /// Calls of a model.
    pub inference_calls: EventCount,
    /// Decisions about proposed edits.
    pub developer_decisions: EventCount,
    /// Edit observations.
    pub edit_observations: EventCount,
    /// Rejected edits.
    pub rejected_edits: EventCount,
    /// Retry linkages.
    pub retry_linkages: EventCount,
    /// Usage receipts. Absent if there are none. They are no part of the limit of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_receipts: Option<EventCount>,
}

impl EventCoverage {
    /// Returns whether events of the kind that a gap is about were captured, and all of them are
    /// quarantined.
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

    /// Returns the counts of the events that the limit is about, in the order of their members.
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
    /// What was not captured of a Session. It may have happened all the same.
    pub enum Gap {
        /// There is no visible call of a model.
        NoInferenceCalls = "no_inference_calls_observed",
        /// There is no visible decision.
        NoDeveloperDecisions = "no_developer_decisions_observed",
        /// There is no visible edit observation.
        NoEditObservations = "no_edit_observations_observed",
        /// There is no visible rejected edit.
        NoRejectedEdits = "no_rejected_edits_observed",
        /// There is no visible retry linkage.
        NoRetryLinkages = "no_retry_linkages_observed",
        /// No commit of the Session was observed.
        NoCommit = "session_commit_unobserved",
        /// A commit was observed, but no push that left its branch at one.
        NoPushes = "no_exact_push_receipts_observed",
        /// A commit was observed, but no CI outcome of one.
        NoCiOutcomes = "no_ci_outcomes_observed",
    }
}

closed_set! {
    /// The tool of a retried edit.
    pub enum RetryTool {
        /// The tool that changes a part of a file.
        Edit = "Edit",
        /// The tool that writes a whole file.
        Write = "Write",
    }
}

/// One captured event of a Session, without content and user. What is unknown is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "event_type", rename_all = "snake_case")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum TimelineEvent {
    /// A call of a model.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    InferenceCall {
        /// The id of the fact.
        fact_id: FactId,
        /// When the call was observed, by the sender's clock; when the service received it, if the
        /// sender gave no time.
        occurred_at: Instant,
        /// The kind of gateway that the call was copied from.
        gateway_provider: Open<GatewayProvider>,
        /// The provider of the model, as the gateway names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_provider: Option<String>,
        /// The model, as the gateway names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The number of input tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<i64>,
        /// The number of output tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<i64>,
        /// The duration of the call in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<i64>,
        /// The id that the gateway or the model gave the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_call_id: Option<String>,
        /// Where the call was captured; absent if a gateway sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capture_source: Option<Open<CallSource>>,
        /// The agent or program that made the call; absent if its source does not say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Its cost and the kinds of its tokens.
        #[serde(flatten)]
        usage: CallUsage,
        /// The usage receipts that are about the call too, sorted; absent if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage_receipt_ids: Vec<FactId>,
        /// What told so; absent without receipts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joined_by: Option<Open<JoinBasis>>,
    },
    /// A decision about a proposed edit.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    DeveloperDecision {
        /// The id of the fact.
        fact_id: FactId,
        /// When it was decided, by the sender's clock.
        occurred_at: Instant,
        /// The agent that proposed the edit.
        agent_harness: Open<AgentHarness>,
        /// Whether the edit was accepted.
        accepted: bool,
        /// Whether a person decided, rather than a rule.
        explicit: bool,
        /// Where the edit was proposed.
        interaction_mode: Open<InteractionMode>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, as the agent wrote it. Present only if it is known and the request
        /// has `explain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call that proposed the edit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The commit that was checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_sha: Option<CommitSha>,
    },
    /// An applied edit, and its file at a later check.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    EditObservation {
        /// The id of the fact.
        fact_id: FactId,
        /// When the file was checked, by the sender's clock.
        occurred_at: Instant,
        /// The agent that made the edit.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, as the agent wrote it. Present only if it is known and the request
        /// has `explain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call that made the edit.
        call_id: String,
        /// Whether the lines added by something other than the agent were measured.
        external_lines_added_present: bool,
        /// Whether the lines removed by something other than the agent were measured.
        external_lines_removed_present: bool,
        /// The number of lines that something other than the agent added. Absent if not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_lines_added: Option<i64>,
        /// The number of lines that something other than the agent removed. Absent if not measured.
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
        /// The agent that proposed the edit.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, as the agent wrote it. Present only if it is known and the request
        /// has `explain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The agent's id of the tool call that proposed the edit.
        call_id: String,
    },
    /// A refused edit that was retried successfully.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    RetryLinkage {
        /// The id of the fact.
        fact_id: FactId,
        /// When the accepted call was made, by the sender's clock.
        occurred_at: Instant,
        /// The agent that made both calls.
        agent_harness: Open<AgentHarness>,
        /// Whether the file is known.
        has_file_path: bool,
        /// The path of the file, as the agent wrote it. Present only if it is known and the request
        /// has `explain`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_path: Option<String>,
        /// The tool of both calls.
        tool_name: Open<RetryTool>,
        /// The agent's id of the refused call.
        rejected_call_id: String,
        /// The agent's id of the accepted call.
        accepted_call_id: String,
    },
    /// A client's report of a call of a model that no visible call of the Session is joined with.
    #[cfg_attr(not(feature = "service"), non_exhaustive)]
    UsageReceipt {
        /// The id of the fact.
        fact_id: FactId,
        /// When the client made the report, by its clock.
        occurred_at: Instant,
        /// The client.
        source: Open<UsageSource>,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why the client made the call, in its own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query_source: Option<String>,
        /// The tokens of the call.
        #[serde(flatten)]
        tokens: TokenCounts,
        /// The cost in micro-USD as the client reported it, at list price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd_micros: Option<i64>,
        /// The duration of the call in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<i64>,
    },
}

/// Declares the words of events on the wire, and reads what all events have.
macro_rules! events {
    ($($event:ident = $word:literal,)+) => {
        const EVENT_TYPES: &[&str] = &[$($word),+];

        impl TimelineEvent {
            /// Returns when the event occurred.
            pub const fn occurred_at(&self) -> Instant {
                match self {
                    $(Self::$event { occurred_at, .. })|+ => *occurred_at,
                }
            }

            /// Returns the id of the fact.
            pub const fn fact_id(&self) -> FactId {
                match self {
                    $(Self::$event { fact_id, .. })|+ => *fact_id,
                }
            }

            /// Returns the kind of event, as it is written on the wire.
            pub const fn event_type(&self) -> &'static str {
                match self {
                    $(Self::$event { .. } => $word,)+
                }
            }
        }
    };
}

events! {
    InferenceCall = "inference_call",
    DeveloperDecision = "developer_decision",
    EditObservation = "edit_observation",
    RejectedEdit = "rejected_edit",
    RetryLinkage = "retry_linkage",
    UsageReceipt = "usage_receipt",
}

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
            Self::InferenceCall { .. } | Self::UsageReceipt { .. } => {}
            Self::DeveloperDecision { file_path, .. }
            | Self::EditObservation { file_path, .. }
            | Self::RejectedEdit { file_path, .. }
            | Self::RetryLinkage { file_path, .. } => *file_path = None,
        }
    }

    /// Returns the path of the file, if known and requested.
    pub fn file_path(&self) -> Option<&str> {
        match self {
            Self::InferenceCall { .. } | Self::UsageReceipt { .. } => None,
            Self::DeveloperDecision { file_path, .. }
            | Self::EditObservation { file_path, .. }
            | Self::RejectedEdit { file_path, .. }
            | Self::RetryLinkage { file_path, .. } => file_path.as_deref(),
        }
    }
}

/// A commit of the Session: a note on the commit names the Session, or the Session's client reported
/// the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AttributedCommit {
    /// A name of the repository: of all its names, the first in alphabetical order.
    pub repo: String,
    /// The full id of the commit.
    pub commit_sha: CommitSha,
    /// Always empty, because an observed link needs no inference.
    pub attribution_sources: Vec<Open<AttributionSource>>,
    /// The ids of the observations, sorted; at least one.
    pub session_commit_observation_ids: Vec<FactId>,
    /// Where the observations come from. Absent if one of them comes from a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Open<ObservationSource>>,
    /// The identity of the repository; absent if the repository is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
    /// The ids of the visible pushes that brought the commit, sorted, whether they left a branch at
    /// it or at a later commit. Present only if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_by_push_ids: Option<Vec<FactId>>,
}

closed_set! {
    /// How a push relates to a commit of the Session.
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
    /// The name of the repository on this fact. It may have another name today.
    pub repo: String,
    /// The full ref, with `refs/heads/`.
    pub r#ref: String,
    /// The previous commit of the branch; all zeros if the push created the branch.
    pub before_sha: CommitSha,
    /// The new commit of the branch.
    pub after_sha: CommitSha,
    /// Whether the push was forced, that is, not a fast-forward.
    pub forced: bool,
    /// When the service received the push.
    pub captured_at: Instant,
    /// How the push relates to a commit of the Session: `after_sha` in `pushes`, `brought` in
    /// `delivering_pushes`.
    pub match_kind: Open<PushMatch>,
    /// The identity of the repository; absent if the repository is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
}

/// The outcome of a run at a commit of the Session, without the sender's free text. What is unknown
/// is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct DossierCiOutcome {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: Open<CiProvider>,
    /// The CI system's id of the run.
    pub run_id: String,
    /// The number of the attempt, as it was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_attempt: Option<i64>,
    /// The name of the repository on this fact, in lower case. It may have another name today.
    pub repo: String,
    /// The full id of the commit that was checked.
    pub commit_sha: CommitSha,
    /// The branch that was checked. May be empty.
    pub branch: Branch,
    /// The normalised result. Only `passed` and `failed` are verdicts.
    pub result: Open<CiResult>,
    /// The name of the workflow. May be empty.
    pub workflow_name: Text,
    /// The CI system's id of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The URL of the run's page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<Text>,
    /// The CI system's own word for the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_result: Option<Text>,
    /// The kind of failure, as the sender names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Text>,
    /// The number of the pull request of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_number: Option<i64>,
    /// When the service received the outcome.
    pub captured_at: Instant,
    /// The link to what is known about the commit, with a boundary that covers this reply.
    pub commit_query: CommitLink,
    /// The identity of the repository; absent if the repository is known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_identity: Option<LifetimeIdentity>,
    /// The outcome of the run that this one supersedes: a token reported it, and it differs from what
    /// the forge says under its signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededOutcome>,
}

/// What clients reported of a Session's use of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionUsage {
    /// The number of visible usage receipts.
    pub receipts: u64,
    /// How many of them are about a visible call of the Session.
    pub joined: u64,
    /// How many are not. They are in the timeline, unless it would have more than 500 events.
    pub unjoined: u64,
    /// What the receipts cost together, in micro-USD at list price; absent if none says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_micros: Option<i64>,
}

/// Everything that was captured of a Session, as metadata: no content, no user, and no paths unless
/// the request has `explain`. At most 500 visible events; a Session with more is declined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionDossier {
    /// Always true.
    pub found: Found,
    /// The requested Session, without surrounding white space.
    pub session_id: SessionId,
    /// The earliest time of the facts of the Session, including quarantined ones: the observation
    /// time of a call, the capture time of any other fact.
    pub first_observed_at: Instant,
    /// The latest time of the facts of the Session, likewise.
    pub last_observed_at: Instant,
    /// How many events of each kind were captured.
    pub coverage: EventCoverage,
    /// The number of quarantined events, which are not in the timeline.
    pub omitted_events: u64,
    /// The number of facts of the Session whose content was erased, including quarantined ones. The
    /// facts themselves are still there. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_erased: Option<u64>,
    /// What was not captured, in a fixed order. It may have happened all the same.
    pub gaps: Vec<Open<Gap>>,
    /// The visible events, ordered by time, then by kind, then by id.
    pub timeline: Vec<Open<TimelineEvent>>,
    /// What clients reported of the use of models; absent if they reported nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<SessionUsage>,
    /// The Sessions that this one continues: its agent copied their calls, or said so. By id, at most
    /// 100; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<ContinuedSession>,
    /// The Sessions that continue this one, by id, at most 100; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued_by: Vec<SessionId>,
    /// The commits at which the Session was observed, ordered by repository, then by commit.
    pub attributed_commits: Vec<AttributedCommit>,
    /// The pushes that left a branch at one of these commits, ordered by capture time, then by id.
    pub pushes: Vec<DossierPush>,
    /// The CI outcomes of these commits, ordered by capture time, then by id.
    pub ci_outcomes: Vec<DossierCiOutcome>,
    /// The pushes that brought one of these commits and left their branch at a later one, ordered
    /// by capture time, then by id. Present only if the request has `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivering_pushes: Option<Vec<DossierPush>>,
    /// The CI outcomes of the commits at which these pushes left their branches, ordered by capture
    /// time, then by id. Present only if the request has `explain` and there are at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivering_ci_outcomes: Option<Vec<DossierCiOutcome>>,
    /// 1 if the Session was observed at no commit, otherwise 0.
    pub session_commit_unobserved: u64,
    /// The number of observations of the Session whose repository cannot be determined, by reason.
    /// Their commits are not listed.
    #[cfg_attr(feature = "schema", schemars(schema_with = "counts_by_decline"))]
    pub repository_skipped: BTreeMap<Open<RepositoryDecline>, u64>,
}

/// A Session that another one continues. The calls of both are stored once, under the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ContinuedSession {
    /// The Session.
    pub session_id: SessionId,
    /// The last call that both have; null if it is not known, or quarantined.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::id::InferenceCallId>")
    )]
    pub inference_call_id: Option<FactId>,
    /// When that call was observed; null without a call.
    pub occurred_at: Option<Instant>,
}

/// The answer for a Session that no fact names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct UnknownSession {
    /// Always false.
    pub found: Unknown,
}

/// What was captured of a Session, or that no fact names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum SessionAnswer {
    /// Some fact names the Session, possibly a quarantined one.
    Known(Box<SessionDossier>),
    /// No fact names the Session.
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
