use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AttributionAlert, AttributionShareRow, AttributionSkip, CiCommitSkip, CiRunSkip, Comparison,
    CompletionSkip, Counts, Fate, FateSkip, ModelNonInferiority, Provenance, SessionSkip,
    Stratification, Unobservable,
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
    /// One row for each model with a call in the cohort, ordered by model. Calls without a model
    /// are in no row.
    pub rows: Vec<ModelRow>,
    /// Whether differences between models are differences between the repositories that they worked
    /// in: first for `ci_pass_rate`, then for `attribution_rate`.
    pub stratification: Vec<Stratification>,
    /// How far each model's calls get, in the order of `rows`.
    pub signal_funnel: Vec<SignalFunnel>,
    /// A summary of the status of the cohort's Sessions.
    pub abandonment: AbandonmentSummary,
    /// Edits without a Fate, by reason.
    pub fate_skipped: Counts<FateSkip>,
    /// Facts whose repository cannot be determined, by kind. A fact may be in several kinds, so the
    /// counts must not be added.
    pub repository_skipped: ModelRepositorySkips,
    /// CI evidence that was not counted, by kind. Each kind has its own unit.
    pub ci_skipped: CiSkips,
    /// The rules that Fates were derived by.
    pub fate_provenance: Provenance,
    /// How many commits are attributed by notes, and how many by similarity only: one row for each
    /// repository with a plausible commit in the window.
    pub attribution_share: Vec<AttributionShareRow>,
    /// Repositories whose notes may be missing.
    pub attribution_alerts: Vec<AttributionAlert>,
    /// What could not be examined in the commits of `attribution_share`, and in those of the window
    /// before, by reason. Each reason has its own unit. If this concerns a commit without an
    /// Attribution by note, the commit is in no row: it is unknown, not unattributed. Absent if
    /// everything could be examined.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_share_skipped: Counts<AttributionSkip>,
    /// The number of repositories whose mirror was fetched before and cannot be found now. No call
    /// is linked to their commits, so rates are too low. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_mirrors: Option<u64>,
    /// A comparison of two models. Present only if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Whether the second model is worse than the first by at most a margin. Present only if it was
    /// requested.
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

/// What became of the calls of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRow {
    /// The model, as the gateway names it.
    pub model: String,
    /// The length of the cohort in days, rounded up; null for all history.
    pub since_days: Option<u64>,
    /// The number of the model's calls in the cohort.
    pub completions: u64,
    /// How many of them have an Attribution, by note or by similarity.
    pub attributed_inference_calls: u64,
    /// `attributed_inference_calls` divided by `completions` without `completions_skipped`, from 0
    /// to 1; 0 if there are no such calls. Heavily edited output is not recognised, so this is a
    /// lower bound on retention.
    pub attribution_rate: f64,
    /// Wilson's 95 % interval of `attribution_rate`; `[0, 0]` if there are no such calls.
    pub attribution_rate_ci: [f64; 2],
    /// The number of commits that have a CI verdict and are attributed to a call of the model whose
    /// Session was observed at them.
    pub ci_linked: u64,
    /// How many of them passed.
    pub ci_passed: u64,
    /// `ci_passed` divided by `ci_linked`, from 0 to 1; 0 if there are no such commits. It does not
    /// say that the calls are the reason.
    pub ci_pass_rate: f64,
    /// Wilson's 95 % interval of `ci_pass_rate`; `[0, 0]` if there are no such commits.
    pub ci_pass_rate_ci: [f64; 2],
    /// The number of accepts by people that are attached to a call of the model, whether or not it
    /// reached a commit.
    pub explicit_accepts: u64,
    /// The number of rejects by people that are attached to a call of the model.
    pub explicit_rejects: u64,
    /// The mean similarity of the model's Attributions, one for each file, from 0 to 1; 0 without
    /// an Attribution.
    pub mean_similarity: f64,
    /// The rules that this row was derived by.
    pub provenance: Provenance,
    /// Always `commit`.
    pub grain: Open<OutcomeGrain>,
    /// Failed workflows of the commits among `ci_linked` that failed, by name. A workflow counts
    /// once for each commit that it failed on; workflows without a name are under `unnamed`.
    pub ci_failures_by_workflow: BTreeMap<String, u64>,
    /// `explicit_rejects`, by agent.
    pub explicit_rejects_by_agent_harness: Counts<AgentHarness>,
    /// Edits with a decision that is attached to a call of the model, by Fate.
    pub fates: Counts<Fate>,
    /// Edits among `fates` that a person accepted, by Fate.
    pub explicit_accept_fates: Counts<Fate>,
    /// Edits among `fates` whose file is known to have been changed by something other than the
    /// agent as well, by Fate. It does not say who changed it.
    pub fates_with_external_changes: Counts<Fate>,
    /// Attributed pairs of a commit and a Session that no observation supports. CI at these commits
    /// does not count for the Session.
    pub session_commit_unobserved: u64,
    /// The ids of the observations that support the other pairs, sorted.
    pub session_commit_observation_ids: Vec<FactId>,
    /// Calls among `completions` that are in no `attribution_rate`, by reason. Absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub completions_skipped: Counts<CompletionSkip>,
    /// How many calls of the denominator of `attribution_rate` could have been observed: they are
    /// attributed, or a push whose commits were read was received at a time when a commit of theirs
    /// would be looked for. Absent if all of them could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution_observable: Option<u64>,
    /// The other calls of that denominator, by reason. Nobody could have seen a commit of theirs, so
    /// they lower `attribution_rate` although they say nothing. Absent if there are none.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_unobservable: Counts<Unobservable>,
}

impl ModelRow {
    /// Returns the denominator of `attribution_rate`: `completions` without `completions_skipped`.
    pub fn attribution_cases(&self) -> u64 {
        cases(self.completions, &self.completions_skipped)
    }

    /// Returns how many of [`ModelRow::attribution_cases`] could have been observed.
    pub fn observable_cases(&self) -> u64 {
        let unobservable = self.attribution_unobservable.total();
        self.attribution_cases().saturating_sub(unobservable)
    }
}

fn cases(completions: u64, skipped: &Counts<CompletionSkip>) -> u64 {
    completions.saturating_sub(skipped.total())
}

/// How far the calls of a model get. The unit is a call. `attributed` is the denominator of every
/// rate except `attribution_rate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SignalFunnel {
    /// The model, as the gateway names it.
    pub model: String,
    /// The length of the cohort in days, rounded up; null for all history.
    pub since_days: Option<u64>,
    /// The number of the model's calls in the cohort.
    pub completions_total: u64,
    /// How many of them have an Attribution, by note or by similarity.
    pub attributed: u64,
    /// `attributed` divided by `completions_total` without `completions_skipped`, from 0 to 1; 0 if
    /// there are no such calls.
    pub attribution_rate: f64,
    /// Attributed calls with a CI outcome, whatever its result, at a commit at which their Session
    /// was observed. In a row, the member of the same name counts commits with a verdict.
    pub ci_linked: u64,
    /// `ci_linked` divided by `attributed`, from 0 to 1; 0 without an attributed call.
    pub ci_linked_retention_rate: f64,
    /// Attributed calls with an attached decision by a person.
    pub has_decision: u64,
    /// `has_decision` divided by `attributed`, from 0 to 1; 0 without an attributed call.
    pub has_decision_retention_rate: f64,
    /// Attributed calls with an attached decision by a person, or with a CI verdict at a commit at
    /// which their Session was observed.
    pub training_row_eligible: u64,
    /// `training_row_eligible` divided by `attributed`, from 0 to 1; 0 without an attributed call.
    pub training_row_eligible_retention_rate: f64,
    /// Attributed pairs of a commit and a Session that no observation supports.
    pub session_commit_unobserved: u64,
    /// Calls among `completions_total` that are in no `attribution_rate`, by reason, as in the row.
    /// Absent if there are none.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub completions_skipped: Counts<CompletionSkip>,
}

impl SignalFunnel {
    /// Returns the denominator of `attribution_rate`: `completions_total` without
    /// `completions_skipped`.
    pub fn attribution_cases(&self) -> u64 {
        cases(self.completions_total, &self.completions_skipped)
    }
}

/// A summary of the status of Sessions. A missing commit is no sign of abandonment, so five of the
/// numbers are always 0.
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
    /// What was found about Sessions with decisions, and observations that were not counted.
    /// `reached_a_commit` is not a loss.
    pub derivation_skipped: Counts<SessionSkip>,
    /// The rules that the summary was derived by.
    pub provenance: Provenance,
}

/// CI evidence that was not counted, by kind. The units differ, so the counts must not be added. A
/// kind with nothing to count is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct CiSkips {
    /// Runs that count for no commit, by reason.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub runs: Counts<CiRunSkip>,
    /// Commits whose runs disagree, by reason. They have no verdict.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub commits: Counts<CiCommitSkip>,
    /// CI outcomes whose repository cannot be determined, by reason.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub source_outcomes: Counts<RepositoryDecline>,
}

/// Facts of a model report whose repository cannot be determined, by kind and reason. A fact may be
/// in several kinds, so the counts must not be added. A kind with nothing to count is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRepositorySkips {
    /// Pushes in the window of `attribution_share`.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub push_sources: Counts<RepositoryDecline>,
    /// Session commit observations that `attribution_share` could have used.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub preload_session_observations: Counts<RepositoryDecline>,
    /// Session commit observations of the cohort's Sessions.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// Always absent: CI outcomes are among `assembly_sources`.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub ci_outcomes: Counts<RepositoryDecline>,
    /// Pairs of a commit and a Session.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub attribution_edges: Counts<RepositoryDecline>,
    /// Session commit observations of the cohort's Sessions, and CI outcomes at the commits of the
    /// rows and of their runs; over all history, pushes too.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub assembly_sources: Counts<RepositoryDecline>,
}
