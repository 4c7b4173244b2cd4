//! What is stored, what arrives, what is missing, and the state of the mirrors.

use maud::{Markup, html};
use svc_engine::store::{JobState, MirrorStatus};
use svc_model::capture::CaptureCounts;
use svc_model::endpoint::{Capture, Facts};
use svc_model::facts::FactsCounts;
use svc_model::problem::Problem;
use svc_model::request::NoParameters;
use svc_model::time::Instant;
use svc_view::{CONSOLE, declined, duplicates, stored};

use super::repository;
use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::text::{ago, any_ago, inert, moment, whole, words};
use crate::console::visit::Visit;

const DAY_SECONDS: f64 = 24.0 * 60.0 * 60.0;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let counts = visit.ask::<Facts>(NoParameters).await?;
    let captured = visit.ask::<Capture>(NoParameters).await?;
    let mirrors = visit
        .ask_engine(|engine| async move { engine.mirrors().await })
        .await?;
    let engine = &visit.app().engine;
    let body = html! {
        (fields(vec![
            ("Organization", html! { (engine.org_id().as_str()) }),
            ("Sessions", html! { (whole(counts.sessions)) }),
            ("Quarantine revision", html! { (whole(counts.quarantine_revision)) }),
            ("This server started", ago(captured.server_since, visit.now)),
        ]))
        (sources(&captured, visit.now))
        (shown_facts(&counts))
        (missing(&captured, &counts))
        (shown_mirrors(&mirrors, engine.keeps_mirrors(), visit.now))
    };
    Ok(Page::new(Section::Health, "Health", body))
}

fn shown_facts(counts: &FactsCounts) -> Markup {
    let rows = counts.tables.shown().map(|(kind, count)| {
        vec![
            html! { (words(kind.as_str())) },
            html! { (whole(count.visible)) },
            html! { (whole(count.total - count.visible.min(count.total))) },
            html! { (whole(count.total)) },
        ]
    });
    html! {
        section aria-labelledby="stored" {
            h2 #stored { "What is stored" }
            (table("Facts by kind", &[
                Column::Text("kind"), Column::Number("visible"), Column::Number("quarantined"),
                Column::Number("total"),
            ], rows.collect()))
        }
    }
}

fn sources(captured: &CaptureCounts, now: Instant) -> Markup {
    let rows = captured.sources.iter().map(|(source, of)| {
        let stored = stored(of);
        vec![
            html! { (words(source.as_str())) },
            any_ago(of.last_delivery_at, now, "never"),
            any_ago(of.last_stored_at, now, "never"),
            html! { (per_day(stored, captured.since, now)) },
            html! { (whole(of.deliveries)) },
            html! { (whole(stored)) },
            html! { (whole(duplicates(of))) },
            html! { (whole(of.skipped.values().sum())) },
            html! { (whole(of.rejected.values().sum())) },
            html! { (whole(of.conflicts)) },
        ]
    });
    html! {
        section aria-labelledby="arrives" {
            h2 #arrives { "What arrives" }
            @if let Some(since) = captured.since {
                p { "Counted since " (moment(since)) ", on all servers." }
            } @else {
                p { "Nothing has been delivered yet." }
            }
            (table("Deliveries by source", &[
                Column::Text("source"), Column::Text("last delivery"), Column::Text("last stored"),
                Column::Number("facts per day"), Column::Number("deliveries"), Column::Number("stored"),
                Column::Number("duplicates"), Column::Number("skipped"), Column::Number("rejected"),
                Column::Number("conflicts"),
            ], rows.collect()))
            (note("Facts per day is the average since counting began, over at least one day. It \
                   says nothing about today."))
            @if let Some(records) = CONSOLE.log_records(captured.log_records) {
                p { "Log records: " (records) "." }
            }
            @if let Some(spans) = captured.span_records.and_then(|spans| CONSOLE.log_records(spans)) {
                p { "Spans: " (spans) "." }
            }
            @for reader in CONSOLE.readers(captured) {
                p { "Transcripts of " (reader) "." }
            }
            @if let Some(pending) = captured.pending_halves.and_then(|pending| CONSOLE.pending_halves(pending)) {
                p { "Waiting for each other: " (pending) "." }
            }
            @if let Some(claims) = captured.commit_claims {
                p { "Reported commits: " (CONSOLE.commit_claims(claims)) "." }
            }
        }
    }
}

/// Returns the average number of facts stored per day since counting began, or a dash if it has not
/// begun.
fn per_day(stored: u64, since: Option<Instant>, now: Instant) -> String {
    let Some(since) = since else {
        return "–".to_owned();
    };
    let seconds = now.microseconds().saturating_sub(since.microseconds()) / 1_000_000;
    #[expect(clippy::cast_precision_loss, reason = "an average is not a count")]
    let (stored, seconds) = (stored as f64, seconds as f64);
    format!("{:.1}", stored / (seconds / DAY_SECONDS).max(1.0))
}

/// Shows what did not arrive, and why something was not stored.
fn missing(captured: &CaptureCounts, counts: &FactsCounts) -> Markup {
    let silent: Vec<String> = captured
        .sources
        .iter()
        .filter(|(_, of)| of.deliveries == 0)
        .map(|(source, _)| words(source.as_str()))
        .collect();
    let kinds = counts.tables.shown();
    let absent: Vec<String> = kinds
        .filter(|(_, count)| count.is_zero())
        .map(|(kind, _)| words(kind.as_str()))
        .collect();
    let sources = captured.sources.iter();
    let declined: Vec<Vec<Markup>> = sources
        .flat_map(|(source, of)| declined(of).map(move |row| (source, row)))
        .map(|(source, (how, reason, count))| {
            vec![
                html! { (words(source.as_str())) },
                html! { (how) },
                html! { code { (inert(reason)) } },
                html! { (whole(count)) },
            ]
        })
        .collect();
    let refused: Vec<Vec<Markup>> = captured
        .answers
        .iter()
        .flat_map(|(path, statuses)| statuses.iter().map(move |status| (path, status)))
        .filter(|(path, (status, _))| **status >= 400 && !path.starts_with("/console"))
        .map(|(path, (status, count))| {
            vec![
                html! { code { (inert(path)) } },
                html! { (status) },
                html! { (whole(*count)) },
            ]
        })
        .collect();
    html! {
        section aria-labelledby="missing" {
            h2 #missing { "What is missing" }
            ul {
                @if silent.is_empty() {
                    li { "Every source has delivered." }
                } @else {
                    li { "Never delivered: " (silent.join(", ")) ". Nothing from these sources has \
                          reached the service: check their senders." }
                }
                @if !absent.is_empty() { li { "No facts of these kinds: " (absent.join(", ")) "." } }
                @if declined.is_empty() { li { "Nothing that arrived was declined." } }
            }
            @if !declined.is_empty() {
                (table("Declined, by reason", &[
                    Column::Text("source"), Column::Text("how"), Column::Text("reason"),
                    Column::Number("count"),
                ], declined))
            }
            @if !refused.is_empty() {
                (table("Requests that this server refused since it started", &[
                    Column::Text("path"), Column::Number("status"), Column::Number("count"),
                ], refused))
            }
        }
    }
}

fn shown_mirrors(mirrors: &[MirrorStatus], keeps: bool, now: Instant) -> Markup {
    let rows = mirrors.iter().map(|mirror| {
        let identity = mirror.lifetime.identity().cloned().map(Into::into);
        let state = match mirror.state {
            JobState::Idle => html! { "idle" },
            JobState::Waiting => html! { "waiting" },
            JobState::Retrying(at) => html! { "tried again " (ago(at, now)) },
            JobState::Running(since) => html! { "started " (ago(since, now)) },
            JobState::GivenUp => html! { "given up" },
            JobState::Refused => html! { "refused" },
        };
        vec![
            repository::shown(&mirror.repo, identity.as_ref()),
            state,
            html! { (whole(mirror.waiting_pushes)) },
            html! { (whole(mirror.attempts)) },
            any_ago(mirror.last_success_at, now, "never"),
            html! {
                @match (&mirror.last_failure, mirror.last_failure_at) {
                    (Some(reason), Some(at)) => { code { (inert(reason)) } ", " (ago(at, now)) }
                    _ => "–"
                }
            },
        ]
    });
    html! {
        section aria-labelledby="mirrors" {
            h2 #mirrors { "Mirrors" }
            @if !keeps {
                p { "This server keeps no mirrors (SVC_MIRROR_PATH), so nothing links calls to commits." }
            }
            @if mirrors.is_empty() {
                p { "No mirrors yet: no push has arrived." }
            } @else {
                (table("Mirrors by repository", &[
                    Column::Text("repository"), Column::Text("state"), Column::Number("pushes waiting"),
                    Column::Number("failures"), Column::Text("last success"), Column::Text("last failure"),
                ], rows.collect()))
            }
        }
    }
}
