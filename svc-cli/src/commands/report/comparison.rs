use svc_model::reports::{Comparison, ModelNonInferiority, NonInferiorityTest, RateTest};

use super::page::{Page, number, percent};
use crate::output::{Table, escape};

/// Adds the comparison of two models.
pub(super) fn comparison(page: &mut Page, comparison: &Comparison) {
    page.heading(&format!(
        "comparison: A is {}, B is {}",
        escape(&comparison.model_a),
        escape(&comparison.model_b)
    ));
    let mut table = Table::new([
        "metric",
        "A",
        "B",
        "A - B",
        "95 % interval",
        "h",
        "z",
        "p_value",
        "sig",
        "n_a",
        "n_b",
        "note",
    ])
    .numbers(&[9, 10]);
    let metrics = [
        ("ci_pass_rate", &comparison.ci_pass_rate),
        ("attribution_rate", &comparison.attribution_rate),
    ];
    for (metric, test) in metrics {
        table.row([
            metric.to_owned(),
            share(test.proportion_a),
            share(test.proportion_b),
            difference(test.difference),
            interval(test),
            number(test.cohens_h),
            number(test.z_stat),
            number(test.p_value),
            significance(test).to_owned(),
            test.n_a.to_string(),
            test.n_b.to_string(),
            note(test.insufficient_data, test.small_n).to_owned(),
        ]);
    }
    page.table(&table);
    page.line(format!(
        "  sig: corrected when p_value < {} (two metrics are tested), raw_only when < {}.",
        comparison.bonferroni_alpha, comparison.alpha
    ));
    for (metric, test) in metrics {
        match test.minimum_detectable_effect {
            // If both rates are 0 or 1, there is no error to derive it from.
            _ if test.degenerate_se => page.line(format!(
                "  {metric}: every case has the same result, so nothing says how small a difference is found."
            )),
            Some(effect) if effect <= 1.0 => page.line(format!(
                "  {metric}: with this many cases, a difference of {effect:.4} is found four times out of five."
            )),
            Some(_) => page.line(format!(
                "  {metric}: with so few cases, hardly any difference is found."
            )),
            None => {}
        }
    }
    for (metric, posteriors) in [
        ("ci_pass_rate", &comparison.bayesian_ci_pass_rate),
        ("attribution_rate", &comparison.bayesian_attribution_rate),
    ] {
        if let Some(probability) = posteriors.probability_a_gt_b {
            page.line(format!(
                "  {metric}: A has the higher rate with a probability of {}.",
                percent(probability)
            ));
        }
    }
    page.line(
        "  Look once: every further look at growing data makes a false difference more likely. No test \
         corrects for models that do different work.",
    );
}

/// Adds whether model B is worse than A by at most the margin.
pub(super) fn non_inferiority(page: &mut Page, tests: &ModelNonInferiority) {
    let margin = tests.ci_pass_rate.margin;
    page.heading(&format!(
        "non-inferiority: is B at most {margin} worse than A?"
    ));
    let mut table = Table::new([
        "metric",
        "A",
        "B",
        "B - A",
        "lower bound",
        "threshold",
        "answer",
        "n_a",
        "n_b",
        "note",
    ])
    .numbers(&[7, 8]);
    for (metric, test) in [
        ("ci_pass_rate", &tests.ci_pass_rate),
        ("attribution_rate", &tests.attribution_rate),
    ] {
        table.row([
            metric.to_owned(),
            share(test.proportion_a),
            share(test.proportion_b),
            difference(test.point_estimate),
            number(test.ci_lower_bound),
            format!("{:.4}", -test.margin),
            answer(test).to_owned(),
            test.n_a.to_string(),
            test.n_b.to_string(),
            note(test.insufficient_data, test.small_n).to_owned(),
        ]);
    }
    page.table(&table);
    page.line("  Not shown is not the same as worse: it may take more cases.");
}

fn share(proportion: Option<f64>) -> String {
    proportion.map_or_else(|| "-".to_owned(), percent)
}

/// Returns a difference that may be absent. Two equal rates get words, because a number would look
/// rounded.
fn difference(difference: Option<f64>) -> String {
    match difference {
        Some(0.0) => "no difference".to_owned(),
        other => number(other),
    }
}

fn interval(test: &RateTest) -> String {
    match (test.ci_low, test.ci_high) {
        (Some(low), Some(high)) => format!("{low:.4} to {high:.4}"),
        _ => "-".to_owned(),
    }
}

fn significance(test: &RateTest) -> &'static str {
    if test.insufficient_data {
        // Nothing was tested.
        "-"
    } else if test.significant_after_bonferroni {
        "corrected"
    } else if test.significant_at_alpha {
        "raw_only"
    } else {
        "no"
    }
}

fn answer(test: &NonInferiorityTest) -> &'static str {
    if test.insufficient_data {
        "-"
    } else if test.is_non_inferior {
        "yes"
    } else {
        "not shown"
    }
}

fn note(insufficient_data: bool, small_n: bool) -> &'static str {
    if insufficient_data {
        "insufficient data (n=0 in at least one group)"
    } else if small_n {
        "small n, less reliable"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_zero_is_written_in_words() {
        assert_eq!(difference(Some(0.0)), "no difference");
        assert_eq!(difference(Some(-0.0)), "no difference");
        assert_eq!(difference(Some(-0.125)), "-0.1250");
        assert_eq!(difference(None), "-");
    }

    #[test]
    fn without_cases_nothing_was_tested() {
        let empty = [];
        let tested = svc_engine::derive::comparison::compare(&empty, "a", "b");
        assert_eq!(significance(&tested.ci_pass_rate), "-");
        let tested = svc_engine::derive::comparison::non_inferiority(&empty, "a", "b", 0.1);
        assert_eq!(answer(&tested.ci_pass_rate), "-");
        let mut page = Page::default();
        comparison(
            &mut page,
            &svc_engine::derive::comparison::compare(&empty, "a", "b"),
        );
        let page = page.finish();
        assert!(!page.contains("probability of"), "{page}");
    }
}
