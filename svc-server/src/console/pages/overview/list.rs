//! The Sessions behind a figure.

use maud::{Markup, html};
use svc_model::id::UserId;
use svc_model::limit::OVERVIEW_SESSIONS_MAX;
use svc_model::overview::{Overview, OverviewSession};
use svc_model::time::Instant;
use svc_view::CONSOLE;

use super::filters::{Filters, LIST};
use crate::console::layout::{Column, table};
use crate::console::pages::sessions;
use crate::console::text::{NONE, ago, inert, whole, words};

pub(super) fn shown(overview: &Overview, filters: &Filters<'_>, now: Instant) -> Markup {
    let (shown, all) = (overview.sessions.len() as u64, overview.session_count);
    let rows = overview.sessions.iter().map(|session| row(session, now));
    html! {
        section aria-labelledby=(LIST) {
            h2 id=(LIST) {
                "Sessions"
                @if let Some(outcome) = filters.outcome() { " behind “" (words(outcome.as_str())) "”" }
            }
            p {
                @if shown < all { (whole(shown)) " of " }
                (CONSOLE.sessions(all)) ", latest first."
                @if shown < all && shown < OVERVIEW_SESSIONS_MAX {
                    " " a href=(filters.longer(OVERVIEW_SESSIONS_MAX.min(all))) { "Show more" } "."
                }
                @if filters.outcome().is_some() { " " a href=(filters.list(None)) { "All Sessions" } "." }
            }
            @if shown > 0 {
                (table("Sessions, latest first", &[
                    Column::Text("session"), Column::Text("person"), Column::Text("repository"),
                    Column::Text("what became of it"), Column::Text("last call"),
                    Column::Number("tokens"), Column::Number("cost"),
                ], rows.collect()))
            }
        }
    }
}

fn row(session: &OverviewSession, now: Instant) -> Vec<Markup> {
    let marks = CONSOLE.marks(session).into_iter().map(|mark| mark.said);
    let marks: Vec<String> = marks.collect();
    let spend = &session.figures.spend;
    let title = session
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or(session.session_id.as_str());
    vec![
        html! { a href=(sessions::address(&session.session_id)) { (inert(title)) } },
        html! { (CONSOLE.list(session.user_ids.iter().map(UserId::as_str))) },
        html! { (CONSOLE.list(session.repositories.iter().map(String::as_str))) },
        html! { @if marks.is_empty() { (NONE) } @else { (marks.join(", ")) } },
        ago(session.last_observed_at, now),
        html! { (CONSOLE.tokens(spend)) },
        html! { (CONSOLE.cost(spend)) },
    ]
}
