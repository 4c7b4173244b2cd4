use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set;
use crate::id::OrgId;
use crate::open::Open;
use crate::query::LifetimeIdentity;

closed_set! {
    /// A rate for comparing models.
    pub enum Metric {
        /// Commits whose CI passed, of those with a verdict.
        CiPassRate = "ci_pass_rate",
        /// Calls with an Attribution, of all calls; a lower bound on retention.
        AttributionRate = "attribution_rate",
    }
}

closed_set! {
    /// Whether differences between models hold within repositories.
    pub enum StratificationStatus {
        /// There are fewer than two models.
        NotEnoughModels = "not_enough_models",
        /// There are fewer than two repositories with cases.
        NotEnoughRepos = "not_enough_repos",
        /// No two models differ and have cases in the same two repositories.
        NoComparableData = "no_comparable_data",
        /// Some difference is reversed within a repository.
        ReversalDetected = "reversal_detected",
        /// No difference is reversed.
        NoReversalDetected = "no_reversal_detected",
        /// The rate has no repositories, because a call has none before it is attributed.
        NotCheckable = "not_checkable",
    }
}

/// Whether differences between models are differences between the repositories that they worked in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Stratification {
    /// The rate.
    pub metric: Open<Metric>,
    /// What was found.
    pub status: Open<StratificationStatus>,
    /// Repositories in which some model has a case.
    pub checked_repos: u64,
    /// Pairs of models that differ and have at least two repositories in common.
    pub comparisons: Vec<RateComparison>,
    /// The status as a sentence.
    pub reason: String,
    /// Pairs of commit and Session that no observation supports, for all models.
    pub session_commit_unobserved: u64,
    /// Pairs of models with a repository in common, with the difference within repositories.
    pub adjusted_comparisons: Vec<AdjustedComparison>,
    /// Each model's rate in each repository, shrunk towards the overall mean.
    pub shrunk_rates: Vec<ShrunkRates>,
}

/// The rate of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelRate {
    /// The model.
    pub model: String,
    /// The count.
    pub numerator: u64,
    /// The total; at least 1.
    pub denominator: u64,
    /// `numerator` of `denominator`.
    pub rate: f64,
}

/// Two models in all repositories together, and the repositories where the difference is reversed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RateComparison {
    /// The left model.
    pub left_model: String,
    /// The right model.
    pub right_model: String,
    /// The rate of the left model in all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model in all repositories.
    pub aggregate_right: ModelRate,
    /// The left rate minus the right one; not 0.
    pub aggregate_delta: f64,
    /// Repositories in which both have cases; at least 2.
    pub compared_repos: u64,
    /// Checked repositories in which not both have cases.
    pub skipped_repos: u64,
    /// Repositories in which the difference has the other sign.
    pub reversals: Vec<Reversal>,
}

/// A repository in which a difference is reversed.
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
    /// The rate of the left model in all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model in all repositories.
    pub aggregate_right: ModelRate,
    /// The difference in all repositories.
    pub aggregate_delta: f64,
    /// The difference in this repository.
    pub repo_delta: f64,
    /// The organization.
    pub org_id: OrgId,
    /// The identity of the repository; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
}

/// Two models, adjusted for where they worked (Mantel and Haenszel).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AdjustedComparison {
    /// The left model.
    pub left_model: String,
    /// The right model.
    pub right_model: String,
    /// The rate of the left model in all repositories.
    pub aggregate_left: ModelRate,
    /// The rate of the right model in all repositories.
    pub aggregate_right: ModelRate,
    /// The left rate minus the right one, over all repositories.
    pub naive_delta: f64,
    /// The weighted mean of the differences within repositories.
    pub adjusted_delta: f64,
    /// Repositories in which both have cases; at least 1.
    pub compared_repos: u64,
    /// Checked repositories in which not both have cases.
    pub skipped_repos: u64,
    /// The sum of the weights.
    pub weight_sum: f64,
}

/// The rates of models in one repository, shrunk towards the mean of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ShrunkRates {
    /// The organization.
    pub org_id: OrgId,
    /// A name of the repository.
    pub repo: String,
    /// The identity of the repository; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The rates by model.
    pub model_rates: BTreeMap<String, ShrunkRate>,
}

/// The rate of one model in one repository, shrunk towards the mean: the fewer cases, the more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ShrunkRate {
    /// The model.
    pub model: String,
    /// The count.
    pub numerator: u64,
    /// The total; at least 1.
    pub denominator: u64,
    /// `numerator` of `denominator`.
    pub raw_rate: f64,
    /// The shrunk rate, between its own and the mean.
    pub shrunk_rate: f64,
    /// The rate of all cells together.
    pub grand_mean: f64,
    /// The weight of its own rate.
    pub shrinkage_weight: f64,
    /// The number of cases that the mean counts as.
    pub pooling_strength: f64,
}
