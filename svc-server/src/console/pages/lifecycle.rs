//! What became of accepted work, panel by panel.

use std::fmt::Display;

use maud::{Markup, html};
use svc_model::endpoint::AcceptedWorkLifecycleReport;
use svc_model::problem::Problem;
use svc_model::reports::{
    AcceptedWorkSkip, Coverage, EditRetention, Examples, LifecycleReport, ReworkComponent,
    ReworkName, Stage, Stratum, Unobservable,
};

use super::period::{self, Period};
use super::{caveat, repository, scores, sessions};
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::plot::{self, Share, part, rate};
use crate::console::text::{counts, inert, whole, words};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = period::form(&visit, "/console/lifecycle");
    let page = |body: Markup| Page::new(Section::Lifecycle, "Lifecycle", html! { (form) (body) });
    match report(&visit).await {
        Ok(body) => Ok(page(body)),
        Err(problem) => Ok(page(html! {}).with_problem(problem)),
    }
}

async fn report(visit: &Visit) -> Result<Markup, Problem> {
    let period = Period::read(visit)?;
    let lifecycle = visit
        .ask::<AcceptedWorkLifecycleReport>(period.request()?)
        .await?;
    let report = &lifecycle.report;
    let caveat = caveat::of_mirrors(visit).await?;
    Ok(html! {
        (period.describe(&lifecycle.scope))
        (caveat)
        (caveat::of_lost_mirrors(report.lost_mirrors))
        (note("Each panel has a unit of its own: counts of different panels do not add up."))
        (accepted_work(report))
        (edit_retention(&report.edit_retention))
        (merge_durability(report))
        (session_attrition(report))
        (rework(&report.rework))
        (strata(report))
        (repositories(report))
    })
}

fn accepted_work(report: &LifecycleReport) -> Markup {
    let panel = &report.accepted_work;
    let names = [
        "attributed to a commit",
        "in one merged pull request",
        "seen by CI",
        "with a CI verdict",
    ];
    let stages = names.into_iter().zip(report.stages_unobservable());
    let of = |total: fn(&Stage) -> u64| -> Vec<Share> {
        let stages = stages.clone();
        let share = |(name, (stage, why)): (&str, (&Stage, Option<Unobservable>))| {
            Share::new(name, stage.count, total(stage)).unless(why)
        };
        stages.map(share).collect()
    };
    let (of_before, of_all) = (
        of(|stage| stage.denominator),
        of(|stage| stage.initial_denominator),
    );
    html! {
        section aria-labelledby="accepted" {
            h2 #accepted { "Calls that a person accepted" }
            p {
                "Accepted: " (whole(panel.accepted_calls)) ". CI passed: " (whole(panel.ci_passed))
                ", failed: " (whole(panel.ci_failed)) "."
            }
            (plot::shares("Of the stage before, with 95 % intervals", &of_before))
            (plot::shares("Of all accepted, with 95 % intervals", &of_all))
            (note("Accepts by rules do not count. Who is not in a stage did not fail it."))
            @if panel.skips.get(AcceptedWorkSkip::ContentErased) > 0 {
                (note("Calls whose content was erased are in no stage and in no rate."))
            }
            (beside("Left out", &counts(&panel.skips), &panel.coverage, &panel.examples))
        }
    }
}

fn edit_retention(panel: &EditRetention) -> Markup {
    html! {
        section aria-labelledby="edits" {
            h2 #edits { "Edits, as their files were at the end of the Session" }
            p { "Edits: " (whole(panel.observations)) "." }
            (plot::shares("Eligible edits with a Fate, with a 95 % interval", &[
                Share::new("with a Fate", panel.derived_fates, panel.eligible),
            ]))
            (plot::shares("Fates of edits, with 95 % intervals", &[
                Share::new("unmodified", panel.unmodified, panel.derived_fates),
                Share::new("partially modified", panel.partially_modified, panel.derived_fates),
                Share::new("deleted", panel.deleted, panel.derived_fates),
            ]))
            p {
                "Lines from elsewhere: " (whole(panel.external_lines_added)) " added, "
                (whole(panel.external_lines_removed)) " removed, in "
                (whole(panel.known_external_line_counts)) " edits that count them; not by whom."
            }
            (beside("Left out", &counts(&panel.skips), &panel.coverage, &panel.examples))
        }
    }
}

fn merge_durability(report: &LifecycleReport) -> Markup {
    let (panel, why) = (&report.merge_durability, report.merges_unobservable());
    html! {
        section aria-labelledby="merges" {
            h2 #merges { "Attributed files in merged pull requests" }
            p {
                code { (panel.coverage_qualification.as_str()) }
                ": the forge may not have reported every pull request; for investigation only, not ranking."
            }
            (plot::shares("Files on their way to a score, with 95 % intervals", &[
                Share::new("in one merged pull request", panel.unique_pull_request_membership,
                    panel.attributed_file_candidates).unless(why),
                Share::new("scored, of these", panel.scored_rows, panel.unique_pull_request_membership),
            ]))
            (scores::shown([("head", &panel.head), ("merge", &panel.merge)]))
            (note("What is left of the added text, from 0 to 1: a lower bound on retention."))
            ul { li { "Not in one: " (counts(&panel.membership)) } }
            (beside("Not scored", &counts(&panel.scoring_skips), &panel.coverage, &panel.examples))
        }
    }
}

fn session_attrition(report: &LifecycleReport) -> Markup {
    let (panel, why) = (&report.session_attrition, report.commits_unobservable());
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { "Sessions with accepted work" }
            (plot::shares("What is known of them, with 95 % intervals", &[
                Share::new("committed", panel.committed, panel.eligible_sessions).unless(why),
                Share::new("attribution unavailable", panel.attribution_unavailable,
                    panel.eligible_sessions).unless(why),
            ]))
            p { "Abandoned: " (whole(panel.abandoned)) ", in flight: " (whole(panel.in_flight)) "." }
            (note("That no commit was observed does not mean that there was none: nothing is ever called \
                   abandoned or in flight."))
            (beside("Found", &counts(&panel.skips), &panel.coverage, &panel.examples))
        }
    }
}

fn rework(components: &[ReworkComponent]) -> Markup {
    let rows = components.iter().map(|component| {
        let many = match component.rate {
            // This status is never derived.
            _ if component.name == ReworkName::AbandonedSessions => whole(component.count),
            Some(_) => rate(component.count, component.denominator),
            None => whole(component.count),
        };
        vec![
            html! { (words(component.name.as_str())) },
            html! { (words(component.grain.as_str())) },
            html! { (many) },
        ]
    });
    html! {
        section aria-labelledby="rework" {
            h2 #rework { "Rework" }
            (table("Separate counts, each of a unit of its own", &[
                Column::Text("what"), Column::Text("unit"), Column::Number("how many"),
            ], rows.collect()))
        }
    }
}

fn strata(report: &LifecycleReport) -> Markup {
    let accepted = report.accepted_work.accepted_calls;
    let rows = report.strata.iter().map(|stratum| {
        vec![
            stratum_value(stratum),
            html! { (words(stratum.dimension.as_str())) },
            html! { (part(stratum.accepted_calls, accepted)) },
        ]
    });
    html! {
        section aria-labelledby="strata" {
            h2 #strata { "Accepted calls by agent, model, repository and workflow" }
            @if report.strata.is_empty() {
                p { "No call is accepted." }
            } @else {
                (table("Accepted calls", &[
                    Column::Text("value"), Column::Text("by"), Column::Number("accepted calls"),
                ], rows.collect()))
            }
            p { "Left out: " (counts(&report.stratum_skips)) "." }
        }
    }
}

fn stratum_value(stratum: &Stratum) -> Markup {
    let identity = stratum.repository_identity.as_ref();
    match &stratum.repo {
        Some(repo) if *repo == stratum.value => repository::shown(repo, identity),
        Some(repo) => html! { (inert(&stratum.value)) " in " (repository::shown(repo, identity)) },
        None => html! { (inert(&stratum.value)) },
    }
}

fn repositories(report: &LifecycleReport) -> Markup {
    let skipped = &report.repository_skipped;
    let all = [
        ("observations", &skipped.session_observations),
        ("sources of Attribution", &skipped.attribution_sources),
        ("CI outcomes", &skipped.ci_population_outcomes),
    ];
    html! {
        ul {
            @for (what, skips) in all {
                @if !skips.is_empty() { li { "Repository not known, " (what) ": " (counts(skips)) } }
            }
        }
    }
}

/// Shows what a panel leaves out, what it has evidence of, and example Sessions.
fn beside<M: Copy + Ord + Display>(
    what: &str,
    skips: &str,
    coverage: &Coverage<M>,
    examples: &[Examples],
) -> Markup {
    let unsupported = &coverage.unsupported_by_integration;
    html! {
        details {
            summary { "What is behind these numbers" }
            ul {
                li { (what) ": " (skips) }
                li { "Evidence of: " (whole(coverage.observed)) }
                @if !coverage.missing.is_empty() { li { "No evidence of: " (counts(&coverage.missing)) } }
                @if !unsupported.is_empty() {
                    li { "An integration does not send: " (counts(unsupported)) }
                }
                @if !coverage.ambiguous.is_empty() { li { "Ambiguous: " (counts(&coverage.ambiguous)) } }
                @for examples in examples.iter().filter(|example| !example.session_ids.is_empty()) {
                    li {
                        "Sessions, " (words(examples.population.as_str())) ": "
                        @for (place, session) in examples.session_ids.iter().enumerate() {
                            @if place > 0 { ", " }
                            (sessions::link(session))
                        }
                    }
                }
            }
        }
    }
}
