#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A statistical comparison of two models. Repeating it until something is significant invalidates
/// the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Comparison {
    /// The first model, A.
    pub model_a: String,
    /// The second model, B.
    pub model_b: String,
    /// The probability of a false alarm in one test: 0.05.
    pub alpha: f64,
    /// `alpha` divided by the number of tests: 0.025.
    pub bonferroni_alpha: f64,
    /// The number of tests: 2, one for each rate.
    pub comparison_family_size: u64,
    /// Always null: there is no interim analysis.
    pub information_fraction: Option<f64>,
    /// The test of the CI pass rates.
    pub ci_pass_rate: RateTest,
    /// The test of the Attribution rates, which are lower bounds on retention.
    pub attribution_rate: RateTest,
    /// The posteriors of the CI pass rates.
    pub bayesian_ci_pass_rate: RatePosteriors,
    /// The posteriors of the Attribution rates, which are lower bounds on retention.
    pub bayesian_attribution_rate: RatePosteriors,
}

/// A test of whether the rates of A and B differ. Without cases on a side, its results are null and
/// nothing is significant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of its own")]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RateTest {
    /// The rate of A, from 0 to 1.
    pub proportion_a: Option<f64>,
    /// The rate of B, from 0 to 1.
    pub proportion_b: Option<f64>,
    /// The rate of A minus that of B.
    pub difference: Option<f64>,
    /// The size of the difference as Cohen's h: twice the difference of the arc sines of the square
    /// roots of the rates.
    pub cohens_h: Option<f64>,
    /// The lower end of the 95 % interval of `difference`. It may be below -1.
    pub ci_low: Option<f64>,
    /// The upper end of that interval. It may be above 1.
    pub ci_high: Option<f64>,
    /// The lower end of Newcombe's hybrid score 95 % interval of `difference`, from -1 to 1. It says
    /// something also if every case of each side has the same result.
    pub score_ci_low: Option<f64>,
    /// The upper end of that interval.
    pub score_ci_high: Option<f64>,
    /// `difference` divided by its pooled standard error; 0 if that error is 0.
    pub z_stat: Option<f64>,
    /// The probability of a difference at least this large, to either side, if the rates are equal;
    /// 1 if the pooled standard error is 0. It is not the probability that A is better.
    pub p_value: Option<f64>,
    /// The probability of a false alarm in one test: 0.05.
    pub alpha: f64,
    /// `alpha` divided by the number of tests of the comparison: 0.025.
    pub bonferroni_alpha: f64,
    /// Whether `p_value` is less than `alpha`.
    pub significant_at_alpha: bool,
    /// Whether `p_value` is less than `bonferroni_alpha`.
    pub significant_after_bonferroni: bool,
    /// The rate of both models together.
    pub baseline_p: Option<f64>,
    /// The smallest difference that this many cases detect with a power of 80 %; 0 if the pooled
    /// standard error is 0.
    pub minimum_detectable_effect: Option<f64>,
    /// The number of cases of A.
    pub n_a: u64,
    /// The number of cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
    /// Whether both sides have cases, but one of them has fewer than 30, so that the test is less
    /// reliable.
    pub small_n: bool,
    /// Whether the rate of both together is 0 or 1, so that the pooled standard error is 0.
    pub degenerate_se: bool,
    /// Always null: there is no sequential design.
    pub sequential_boundary: Option<f64>,
    /// Always null: `bonferroni_alpha` is the only correction.
    pub benjamini_hochberg_rank: Option<u64>,
    /// Always null, as `benjamini_hochberg_rank` is.
    pub benjamini_hochberg_alpha: Option<f64>,
    /// Always null, as `benjamini_hochberg_rank` is.
    pub significant_after_benjamini_hochberg: Option<bool>,
}

impl RateTest {
    /// Returns the interval of `difference`, if there is one: that of `ci_low` and `ci_high`, or that
    /// of `score_ci_low` and `score_ci_high` if the ends of the first meet.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let score = self.score_ci_low.zip(self.score_ci_high);
        if self.is_without_variance() {
            score
        } else {
            self.ci_low.zip(self.ci_high)
        }
    }

    /// Returns whether every case of each side has the same result: then `ci_low` and `ci_high` meet,
    /// and say nothing about other cases.
    pub fn is_without_variance(&self) -> bool {
        let ends = self.ci_low.zip(self.ci_high);
        ends.is_some_and(|(low, high)| low >= high)
    }
}

impl NonInferiorityTest {
    /// Returns `ci_lower_bound`; `None` without one, also if every case of each side has the same
    /// result: then it is the difference itself, and says nothing about other cases.
    pub fn lower_bound(&self) -> Option<f64> {
        let (bound, estimate) = self.ci_lower_bound.zip(self.point_estimate)?;
        (bound < estimate).then_some(bound)
    }
}

/// The posteriors of two rates, given their cases and a Beta(1, 1) prior for each. They are
/// computed exactly, without sampling. Without cases on a side, the results are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RatePosteriors {
    /// The mean of the posterior of A.
    pub posterior_mean_a: Option<f64>,
    /// The mean of the posterior of B.
    pub posterior_mean_b: Option<f64>,
    /// The probability that the rate of A is greater than that of B. It does not say that the
    /// difference is large.
    pub probability_a_gt_b: Option<f64>,
    /// The lower end of the central 95 % interval of the rate of A minus that of B.
    pub ci_low: Option<f64>,
    /// The upper end of that interval.
    pub ci_high: Option<f64>,
    /// The number of cases of A.
    pub n_a: u64,
    /// The number of cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
    /// Whether both sides have cases, but one of them has fewer than 30.
    #[serde(default)]
    pub small_n: bool,
}

/// For each rate, whether model B is worse than the baseline A by at most a margin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelNonInferiority {
    /// The test of the CI pass rates.
    pub ci_pass_rate: NonInferiorityTest,
    /// The test of the Attribution rates, which are lower bounds on retention.
    pub attribution_rate: NonInferiorityTest,
}

/// A test of whether B is worse than A by at most a margin. Without cases on a side, its results
/// are null. A negative result does not mean that B is worse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct NonInferiorityTest {
    /// The rate of A, from 0 to 1.
    pub proportion_a: Option<f64>,
    /// The rate of B, from 0 to 1.
    pub proportion_b: Option<f64>,
    /// The rate of B minus that of A.
    pub point_estimate: Option<f64>,
    /// The lower bound of `point_estimate`, with a one-sided confidence of 95 %.
    pub ci_lower_bound: Option<f64>,
    /// The margin by which B may be worse; greater than 0 and at most 1.
    pub margin: f64,
    /// The probability that the test passes if B is worse by exactly the margin: 0.05.
    pub alpha: f64,
    /// The confidence of the two-sided interval whose lower end is `ci_lower_bound`: 0.9.
    pub equivalent_two_sided_confidence: f64,
    /// Whether `ci_lower_bound` is above the negative margin. False if a side has no cases.
    pub is_non_inferior: bool,
    /// The number of cases of A.
    pub n_a: u64,
    /// The number of cases of B.
    pub n_b: u64,
    /// Whether a side has no cases.
    pub insufficient_data: bool,
    /// Whether both sides have cases, but one of them has fewer than 30, so that the test is less
    /// reliable.
    pub small_n: bool,
}
