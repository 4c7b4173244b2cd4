//! How much of what agents wrote was left when pull requests were merged.

use maud::{Markup, html};
use svc_engine::read::Extent;
use svc_model::problem::Problem;
use svc_model::reports::{MembershipSkip, MergeRetentionReport, merges_unobservable};
use svc_view::CONSOLE;

use super::period::until_field;
use super::{caveat, past, repository, scores};
use crate::console::layout::{Page, Section, fields, narrowing, note};
use crate::console::plot::{self, Share};
use crate::console::text::{counts, items, whole};
use crate::console::visit::Visit;

pub(in crate::console) async fn page(visit: Visit) -> Result<Page, Problem> {
    let fields = [past::field(&visit), until_field(&visit)];
    let form = narrowing(
        "/console/retention",
        "Choose the days of the calls",
        &fields,
    );
    let body = match report(&visit).await {
        Ok((extent, report)) => Ok(html! {
            (past::describe(("Calls of all history", "Calls"), &extent))
            (caveat::of_mirrors(&visit).await?)
            (shown(&report))
        }),
        Err(problem) => Err(problem),
    };
    Ok(Page::of(Section::Retention, "Merge retention", &form, body))
}

/// Returns the range of the report, and the report.
async fn report(visit: &Visit) -> Result<(Extent, MergeRetentionReport), Problem> {
    let extent = past::read(visit)?;
    let of = extent.clone();
    let ask = async move |engine: svc_engine::engine::Engine| engine.merge_retention(of).await;
    Ok((extent, visit.ask_engine(ask).await?))
}

fn shown(report: &MergeRetentionReport) -> Markup {
    let why = merges_unobservable(report.candidates_joined_to_merge, &report.membership);
    html! {
        (note("The part of what agents added to a file that is still in that file: a lower bound on \
               retention, because moved and reworded lines do not count. Covers only pull requests \
               that the forge reported; for investigation only, not ranking."))
        section aria-labelledby="files" {
            h2 #files { "Files that a call wrote" }
            (fields(vec![
                ("Attributed, at a commit where the Session was observed",
                    html! { (whole(report.attributed_file_candidates)) }),
                ("Merged pull requests", html! { (whole(report.joined_pull_requests)) }),
                ("of which scored", html! { (whole(report.scored_pull_requests)) }),
            ]))
            (plot::shares("Files on their way to a score, with 95 % intervals", &[
                Share::new("in one merged pull request", report.candidates_joined_to_merge,
                    report.attributed_file_candidates).unless(why),
                Share::new("scored, of these", report.scored_rows, report.candidates_joined_to_merge),
            ]))
            ul {
                li { "Not in one: " (counts(&report.membership)) }
                li { "Not scored: " (counts(&report.scoring_skips)) }
                (unchecked_pull_requests(report))
            }
        }
        section aria-labelledby="left" {
            h2 #left { "What is left, from 0 to 1" }
            (scores::shown([("head", &report.head), ("merge", &report.merge)]))
        }
        section aria-labelledby="accepted" {
            h2 #accepted { "The same, of calls that a person accepted" }
            p { "Files: " (whole(report.explicit_accept_rows)) "." }
            @if report.explicit_accept_rows > 0 {
                (scores::thresholds("Files of which less is left than a threshold, with 95 % intervals", [
                    ("head", &report.explicit_accept_head_thresholds),
                    ("merge", &report.explicit_accept_merge_thresholds),
                ]))
            }
        }
        section aria-labelledby="not-counted" {
            h2 #not-counted { "Not counted at all" }
            ul {
                (items(&CONSOLE.not_counted(report)))
            }
        }
    }
}

/// Lists the pull requests that make it impossible to determine where commits were merged.
fn unchecked_pull_requests(report: &MergeRetentionReport) -> Markup {
    let unchecked = report
        .unchecked_pull_requests
        .as_deref()
        .unwrap_or_default();
    let failed = report.membership.get(MembershipSkip::AncestryCheckFailed);
    html! {
        @if unchecked.is_empty() && failed > 0 {
            li { "Some merge, revision or CI outcome may belong to these repositories: it cannot be determined." }
        }
        @for of in unchecked {
            @let numbers = of.pr_numbers.iter().map(|number| format!("#{number}")).collect::<Vec<_>>();
            li {
                "Heads or bases that no mirror has, "
                (repository::shown(&of.repo, of.repository_identity.as_ref())) ": " (numbers.join(" "))
            }
        }
    }
}
