//! The share of each repository's commits that notes link to agents, and alerts about possibly
//! missing notes.

use maud::{Markup, html};
use svc_engine::derive::statistics::cases_for_margin;
use svc_model::problem::Problem;
use svc_model::reports::{AttributionAlert, AttributionShareReport, AttributionShareRow};

use super::period::{until, until_field};
use super::{caveat, repository};
use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::plot::{self, Share};
use crate::console::text::{counts, inert, moment, whole, words};
use crate::console::visit::Visit;

/// The half-widths of intervals that can be chosen for reporting a decline.
const MARGINS: [(&str, &str); 4] = [
    ("0.05", "5 %"),
    ("0.1", "10 %"),
    ("0.15", "15 %"),
    ("0.2", "20 %"),
];
const MARGIN: &str = "0.1";

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let margin = visit.given("margin").unwrap_or(MARGIN);
    let fields = [
        Field {
            label: "Interval to each side",
            name: "margin",
            value: margin,
            kind: InputKind::One(&MARGINS),
        },
        until_field(&visit),
    ];
    let form = narrowing(
        "/console/share",
        "Choose how sure to be, and until when",
        &fields,
    );
    let known = MARGINS.iter().find(|(known, _)| *known == margin);
    let margin = known.and_then(|(margin, _)| margin.parse().ok());
    let body = match report(&visit, margin.unwrap_or(0.1)).await {
        Ok(report) => Ok(html! {
            (caveat::of_mirrors(&visit).await?)
            (shown(&report))
        }),
        Err(problem) => Err(problem),
    };
    Ok(Page::of(Section::Share, "Attribution share", &form, body))
}

async fn report(visit: &Visit, margin: f64) -> Result<AttributionShareReport, Problem> {
    let as_of = until(visit)?;
    let cases_min = cases_for_margin(margin);
    let ask = async move |engine: svc_engine::engine::Engine| {
        engine.attribution_share(as_of, cases_min).await
    };
    visit.ask_engine(ask).await
}

fn shown(report: &AttributionShareReport) -> Markup {
    html! {
        section aria-labelledby="alerts" {
            h2 #alerts { "Alerts" }
            (alerts(&report.current, &report.alerts))
        }
        section aria-labelledby="now" {
            h2 #now { "Now" }
            (shares("The week before the last push of each repository", &report.current))
        }
        section aria-labelledby="before" {
            h2 #before { "Before" }
            (shares("The 28 days before that week", &report.baseline))
        }
        @if !report.attribution_skips.is_empty() {
            section aria-labelledby="unseen" {
                h2 #unseen { "Not looked at" }
                p { (counts(&report.attribution_skips)) }
                p.note { "What could not be looked at is in no row: its share of notes is unknown." }
            }
        }
        (note("Counted are commits that a call near their push could have led to. The share says whether \
               notes are written, not how much agents write."))
        p.note {
            "A decline is reported only if both windows have at least "
            (whole(report.min_cases_for_decline_verdict)) " commits."
        }
    }
}

/// Shows the shares of repositories.
pub(super) fn shares(caption: &str, rows: &[AttributionShareRow]) -> Markup {
    if rows.is_empty() {
        return html! {
            p { "No pushed commit that could be looked at and that an agent could have made." }
        };
    }
    let drawn: Vec<Share> = rows
        .iter()
        .map(|row| Share {
            label: repository::shown(&row.repo, row.repository_identity.as_ref()),
            count: row.git_notes_attributed,
            total: row.agent_plausible_commits,
            why: None,
        })
        .collect();
    let counted = rows.iter().map(|row| {
        vec![
            repository::shown(&row.repo, row.repository_identity.as_ref()),
            moment(row.window_start),
            moment(row.window_end),
            html! { (whole(row.git_notes_attributed)) },
            html! { (whole(row.jaccard_attributed)) },
            html! { (whole(row.unattributed)) },
            html! { (whole(row.agent_plausible_commits)) },
        ]
    });
    html! {
        (plot::shares(&format!("{caption}: git_notes_share, with 95 % intervals"), &drawn))
        (table(&format!("{caption}: commits by how they are tied"), &[
            Column::Text("repository"), Column::Text("from"), Column::Text("to"),
            Column::Number("by note"), Column::Number("by guess"), Column::Number("untied"),
            Column::Number("all"),
        ], counted.collect()))
    }
}

/// Shows alerts about possibly missing notes.
pub(super) fn alerts(shares: &[AttributionShareRow], alerts: &[AttributionAlert]) -> Markup {
    html! {
        @if shares.is_empty() { p { "There is no share that could look as if notes were lost." } }
        @else if alerts.is_empty() { p { "No share looks as if notes were lost." } }
        @else {
            ul.alerts {
                @for alert in alerts {
                    li {
                        strong { (repository::shown(&alert.repo, alert.repository_identity.as_ref())) }
                        ": " (words(alert.kind.as_str())) " – " (inert(&alert.reason))
                    }
                }
            }
        }
    }
}
