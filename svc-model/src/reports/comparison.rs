#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison of two models. Repeating it until something is significant invalidates the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Comparison {
    /// The first model.
    pub model_a: String,
    /// The second model.
    pub model_b: String,
    /// The chance of a false alarm in one test: 0.05.
    pub alpha: f64,
    /// That chance shared among the tests of the comparison: 0.025.
    pub bonferroni_alpha: f64,
    /// How many tests there are: 2.
    pub comparison_family_size: u64,
    /// Always null: there is no interim analysis.
    pub information_fraction: Option<f64>,
    /// The CI pass rates.
    pub ci_pass_rate: RateTest,
    /// The Attribution rates; each a lower bound on retention.
    pub attribution_rate: RateTest,
    /// The posterior CI pass rates.
    pub bayesian_ci_pass_rate: RatePosteriors,
    /// The posterior Attribution rates.
    pub bayesian_attribution_rate: RatePosteriors,
}

/// A test of two rates, A and B. The numbers are null if a side has no cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of its own")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RateTest {
    /// The rate of A.
    pub proportion_a: Option<f64>,
    /// The rate of B.
    pub proportion_b: Option<f64>,
    /// The rate of A minus that of B.
    pub difference: Option<f64>,
    /// Cohen's h: twice the difference of the arc sines of the rates' square roots.
    pub cohens_h: Option<f64>,
    /// The lower end of the 95 % interval of the difference, not clamped.
    pub ci_low: Option<f64>,
    /// The upper end.
    pub ci_high: Option<f64>,
    /// The difference in pooled standard errors; 0 if that error is 0.
    pub z_stat: Option<f64>,
    /// The probability of such a difference, to either side, if there is none; 1 if the pooled
    /// error is 0.
    pub p_value: Option<f64>,
    /// The chance of a false alarm in one test.
    pub alpha: f64,
    /// That chance shared among the tests of the comparison.
    pub bonferroni_alpha: f64,
    /// Whether `p_value` is less than `alpha`.
    pub significant_at_alpha: bool,
    /// Whether `p_value` is less than `bonferroni_alpha`.
    pub significant_after_bonferroni: bool,
    /// The rate of both together.
    pub baseline_p: Option<f64>,
    /// The smallest difference that is detected with a power of 80 %.
    pub minimum_detectable_effect: Option<f64>,
    /// Cases of A.
    pub n_a: u64,
    /// Cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
    /// Whether both sides have cases, but one has fewer than 30, which is less reliable.
    pub small_n: bool,
    /// Whether the pooled rate is 0 or 1, so that the pooled error is 0.
    pub degenerate_se: bool,
    /// Always null: there is no sequential design.
    pub sequential_boundary: Option<f64>,
}

/// The posterior of two rates, given their counts and a Beta(1, 1) prior. It is computed exactly,
/// without sampling. The numbers are null if a side has no cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RatePosteriors {
    /// The mean of A.
    pub posterior_mean_a: Option<f64>,
    /// The mean of B.
    pub posterior_mean_b: Option<f64>,
    /// The probability that A is greater than B.
    pub probability_a_gt_b: Option<f64>,
    /// The lower end of the central 95 % interval of A minus B.
    pub ci_low: Option<f64>,
    /// The upper end.
    pub ci_high: Option<f64>,
    /// Cases of A.
    pub n_a: u64,
    /// Cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
}

/// Whether model B is worse than the baseline A by at most a margin, for each rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelNonInferiority {
    /// The CI pass rates.
    pub ci_pass_rate: NonInferiorityTest,
    /// The Attribution rates; each a lower bound on retention.
    pub attribution_rate: NonInferiorityTest,
}

/// A test whether B is worse than A by at most a margin. The numbers are null if a side has no
/// cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct NonInferiorityTest {
    /// The rate of A.
    pub proportion_a: Option<f64>,
    /// The rate of B.
    pub proportion_b: Option<f64>,
    /// The rate of B minus that of A.
    pub point_estimate: Option<f64>,
    /// The lower bound of that difference.
    pub ci_lower_bound: Option<f64>,
    /// The margin by which B may be worse; greater than 0, at most 1.
    pub margin: f64,
    /// The probability that a B that is worse by the margin passes: 0.05.
    pub alpha: f64,
    /// The two-sided interval whose lower end is the bound: 0.9.
    pub equivalent_two_sided_confidence: f64,
    /// Whether the bound is above the negative margin. False without cases.
    pub is_non_inferior: bool,
    /// Cases of A.
    pub n_a: u64,
    /// Cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
    /// Whether both sides have cases, but one has fewer than 30, which is less reliable.
    pub small_n: bool,
}
