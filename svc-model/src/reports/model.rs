use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AttributionAlert, AttributionShareRow, AttributionSkip, CiCommitSkip, CiRunSkip, Comparison,
    CompletionSkip, Counts, Fate, FateSkip, ModelNonInferiority, Provenance, SessionSkip,
    Stratification,
};
use crate::closed_set;
use crate::facts::AgentHarness;
use crate::id::FactId;
use crate::open::Open;
use crate::repository::RepositoryDecline;

/// What became of each model's calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelReport {
    /// One row per model with a call in the cohort, ordered by model. Calls without a model are not
    /// included.
    pub rows: Vec<ModelRow>,
    /// Whether differences between models are differences between repositories: `ci_pass_rate`,
    /// then `attribution_rate`.
    pub stratification: Vec<Stratification>,
    /// How far each model's calls get, in the order of `rows`.
    pub signal_funnel: Vec<SignalFunnel>,
    /// A summary of the status of the cohort's Sessions.
    pub abandonment: AbandonmentSummary,
    /// Edits without a Fate, by reason.
    pub fate_skipped: Counts<FateSkip>,
    /// How many facts name a repository that cannot be determined. The units overlap and are not
    /// added.
    pub repository_skipped: ModelRepositorySkips,
    /// CI evidence that was not counted, with its own units.
    pub ci_skipped: CiSkips,
    /// The rules that Fates were derived by.
    pub fate_provenance: Provenance,
    /// The sources of Attributions, one row per repository.
    pub attribution_share: Vec<AttributionShareRow>,
    /// Alerts about possibly missing notes.
    pub attribution_alerts: Vec<AttributionAlert>,
    /// What of the commits of `attribution_share`, and of the window before it, could not be looked at, by
    /// reason, each in its own unit. A commit that no note ties and that this concerns is in no row: it is
    /// unknown, not unattributed. Absent if everything could be looked at.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_share_skipped: Counts<AttributionSkip>,
    /// The number of repositories whose mirror was fetched once and cannot be found now. No call is
    /// linked to their commits, so rates are too low. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
    /// A comparison of two models; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Whether the second model is worse by at most a margin; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_inferiority: Option<ModelNonInferiority>,
}

closed_set! {
    /// The unit of a CI rate.
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
    /// Calls with an Attribution, observed or inferred.
    pub attributed_inference_calls: u64,
    /// `attributed_inference_calls` of `completions` without `completions_skipped`. Heavily edited
    /// output is not recognised, so this is a lower bound on retention; 0 without such a call.
    pub attribution_rate: f64,
    /// Wilson's 95 % interval of that rate; `[0, 0]` without a call.
    pub attribution_rate_ci: [f64; 2],
    /// Commits that an Attribution links to the model, at which its Session was observed, and that
    /// have a verdict.
    pub ci_linked: u64,
    /// Commits that passed.
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
    /// The rules that this row was derived by.
    pub provenance: Provenance,
    /// Always `commit`.
    pub grain: Open<OutcomeGrain>,
    /// Failed runs of the failed commits among `ci_linked`, by workflow name; runs without one are
    /// under `unnamed`.
    pub ci_failures_by_workflow: BTreeMap<String, u64>,
    /// `explicit_rejects` by agent.
    pub explicit_rejects_by_agent_harness: Counts<AgentHarness>,
    /// Edits of calls of the model with an attached decision, by Fate.
    pub fates: Counts<Fate>,
    /// Edits whose decision is an explicit accept, by Fate.
    pub explicit_accept_fates: Counts<Fate>,
    /// Edits whose file is known to have been changed by something other than the agent, by Fate.
    pub fates_with_external_changes: Counts<Fate>,
    /// Pairs of commit and Session among the Attributions that no observation supports. Their CI
    /// does not count.
    pub session_commit_unobserved: u64,
    /// The observations that support the other pairs, sorted.
    pub session_commit_observation_ids: Vec<FactId>,
    /// Calls of `completions` that `attribution_rate` is not taken of, by reason. Absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub completions_skipped: Counts<CompletionSkip>,
}

impl ModelRow {
    /// Returns how many calls `attribution_rate` is taken of: `completions` without
    /// `completions_skipped`.
    pub fn attribution_cases(&self) -> u64 {
        cases(self.completions, &self.completions_skipped)
    }
}

fn cases(completions: u64, skipped: &Counts<CompletionSkip>) -> u64 {
    completions.saturating_sub(skipped.total())
}

/// How far the calls of a model get. The unit is a call; each rate but the first has the
/// denominator `attributed`.
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
    /// Calls with an Attribution.
    pub attributed: u64,
    /// `attributed` of `completions_total` without `completions_skipped`; 0 without such a call.
    pub attribution_rate: f64,
    /// Attributed calls with a CI outcome of any result at an observed commit. The member of the
    /// same name in a row counts commits with a verdict.
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
    /// Pairs of commit and Session that no observation supports.
    pub session_commit_unobserved: u64,
    /// Calls of `completions_total` that `attribution_rate` is not taken of, by reason, as in the row.
    /// Absent if there are none.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub completions_skipped: Counts<CompletionSkip>,
}

impl SignalFunnel {
    /// Returns how many calls `attribution_rate` is taken of: `completions_total` without
    /// `completions_skipped`.
    pub fn attribution_cases(&self) -> u64 {
        cases(self.completions_total, &self.completions_skipped)
    }
}

/// A summary of the status of Sessions. A missing commit says nothing, so five numbers are always
/// 0.
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
    /// What was found about Sessions with decisions. `reached_a_commit` is not a loss.
    pub derivation_skipped: Counts<SessionSkip>,
    /// The rules that it was derived by.
    pub provenance: Provenance,
}

/// CI evidence that was not counted, by kind. The units differ and must not be added; kinds without
/// any are absent.
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
    /// Outcomes that name a repository that cannot be determined.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub source_outcomes: Counts<RepositoryDecline>,
}

/// Facts of a model report that name a repository that cannot be determined, by kind. The units
/// overlap and must not be added; kinds without any are absent.
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
    /// Pairs of commit and Session.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_edges: Counts<RepositoryDecline>,
    /// Pushes and observations that were searched for the commits of the rows.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub assembly_sources: Counts<RepositoryDecline>,
}
