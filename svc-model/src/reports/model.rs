use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AttributionAlert, AttributionShareRow, CiCommitSkip, CiRunSkip, Comparison, Counts, Fate,
    FateSkip, ModelNonInferiority, Provenance, SessionSkip, Stratification,
};
use crate::closed_set;
use crate::facts::AgentHarness;
use crate::id::FactId;
use crate::open::Open;
use crate::repository::RepositoryDecline;

/// What became of the calls of each model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelReport {
    /// One row a model that has a call in the cohort, by model. Calls without a model are in none.
    pub rows: Vec<ModelRow>,
    /// Whether the difference of two models is one of repositories: `ci_pass_rate`, then
    /// `attribution_rate`.
    pub stratification: Vec<Stratification>,
    /// How far the calls of each model get, in the order of `rows`.
    pub signal_funnel: Vec<SignalFunnel>,
    /// The status of the cohort's Sessions in short.
    pub abandonment: AbandonmentSummary,
    /// Edits without a Fate, by reason; always empty.
    pub fate_skipped: Counts<FateSkip>,
    /// How many facts name a repository that cannot be told. The units overlap and are not added.
    pub repository_skipped: ModelRepositorySkips,
    /// What of CI was not counted; a population of its own.
    pub ci_skipped: CiSkips,
    /// By which rules Fates were derived.
    pub fate_provenance: Provenance,
    /// Where Attributions come from, one row a repository.
    pub attribution_share: Vec<AttributionShareRow>,
    /// What looks as if notes were lost.
    pub attribution_alerts: Vec<AttributionAlert>,
    /// Two models beside each other; only when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Whether the second model is at most a margin worse; only when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_inferiority: Option<ModelNonInferiority>,
}

closed_set! {
    /// What one of a CI rate is.
    pub enum OutcomeGrain {
        /// A commit with a verdict.
        Commit = "commit",
    }
}

/// The outcomes of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRow {
    /// The model, as it was captured.
    pub model: String,
    /// The days of the cohort, rounded up; null for all history.
    pub since_days: Option<u64>,
    /// Calls of the model in the cohort.
    pub completions: u64,
    /// Those with an Attribution, observed or guessed.
    pub attributed_inference_calls: u64,
    /// `attributed_inference_calls` of `completions`. What was edited much is not found again, so this
    /// is a lower bound on retention.
    pub attribution_rate: f64,
    /// Wilson's 95 % interval of that rate; `[0, 0]` without a call.
    pub attribution_rate_ci: [f64; 2],
    /// Commits that an Attribution ties to the model, at which its Session was observed, and that have
    /// a verdict.
    pub ci_linked: u64,
    /// Those whose verdict is that they passed.
    pub ci_passed: u64,
    /// `ci_passed` of `ci_linked`; 0 without one.
    pub ci_pass_rate: f64,
    /// Wilson's 95 % interval of that rate.
    pub ci_pass_rate_ci: [f64; 2],
    /// Explicit accepts attached to a call of the model, committed or not.
    pub explicit_accepts: u64,
    /// Explicit rejects attached to a call of the model, committed or not.
    pub explicit_rejects: u64,
    /// The mean similarity of the model's Attributions, each a file; 0 without one.
    pub mean_similarity: f64,
    /// By which rules this row was derived.
    pub provenance: Provenance,
    /// Always `commit`.
    pub grain: Open<OutcomeGrain>,
    /// Failed runs of the failed commits among `ci_linked`, by the name of the workflow; one without a
    /// name is `unnamed`.
    pub ci_failures_by_workflow: BTreeMap<String, u64>,
    /// `explicit_rejects` by the agent.
    pub explicit_rejects_by_agent_harness: Counts<AgentHarness>,
    /// Edits of calls of the model with an attached decision, by Fate.
    pub fates: Counts<Fate>,
    /// Those whose decision is an explicit accept.
    pub explicit_accept_fates: Counts<Fate>,
    /// Those in whose file something other than the agent is known to have changed lines since.
    pub fates_with_external_changes: Counts<Fate>,
    /// Edges of a commit and a Session among the Attributions that no observation backs. Their CI does
    /// not count.
    pub session_commit_unobserved: u64,
    /// The observations that back the others, sorted.
    pub session_commit_observation_ids: Vec<FactId>,
}

/// How far the calls of a model get. The unit is a call; each rate but the first is of `attributed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SignalFunnel {
    /// The model.
    pub model: String,
    /// The days of the cohort, rounded up; null for all history.
    pub since_days: Option<u64>,
    /// Calls of the model in the cohort.
    pub completions_total: u64,
    /// Those with an Attribution.
    pub attributed: u64,
    /// `attributed` of `completions_total`.
    pub attribution_rate: f64,
    /// Attributed calls with a CI outcome, whatever its result, at an observed commit. The number of
    /// the same name in a row counts commits with a verdict.
    pub ci_linked: u64,
    /// `ci_linked` of `attributed`; 0 without one.
    pub ci_linked_retention_rate: f64,
    /// Attributed calls with an attached explicit decision.
    pub has_decision: u64,
    /// `has_decision` of `attributed`; 0 without one.
    pub has_decision_retention_rate: f64,
    /// Attributed calls with an explicit decision, or with a CI verdict at an observed commit.
    pub training_row_eligible: u64,
    /// `training_row_eligible` of `attributed`; 0 without one.
    pub training_row_eligible_retention_rate: f64,
    /// Edges of a commit and a Session that no observation backs.
    pub session_commit_unobserved: u64,
}

/// The status of Sessions in short. That no commit was seen says nothing, so five numbers are always 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AbandonmentSummary {
    /// Always 0.
    pub abandoned_sessions: u64,
    /// Always 0.
    pub grade_eligible_sessions: u64,
    /// Always 0.
    pub implicit_only_sessions: u64,
    /// Always 0.
    pub negative_completions: u64,
    /// Always 0.
    pub explicit_accepts_unjoined: u64,
    /// What was found of Sessions with decisions. `reached_a_commit` is no loss.
    pub derivation_skipped: Counts<SessionSkip>,
    /// By which rules it was derived.
    pub provenance: Provenance,
}

/// What of CI was not counted, by what it is. The units are not added; one without any is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiSkips {
    /// Runs that count for no commit.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub runs: Counts<CiRunSkip>,
    /// Commits whose runs disagree.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub commits: Counts<CiCommitSkip>,
    /// Outcomes that name a repository that cannot be told.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub source_outcomes: Counts<RepositoryDecline>,
}

/// Facts of a model report that name a repository that cannot be told, by what they are. The units
/// overlap and are not added; one without any is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRepositorySkips {
    /// Pushes of the window of `attribution_share`.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub push_sources: Counts<RepositoryDecline>,
    /// Observations that `attribution_share` could have used.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub preload_session_observations: Counts<RepositoryDecline>,
    /// Observations of the cohort's Sessions.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// CI outcomes of attributed commits.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub ci_outcomes: Counts<RepositoryDecline>,
    /// Edges of a commit and a Session.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_edges: Counts<RepositoryDecline>,
    /// Pushes and observations among which the commits of the rows were looked for.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub assembly_sources: Counts<RepositoryDecline>,
}
