//! One Session: what was captured of it, when, and what became of its commits.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use svc_model::endpoint::SessionQuery;
use svc_model::ingest::CiResult;
use svc_model::open::Open;
use svc_model::problem::Problem;
use svc_model::query::{
    AttributedCommit, DossierCiOutcome, DossierPush, EventCount, Gap, SessionAnswer,
    SessionDossier, TimelineEvent,
};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::{repository, timeline};
use crate::console::layout::{Column, Page, Section, fields, note, table};
use crate::console::link::Link;
use crate::console::text::{NONE, ago, inert, moment, whole, words};
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
    let coverage = &dossier.coverage;
    let calls = Link::to("/console/calls").with("session_id", dossier.session_id.as_str());
    let mut values = vec![
        (
            "Seen",
            html! {
                (moment(dossier.first_observed_at)) " to " (moment(dossier.last_observed_at))
                " (" (ago(dossier.last_observed_at, now)) ")"
            },
        ),
        (
            "Calls",
            html! { a href=(calls) { (count(coverage.inference_calls)) } (models(dossier)) },
        ),
        (
            "Decisions",
            html! { (count(coverage.developer_decisions)) (decisions(dossier)) },
        ),
        (
            "Edits observed",
            html! { (count(coverage.edit_observations)) },
        ),
        ("Edits rejected", html! { (count(coverage.rejected_edits)) }),
        ("Retries", html! { (count(coverage.retry_linkages)) }),
        ("Commits", html! { (dossier.attributed_commits.len()) }),
    ];
    for (reason, count) in &dossier.repository_skipped {
        let skipped = html! { (whole(*count)) " " code { (inert(reason.as_str())) } };
        values.push(("Skipped", skipped));
    }
    html! {
        (fields(values))
        (gaps(dossier))
        (timeline::shown(visit, dossier))
        (commits(dossier, now))
    }
}

fn gaps(dossier: &SessionDossier) -> Markup {
    let gaps = dossier.gaps.iter();
    let gaps: Vec<_> = gaps
        .filter(|gap| !dossier.coverage.has_quarantined(gap))
        .collect();
    html! {
        @if !gaps.is_empty() {
            section aria-labelledby="gaps" {
                h2 #gaps { "What was not captured" }
                ul { @for gap in gaps { li { (in_words(gap)) } } }
                (note("It may have happened nevertheless."))
            }
        }
    }
}

/// Describes something that was not captured.
fn in_words(gap: &Open<Gap>) -> String {
    let known = match gap {
        Open::Unknown(word) => return words(word.word()),
        Open::Known(gap) => gap,
    };
    let words = match known {
        Gap::NoInferenceCalls => "model calls",
        Gap::NoDeveloperDecisions => "decisions",
        Gap::NoEditObservations => "what became of edits",
        Gap::NoRejectedEdits => "rejected edits",
        Gap::NoRetryLinkages => "retries",
        Gap::NoCommit => "commits",
        Gap::NoPushes => "a push to one of its commits",
        Gap::NoCiOutcomes => "CI of one of its commits",
    };
    words.to_owned()
}

fn count(events: EventCount) -> String {
    if events.quarantined == 0 {
        whole(events.visible)
    } else {
        let (visible, quarantined) = (whole(events.visible), whole(events.quarantined));
        format!("{visible} (and {quarantined} quarantined)")
    }
}

/// Returns the models, by number of calls, and the known token counts.
fn models(dossier: &SessionDossier) -> String {
    let mut models: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_i64, 0_i64);
    for event in dossier.timeline.iter().filter_map(Open::known) {
        if let TimelineEvent::InferenceCall {
            model,
            input_tokens,
            output_tokens,
            ..
        } = event
        {
            *models.entry(model.as_deref().unwrap_or(NONE)).or_default() += 1;
            input = input.saturating_add(input_tokens.unwrap_or(0));
            output = output.saturating_add(output_tokens.unwrap_or(0));
        }
    }
    let mut models: Vec<_> = models.into_iter().collect();
    models.sort_by_key(|(model, calls)| (std::cmp::Reverse(*calls), *model));
    let models: Vec<String> = models
        .into_iter()
        .map(|(model, calls)| format!("{} {}", inert(model), whole(calls)))
        .collect();
    if models.is_empty() {
        return String::new();
    }
    let tokens = |count: i64| whole(u64::try_from(count).unwrap_or(0));
    let models = models.join(", ");
    if input == 0 && output == 0 {
        return format!(" ({models})");
    }
    let (input, output) = (tokens(input), tokens(output));
    format!(" ({models}; {input} tokens in, {output} out)")
}

fn decisions(dossier: &SessionDossier) -> String {
    let (mut accepted, mut rejected, mut by_rule) = (0_u64, 0_u64, 0_u64);
    for event in dossier.timeline.iter().filter_map(Open::known) {
        if let TimelineEvent::DeveloperDecision {
            accepted: is_accepted,
            explicit,
            ..
        } = event
        {
            accepted += u64::from(*is_accepted);
            rejected += u64::from(!is_accepted);
            by_rule += u64::from(!explicit);
        }
    }
    match (accepted + rejected, by_rule) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({accepted} accepted, {rejected} rejected)"),
        (_, by_rule) => {
            format!(" ({accepted} accepted, {rejected} rejected; {by_rule} of them by a rule)")
        }
    }
}

fn commits(dossier: &SessionDossier, now: Instant) -> Markup {
    let rows = dossier.attributed_commits.iter().map(|commit| {
        let identity = commit.repository_identity.as_ref();
        vec![
            repository::commit(&commit.commit_sha, &commit.repo, identity),
            repository::shown(&commit.repo, identity),
            html! { (commit.session_commit_observation_ids.len()) },
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
                (table("Commits that notes link to this Session", &[
                    Column::Text("commit"), Column::Text("repository"), Column::Number("observed"),
                    Column::Text("pushed"), Column::Text("CI"),
                ], rows.collect()))
            }
        }
    }
}

/// Returns the pushes that brought a commit but left the branch at a later one.
fn bringing<'d>(
    dossier: &'d SessionDossier,
    commit: &'d AttributedCommit,
) -> impl Iterator<Item = &'d DossierPush> {
    let by = commit.delivered_by_push_ids.as_deref().unwrap_or_default();
    let all = dossier.delivering_pushes.iter().flatten();
    all.filter(|push| by.contains(&push.push_id))
}

/// Shows the branches that a commit was pushed to, each with its latest push.
fn pushed(dossier: &SessionDossier, commit: &AttributedCommit, now: Instant) -> Markup {
    let mut branches: BTreeMap<(&str, Option<&CommitSha>), Instant> = BTreeMap::new();
    let at = dossier.pushes.iter().filter(|push| {
        push.after_sha == commit.commit_sha
            && push.repository_identity == commit.repository_identity
    });
    let brought = bringing(dossier, commit).map(|push| (push, Some(&push.after_sha)));
    for (push, head) in at.map(|push| (push, None)).chain(brought) {
        let branch = push.r#ref.trim_start_matches("refs/heads/");
        let latest = branches.entry((branch, head)).or_insert(push.captured_at);
        *latest = push.captured_at.max(*latest);
    }
    html! {
        @if branches.is_empty() { (NONE) }
        @for (place, ((branch, head), at)) in branches.into_iter().enumerate() {
            @if place > 0 { ", " }
            (inert(branch)) " "
            @if let Some(head) = head { "with " (repository::short(head)) " " }
            (ago(at, now))
        }
    }
}

/// Shows the counts of CI results at a commit, and at the commits that it was pushed with.
fn checked(dossier: &SessionDossier, commit: &AttributedCommit) -> Markup {
    let of = |outcomes: &mut dyn Iterator<Item = &DossierCiOutcome>, sha: &CommitSha| {
        results(
            outcomes
                .filter(|outcome| {
                    outcome.commit_sha == *sha
                        && outcome.repository_identity == commit.repository_identity
                })
                .map(|outcome| &outcome.result),
        )
    };
    let own = of(&mut dossier.ci_outcomes.iter(), &commit.commit_sha);
    let heads: BTreeSet<&CommitSha> = bringing(dossier, commit)
        .map(|push| &push.after_sha)
        .collect();
    let heads: Vec<(&CommitSha, String)> = heads
        .into_iter()
        .filter_map(|head| {
            let mut outcomes = dossier.delivering_ci_outcomes.iter().flatten();
            Some((head, of(&mut outcomes, head)?))
        })
        .collect();
    html! {
        @if own.is_none() && heads.is_empty() { (NONE) }
        @if let Some(own) = &own { (own) }
        @for (place, (head, results)) in heads.iter().enumerate() {
            @if place > 0 || own.is_some() { ", " }
            (results) " at " (repository::short(head))
        }
    }
}

/// Counts each result, in the order of the results.
fn results<'a>(results: impl Iterator<Item = &'a Open<CiResult>>) -> Option<String> {
    let mut counts: BTreeMap<&Open<CiResult>, u64> = BTreeMap::new();
    for result in results {
        *counts.entry(result).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(result, count)| format!("{count} {}", words(result.as_str())))
        .collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}
