//! Which calls wrote what some pushes brought.

use svc_model::limit::{REPORT_ANSWER_BYTES_MAX, REPORT_CALLS_MAX};

use super::share::Reach;
use super::{Diffs, Extent, Gathered, Question, ReportSources, attribute};
use crate::derive::attribution::Attributions;
use crate::error::Error;
use crate::fact::Push;
use crate::store::Snapshot;

/// Ties the commits of pushes to the calls near them, and to those of the Sessions observed at them.
///
/// # Errors
///
/// [`Error::ReportBound`] when too many calls are near the pushes.
pub fn attributions_of_pushes(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    pushes: &[Push],
) -> Result<Attributions, Error> {
    let as_of = snapshot.boundary(None)?;
    let mut gathered = Gathered::new(
        snapshot,
        sources,
        &Extent::nothing_until(as_of),
        Diffs::Once,
    )?;
    for push in pushes {
        gathered.resolving.touch_push(push);
    }
    gathered.resolving.read(snapshot, gathered.boundary)?;
    let calls_max = usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX);
    let reach = Reach::read(snapshot, &mut gathered, pushes, calls_max)?;
    let Gathered {
        population,
        history,
        answers,
        ..
    } = &mut gathered;
    let question = Question {
        answer_bytes_max: REPORT_ANSWER_BYTES_MAX,
        ..reach.question(population, reach.pushes.clone(), as_of)
    };
    attribute(snapshot, history, answers, question)
}
