//! The list of Sessions.

use maud::{Markup, html};
use svc_model::endpoint::SessionsQuery;
use svc_model::facts::AgentHarness;
use svc_model::id::{SessionId, UserId};
use svc_model::open::Open;
use svc_model::problem::Problem;
use svc_model::query::{SessionList, SessionSummary};
use svc_model::repository::RepositoryName;
use svc_model::time::Instant;
use svc_view::CONSOLE;

use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::link::Link;
use crate::console::text::{ago, inert};
use crate::console::visit::Visit;

/// The filters of the list, by the names of the route's parameters.
const NARROWING: [&str; 8] = [
    "captured_after",
    "captured_before",
    "user_id",
    "model",
    "agent_harness",
    "repo",
    "spend",
    "limit",
];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let given = |name| visit.given(name).unwrap_or_default();
    let agents: Vec<(&str, &str)> = std::iter::once(("", "any"))
        .chain(
            AgentHarness::ALL
                .iter()
                .map(|harness| (harness.as_str(), harness.as_str())),
        )
        .collect();
    let field = |label, name, kind| Field {
        label,
        name,
        value: given(name),
        kind,
    };
    let fields = [
        field("From", "captured_after", InputKind::Date),
        field("Before", "captured_before", InputKind::Date),
        field("User", "user_id", InputKind::Text),
        field("Model", "model", InputKind::Text),
        field("Agent", "agent_harness", InputKind::One(&agents)),
        field("Repository", "repo", InputKind::Text),
    ];
    let form = narrowing("/console/sessions", "Filter the Sessions", &fields);
    let titles = [("titles", "true".to_owned())];
    let ask = visit.ask_given::<SessionsQuery>(&titles);
    let body = ask.await.map(|list| shown(&visit, &list));
    Ok(Page::of(Section::Sessions, "Sessions", &form, body))
}

fn shown(visit: &Visit, list: &SessionList) -> Markup {
    let mut next = Link::to("/console/sessions");
    for name in NARROWING {
        next = next.with_any(name, visit.given(name));
    }
    let first = next.clone();
    let next = list
        .next_cursor
        .as_ref()
        .map(|cursor| next.with("cursor", cursor.as_str()));
    html! {
        @if list.sessions.is_empty() {
            p { "No matching Sessions." }
        } @else {
            (listed(list, visit.now))
        }
        @if visit.given("cursor").is_some() || next.is_some() {
            nav.pages aria-label="Pages" {
                @if visit.given("cursor").is_some() { a href=(first) { "First page" } }
                @if let Some(next) = next { a href=(next) rel="next" { "Next page" } }
            }
        }
        (note("Sessions are ordered by when their first fact was captured. “From” and “before” are \
               dates of that capture; “before” is not included. User and model match exactly. \
               Users, models and agents come from visible facts; a Session whose facts are all \
               quarantined is not listed. A repository is known only if a note links a commit to \
               the Session. A title is the beginning of what the user asked first."))
    }
}

/// Returns the table of Sessions, with their costs if these were asked for.
fn listed(list: &SessionList, now: Instant) -> Markup {
    let mut columns = vec![
        Column::Text("session"),
        Column::Text("began"),
        Column::Text("last seen"),
        Column::Number("calls"),
        Column::Text("models"),
        Column::Text("agent"),
        Column::Text("user"),
        Column::Text("repository"),
        Column::Text("title"),
    ];
    if list.sessions.iter().any(|session| session.spend.is_some()) {
        columns.push(Column::Number("cost at list price"));
        columns.push(Column::Number("not priced"));
    }
    let rows = list.sessions.iter().map(|session| row(session, now));
    table("Sessions, latest first", &columns, rows.collect())
}

fn row(session: &SessionSummary, now: Instant) -> Vec<Markup> {
    let cost = session.spend.iter().flat_map(|spend| {
        let unpriced = CONSOLE.whole(spend.unpriced_items);
        [CONSOLE.session_cost(spend), unpriced].map(|text| html! { (text) })
    });
    let mut cells = vec![
        link(&session.session_id),
        ago(session.first_observed_at, now),
        ago(session.last_observed_at, now),
        html! { (CONSOLE.calls(session)) },
        html! { (CONSOLE.list(session.models.iter().map(String::as_str))) },
        html! { (CONSOLE.list(session.agent_harnesses.iter().map(Open::as_str))) },
        html! { (CONSOLE.list(session.user_ids.iter().map(UserId::as_str))) },
        html! { (CONSOLE.list(session.repositories.iter().map(RepositoryName::as_str))) },
        html! { (CONSOLE.list(session.title.as_deref())) },
    ];
    cells.extend(cost);
    cells
}

/// Links to a Session.
pub(super) fn link(session_id: &SessionId) -> Markup {
    html! { a href=(address(session_id)) { (inert(session_id.as_str())) } }
}

/// Returns the address of a Session's page.
pub(super) fn address(session_id: &SessionId) -> Link {
    Link::to("/console/session").with("session_id", session_id.as_str())
}
