//! What became of each model's calls.

use std::cmp::Reverse;

use maud::{Markup, html};
use svc_model::endpoint::ModelOutcomesReport;
use svc_model::problem::Problem;
use svc_model::reports::{ModelReport, ModelRow, Stratification};
use svc_view::{ATTRIBUTION_RATE, CONSOLE, NO_COMMIT, attribution};

use super::period::{self, Period};
use super::{caveat, repository, share};
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::link::Link;
use crate::console::plot::{self, Share};
use crate::console::text::{capital, counts, inert, items, whole, words};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = period::form(&visit, "/console/models");
    let body = report(&visit).await;
    Ok(Page::of(Section::Models, "Models", &form, body))
}

async fn report(visit: &Visit) -> Result<Markup, Problem> {
    let period = Period::read(visit)?;
    let outcomes = visit.ask::<ModelOutcomesReport>(period.request()?).await?;
    let report = &outcomes.report;
    let caveat = caveat::of_mirrors(visit).await?;
    Ok(html! {
        (period.describe(&outcomes.scope))
        (caveat)
        (caveat::of_lost_mirrors(report.lost_mirrors))
        @if report.rows.is_empty() {
            p { "No calls were observed in these days." }
        } @else {
            (rates(report))
            (compared(visit, report))
            (decisions(report))
        }
        (left_out(report))
        (funnel(report))
        section aria-labelledby="notes" {
            h2 #notes { "Commits tied to agents by notes" }
            (share::shares("Share of the commits that notes tie to an agent", &report.attribution_share))
            (share::alerts(&report.attribution_share, &report.attribution_alerts))
            @if !report.attribution_share_skipped.is_empty() {
                (note(&format!("Could not be looked at: {}.", counts(&report.attribution_share_skipped))))
            }
        }
        (within(&report.stratification))
    })
}

fn rates(report: &ModelReport) -> Markup {
    let of =
        |share: fn(&ModelRow) -> Share| -> Vec<Share> { report.rows.iter().map(share).collect() };
    html! {
        section aria-labelledby="attribution" {
            h2 #attribution { "Calls whose output was pushed" }
            (plot::shares("attribution_rate: attributed calls of those whose content is kept and whose commits could be seen, with 95 % intervals",
                &of(|row| Share::attributed(inert(&row.model), Some(row)))))
            (caveat::of_unobservable_calls(&report.rows))
            (caveat::of_skipped_calls(&report.rows))
            (note(&capital(ATTRIBUTION_RATE)))
        }
        section aria-labelledby="passed" {
            h2 #passed { "Commits that CI passed" }
            (plot::shares("ci_pass_rate: passed of the commits with a verdict, with 95 % intervals",
                &of(|row| Share::new(inert(&row.model), row.ci_passed, row.ci_linked))))
            (caveat::of_unjudged_calls(&report.rows))
            (note("Of the model's commits at which its Session was observed and that CI judged. A commit \
                   without a verdict is no failure. Models that do different work are not made alike by \
                   a rate."))
        }
    }
}

/// Links to a comparison of the two models with the most calls.
fn compared(visit: &Visit, report: &ModelReport) -> Markup {
    let mut rows: Vec<&ModelRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| Reverse(row.completions));
    let [a, b, ..] = rows[..] else {
        return html! {};
    };
    let link = Link::to("/console/comparison")
        .with("model_a", &a.model)
        .with("model_b", &b.model)
        .with_any("days", visit.given("days"))
        .with_any("until", visit.given("until"));
    html! {
        p { a href=(link) { "Compare " (inert(&a.model)) " with " (inert(&b.model)) } }
    }
}

fn decisions(report: &ModelReport) -> Markup {
    let rows = report.rows.iter().map(|row| {
        vec![
            html! { (inert(&row.model)) },
            html! { (whole(row.completions)) },
            html! { (whole(row.explicit_accepts)) },
            html! { (whole(row.explicit_rejects)) },
            html! { (CONSOLE.similarity(row)) },
            html! { (whole(row.session_commit_unobserved)) },
        ]
    });
    let edits = report.rows.iter().map(|row| {
        vec![
            html! { (inert(&row.model)) },
            html! { (counts(&row.fates)) },
            html! { (counts(&row.explicit_accept_fates)) },
            html! { (counts(&row.fates_with_external_changes)) },
            html! { (counts(&row.explicit_rejects_by_agent_harness)) },
            html! { (CONSOLE.workflows(&row.ci_failures_by_workflow)) },
        ]
    });
    html! {
        section aria-labelledby="decisions" {
            h2 #decisions { "Decisions, edits and failures" }
            (table("What people decided, by model", &[
                Column::Text("model"), Column::Number("calls"), Column::Number("accepts"),
                Column::Number("rejects"), Column::Number("mean similarity"),
                Column::Number("commit not observed"),
            ], rows.collect()))
            (note("Accepts and rejects are those of people, not of rules."))
            (table("What became of edits, and what failed, by model", &[
                Column::Text("model"), Column::Text("edits"),
                Column::Text("edits that people accepted"),
                Column::Text("edits with changes from elsewhere"),
                Column::Text("rejects by agent"), Column::Text("CI failures by workflow"),
            ], edits.collect()))
        }
    }
}

fn left_out(report: &ModelReport) -> Markup {
    html! {
        section aria-labelledby="left-out" {
            h2 #left-out { "What is left out" }
            ul {
                (items(&CONSOLE.left_out_of_models(report)))
                li {
                    "Sessions with accepted work: " (counts(&report.abandonment.derivation_skipped))
                    ". " (NO_COMMIT) "."
                }
            }
        }
    }
}

fn funnel(report: &ModelReport) -> Markup {
    let rows = report.signal_funnel.iter().zip(&report.rows);
    let rows = rows.map(|(row, of_model)| {
        let (attributed, cases, why) = attribution(of_model);
        vec![
            html! { (inert(&row.model)) },
            html! { (whole(row.completions_total)) },
            html! {
                @match why {
                    Some(_) => "not observable",
                    None => (CONSOLE.part(attributed, cases)),
                }
            },
            html! { (CONSOLE.part(row.ci_linked, row.attributed)) },
            html! { (CONSOLE.part(row.has_decision, row.attributed)) },
            html! { (CONSOLE.part(row.training_row_eligible, row.attributed)) },
        ]
    });
    html! {
        @if !report.signal_funnel.is_empty() {
            section aria-labelledby="funnel" {
                h2 #funnel { "From calls to training data" }
                (table("Each share but the first is of the attributed calls", &[
                    Column::Text("model"), Column::Number("calls"), Column::Number("attributed"),
                    Column::Number("CI linked"), Column::Number("with a decision"),
                    Column::Number("training eligible"),
                ], rows.collect()))
            }
        }
    }
}

/// Shows whether models compare the same way within repositories.
fn within(metrics: &[Stratification]) -> Markup {
    html! {
        @if !metrics.is_empty() {
            section aria-labelledby="within" {
                h2 #within { "The same, within repositories" }
                @for metric in metrics { (metric_within(metric)) }
            }
        }
    }
}

fn metric_within(metric: &Stratification) -> Markup {
    let shrunk = metric.shrunk_rates.iter().flat_map(|of| {
        of.model_rates.values().map(move |rate| {
            vec![
                repository::shown(&of.repo, of.repository_identity.as_ref()),
                html! { (inert(&rate.model)) },
                html! { (CONSOLE.percent(rate.raw_rate)) },
                html! { (CONSOLE.percent(rate.shrunk_rate)) },
                html! { (whole(rate.denominator)) },
            ]
        })
    });
    let shrunk: Vec<Vec<Markup>> = shrunk.collect();
    let name = words(&metric.metric.to_string());
    html! {
        h3 { (name) }
        p {
            (words(&metric.status.to_string())) " (repositories checked: " (whole(metric.checked_repos))
            "): " (inert(&metric.reason))
        }
        ul {
            @for adjusted in &metric.adjusted_comparisons {
                li { (CONSOLE.adjusted(adjusted)) }
            }
            @for comparison in &metric.comparisons {
                @for reversal in &comparison.reversals {
                    @let [before, after] = CONSOLE.reversed(comparison, reversal);
                    li {
                        (before)
                        (repository::shown(&reversal.repo, reversal.repository_identity.as_ref()))
                        (after)
                    }
                }
            }
        }
        @if !shrunk.is_empty() {
            (table(&format!("{name}, drawn to the mean of all"), &[
                Column::Text("repository"), Column::Text("model"), Column::Number("raw"),
                Column::Number("drawn to the mean"), Column::Number("cases"),
            ], shrunk))
        }
    }
}
