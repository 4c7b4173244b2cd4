//! The CI runs of one repository with a given result.

use maud::{Markup, html};
use svc_model::endpoint::CiFailuresQuery;
use svc_model::ingest::CiResult;
use svc_model::problem::Problem;
use svc_model::query::{CiFailures, CiOutcomeRecord};
use svc_model::time::Instant;
use svc_view::{CONSOLE, product};

use super::repository;
use crate::console::layout::{Column, Field, InputKind, Page, Section, narrowing, note, table};
use crate::console::link::Link;
use crate::console::text::{NONE, ago, any, day, inert, line, words};
use crate::console::visit::Visit;

/// The characters of a text that a table shows.
const TEXT_CHARACTERS_MAX: usize = 60;
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;
/// The default range, in days before now.
const DAYS: i64 = 7;

/// The filters of the list, by the names of the route's parameters.
const NARROWING: [&str; 10] = [
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "captured_after",
    "captured_before",
    "result",
    "workflow_name",
    "pr_number",
    "limit",
];

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let mirrors = visit
        .ask_engine(|engine| async move { engine.mirrors().await })
        .await?;
    let mut known: Vec<String> = mirrors.into_iter().map(|mirror| mirror.repo).collect();
    known.sort();
    known.dedup();
    let from_now = |days: i64| {
        let at = visit.now.microseconds() + days * DAY_MICROSECONDS;
        Instant::from_microseconds(at).map_or_else(String::new, day)
    };
    let defaults = [
        ("captured_after", from_now(-DAYS)),
        ("captured_before", from_now(1)),
        ("explain", "true".to_owned()),
    ];
    let form = form(&visit, &known, &defaults);
    let body = if visit.given("repo").is_none() && visit.given("repository_id").is_none() {
        Ok(choose(&known))
    } else {
        let ask = visit.ask_given::<CiFailuresQuery>(&defaults);
        ask.await
            .map(|failures| shown(&visit, &failures, &defaults))
    };
    Ok(Page::of(Section::Failures, "CI failures", &form, body))
}

fn form(visit: &Visit, known: &[String], defaults: &[(&str, String)]) -> Markup {
    let given = |name: &str| {
        let default = defaults.iter().find(|(known, _)| *known == name);
        let default = default.map(|(_, value)| value.as_str());
        visit.given(name).or(default).unwrap_or_default()
    };
    let results: Vec<(&str, &str)> = CiResult::ALL
        .iter()
        .map(|result| (result.as_str(), result.as_str()))
        .collect();
    let result = visit.given("result").unwrap_or(CiResult::Failed.as_str());
    let field = |label, name, kind| Field {
        label,
        name,
        value: given(name),
        kind,
    };
    let fields = [
        field("Repository", "repo", InputKind::Known(known)),
        field("From", "captured_after", InputKind::Date),
        field("Before", "captured_before", InputKind::Date),
        Field {
            label: "Result",
            name: "result",
            value: result,
            kind: InputKind::One(&results),
        },
        field("Workflow", "workflow_name", InputKind::Text),
        field("Pull request", "pr_number", InputKind::Text),
    ];
    narrowing("/console/failures", "Choose runs of CI", &fields)
}

/// Asks for a repository.
fn choose(known: &[String]) -> Markup {
    html! {
        p { "Choose a repository: CI runs are listed by repository." }
        @if known.is_empty() {
            p { "No push has named one yet; enter OWNER/NAME." }
        } @else {
            ul {
                @for repo in known {
                    li { a href=(Link::to("/console/failures").with("repo", repo)) { (inert(repo)) } }
                }
            }
        }
    }
}

fn shown(visit: &Visit, failures: &CiFailures, defaults: &[(&str, String)]) -> Markup {
    let result = CONSOLE.adjective(&failures.result);
    let mut first = Link::to("/console/failures");
    for name in NARROWING {
        // The next page has the same range, even after midnight.
        let default = defaults.iter().find(|(known, _)| *known == name);
        let default = default.map(|(_, value)| value.as_str());
        first = first.with_any(name, visit.given(name).or(default));
    }
    let next = failures
        .next_cursor
        .as_ref()
        .map(|cursor| first.clone().with("cursor", cursor.as_str()));
    let unresolved = failures.unresolved_ci_outcomes.as_deref();
    html! {
        @if !failures.outcomes.is_empty() {
            (runs(&format!("Runs with this result: {result}"), &failures.outcomes, visit.now))
        } @else if failures.repository_skipped.is_some() {
        } @else if failures.repository_known {
            p { "No " (result) " runs in this range." }
        } @else {
            p { "No fact mentions this repository: is the name right, and did anything from it arrive?" }
        }
        @for (reason, count) in failures.repository_skipped.iter().flatten() {
            p {
                "Not listed above: " (CONSOLE.unlisted(&failures.result, *count))
                " (" code { (inert(reason.as_str())) } ")."
            }
        }
        @if let Some(unresolved) = unresolved.filter(|unresolved| !unresolved.is_empty()) {
            (runs("Runs whose repository cannot be determined", unresolved, visit.now))
        }
        @if visit.given("cursor").is_some() || next.is_some() {
            nav.pages aria-label="Pages" {
                @if visit.given("cursor").is_some() { a href=(first) { "First page" } }
                @if let Some(next) = next { a href=(next) rel="next" { "Next page" } }
            }
        }
        (note("“From” and “before” are capture dates; “before” is not included. A commit links to \
               the Sessions that were observed at it, and to the calls that may have written it."))
    }
}

fn runs(caption: &str, outcomes: &[CiOutcomeRecord], now: Instant) -> Markup {
    let columns = [
        Column::Text("run"),
        Column::Text("captured"),
        Column::Text("system"),
        Column::Text("workflow"),
        Column::Text("branch"),
        Column::Text("commit"),
        Column::Text("reason"),
    ];
    let rows = outcomes.iter().map(|outcome| {
        let identity = outcome.repository_identity.as_ref();
        let reason = outcome.reason.as_ref().or(outcome.error_type.as_ref());
        let attempt = outcome.run_attempt;
        vec![
            html! { (inert(&outcome.run_id)) @if let Some(attempt) = attempt { "/" (attempt) } },
            ago(outcome.captured_at, now),
            html! { (inert(product(&outcome.provider))) },
            html! { (line(&outcome.workflow_name, TEXT_CHARACTERS_MAX)) },
            html! { (any(Some(outcome.branch.as_str()))) },
            repository::commit(&outcome.commit_sha, &outcome.repo, identity),
            html! {
                (reason.map_or_else(|| NONE.to_owned(), |text| line(text, TEXT_CHARACTERS_MAX)))
            },
        ]
    });
    table(&words(caption), &columns, rows.collect())
}
