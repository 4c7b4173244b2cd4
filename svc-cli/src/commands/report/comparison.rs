use svc_model::reports::{
    Comparison, ModelNonInferiority, NonInferiorityTest, RateTest, Unobservable,
};

use super::page::{Page, number, percent};
use crate::output::{Table, escape};

/// Adds the comparison of two models.
/// `why` is why the Attribution rates are not observable, if they are not.
pub(super) fn comparison(page: &mut Page, comparison: &Comparison, why: Option<Unobservable>) {
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
    let metrics = known(
        [&comparison.ci_pass_rate, &comparison.attribution_rate],
        why,
    );
    for (metric, test) in metrics.clone() {
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
            note(
                test.insufficient_data,
                test.small_n,
                test.interval().is_none(),
            ),
        ]);
    }
    page.table(&table);
    page.unobservable("attribution_rate", why);
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
    let posteriors = [
        &comparison.bayesian_ci_pass_rate,
        &comparison.bayesian_attribution_rate,
    ];
    for (metric, posteriors) in known(posteriors, why) {
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
pub(super) fn non_inferiority(
    page: &mut Page,
    tests: &ModelNonInferiority,
    why: Option<Unobservable>,
) {
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
    for (metric, test) in known([&tests.ci_pass_rate, &tests.attribution_rate], why) {
        table.row([
            metric.to_owned(),
            share(test.proportion_a),
            share(test.proportion_b),
            difference(test.point_estimate),
            number(test.lower_bound()),
            format!("{:.4}", -test.margin),
            answer(test).to_owned(),
            test.n_a.to_string(),
            test.n_b.to_string(),
            note(
                test.insufficient_data,
                test.small_n,
                test.lower_bound().is_none(),
            ),
        ]);
    }
    page.table(&table);
    page.line("  Not shown is not the same as worse: it may take more cases.");
}

/// Returns the metrics that are observable, with their names.
fn known<T>(
    tests: [T; 2],
    why: Option<Unobservable>,
) -> impl Iterator<Item = (&'static str, T)> + Clone
where
    T: Clone,
{
    let names = ["ci_pass_rate", "attribution_rate"];
    let count = if why.is_some() { 1 } else { 2 };
    names.into_iter().zip(tests).take(count)
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
    let interval = test.interval();
    interval.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{low:.4} to {high:.4}"),
    )
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
    if test.insufficient_data || test.is_non_inferior && test.lower_bound().is_none() {
        "-"
    } else if test.is_non_inferior {
        "yes"
    } else {
        "not shown"
    }
}

fn note(insufficient_data: bool, small_n: bool, is_degenerate: bool) -> String {
    if insufficient_data {
        return "insufficient data (n=0 in at least one group)".to_owned();
    }
    let notes = [
        (small_n, "small n, less reliable"),
        (is_degenerate, "degenerate_se, no interval"),
    ];
    let notes = notes.into_iter().filter(|(is_true, _)| *is_true);
    let notes: Vec<&str> = notes.map(|(_, note)| note).collect();
    notes.join("; ")
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
    fn a_rate_without_variance_has_no_interval() {
        let mut tested = svc_engine::derive::comparison::compare(&[], "a", "b").ci_pass_rate;
        (tested.insufficient_data, tested.small_n) = (false, true);
        (tested.ci_low, tested.ci_high) = (Some(0.0), Some(0.0));
        assert_eq!(interval(&tested), "-");
        assert_eq!(
            note(false, true, true),
            "small n, less reliable; degenerate_se, no interval"
        );
        tested.ci_high = Some(0.5);
        assert_eq!(interval(&tested), "0.0000 to 0.5000");
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
            None,
        );
        let page = page.finish();
        assert!(!page.contains("probability of"), "{page}");
    }
}
