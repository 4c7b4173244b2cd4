//! The status of every Session with accepted work.

use maud::{Markup, html};
use svc_engine::read::Extent;
use svc_model::problem::Problem;
use svc_model::reports::{AbandonmentReport, SessionOutcome, SessionStatus, Unobservable};
use svc_view::NO_COMMIT;

use super::period::until_field;
use super::{past, sessions};
use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::link::Link;
use crate::console::plot::{self, Share};
use crate::console::text::{ago, counts, whole, words};
use crate::console::visit::Visit;

/// The number of Sessions per page.
const SESSIONS: usize = 100;
/// The possible statuses. A Session has no other.
const STATUSES: [(&str, &str); 3] = [
    ("", "any"),
    (SessionStatus::Committed.as_str(), "committed"),
    (
        SessionStatus::AttributionUnavailable.as_str(),
        "attribution unavailable",
    ),
];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let fields = [
        Field {
            label: "Status",
            name: "status",
            value: visit.given("status").unwrap_or_default(),
            kind: InputKind::One(&STATUSES),
        },
        past::field(&visit),
        until_field(&visit),
    ];
    let form = narrowing("/console/abandonment", "Narrow the Sessions", &fields);
    let body = report(&visit).await.map(|(extent, report)| {
        html! {
            (past::describe(("Every Session", "Sessions of the calls"), &extent))
            (shown(&visit, &report))
        }
    });
    Ok(Page::of(Section::Abandonment, "Abandonment", &form, body))
}

async fn report(visit: &Visit) -> Result<(Extent, AbandonmentReport), Problem> {
    let extent = past::read(visit)?;
    let of = extent.clone();
    let ask = async move |engine: svc_engine::engine::Engine| engine.abandonment(of).await;
    Ok((extent, visit.ask_engine(ask).await?))
}

fn shown(visit: &Visit, report: &AbandonmentReport) -> Markup {
    let outcomes = &report.accepted_session_outcomes;
    let all = outcomes.len() as u64;
    let with = |status: SessionStatus| {
        let with = outcomes.iter().filter(|outcome| outcome.status == status);
        Share::new(words(status.as_str()), with.count() as u64, all)
    };
    let committed = with(SessionStatus::Committed);
    let why = (committed.count == 0).then_some(Unobservable::NoObservation);
    html! {
        section aria-labelledby="known" {
            h2 #known { "Sessions with accepted work" }
            (plot::shares("What is known of them, with 95 % intervals", &[
                committed.unless(why), with(SessionStatus::AttributionUnavailable).unless(why),
            ]))
            p { "Abandoned: " (whole(report.abandoned_sessions.len() as u64)) "." }
            (note(&format!(
                "{NO_COMMIT}: no Session is called abandoned. Accepts by rules count here too."
            )))
        }
        section aria-labelledby="outcomes" {
            h2 #outcomes { "Session by Session" }
            (listed(visit, outcomes))
        }
        section aria-labelledby="found" {
            h2 #found { "What was found of Sessions with decisions" }
            p { (counts(&report.skipped)) "." }
        }
    }
}

fn listed(visit: &Visit, outcomes: &[SessionOutcome]) -> Markup {
    let status = visit.given("status");
    let chosen: Vec<&SessionOutcome> = outcomes
        .iter()
        .filter(|outcome| status.is_none_or(|status| outcome.status.as_str() == status))
        .collect();
    let from = visit.number("from", 0_usize).min(chosen.len());
    let to = chosen.len().min(from.saturating_add(SESSIONS));
    let at = |from: usize| {
        Link::to("/console/abandonment")
            .with_any("status", status)
            .with_any("days", visit.given("days"))
            .with_any("until", visit.given("until"))
            .with("from", &from.to_string())
    };
    let rows = chosen[from..to].iter().map(|session| {
        vec![
            sessions::link(&session.session_id),
            html! { (words(session.status.as_str())) },
            html! { (whole(session.accepted_decisions)) },
            html! { (whole(session.explicit_accepted_decisions)) },
            ago(session.last_decision_at, visit.now),
        ]
    });
    let range = format!(
        "Sessions {} to {} of {}, by name",
        from + 1,
        to,
        whole(chosen.len() as u64)
    );
    html! {
        @if chosen.is_empty() {
            p { "No Session with accepted work is like that." }
        } @else if from == to {
            p { "There are no more: " a href=(at(0)) { "the first page" } "." }
        } @else {
            (table(&range, &[
                Column::Text("session"), Column::Text("status"), Column::Number("accepted"),
                Column::Number("by people"), Column::Text("last decision"),
            ], rows.collect()))
        }
        @if from < to && (from > 0 || to < chosen.len()) {
            nav.pages aria-label="Pages" {
                @if from > 0 { a href=(at(from.saturating_sub(SESSIONS))) rel="prev" { "Previous page" } }
                @if to < chosen.len() { a href=(at(to)) rel="next" { "Next page" } }
            }
        }
    }
}
