//! A comparison of two models, from their rows.

use svc_model::reports::{
    Comparison, ModelNonInferiority, ModelRow, NonInferiorityTest, RatePosteriors, RateTest,
};

use super::statistics::{
    ALPHA, BONFERRONI_ALPHA, FAMILY_SIZE, Proportion, compare as compare_rates, is_small,
    non_inferiority as test_non_inferiority, posteriors,
};

/// The confidence of the two-sided interval whose lower end is a one-sided bound with a confidence
/// of 1 - [`ALPHA`].
pub const TWO_SIDED_CONFIDENCE: f64 = 0.9;

/// Which calls are the cases of Attribution rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cases {
    /// All calls of the rates in the rows.
    All,
    /// Those of which a commit could have been seen.
    Observable,
}

/// Compares two models. A model without a row has no cases.
pub fn compare(rows: &[ModelRow], model_a: &str, model_b: &str, cases: Cases) -> Comparison {
    let [a, b] = [model_a, model_b].map(|model| Rates::of(rows, model, cases));
    Comparison {
        model_a: model_a.to_owned(),
        model_b: model_b.to_owned(),
        alpha: ALPHA,
        bonferroni_alpha: BONFERRONI_ALPHA,
        comparison_family_size: FAMILY_SIZE,
        information_fraction: None,
        ci_pass_rate: rate_test(a.ci_pass, b.ci_pass),
        attribution_rate: rate_test(a.attribution, b.attribution),
        bayesian_ci_pass_rate: rate_posteriors(a.ci_pass, b.ci_pass),
        bayesian_attribution_rate: rate_posteriors(a.attribution, b.attribution),
    }
}

/// Tests whether model B is at most `margin` worse than the baseline A. A model without a row has
/// no cases.
pub fn non_inferiority(
    rows: &[ModelRow],
    model_a: &str,
    model_b: &str,
    margin: f64,
    cases: Cases,
) -> ModelNonInferiority {
    let [a, b] = [model_a, model_b].map(|model| Rates::of(rows, model, cases));
    ModelNonInferiority {
        ci_pass_rate: non_inferiority_test(a.ci_pass, b.ci_pass, margin),
        attribution_rate: non_inferiority_test(a.attribution, b.attribution, margin),
    }
}

/// The rates of one model.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    ci_pass: Proportion,
    attribution: Proportion,
}

impl Rates {
    fn of(rows: &[ModelRow], model: &str, cases: Cases) -> Self {
        let attribution_cases = |row: &ModelRow| match cases {
            Cases::All => row.attribution_cases(),
            Cases::Observable => row.observable_cases(),
        };
        rows.iter()
            .find(|row| row.model == model)
            .map_or_else(Self::default, |row| Self {
                ci_pass: Proportion::new(row.ci_passed, row.ci_linked),
                attribution: Proportion::new(
                    row.attributed_inference_calls,
                    attribution_cases(row),
                ),
            })
    }
}

fn rate_test(a: Proportion, b: Proportion) -> RateTest {
    let result = compare_rates(a, b);
    let significant = |alpha: f64| result.is_some_and(|result| result.p_value < alpha);
    RateTest {
        proportion_a: result.map(|test| test.proportion_a),
        proportion_b: result.map(|test| test.proportion_b),
        difference: result.map(|test| test.difference),
        cohens_h: result.map(|test| test.cohens_h),
        ci_low: result.map(|test| test.ci_low),
        ci_high: result.map(|test| test.ci_high),
        score_ci_low: result.map(|test| test.score_interval[0]),
        score_ci_high: result.map(|test| test.score_interval[1]),
        z_stat: result.map(|test| test.z_stat),
        p_value: result.map(|test| test.p_value),
        alpha: ALPHA,
        bonferroni_alpha: BONFERRONI_ALPHA,
        significant_at_alpha: significant(ALPHA),
        significant_after_bonferroni: significant(BONFERRONI_ALPHA),
        baseline_p: result.map(|test| test.baseline_p),
        minimum_detectable_effect: result.map(|test| test.minimum_detectable_effect),
        n_a: a.denominator,
        n_b: b.denominator,
        insufficient_data: result.is_none(),
        small_n: result.is_some_and(|test| test.small_n),
        degenerate_se: result.is_some_and(|test| test.degenerate_se),
        sequential_boundary: None,
        benjamini_hochberg_rank: None,
        benjamini_hochberg_alpha: None,
        significant_after_benjamini_hochberg: None,
    }
}

fn rate_posteriors(a: Proportion, b: Proportion) -> RatePosteriors {
    let result = posteriors(a, b);
    RatePosteriors {
        posterior_mean_a: result.map(|rates| rates.mean_a),
        posterior_mean_b: result.map(|rates| rates.mean_b),
        probability_a_gt_b: result.map(|rates| rates.probability_a_greater),
        ci_low: result.map(|rates| rates.interval[0]),
        ci_high: result.map(|rates| rates.interval[1]),
        n_a: a.denominator,
        n_b: b.denominator,
        insufficient_data: result.is_none(),
        small_n: result.is_some() && is_small(a, b),
    }
}

fn non_inferiority_test(a: Proportion, b: Proportion, margin: f64) -> NonInferiorityTest {
    let result = test_non_inferiority(a, b, margin);
    NonInferiorityTest {
        proportion_a: result.map(|test| test.proportion_a),
        proportion_b: result.map(|test| test.proportion_b),
        point_estimate: result.map(|test| test.point_estimate),
        ci_lower_bound: result.map(|test| test.ci_lower_bound),
        margin,
        alpha: ALPHA,
        equivalent_two_sided_confidence: TWO_SIDED_CONFIDENCE,
        is_non_inferior: result.is_some_and(|test| test.is_non_inferior),
        n_a: a.denominator,
        n_b: b.denominator,
        insufficient_data: result.is_none(),
        small_n: result.is_some_and(|test| test.small_n),
    }
}

#[cfg(test)]
mod tests;
