//! One commit: the Sessions that were observed at it, the calls that may have written it, and its
//! CI.

use maud::{Markup, html};
use svc_model::endpoint::CommitQuery;
use svc_model::problem::Problem;
use svc_model::query::{
    CommitCiOutcome, CommitEvidence, CommitRepository, LinkedCommit, NamedCommit,
    ThroughPullRequest,
};
use svc_model::reports::Counts;
use svc_model::time::Instant;
use svc_view::{CONSOLE, link_reason, model, none_at, product, reason, relation, through_on};

use super::{calls, repository, sessions};
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::link::Link;
use crate::console::text::{NONE, ago, inert, line, whole, words};
use crate::console::visit::Visit;

/// The characters of a text that a table shows.
const TEXT_CHARACTERS_MAX: usize = 60;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let explain = [("explain", "true".to_owned())];
    let request = visit.request::<CommitQuery>(&explain)?;
    let is_selected = !request.repository.is_empty();
    let evidence = visit.ask::<CommitQuery>(request).await?;
    let body = html! {
        p { code.whole { (evidence.commit_sha.as_str()) } }
        (shown(&evidence, is_selected, visit.now))
    };
    let failures = Link::to("/console/failures");
    Ok(Page::new(Section::Failures, "Commit", body).below("CI failures", failures))
}

fn shown(evidence: &CommitEvidence, is_selected: bool, now: Instant) -> Markup {
    let Some(repositories) = &evidence.repos else {
        return html! {
            p { "No Session was observed at this commit, and no call is linked to it." }
            @if !is_selected {
                p { "No stored fact links it to a repository, so no mirror was searched." }
            }
        };
    };
    html! {
        p {
            @if evidence.attributed { "A Session was observed at it." }
            @else { "No Session was observed at it." }
        }
        ul {
            @for (reason, count) in evidence.repository_skipped.iter().flatten() {
                li { "Skipped: " (whole(*count)) " " code { (inert(reason.as_str())) } }
            }
            @for (skip, count) in evidence.inference_skipped.iter().flat_map(Counts::iter) {
                li {
                    "Calls not searched for: " (whole(count)) " " code { (skip) } " (" (reason(skip)) ")"
                }
            }
            @for (skip, count) in evidence.links_skipped.iter().flat_map(Counts::iter) {
                li {
                    "Links not followed: " (whole(count)) " " code { (skip) } " (" (link_reason(skip)) ")"
                }
            }
        }
        @if let Some(unresolved) = evidence.unresolved_ci_outcomes.as_deref().filter(|outcome| !outcome.is_empty()) {
            (outcomes("Runs whose repository cannot be determined", unresolved, now))
        }
        @for of in repositories { (of_repository(of, now)) }
    }
}

fn of_repository(of: &CommitRepository, now: Instant) -> Markup {
    let observed = of.observed_sessions.iter().map(|session| {
        vec![
            sessions::link(&session.session_id),
            html! { (CONSOLE.observed(session.session_commit_observation_ids.len(), session.source.as_ref())) },
        ]
    });
    html! {
        section {
            h2 { (repository::shown(&of.repo, of.repository_identity.as_ref())) }
            @if let Some(others) = CONSOLE.other_names(of) { p { "Also named " (others) "." } }
            @if of.observed_sessions.is_empty() {
                p { "No Session was observed here, but there may have been one." }
            } @else {
                (table("Sessions that notes or telemetry link to this commit", &[
                    Column::Text("session"), Column::Number("observed"),
                ], observed.collect()))
            }
            (linked(of))
            (inferred(of))
            @if of.ci_outcomes.is_empty() {
                p { "No CI outcome was captured." }
            } @else {
                (outcomes("Runs of CI at this commit", &of.ci_outcomes, now))
            }
        }
    }
}

/// Shows the links to other commits, separate from what was observed at this one.
fn linked(of: &CommitRepository) -> Markup {
    html! {
        @if !(of.through_pull_requests.is_empty() && of.named_commits.is_empty()) {
            h3 { "Where it comes from" }
            (links(of, &of.through_pull_requests, &of.named_commits))
            (note("These Sessions were observed at other commits: those of a pull request that was merged with this one, or those that a message names."))
        }
    }
}

fn links(of: &CommitRepository, through: &[ThroughPullRequest], named: &[NamedCommit]) -> Markup {
    html! {
        ul {
            @for link in through {
                li {
                    (inert(&through_on(link)))
                    @if !link.commits.iter().any(is_informative) { ": " (none_at(link.commits.len())) }
                    @else {
                        ul { @for commit in link.commits.iter().filter(|commit| is_informative(commit)) {
                            li { "commit " (at_commit(of, commit)) }
                        } }
                    }
                }
            }
            @for named in named {
                li { (inert(relation(&named.relation))) " " (at_commit(of, &named.commit)) }
            }
        }
    }
}

/// Returns whether a commit leads to a Session or on to other commits.
fn is_informative(commit: &LinkedCommit) -> bool {
    !(commit.observed_sessions.is_empty()
        && commit.through_pull_requests.is_empty()
        && commit.named_commits.is_empty())
}

/// Shows a commit with the Sessions that were observed at it, and where it comes from itself.
fn at_commit(of: &CommitRepository, commit: &LinkedCommit) -> Markup {
    let (through, named) = (&commit.through_pull_requests, &commit.named_commits);
    html! {
        (repository::commit(&commit.commit_sha, &of.repo, of.repository_identity.as_ref()))
        @for session in &commit.observed_sessions {
            ", " (sessions::link(&session.session_id)) " (observed "
            (CONSOLE.observed(session.session_commit_observation_ids.len(), session.source.as_ref())) ")"
        }
        @if !(through.is_empty() && named.is_empty()) { (links(of, through, named)) }
    }
}

/// Shows the inferred calls, separate from what was observed.
fn inferred(of: &CommitRepository) -> Markup {
    let rows = of.inference_calls.iter().map(|call| {
        let id = call.inference_call_id.to_string();
        let score = call.similarity_score;
        let files = call.attributed_files;
        vec![
            html! { a href=(calls::address(&call.session_id, &id)) { code { (id) } } },
            sessions::link(&call.session_id),
            html! {
                (inert(product(&call.gateway_provider))) "/"
                (inert(&model(call.model_provider.as_deref(), call.model.as_deref())))
            },
            html! { (words(call.attribution_source.as_str())) },
            html! { (score.map_or_else(|| NONE.to_owned(), |score| format!("{score:.2}"))) },
            html! { (files.map_or_else(|| NONE.to_owned(), whole)) },
        ]
    });
    html! {
        @if !of.inference_calls.is_empty() {
            (table("Calls that may have written it", &[
                Column::Text("call"), Column::Text("session"), Column::Text("model"),
                Column::Text("linked by"), Column::Number("score"), Column::Number("files"),
            ], rows.collect()))
            (note("Inferred from what calls wrote; a guess, not an observation."))
            @if of.session_commit_unobserved > 0 {
                p { (whole(of.session_commit_unobserved)) " of them belong to a Session that was \
                     not observed here (" code { "session_commit_unobserved" } ")." }
            }
            @if of.decisions > 0 { p { "Decisions in these Sessions: " (whole(of.decisions)) "." } }
        }
    }
}

fn outcomes(caption: &str, outcomes: &[CommitCiOutcome], now: Instant) -> Markup {
    let rows = outcomes.iter().map(|outcome| {
        let reason = outcome.reason.as_ref().or(outcome.error_type.as_ref());
        let attempt = outcome.run_attempt;
        vec![
            html! { (inert(&outcome.run_id)) @if let Some(attempt) = attempt { "/" (attempt) } },
            html! { (words(outcome.result.as_str())) },
            html! { (line(&outcome.workflow_name, TEXT_CHARACTERS_MAX)) },
            html! { (inert(product(&outcome.provider))) },
            ago(outcome.captured_at, now),
            html! {
                (reason.map_or_else(|| NONE.to_owned(), |text| line(text, TEXT_CHARACTERS_MAX)))
            },
        ]
    });
    table(
        caption,
        &[
            Column::Text("run"),
            Column::Text("result"),
            Column::Text("workflow"),
            Column::Text("system"),
            Column::Text("captured"),
            Column::Text("reason"),
        ],
        rows.collect(),
    )
}
