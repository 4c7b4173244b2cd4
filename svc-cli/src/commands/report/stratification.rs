use svc_model::reports::Stratification;
use svc_view::SHELL;

use super::page::{Page, repository};
use crate::output::{Table, escape};

/// Adds whether models compare the same way within repositories.
pub(super) fn render(page: &mut Page, metrics: &[Stratification]) {
    page.heading("the same, within repositories:");
    for metric in metrics {
        page.line(format!(
            "  {}: {} (repositories checked: {}) -- {}",
            metric.metric,
            metric.status,
            metric.checked_repos,
            escape(&metric.reason)
        ));
        for adjusted in &metric.adjusted_comparisons {
            page.line(format!("    {}", SHELL.adjusted(adjusted)));
        }
        for comparison in &metric.comparisons {
            for reversal in &comparison.reversals {
                let [before, after] = SHELL.reversed(comparison, reversal);
                let name = repository(&reversal.repo, reversal.repository_identity.as_ref());
                page.line(format!("    {before}{name}{after}"));
            }
        }
        shrunk(page, metric);
    }
}

fn shrunk(page: &mut Page, metric: &Stratification) {
    if metric.shrunk_rates.is_empty() {
        return;
    }
    let mut table = Table::new([
        "repository",
        "model",
        "raw",
        "drawn to the mean of all",
        "cases",
    ])
    .numbers(&[4]);
    for of_repository in &metric.shrunk_rates {
        for rate in of_repository.model_rates.values() {
            table.row([
                repository(
                    &of_repository.repo,
                    of_repository.repository_identity.as_ref(),
                ),
                escape(&rate.model),
                SHELL.percent(rate.raw_rate),
                SHELL.percent(rate.shrunk_rate),
                rate.denominator.to_string(),
            ]);
        }
    }
    page.table(&table);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_shown_with_its_cases() {
        let rate = |model: &str, counts: [u64; 2]| {
            json!({
                "model": model, "numerator": counts[0], "denominator": counts[1], "rate": 0.0,
            })
        };
        let sides = |left: [u64; 2], right: [u64; 2]| (rate("a", left), rate("b", right));
        let (all_left, all_right) = sides([8, 10], [5, 10]);
        let (own_left, own_right) = sides([1, 4], [2, 4]);
        let metric = json!({
            "metric": "ci_pass_rate", "status": "reversal_detected", "checked_repos": 2,
            "reason": "it turns around", "session_commit_unobserved": 0, "shrunk_rates": [],
            "comparisons": [{
                "left_model": "a", "right_model": "b",
                "aggregate_left": all_left, "aggregate_right": all_right,
                "aggregate_delta": 0.3, "compared_repos": 2, "skipped_repos": 0,
                "reversals": [{
                    "repo": "own/app", "left": own_left, "right": own_right,
                    "aggregate_left": all_left, "aggregate_right": all_right,
                    "aggregate_delta": 0.3, "repo_delta": -0.25, "org_id": "acme",
                    "repository_identity": null,
                }],
            }],
            "adjusted_comparisons": [{
                "left_model": "a", "right_model": "b",
                "aggregate_left": all_left, "aggregate_right": all_right,
                "naive_delta": 0.3, "adjusted_delta": 0.1,
                "compared_repos": 2, "skipped_repos": 0, "weight_sum": 4.0,
            }],
        });
        let mut page = Page::default();
        render(&mut page, &[serde_json::from_value(metric).unwrap()]);
        let page = page.finish();
        for line in [
            "    a - b: +0.3000 over all (8 of 10 and 5 of 10), +0.1000 within 2 repositories",
            "    a - b: the other way round in own/app: -0.2500 (1 of 4 and 2 of 4), +0.3000 over all (8 of 10 and 5 of 10)",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
    }
}
