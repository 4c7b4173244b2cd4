//! What became of accepted work, panel by panel.

use std::fmt::Display;

use maud::{Markup, html};
use svc_model::endpoint::AcceptedWorkLifecycleReport;
use svc_model::problem::Problem;
use svc_model::reports::{
    AcceptedWorkSkip, Coverage, EditRetention, Examples, LifecycleReport, ReworkComponent,
    ReworkName, Stage, Stratum,
};
use svc_view::{
    CONSOLE, NO_COMMIT, NOT_EVERY_PULL_REQUEST, NOT_IN_A_STAGE, PANELS, SCORES,
    STAGE_WITHOUT_ERASED, stages,
};

use super::period::{self, Period};
use super::{caveat, repository, scores, sessions};
use crate::console::layout::{Column, Page, Section, note, table};
use crate::console::plot::{self, Share, rate};
use crate::console::text::{counts, inert, items, whole, words};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let form = period::form(&visit, "/console/lifecycle");
    let body = report(&visit).await;
    Ok(Page::of(Section::Lifecycle, "Lifecycle", &form, body))
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
        (note(PANELS))
        (accepted_work(report))
        (edit_retention(&report.edit_retention))
        (merge_durability(report))
        (session_attrition(report))
        (rework(&report.rework))
        (strata(report))
        ul { (items(&CONSOLE.unknown_repositories(report))) }
    })
}

fn accepted_work(report: &LifecycleReport) -> Markup {
    let panel = &report.accepted_work;
    let of = |total: fn(&Stage) -> u64| -> Vec<Share> {
        stages(report)
            .map(|(name, stage, why)| Share::new(name, stage.count, total(stage)).unless(why))
            .collect()
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
            (note(NOT_IN_A_STAGE))
            @if panel.skips.get(AcceptedWorkSkip::ContentErased) > 0 {
                (note(STAGE_WITHOUT_ERASED))
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
            (plot::shares("Fates of edits, with 95 % intervals", &CONSOLE.fates(panel)
                .map(|(fate, count)| Share::new(fate, count, panel.derived_fates))))
            p { "Lines from elsewhere: " (CONSOLE.external_lines(panel)) "." }
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
                ": " (NOT_EVERY_PULL_REQUEST)
            }
            (plot::shares("Files on their way to a score, with 95 % intervals", &[
                Share::new("in one merged pull request", panel.unique_pull_request_membership,
                    panel.attributed_file_candidates).unless(why),
                Share::new("scored, of these", panel.scored_rows, panel.unique_pull_request_membership),
            ]))
            (scores::shown([("head", &panel.head), ("merge", &panel.merge)]))
            (note(SCORES))
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
            (note(&format!("{NO_COMMIT}: nothing is ever called abandoned or in flight.")))
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
            html! { (CONSOLE.part(stratum.accepted_calls, accepted)) },
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

/// Shows what a panel leaves out, what it has evidence of, and example Sessions.
fn beside<M: Copy + Ord + Display>(
    what: &str,
    skips: &str,
    coverage: &Coverage<M>,
    examples: &[Examples],
) -> Markup {
    html! {
        details {
            summary { "What is behind these numbers" }
            ul {
                li { (what) ": " (skips) }
                (items(&CONSOLE.coverage(coverage)))
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
