use svc_engine::derive::comparison::{self as derived, Cases};
use svc_model::reports::{Comparison, ModelNonInferiority, ModelRow, Unobservable};
use svc_view::{LOOK_ONCE, NOT_SHOWN, SHELL, interval, known, least_difference, unknown_of};

use super::page::Page;
use crate::output::{Table, escape};

/// Adds the comparison of two models, and with a margin, whether the second is worse by at most that.
/// The cases of Attribution rates are the calls of which a commit could have been seen.
pub(super) fn models(page: &mut Page, rows: &[ModelRow], models: [&str; 2], margin: Option<f64>) {
    let ([a, b], cases) = (models, Cases::Observable);
    let unknown = unknown_of(rows, models);
    comparison(page, &derived::compare(rows, a, b, cases), unknown);
    if let Some(margin) = margin {
        let tests = derived::non_inferiority(rows, a, b, margin, cases);
        non_inferiority(page, &tests, unknown.map(|(_, why)| why));
    }
}

/// `unknown` is a model whose Attribution rate is not observable, if there is one, and why.
fn comparison(page: &mut Page, comparison: &Comparison, unknown: Option<(&str, Unobservable)>) {
    let why = unknown.map(|(_, why)| why);
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
    if let Some((model, why)) = unknown {
        let what = format!("attribution_rate of {}", escape(model));
        page.unobservable(&what, Some(why));
    }
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
fn non_inferiority(page: &mut Page, tests: &ModelNonInferiority, why: Option<Unobservable>) {
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
        let mut tested = derived::compare(&[], "a", "b", Cases::All).ci_pass_rate;
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

    /// A model with attributed calls, of so many that could have been observed, and others.
    fn row(model: &str, attributed: u64, observable: u64, unobservable: u64) -> ModelRow {
        let row = serde_json::json!({
            "model": model, "since_days": null, "completions": observable + unobservable,
            "attributed_inference_calls": attributed, "attribution_rate": 0.0,
            "attribution_rate_ci": [0.0, 0.0], "ci_linked": 0, "ci_passed": 0, "ci_pass_rate": 0.0,
            "ci_pass_rate_ci": [0.0, 0.0], "explicit_accepts": 0, "explicit_rejects": 0,
            "mean_similarity": 0.0, "grain": "commit", "ci_failures_by_workflow": {},
            "provenance": {"policy_version": "3", "quarantine_revision": 0, "policy_digest": null},
            "explicit_rejects_by_agent_harness": {}, "fates": {}, "explicit_accept_fates": {},
            "fates_with_external_changes": {}, "session_commit_unobserved": 0,
            "session_commit_observation_ids": [],
        });
        let mut row: ModelRow = serde_json::from_value(row).unwrap();
        row.attribution_unobservable
            .add(Unobservable::NoPush, unobservable);
        row
    }

    fn printed(rows: &[ModelRow]) -> String {
        let mut page = Page::default();
        models(&mut page, rows, ["a", "b"], Some(0.1));
        page.finish()
    }

    #[test]
    fn two_perfect_rates_have_a_score_interval_and_no_bound() {
        let page = printed(&[row("a", 8, 8, 0), row("b", 5, 5, 0)]);
        assert!(page.contains("-0.3244 to 0.4345 (Newcombe)"), "{page}");
        assert!(!page.contains("0.0000 to 0.0000"), "{page}");
        assert!(page.contains("degenerate_se, no interval"), "{page}");
    }

    #[test]
    fn only_calls_that_could_have_been_observed_are_compared() {
        let page = printed(&[row("a", 8, 10, 90), row("b", 5, 10, 0)]);
        assert!(page.contains("80.0%"), "{page}");
        let page = printed(&[row("a", 8, 10, 0), row("b", 0, 0, 5)]);
        let unknown = "attribution_rate of b is not observable: no push was received";
        assert!(page.contains(unknown), "{page}");
        assert!(!page.contains("80.0%") && !page.contains("0.0%"), "{page}");
        assert!(!page.contains("attribution_rate: A has"), "{page}");
    }

    #[test]
    fn without_cases_nothing_was_tested() {
        let empty = [];
        let tested = derived::compare(&empty, "a", "b", Cases::All);
        assert_eq!(SHELL.significance(&tested.ci_pass_rate), "-");
        let tested = derived::non_inferiority(&empty, "a", "b", 0.1, Cases::All);
        assert_eq!(SHELL.answer(&tested.ci_pass_rate), "-");
        let mut page = Page::default();
        comparison(
            &mut page,
            &derived::compare(&empty, "a", "b", Cases::All),
            None,
        );
        let page = page.finish();
        assert!(!page.contains("probability of"), "{page}");
    }
}
