use svc_model::reports::{Comparison, ModelNonInferiority, Unobservable};
use svc_view::{LOOK_ONCE, NOT_SHOWN, SHELL, interval, known, least_difference};

use super::page::Page;
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
            SHELL.or_none(interval(test).unwrap_or_default()),
            SHELL.decimal(test.cohens_h),
            SHELL.decimal(test.z_stat),
            SHELL.decimal(test.p_value),
            SHELL.significance(test),
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
        if let Some(least) = least_difference(test) {
            page.line(format!("  {metric}: {least}"));
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
                SHELL.percent(probability)
            ));
        }
    }
    page.line(format!(
        "  {LOOK_ONCE} No test corrects for models that do different work."
    ));
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
            SHELL.decimal(test.lower_bound()),
            format!("{:.4}", -test.margin),
            SHELL.answer(test).to_owned(),
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
    page.line(format!("  {NOT_SHOWN}"));
}

fn share(proportion: Option<f64>) -> String {
    proportion.map_or_else(|| SHELL.none.to_owned(), |share| SHELL.percent(share))
}

/// Returns a difference that may be absent. Two equal rates get words, because a number would look
/// rounded.
fn difference(difference: Option<f64>) -> String {
    match difference {
        Some(0.0) => "no difference".to_owned(),
        other => SHELL.decimal(other),
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
        assert_eq!(interval(&tested), None);
        assert_eq!(
            note(false, true, true),
            "small n, less reliable; degenerate_se, no interval"
        );
        tested.ci_high = Some(0.5);
        assert_eq!(interval(&tested).as_deref(), Some("0.0000 to 0.5000"));
    }

    #[test]
    fn without_cases_nothing_was_tested() {
        let empty = [];
        let tested = svc_engine::derive::comparison::compare(&empty, "a", "b");
        assert_eq!(SHELL.significance(&tested.ci_pass_rate), "-");
        let tested = svc_engine::derive::comparison::non_inferiority(&empty, "a", "b", 0.1);
        assert_eq!(SHELL.answer(&tested.ci_pass_rate), "-");
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
