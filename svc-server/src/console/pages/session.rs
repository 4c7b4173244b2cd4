//! One Session: what was captured of it, when, and what became of its commits.

use maud::{Markup, html};
use svc_model::endpoint::SessionQuery;
use svc_model::problem::Problem;
use svc_model::query::{AttributedCommit, SessionAnswer, SessionDossier};
use svc_model::time::Instant;
use svc_view::{CONSOLE, branches};

use super::{repository, timeline};
use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::link::Link;
use crate::console::text::{NONE, ago, capital, inert, moment, whole};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    // With the files of events, and with what was delivered with each commit that no push left its
    // branch at.
    let explain = [("explain", "true".to_owned())];
    let request = visit.request::<SessionQuery>(&explain)?;
    let name = inert(request.session_id.as_str());
    let answer = visit.ask::<SessionQuery>(request).await?;
    let body = match answer {
        SessionAnswer::Known(dossier) => shown(&visit, &dossier),
        SessionAnswer::Unknown(_) => html! {
            p { "No fact of this Session is stored. Is the id complete?" }
        },
    };
    let sessions = Link::to("/console/sessions");
    Ok(Page::new(Section::Sessions, format!("Session {name}"), body).below("Sessions", sessions))
}

fn shown(visit: &Visit, dossier: &SessionDossier) -> Markup {
    let now = visit.now;
    let calls = Link::to("/console/calls").with("session_id", dossier.session_id.as_str());
    let seen = html! {
        (moment(dossier.first_observed_at)) " to " (moment(dossier.last_observed_at))
        " (" (ago(dossier.last_observed_at, now)) ")"
    };
    let mut values = vec![("Seen".to_owned(), seen)];
    for (name, count, known) in CONSOLE.captured(dossier) {
        let link = (name == "calls").then_some(&calls);
        let count =
            html! { @if let Some(link) = link { a href=(link) { (count) } } @else { (count) } };
        values.push((capital(name), html! { (count) (known) }));
    }
    for (how, session_id, call) in CONSOLE.continuations(dossier) {
        let link = Link::to("/console/session").with("session_id", session_id.as_str());
        let session = html! { a href=(link) { (inert(session_id.as_str())) } (call) };
        values.push((capital(how), session));
    }
    for (reason, count) in &dossier.repository_skipped {
        let skipped = html! { (whole(*count)) " " code { (inert(reason.as_str())) } };
        values.push(("Skipped".to_owned(), skipped));
    }
    html! {
        (fields(values))
        (gaps(dossier))
        (timeline::shown(visit, dossier))
        (commits(dossier, now))
    }
}

fn gaps(dossier: &SessionDossier) -> Markup {
    let gaps = CONSOLE.not_captured(dossier);
    html! {
        @if !gaps.is_empty() {
            section aria-labelledby="gaps" {
                h2 #gaps { "What was not captured" }
                ul { @for gap in gaps { li { (gap) } } }
                (note("It may have happened nevertheless."))
            }
        }
    }
}

fn commits(dossier: &SessionDossier, now: Instant) -> Markup {
    let rows = dossier.attributed_commits.iter().map(|commit| {
        let identity = commit.repository_identity.as_ref();
        vec![
            repository::commit(&commit.commit_sha, &commit.repo, identity),
            repository::shown(&commit.repo, identity),
            html! { (CONSOLE.observed(commit.session_commit_observation_ids.len(), commit.source.as_ref())) },
            pushed(dossier, commit, now),
            checked(dossier, commit),
        ]
    });
    html! {
        section aria-labelledby="commits" {
            h2 #commits { "Commits" }
            @if dossier.attributed_commits.is_empty() {
                p { "No commit of this Session was observed, but there may be one." }
            } @else {
                (table("Commits that notes or telemetry link to this Session", &[
                    Column::Text("commit"), Column::Text("repository"), Column::Number("observed"),
                    Column::Text("pushed"), Column::Text("CI"),
                ], rows.collect()))
            }
        }
    }
}

/// Shows the branches that a commit was pushed to, each with its latest push.
fn pushed(dossier: &SessionDossier, commit: &AttributedCommit, now: Instant) -> Markup {
    let mut branches = branches(dossier, commit).enumerate().peekable();
    html! {
        @if branches.peek().is_none() { (NONE) }
        @for (place, branch) in branches {
            @if place > 0 { ", " }
            (inert(branch.name)) " "
            @if let Some(head) = branch.head { "with " (repository::short(head)) " " }
            (ago(branch.at, now))
        }
    }
}

/// Shows the counts of CI results at a commit, and at the commits that it was pushed with.
fn checked(dossier: &SessionDossier, commit: &AttributedCommit) -> Markup {
    let checks = CONSOLE.checks(dossier, commit);
    html! {
        @if checks.is_empty() { (NONE) }
        @for (place, (results, head)) in checks.into_iter().enumerate() {
            @if place > 0 { ", " }
            (results)
            @if let Some(head) = head { " at " (repository::short(head)) }
        }
    }
}
