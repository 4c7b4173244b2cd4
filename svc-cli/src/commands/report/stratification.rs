use svc_model::reports::{ModelRate, Stratification};

use super::page::{Page, percent, repository};
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
            page.line(format!(
                "    {} - {}: {:+.4} over all ({}), {:+.4} within {} repositories",
                escape(&adjusted.left_model),
                escape(&adjusted.right_model),
                adjusted.naive_delta,
                cases(&adjusted.aggregate_left, &adjusted.aggregate_right),
                adjusted.adjusted_delta,
                adjusted.compared_repos
            ));
        }
        for comparison in &metric.comparisons {
            for reversal in &comparison.reversals {
                page.line(format!(
                    "    {} - {}: the other way round in {}: {:+.4} ({}), {:+.4} over all ({})",
                    escape(&comparison.left_model),
                    escape(&comparison.right_model),
                    repository(&reversal.repo, reversal.repository_identity.as_ref()),
                    reversal.repo_delta,
                    cases(&reversal.left, &reversal.right),
                    reversal.aggregate_delta,
                    cases(&reversal.aggregate_left, &reversal.aggregate_right)
                ));
            }
        }
        shrunk(page, metric);
    }
}

/// Returns of how many cases a difference is.
fn cases(left: &ModelRate, right: &ModelRate) -> String {
    let of = |rate: &ModelRate| format!("{} of {}", rate.numerator, rate.denominator);
    format!("{} and {}", of(left), of(right))
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
                percent(rate.raw_rate),
                percent(rate.shrunk_rate),
                rate.denominator.to_string(),
            ]);
        }
    }
    page.table(&table);
}
