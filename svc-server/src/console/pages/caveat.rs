//! Why reports may be incomplete.

use maud::{Markup, html};
use svc_model::problem::Problem;
use svc_model::reports::ModelRow;
use svc_view::CONSOLE;

use crate::console::layout::note;
use crate::console::text::{counts, inert, whole};
use crate::console::visit::Visit;

/// Shows what reports miss because of the state of the mirrors. Shows nothing if all mirrors are up
/// to date with their pushes.
pub(super) async fn of_mirrors(visit: &Visit) -> Result<Markup, Problem> {
    if !visit.app().engine.keeps_mirrors() {
        return Ok(html! {
            p.caveat {
                "This server keeps no mirrors, so no call can be tied to a commit: a 0 here \
                 means unknown. Set SVC_MIRROR_PATH."
            }
        });
    }
    let mirrors = visit.ask_engine(|engine| async move { engine.mirrors().await });
    let mirrors = mirrors.await?;
    let behind = mirrors.iter().filter(|mirror| mirror.is_behind()).count();
    Ok(html! {
        @if behind > 0 {
            p.caveat {
                (whole(behind as u64)) " of " (whole(mirrors.len() as u64))
                " mirrors are behind their pushes, so more calls may have reached a commit than \
                 are shown here: " a href="/console/health#mirrors" { "the mirrors" } "."
            }
        }
    })
}

/// Says which calls are left out of the attribution rates, by model, if any are.
pub(super) fn of_skipped_calls<'r>(rows: impl IntoIterator<Item = &'r ModelRow>) -> Markup {
    let skipped = rows
        .into_iter()
        .filter(|row| !row.completions_skipped.is_empty());
    html! {
        @for row in skipped {
            (note(&format!(
                "Calls of {} that are left out of attribution_rate: {}.",
                inert(&row.model), counts(&row.completions_skipped)
            )))
        }
    }
}

/// Says of which calls no commit could have been seen, by model, if of any.
pub(super) fn of_unobservable_calls<'r>(rows: impl IntoIterator<Item = &'r ModelRow>) -> Markup {
    html! {
        @for row in rows {
            @if let Some(unobservable) = CONSOLE.unobservable_calls(row) {
                (note(&format!("attribution_rate of {}: {unobservable}.", inert(&row.model))))
            }
        }
    }
}

/// Says which models have attributed calls and no CI verdict.
pub(super) fn of_unjudged_calls<'r>(rows: impl IntoIterator<Item = &'r ModelRow>) -> Markup {
    html! {
        @for row in rows {
            @if let Some(unjudged) = CONSOLE.unjudged_calls(row) {
                (note(&format!("{}: {unjudged}.", inert(&row.model))))
            }
        }
    }
}

/// Says how many mirrors a report did not find, if any are missing.
pub(super) fn of_lost_mirrors(lost: Option<u64>) -> Markup {
    html! {
        @if let Some(lost) = lost {
            p.caveat {
                (CONSOLE.lost_mirrors(lost)) " Check that the folder of the mirrors \
                 (SVC_MIRROR_PATH) is mounted, or fetch them again with svc mirror refresh."
            }
        }
    }
}
