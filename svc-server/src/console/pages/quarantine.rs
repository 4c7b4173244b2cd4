//! What was quarantined and released: by whom, when, why.

use maud::{Markup, html};
use svc_model::endpoint::QuarantineLogPage;
use svc_model::problem::Problem;
use svc_model::quarantine::{QuarantineLog, QuarantineLogEntry};

use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::link::Link;
use crate::console::text::{inert, moment, whole, words};
use crate::console::visit::Visit;

/// The number of rows per page.
const ROWS: &str = "50";

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let rows = [("limit", ROWS.to_owned())];
    let ask = visit.ask_given::<QuarantineLogPage>(&rows);
    let body = ask.await.map(|log| shown(&visit, &log));
    Ok(Page::of(
        Section::Quarantine,
        "Quarantine log",
        &html! {},
        body,
    ))
}

fn shown(visit: &Visit, log: &QuarantineLog) -> Markup {
    let first = Link::to("/console/quarantine").with_any("limit", visit.given("limit"));
    let earlier = log
        .next_before
        .map(|before| first.clone().with("before", &before.to_string()));
    let is_later = visit.given("before").is_some();
    html! {
        (fields(vec![
            ("Rows", html! { (whole(log.rows)) }),
            ("Quarantine revision", html! { (whole(log.quarantine_revision)) }),
        ]))
        @if log.entries.is_empty() {
            p { @if log.rows == 0 { "Nothing was ever taken out of view." } @else { "No row is earlier." } }
        } @else {
            // The route returns the oldest first, as in a log, but a reader wants the latest.
            (table("Changes, the latest first", &[
                Column::Text("when"), Column::Text("who"), Column::Text("what"), Column::Text("kind"),
                Column::Text("fact"), Column::Text("why"), Column::Number("revision"),
            ], log.entries.iter().rev().map(row).collect()))
        }
        @if is_later || earlier.is_some() {
            nav.pages aria-label="Pages" {
                @if is_later { a href=(first) { "Latest rows" } }
                @if let Some(earlier) = earlier { a href=(earlier) rel="next" { "Earlier rows" } }
            }
        }
        (note("What is quarantined leaves every answer, and stays stored. It is changed in the shell: svc \
               quarantine, svc release. Who is the client of a token, or the user who ran a command on \
               the store itself."))
    }
}

fn row(entry: &QuarantineLogEntry) -> Vec<Markup> {
    vec![
        moment(entry.recorded_at),
        html! { (inert(&entry.client_id)) },
        html! { (words(&entry.action)) },
        html! { (words(&entry.table)) },
        html! { code { (inert(&entry.fact_id)) } },
        html! { (inert(&entry.reason)) },
        html! { (whole(entry.quarantine_revision)) },
    ]
}
