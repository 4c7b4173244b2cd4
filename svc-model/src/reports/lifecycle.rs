#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AcceptedWorkSkip, Counts, DecisionSkip, FateSkip, MembershipSkip, Provenance, RetentionScores,
    ScoringSkip, SessionSkip, StratumSkip,
};
use crate::closed_set;
use crate::id::{OrgId, SessionId};
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::repository::RepositoryDecline;

/// What became of accepted work. Each panel has its own unit and denominator, so counts of
/// different panels must not be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecycleReport {
    /// The organization.
    pub org_id: OrgId,
    /// Accepted calls through commit, pull request and CI.
    pub accepted_work: AcceptedWork,
    /// Edits, and how much of them was left at the end of their Session.
    pub edit_retention: EditRetention,
    /// Attributed files, at the head of the pull request and at the merged commit.
    pub merge_durability: MergeDurability,
    /// Sessions with accepted work, by status.
    pub session_attrition: SessionAttrition,
    /// Possible rework, six components in a fixed order. They overlap and must not be added.
    pub rework: Vec<ReworkComponent>,
    /// The accepted calls by one property at a time, ordered by dimension, repository and value.
    pub strata: Vec<Stratum>,
    /// How many accepted calls are in no stratum of a dimension, by reason.
    pub stratum_skips: Counts<StratumSkip>,
    /// The bounds of this report.
    pub policy: LifecyclePolicy,
    /// The rules that each part was derived by.
    pub provenance: LifecycleProvenance,
    /// How many facts name a repository that cannot be determined. The units overlap and must not
    /// be added.
    pub repository_skipped: LifecycleRepositorySkips,
    /// The number of repositories whose mirror was fetched once and cannot be found now. No call is
    /// linked to their commits, so stages and rates are too low. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
}

/// How many reached a stage, of those at the previous stage and of those at the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stage {
    /// How many reached this stage.
    pub count: u64,
    /// How many reached the previous stage; for the first, how many could reach it.
    pub denominator: u64,
    /// `count` of `denominator`; null if that is 0.
    pub rate: Option<f64>,
    /// How many could reach the first stage.
    pub initial_denominator: u64,
    /// `count` of `initial_denominator`; null if that is 0.
    pub initial_rate: Option<f64>,
}

closed_set! {
    /// What an agent's integration cannot capture.
    pub enum UnsupportedCapture {
        /// Cursor's edits are not observed. Counts Sessions with a Cursor decision.
        CursorEdits = "cursor_edit_observations",
        /// Decisions by people in Cursor do not name a call. Counts Sessions with a Cursor
        /// decision.
        CursorCalls = "cursor_human_explicit_inference_capture",
    }
}

closed_set! {
    /// Ambiguous evidence, which is not counted.
    pub enum Ambiguity {
        /// CI that contradicts itself.
        CiVerdict = "ambiguous_ci_verdict",
        /// Decisions whose call id belongs to several calls.
        DecisionCallId = "ambiguous_decision_call_id",
        /// Files in several merged pull requests.
        PullRequestMembership = "ambiguous_pr_membership",
    }
}

/// How much of a panel's population the evidence covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(bound(
    serialize = "M: crate::open::Vocabulary",
    deserialize = "M: Ord + crate::open::Vocabulary + serde::de::DeserializeOwned"
))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Coverage<M> {
    /// How many the panel covers, in its own unit.
    pub observed: u64,
    /// How many it cannot cover, by reason.
    pub missing: Counts<M>,
    /// The number of Sessions in which an integration cannot capture what the panel needs.
    pub unsupported_by_integration: Counts<UnsupportedCapture>,
    /// How many are ambiguous.
    pub ambiguous: Counts<Ambiguity>,
}

closed_set! {
    /// A population with example Sessions.
    pub enum Population {
        /// Accepted calls.
        Accepted = "accepted",
        /// Accepted calls with an Attribution to an observed commit.
        Attributed = "attributed",
        /// Accepted calls in a merged pull request.
        PullRequestMembership = "pull_request_membership",
        /// Accepted calls whose CI failed.
        CiFailed = "ci_failed",
        /// Unmodified edits.
        Unmodified = "unmodified",
        /// Partially modified edits.
        PartiallyModified = "partially_modified",
        /// Deleted edits.
        Deleted = "deleted",
        /// Attributed files in one merged pull request.
        Joined = "joined",
        /// Attributed files with a score.
        Scored = "scored",
        /// Accepted Sessions with an observed commit.
        Committed = "committed",
        /// Abandoned Sessions; always empty.
        Abandoned = "abandoned",
        /// Sessions in flight; always empty.
        InFlight = "in_flight",
        /// Accepted Sessions without an observed commit.
        AttributionUnavailable = "attribution_unavailable",
    }
}

/// Example Sessions of a population.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Examples {
    /// The population.
    pub population: Open<Population>,
    /// Its first ten Sessions, by id.
    pub session_ids: Vec<SessionId>,
}

/// Calls that a person accepted, through commit, pull request and CI. The unit is a call. An accept
/// by a rule or by the agent itself does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AcceptedWork {
    /// Calls of the cohort with an attached explicit accept. A reject of the same call does not
    /// matter.
    pub accepted_calls: u64,
    /// Of these, calls with an Attribution to a commit at which their Session was observed. Calls that
    /// `skips` counts as `content_erased` are not in its denominators.
    pub attributed: Stage,
    /// Of these, calls with a file in exactly one merged pull request.
    pub pull_request_membership: Stage,
    /// Of these, calls whose commits have CI evidence.
    pub ci_linked: Stage,
    /// Of these, calls whose CI passed or failed.
    pub ci_verdict: Stage,
    /// The calls whose CI passed.
    pub ci_passed: u64,
    /// The calls with a failed commit. The call need not be the cause.
    pub ci_failed: u64,
    /// What did not reach the next stage, by reason. The units differ.
    pub skips: Counts<AcceptedWorkSkip>,
    /// `observed` counts accepted calls, the rest decisions and calls.
    pub coverage: Coverage<DecisionSkip>,
    /// `accepted`, `attributed`, `pull_request_membership`, `ci_failed`.
    pub examples: Vec<Examples>,
}

/// Edits of the cohort's Sessions and their Fate. The unit is an edit observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct EditRetention {
    /// Edit observations.
    pub observations: u64,
    /// Observations that can have a Fate: those whose texts were not erased.
    pub eligible: u64,
    /// Observations with a Fate.
    pub derived_fates: u64,
    /// Edits of which at least nine tenths were left.
    pub unmodified: u64,
    /// Edits of which a part was left.
    pub partially_modified: u64,
    /// Edits of which at most a tenth was left, or whose file was gone.
    pub deleted: u64,
    /// Edits for which the lines added and removed by something other than the agent were both
    /// measured.
    pub known_external_line_counts: u64,
    /// Lines added by something other than the agent, as far as known. It does not tell by whom.
    pub external_lines_added: u64,
    /// Lines removed by something other than the agent, as far as known.
    pub external_lines_removed: u64,
    /// `derived_fates` of `eligible`; null if there are none.
    pub fate_rate: Option<f64>,
    /// Edits without a Fate, by reason.
    pub skips: Counts<FateSkip>,
    /// `observed` counts edit observations.
    pub coverage: Coverage<FateSkip>,
    /// `unmodified`, `partially_modified`, `deleted`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// The qualification of a panel's coverage.
    pub enum CoverageQualification {
        /// Only pull requests whose events were received are known: for investigation only, not for
        /// ranking.
        PartialPullRequestHistory = "partial_pull_request_history",
    }
}

/// How much of attributed files remained in merged pull requests. The unit is an attributed file at a
/// commit at which its Session was observed, accepted or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct MergeDurability {
    /// Always `partial_pull_request_history`.
    pub coverage_qualification: Open<CoverageQualification>,
    /// Attributed files at observed commits.
    pub attributed_file_candidates: u64,
    /// Files in exactly one merged pull request.
    pub unique_pull_request_membership: u64,
    /// Files with a score.
    pub scored_rows: u64,
    /// `unique_pull_request_membership` of `attributed_file_candidates`; null if there are none.
    pub membership_rate: Option<f64>,
    /// `scored_rows` of `unique_pull_request_membership`; null if there are none.
    pub scoring_rate: Option<f64>,
    /// Files that are not known to be in exactly one merged pull request, by reason.
    pub membership: Counts<MembershipSkip>,
    /// What has no score, by reason. The units differ.
    pub scoring_skips: Counts<ScoringSkip>,
    /// How much of the added text is in the file at the final head of the pull request.
    pub head: RetentionScores,
    /// How much of the added text is in the file at the merged commit.
    pub merge: RetentionScores,
    /// `observed` counts files with a score.
    pub coverage: Coverage<ScoringSkip>,
    /// `joined`, `scored`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// What is known about a Session with accepted work.
    pub enum SessionStatus {
        /// Never used: a Session without an observed commit may still have one.
        Abandoned = "abandoned",
        /// No commit of it was observed.
        AttributionUnavailable = "attribution_unavailable",
        /// A commit of it was observed.
        Committed = "committed",
        /// Never used.
        InFlight = "in_flight",
    }
}

/// Sessions with accepted work, explicitly or not, by status. The unit is a Session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionAttrition {
    /// Sessions with an accepted decision.
    pub eligible_sessions: u64,
    /// Sessions with an observed commit.
    pub committed: u64,
    /// Always 0.
    pub abandoned: u64,
    /// Always 0.
    pub in_flight: u64,
    /// Sessions without an observed commit. They may still have one.
    pub attribution_unavailable: u64,
    /// What was found about Sessions with decisions. `reached_a_commit` is not a loss.
    pub skips: Counts<SessionSkip>,
    /// `observed` counts Sessions with a status other than `attribution_unavailable`.
    pub coverage: Coverage<SessionStatus>,
    /// `committed`, `abandoned`, `in_flight`, `attribution_unavailable`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// A possible sign of rework.
    pub enum ReworkName {
        /// Explicit rejects, attached to a call or not, of all decisions.
        ExplicitRejects = "explicit_rejects",
        /// Refused edits that were retried successfully, out of all such edits.
        RetryLinkages = "retry_linkages",
        /// Edits that were modified or deleted, of those with a Fate.
        ModifiedOrDeletedEdits = "modified_or_deleted_edits",
        /// Edits whose file was changed by something other than the agent, of those for which that
        /// is known.
        ExternalLineChanges = "external_line_changes",
        /// Abandoned Sessions, of those that are committed or abandoned; always 0.
        AbandonedSessions = "abandoned_sessions",
        /// Attributed commits whose CI failed, of those with CI evidence.
        FailedCiResolutions = "failed_ci_resolutions",
    }
}

closed_set! {
    /// The unit of a component.
    pub enum ReworkGrain {
        /// A decision of the cohort's Sessions.
        DeveloperDecision = "developer_decision",
        /// A retry linkage of the cohort's Sessions.
        RetryLinkage = "retry_linkage",
        /// An edit observation with a Fate.
        EditObservation = "edit_observation",
        /// An edit observation whose external line counts are both known.
        CountedEditObservation = "edit_observation_with_known_external_counts",
        /// A Session with an accepted decision.
        AcceptedSession = "accepted_session",
        /// An attributed commit with CI evidence.
        CiResolution = "ci_resolution",
    }
}

/// One component of rework.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ReworkComponent {
    /// What is counted.
    pub name: Open<ReworkName>,
    /// Its unit.
    pub grain: Open<ReworkGrain>,
    /// The count.
    pub count: u64,
    /// The total.
    pub denominator: u64,
    /// `count` of `denominator`; null if that is 0.
    pub rate: Option<f64>,
}

closed_set! {
    /// A property of an accepted call.
    pub enum Dimension {
        /// The agent of its decisions.
        AgentHarness = "agent_harness",
        /// Its model.
        Model = "model",
        /// The repository of its observed commits.
        Repository = "repository",
        /// The workflow that ran its observed commits.
        Workflow = "workflow",
    }
}

/// Accepted calls with one value of a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stratum {
    /// The property.
    pub dimension: Open<Dimension>,
    /// Its value. For a workflow: the CI system, id, path and name, joined by `|`, with unknown
    /// parts empty.
    pub value: String,
    /// Accepted calls that have this value and no other.
    pub accepted_calls: u64,
    /// A name of the repository, for repositories and workflows.
    pub repo: Option<String>,
    /// The identity of the repository; also null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

/// The bounds of a lifecycle report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecyclePolicy {
    /// The maximum number of example Sessions per population.
    pub example_session_limit: u64,
    /// The version of the rules of this report.
    pub policy_version: String,
}

/// The rules that each part of a lifecycle report was derived by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecycleProvenance {
    /// The report.
    pub lifecycle: Provenance,
    /// Attributions.
    pub attribution: Provenance,
    /// The status of Sessions.
    pub abandonment: Provenance,
    /// Fates.
    pub fate: Provenance,
    /// Verdicts of CI.
    pub ci_resolution: Provenance,
    /// Membership in pull requests and its scores.
    pub merge_retention: Provenance,
}

/// Facts of a lifecycle report that name a repository that cannot be determined, by kind. Kinds
/// without any are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecycleRepositorySkips {
    /// Observations of the cohort's Sessions.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// Pushes that were searched for commits.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_sources: Counts<RepositoryDecline>,
    /// CI outcomes.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub ci_population_outcomes: Counts<RepositoryDecline>,
}
