//! Why reports may know less than there is.

use maud::{Markup, html};
use svc_engine::store::{JobState, MirrorStatus};
use svc_model::problem::Problem;

use crate::console::text::whole;
use crate::console::visit::Visit;

/// Says what reports cannot know, because of the mirrors that they read. Nothing where all are as new as
/// their pushes.
pub(super) async fn of_mirrors(visit: &Visit) -> Result<Markup, Problem> {
    if !visit.app().engine.keeps_mirrors() {
        return Ok(html! {
            p.caveat {
                "This server keeps no mirrors, so no call can be tied to a commit: what is 0 here could \
                 not be told. Set SVC_MIRROR_PATH."
            }
        });
    }
    let mirrors = visit.ask_engine(|engine| async move { engine.mirrors().await });
    let mirrors = mirrors.await?;
    let behind = mirrors.iter().filter(|mirror| is_behind(mirror)).count();
    Ok(html! {
        @if behind > 0 {
            p.caveat {
                (whole(behind as u64)) " of " (whole(mirrors.len() as u64))
                " mirrors are not as new as their pushes, so more calls may have reached a commit than is \
                 told here: " a href="/console#mirrors" { "the mirrors" } "."
            }
        }
    })
}

/// Returns whether pushes are not read yet. One that is read for the first time right after its push is
/// behind too, for a moment.
fn is_behind(mirror: &MirrorStatus) -> bool {
    mirror.last_success_at.is_none()
        || mirror.waiting_pushes > 0
        || matches!(mirror.state, JobState::Retrying(_) | JobState::GivenUp)
}
