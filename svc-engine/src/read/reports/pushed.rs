//! Which calls wrote what some pushes brought.

use svc_engine_derive::attribution::Attributions;
use svc_engine_fact::Push;
use svc_engine_store::Snapshot;
use svc_model::limit::{REPORT_ANSWER_BYTES_MAX, REPORT_CALLS_MAX};

use super::share::Reach;
use super::{Diffs, Extent, Gathered, Question, ReportSources, attribute};
use crate::error::Error;

/// Ties the commits of pushes to the calls near them, and to those of the Sessions observed at them.
///
/// # Errors
///
/// [`Error::ReportBound`] if too many calls are near the pushes.
pub fn attributions_of_pushes(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    pushes: &[Push],
) -> Result<Attributions, Error> {
    let as_of = snapshot.boundary(None)?;
    let Gathered { cohort, mut reader } = Gathered::new(
        snapshot,
        sources,
        &Extent::nothing_until(as_of),
        Diffs::Once,
        &[],
    )?;
    for push in pushes {
        reader.resolving.touch_push(push);
    }
    reader.resolving.read(snapshot, reader.boundary)?;
    let calls_max = usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX);
    let reach = Reach::read(snapshot, &mut reader, &cohort.population, pushes, calls_max)?;
    let question = Question {
        answer_bytes_max: REPORT_ANSWER_BYTES_MAX,
        ..reach.question(&cohort.population, reach.pushes.clone(), as_of)
    };
    attribute(snapshot, &mut reader.history, &reader.answers, question)
}
