//! The calls observed in a range of time.

use std::ops::Range;

use svc_engine_store::{CohortCall, Snapshot, StoreError};
use svc_model::limit::REPORT_CALLS_MAX;
use svc_model::time::Instant;

use super::population::up_to;
use crate::error::Error;

/// From a range of this many microseconds on, a day, each of a snapshot's two connections reads half.
const HALVES_MIN: i64 = 24 * 60 * 60 * 1_000_000;

/// Reads the visible calls observed in a range, in the order of observation.
pub(super) fn observed(
    snapshot: &mut Snapshot<'_>,
    observed: &Range<Instant>,
) -> Result<Vec<CohortCall>, Error> {
    let read = |snapshot: &mut Snapshot<'_>, observed| {
        let mut calls = Vec::new();
        snapshot.calls_observed(observed, up_to(&mut calls, calls_max()))?;
        Ok(calls)
    };
    let calls = in_halves(snapshot, observed, read)?;
    if calls.len() > calls_max() {
        return Err(StoreError::TooMany.into());
    }
    Ok(calls)
}

/// Reads rows of a range of time; each connection of the snapshot reads half of a long one.
pub(super) fn in_halves<T: Send>(
    snapshot: &mut Snapshot<'_>,
    time: &Range<Instant>,
    read: impl Fn(&mut Snapshot<'_>, Range<Instant>) -> Result<Vec<T>, StoreError> + Sync,
) -> Result<Vec<T>, StoreError> {
    if time.is_empty() {
        return Ok(Vec::new());
    }
    if time.end.microseconds() - time.start.microseconds() < HALVES_MIN {
        return read(snapshot, time.clone());
    }
    let (first, second) = halves(time);
    let (rows, later) = snapshot.both(
        |snapshot| read(snapshot, first),
        |snapshot| read(snapshot, second),
    );
    let mut rows = rows?;
    rows.extend(later?);
    Ok(rows)
}

fn calls_max() -> usize {
    usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX)
}

/// Returns the two halves of a range.
fn halves(time: &Range<Instant>) -> (Range<Instant>, Range<Instant>) {
    let (start, end) = (time.start.microseconds(), time.end.microseconds());
    let middle = Instant::from_microseconds(start.midpoint(end)).unwrap_or(time.end);
    (time.start..middle, middle..time.end)
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::at;

    use super::*;

    #[test]
    fn the_halves_of_a_range_cover_it_without_overlap() {
        for (start, end) in [(0, 0), (0, 1), (0, 11), (5, 1_000)] {
            let (first, second) = halves(&(at(start)..at(end)));
            assert_eq!((first.start, second.end), (at(start), at(end)));
            assert_eq!(first.end, second.start);
            assert!((at(start)..=at(end)).contains(&first.end));
        }
    }
}
