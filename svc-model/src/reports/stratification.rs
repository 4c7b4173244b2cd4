use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::id::OrgId;
use crate::open::Open;
use crate::query::LifetimeIdentity;

closed_set! {
    /// A rate by which models are compared.
    pub enum Metric {
        /// Commits whose CI passed, out of those with a verdict.
        CiPassRate = "ci_pass_rate",
        /// Calls with an Attribution, out of all calls for which this is known. A lower bound on
        /// retention.
        AttributionRate = "attribution_rate",
    }
}

closed_set! {
    /// Whether differences between models hold within repositories too.
    pub enum StratificationStatus {
        /// Fewer than two models have calls in the cohort.
        NotEnoughModels = "not_enough_models",
        /// Fewer than two repositories have cases.
        NotEnoughRepos = "not_enough_repos",
        /// No two models have different rates and cases in at least two common repositories.
        NoComparableData = "no_comparable_data",
        /// A difference between two models has the opposite sign in at least one repository.
        ReversalDetected = "reversal_detected",
        /// No difference between two models has the opposite sign in any repository.
        NoReversalDetected = "no_reversal_detected",
        /// The rate cannot be split by repository, because a call has no repository until it is
        /// attributed.
        NotCheckable = "not_checkable",
    }
}

/// Whether differences between models are differences between the repositories that they worked in.
/// A case of `ci_pass_rate` is a commit with a verdict. `attribution_rate` cannot be split by
/// repository, so it has a status but no numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stratification {
    /// The rate.
    pub metric: Open<Metric>,
    /// What was found.
    pub status: Open<StratificationStatus>,
    /// The number of repositories in which at least one model has a case.
    pub checked_repos: u64,
    /// Pairs of models with different rates that both have cases in at least two common
    /// repositories.
    pub comparisons: Vec<RateComparison>,
    /// The status as a sentence for people.
    pub reason: String,
    /// Attributed pairs of a commit and a Session that no observation supports, over all models.
    pub session_commit_unobserved: u64,
    /// Pairs of models with cases in at least one common repository, with their difference within
    /// repositories.
    pub adjusted_comparisons: Vec<AdjustedComparison>,
    /// The rates of the models in each repository, shrunk towards the overall mean. Empty if no
    /// model has a case.
    pub shrunk_rates: Vec<ShrunkRates>,
}

/// A rate of one model: `numerator` out of `denominator` cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRate {
    /// The model, as the gateway names it.
    pub model: String,
    /// The number of cases that count, such as the commits that passed.
    pub numerator: u64,
    /// The number of all cases; at least 1.
    pub denominator: u64,
    /// `numerator` divided by `denominator`, from 0 to 1.
    pub rate: f64,
}

/// The rates of two models over all repositories, and the repositories in which the difference is
/// reversed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RateComparison {
    /// The first model of the pair.
    pub left_model: String,
    /// The second model of the pair.
    pub right_model: String,
    /// The rate of the left model over all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model over all repositories.
    pub aggregate_right: ModelRate,
    /// The left rate minus the right rate, over all repositories; not 0.
    pub aggregate_delta: f64,
    /// The number of repositories in which both models have cases; at least 2.
    pub compared_repos: u64,
    /// The number of checked repositories in which only one of them, or neither, has cases.
    pub skipped_repos: u64,
    /// The repositories in which the difference has the opposite sign.
    pub reversals: Vec<Reversal>,
}

/// A repository in which the difference between two models has the opposite sign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Reversal {
    /// A name of the repository.
    pub repo: String,
    /// The rate of the left model in this repository.
    pub left: ModelRate,
    /// The rate of the right model in this repository.
    pub right: ModelRate,
    /// The rate of the left model over all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model over all repositories.
    pub aggregate_right: ModelRate,
    /// The left rate minus the right rate, over all repositories.
    pub aggregate_delta: f64,
    /// The left rate minus the right rate, in this repository.
    pub repo_delta: f64,
    /// The organization.
    pub org_id: OrgId,
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

/// The difference between two models, adjusted for the repositories that they worked in
/// (Mantel-Haenszel).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AdjustedComparison {
    /// The first model of the pair.
    pub left_model: String,
    /// The second model of the pair.
    pub right_model: String,
    /// The rate of the left model over all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model over all repositories.
    pub aggregate_right: ModelRate,
    /// The left rate minus the right rate, over all repositories and without adjustment.
    pub naive_delta: f64,
    /// The mean of the differences within repositories, left minus right, weighted by their cases.
    pub adjusted_delta: f64,
    /// The number of repositories in which both models have cases; at least 1.
    pub compared_repos: u64,
    /// The number of checked repositories in which only one of them, or neither, has cases.
    pub skipped_repos: u64,
    /// The sum of the weights; greater than 0.
    pub weight_sum: f64,
}

/// The rates of models in one repository, shrunk towards the overall mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ShrunkRates {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The rates, by model. Models without a case in this repository are absent.
    pub model_rates: BTreeMap<String, ShrunkRate>,
}

/// The rate of one model in one repository, shrunk towards the overall mean: the fewer cases it
/// has, the more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ShrunkRate {
    /// The model, as the gateway names it.
    pub model: String,
    /// The number of cases that count, such as the commits that passed.
    pub numerator: u64,
    /// The number of all cases; at least 1.
    pub denominator: u64,
    /// `numerator` divided by `denominator`, from 0 to 1.
    pub raw_rate: f64,
    /// The shrunk rate, between `raw_rate` and `grand_mean`.
    pub shrunk_rate: f64,
    /// The rate of all models and repositories together.
    pub grand_mean: f64,
    /// The weight of `raw_rate` in `shrunk_rate`, from 0 to 1. The rest is the weight of
    /// `grand_mean`.
    pub shrinkage_weight: f64,
    /// The number of cases that `grand_mean` counts as; at least 0.
    pub pooling_strength: f64,
}
