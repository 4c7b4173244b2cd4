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
    /// Calls that a person accepted, through commit, pull request and CI.
    pub accepted_work: AcceptedWork,
    /// Edits, and how much of them was left at the end of their Session.
    pub edit_retention: EditRetention,
    /// Attributed files, and how much of them was left at the final head of the pull request and at
    /// the merged commit.
    pub merge_durability: MergeDurability,
    /// Sessions with accepted work, by status.
    pub session_attrition: SessionAttrition,
    /// Possible signs of rework: six components in a fixed order. They overlap, so they must not be
    /// added.
    pub rework: Vec<ReworkComponent>,
    /// The accepted calls by agent, model, repository and workflow, one property at a time; ordered
    /// by property, repository and value.
    pub strata: Vec<Stratum>,
    /// Accepted calls that are in no stratum of a property, by reason.
    pub stratum_skips: Counts<StratumSkip>,
    /// The limits and the version of this report.
    pub policy: LifecyclePolicy,
    /// The rules that each part was derived by.
    pub provenance: LifecycleProvenance,
    /// Facts whose repository cannot be determined, by kind. A fact may be in several kinds, so the
    /// counts must not be added.
    pub repository_skipped: LifecycleRepositorySkips,
    /// The number of repositories whose mirror was fetched before and cannot be found now. No call
    /// is linked to their commits, so stages and rates are too low. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
}

/// How many reached a stage, out of those at the stage before and out of those at the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stage {
    /// The number that reached this stage.
    pub count: u64,
    /// The number that reached the stage before; for the first stage, the number that could reach
    /// it.
    pub denominator: u64,
    /// `count` divided by `denominator`; null if that is 0.
    pub rate: Option<f64>,
    /// The number that could reach the first stage.
    pub initial_denominator: u64,
    /// `count` divided by `initial_denominator`; null if that is 0.
    pub initial_rate: Option<f64>,
}

closed_set! {
    /// What the integration of an agent cannot capture.
    pub enum UnsupportedCapture {
        /// Cursor's edits are not observed. Counts the Sessions with a decision in Cursor.
        CursorEdits = "cursor_edit_observations",
        /// Decisions by people in Cursor do not name a call. Counts the Sessions with a decision in
        /// Cursor.
        CursorCalls = "cursor_human_explicit_inference_capture",
    }
}

closed_set! {
    /// Ambiguous evidence, which is not counted.
    pub enum Ambiguity {
        /// Calls whose CI contradicts itself.
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
    /// The number that the evidence covers, in the unit of the panel.
    pub observed: u64,
    /// The number that it does not cover, by reason.
    pub missing: Counts<M>,
    /// The number of Sessions in which an integration cannot capture what the panel needs, by what
    /// it cannot capture.
    pub unsupported_by_integration: Counts<UnsupportedCapture>,
    /// The number that is ambiguous and therefore not counted, by kind.
    pub ambiguous: Counts<Ambiguity>,
}

closed_set! {
    /// A population of which a panel gives example Sessions.
    pub enum Population {
        /// Accepted calls.
        Accepted = "accepted",
        /// Accepted calls with an Attribution to a commit at which their Session was observed.
        Attributed = "attributed",
        /// Of these, calls with a file in exactly one merged pull request.
        PullRequestMembership = "pull_request_membership",
        /// Of these, calls with a failed commit.
        CiFailed = "ci_failed",
        /// Unmodified edits.
        Unmodified = "unmodified",
        /// Partially modified edits.
        PartiallyModified = "partially_modified",
        /// Deleted edits.
        Deleted = "deleted",
        /// Attributed files in exactly one merged pull request.
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

/// Example Sessions of a population, for investigation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Examples {
    /// The population.
    pub population: Open<Population>,
    /// The first Sessions of the population, at most ten, ordered by id.
    pub session_ids: Vec<SessionId>,
}

/// Calls that a person accepted, through commit, pull request and CI. The unit is a call. An accept
/// by a rule or by the agent itself does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AcceptedWork {
    /// The number of the cohort's calls with an attached accept by a person. A reject of the same
    /// call does not matter.
    pub accepted_calls: u64,
    /// Of these, calls with an Attribution to a commit at which their Session was observed. Its
    /// denominators leave out the calls that `skips` counts as `content_erased`. The others need
    /// not have been discarded.
    pub attributed: Stage,
    /// Of these, calls with a file in exactly one merged pull request. Others may have been merged
    /// too: events of the forge may be missing.
    pub pull_request_membership: Stage,
    /// Of these, calls with CI evidence about a commit at which their Session was observed.
    pub ci_linked: Stage,
    /// Of these, calls whose CI passed or failed.
    pub ci_verdict: Stage,
    /// Of these, calls with a commit that passed and none that failed.
    pub ci_passed: u64,
    /// The other calls with a verdict: those with a commit that failed. The call need not be the
    /// cause.
    pub ci_failed: u64,
    /// What does not reach the next stage, by reason. The units differ, so the counts must not be
    /// added.
    pub skips: Counts<AcceptedWorkSkip>,
    /// `observed` counts accepted calls, `missing` counts decisions, `ambiguous` counts both.
    pub coverage: Coverage<DecisionSkip>,
    /// Example Sessions of `accepted`, `attributed`, `pull_request_membership` and `ci_failed`.
    pub examples: Vec<Examples>,
}

/// Edits of the cohort's Sessions by their Fate. The unit is an edit observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct EditRetention {
    /// The number of edit observations.
    pub observations: u64,
    /// The number of edit observations that can have a Fate: those whose texts were not erased.
    pub eligible: u64,
    /// The number of edit observations with a Fate.
    pub derived_fates: u64,
    /// The number of edits of which at least nine tenths were left.
    pub unmodified: u64,
    /// The number of edits of which more than a tenth, but less than nine tenths, was left.
    pub partially_modified: u64,
    /// The number of edits of which at most a tenth was left, or whose file was gone.
    pub deleted: u64,
    /// The number of edits for which the lines added and the lines removed by something other than
    /// the agent were both measured.
    pub known_external_line_counts: u64,
    /// The number of lines that something other than the agent added, over these edits. It does not
    /// say who added them.
    pub external_lines_added: u64,
    /// The number of lines that something other than the agent removed, over these edits.
    pub external_lines_removed: u64,
    /// `derived_fates` divided by `eligible`; null if that is 0.
    pub fate_rate: Option<f64>,
    /// Edits without a Fate, by reason.
    pub skips: Counts<FateSkip>,
    /// `observed` and `missing` count edit observations.
    pub coverage: Coverage<FateSkip>,
    /// Example Sessions of `unmodified`, `partially_modified` and `deleted`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// What limits the coverage of a panel.
    pub enum CoverageQualification {
        /// Only pull requests whose events were received are known. The panel is for investigation
        /// only, not for ranking.
        PartialPullRequestHistory = "partial_pull_request_history",
    }
}

/// How much of attributed files is left in merged pull requests. The unit is an attributed file of
/// a commit at which the Session of its call was observed, whether or not a person accepted the
/// call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct MergeDurability {
    /// Always `partial_pull_request_history`.
    pub coverage_qualification: Open<CoverageQualification>,
    /// The number of attributed files of commits at which the Session of their call was observed.
    pub attributed_file_candidates: u64,
    /// How many of them are in exactly one merged pull request.
    pub unique_pull_request_membership: u64,
    /// How many of those have a score.
    pub scored_rows: u64,
    /// `unique_pull_request_membership` divided by `attributed_file_candidates`; null if that is 0.
    pub membership_rate: Option<f64>,
    /// `scored_rows` divided by `unique_pull_request_membership`; null if that is 0.
    pub scoring_rate: Option<f64>,
    /// Candidates that are not known to be in exactly one merged pull request, by reason.
    pub membership: Counts<MembershipSkip>,
    /// What has no score, by reason. The units differ, so the counts must not be added.
    pub scoring_skips: Counts<ScoringSkip>,
    /// The share of the added text that is in the file at the final head of the pull request. It is
    /// a lower bound on retention.
    pub head: RetentionScores,
    /// The share of the added text that is in the file at the merged commit. It is a lower bound on
    /// retention.
    pub merge: RetentionScores,
    /// `observed` counts files with a score. `missing` repeats `scoring_skips`.
    pub coverage: Coverage<ScoringSkip>,
    /// Example Sessions of `joined` and `scored`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// What is known about a Session with accepted work.
    pub enum SessionStatus {
        /// Never used: a Session without an observed commit may still have one.
        Abandoned = "abandoned",
        /// No commit of the Session was observed. It may still have one.
        AttributionUnavailable = "attribution_unavailable",
        /// A commit of the Session was observed. It does not say that all of its work was
        /// committed.
        Committed = "committed",
        /// Never used.
        InFlight = "in_flight",
    }
}

/// Sessions with accepted work, by status. The unit is a Session with an accepted decision, by a
/// person or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionAttrition {
    /// The number of Sessions with an accepted decision.
    pub eligible_sessions: u64,
    /// How many of them have an observed commit.
    pub committed: u64,
    /// Always 0.
    pub abandoned: u64,
    /// Always 0.
    pub in_flight: u64,
    /// How many of them have no observed commit. They may still have one.
    pub attribution_unavailable: u64,
    /// What was found about Sessions with decisions, and observations that were not counted.
    /// `reached_a_commit` is not a loss.
    pub skips: Counts<SessionSkip>,
    /// `observed` counts the Sessions with an observed commit, `missing` the others.
    pub coverage: Coverage<SessionStatus>,
    /// Example Sessions of `committed`, `abandoned`, `in_flight` and `attribution_unavailable`.
    pub examples: Vec<Examples>,
}

closed_set! {
    /// A possible sign that work was done again.
    pub enum ReworkName {
        /// Rejects by people, whether or not they are attached to a call, out of all decisions.
        ExplicitRejects = "explicit_rejects",
        /// Refused edits that were retried successfully. The denominator is the same number, so the
        /// rate is 1, or null if there are none.
        RetryLinkages = "retry_linkages",
        /// Edits that were partially modified or deleted, out of those with a Fate.
        ModifiedOrDeletedEdits = "modified_or_deleted_edits",
        /// Edits whose file was changed by something other than the agent, out of those for which
        /// this is known.
        ExternalLineChanges = "external_line_changes",
        /// Abandoned Sessions, out of those that are committed or abandoned. Always 0.
        AbandonedSessions = "abandoned_sessions",
        /// Attributed commits whose CI failed, out of those with CI evidence.
        FailedCiResolutions = "failed_ci_resolutions",
    }
}

closed_set! {
    /// The unit of a component of rework.
    pub enum ReworkGrain {
        /// A decision of the cohort's Sessions.
        DeveloperDecision = "developer_decision",
        /// A retry linkage of the cohort's Sessions.
        RetryLinkage = "retry_linkage",
        /// An edit observation with a Fate.
        EditObservation = "edit_observation",
        /// An edit observation for which the lines added and the lines removed by something other
        /// than the agent were both measured.
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
    /// The sign of rework.
    pub name: Open<ReworkName>,
    /// The unit of both counts.
    pub grain: Open<ReworkGrain>,
    /// The number of cases with the sign.
    pub count: u64,
    /// The number of all cases.
    pub denominator: u64,
    /// `count` divided by `denominator`; null if that is 0.
    pub rate: Option<f64>,
}

closed_set! {
    /// A property by which accepted calls are counted.
    pub enum Dimension {
        /// The agent that its decisions come from.
        AgentHarness = "agent_harness",
        /// The model of the call.
        Model = "model",
        /// The repository of the commits at which its Session was observed.
        Repository = "repository",
        /// The CI workflow that ran for these commits.
        Workflow = "workflow",
    }
}

/// Accepted calls that have one value of a property and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stratum {
    /// The property.
    pub dimension: Open<Dimension>,
    /// The value: the word of the agent, the model, or a name of the repository. For a workflow, it
    /// is the CI system, id, path and name of the workflow, joined by `|`; unknown parts are empty.
    pub value: String,
    /// The number of accepted calls with this value.
    pub accepted_calls: u64,
    /// A name of the repository; null for an agent or a model.
    pub repo: Option<String>,
    /// The identity of the repository; null for an agent or a model, or if the repository is known
    /// by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

/// The limits and the version of a lifecycle report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecyclePolicy {
    /// The maximum number of example Sessions of each population: 10.
    pub example_session_limit: u64,
    /// The version of the rules of this report.
    pub policy_version: String,
}

/// The rules that each part of a lifecycle report was derived by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecycleProvenance {
    /// The rules of the report as a whole.
    pub lifecycle: Provenance,
    /// The rules of Attributions.
    pub attribution: Provenance,
    /// The rules of the status of Sessions.
    pub abandonment: Provenance,
    /// The rules of Fates.
    pub fate: Provenance,
    /// The rules of CI verdicts.
    pub ci_resolution: Provenance,
    /// The rules of membership in pull requests and of scores.
    pub merge_retention: Provenance,
}

/// Facts of a lifecycle report whose repository cannot be determined, by kind and reason. A fact
/// may be in several kinds, so the counts must not be added. A kind with nothing to count is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LifecycleRepositorySkips {
    /// Session commit observations of the cohort's Sessions.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// Pushes that were searched for commits, and over all history Session commit observations.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_sources: Counts<RepositoryDecline>,
    /// CI outcomes.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub ci_population_outcomes: Counts<RepositoryDecline>,
}
