//! The calls observed in a range of time, remembered by the hour.
//!
//! Most reports cover the days before now, so each asks for a different range, most of which was
//! read for an earlier report. The remembered calls of an hour are valid while the number of stored
//! calls observed in it is the same: storing a call increases it, hiding one moves the end of the
//! quarantine log, erasing one adds a row to the erasure log, and nothing else changes calls. The
//! rows of `writers` tell whether the store continued from the state in which they were read,
//! without being set back in between.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use svc_engine_store::{CohortCall, HOUR_MICROSECONDS, Snapshot, StoreError};
use svc_model::limit::{REPORT_CALLS_MAX, REPORT_COHORT_DAYS_MAX};
use svc_model::time::Instant;

use super::memory::Bytes;
use super::population::up_to;
use super::unchanged::{StoreState, Unchanged};
use crate::error::Error;

/// Maximum length in hours of a remembered range. A longer one covers all history.
const HOURS_MAX: i64 = 24 * REPORT_COHORT_DAYS_MAX;
/// Maximum number of calls in a range, visible or not, that are counted by the hour. With more, the
/// report is probably refused, and that must not cost more than reading what a report may have.
const STORED_MAX: u64 = 4 * REPORT_CALLS_MAX;
/// From this many hours on, each of a snapshot's two connections reads half.
const HOURS_OF_HALVES: i64 = 24;

/// Calls in the order of observation.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// One piece per hour, which other reports may share, or per part of an hour.
    pieces: Vec<Arc<[CohortCall]>>,
}

impl Calls {
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &CohortCall> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    fn add(&mut self, piece: Arc<[CohortCall]>) -> Result<(), StoreError> {
        let count: usize = self.pieces.iter().map(|piece| piece.len()).sum();
        if count + piece.len() > calls_max() {
            return Err(StoreError::TooMany);
        }
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
        Ok(())
    }
}

/// The visible calls observed in an hour.
#[derive(Clone, Debug)]
pub(super) struct KnownHour {
    /// A state of the store in which these were the visible ones.
    seen: Arc<StoreState>,
    /// How many calls were stored, visible or not.
    stored: u64,
    calls: Arc<[CohortCall]>,
}

impl Bytes for KnownHour {
    fn bytes(&self) -> u64 {
        let calls = self.calls.iter();
        let contents: usize = calls.map(|call| call.answer.contents.len()).sum();
        128 + (192 * self.calls.len() + 8 * contents) as u64
    }
}

/// Returns the visible calls observed in a range.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    unchanged: &Unchanged<'_>,
    observed: &Range<Instant>,
) -> Result<Calls, Error> {
    let mut calls = Calls::default();
    let hours = whole_hours(observed);
    if hours.is_empty() || hours.end - hours.start > HOURS_MAX {
        calls.add(rows(snapshot, observed)?.into())?;
        return Ok(calls);
    }
    let whole = beginning(hours.start, observed.start)..beginning(hours.end, observed.end);
    calls.add(rows(snapshot, &(observed.start..whole.start))?.into())?;
    for piece in whole_pieces(snapshot, unchanged, &hours, &whole)? {
        calls.add(piece)?;
    }
    calls.add(rows(snapshot, &(whole.end..observed.end))?.into())?;
    Ok(calls)
}

/// Returns the calls of each hour, reading those that are unknown.
fn whole_pieces(
    snapshot: &mut Snapshot<'_>,
    unchanged: &Unchanged<'_>,
    hours: &Range<i64>,
    whole: &Range<Instant>,
) -> Result<Vec<Arc<[CohortCall]>>, Error> {
    let Unchanged { memory, state, .. } = unchanged;
    let is_seen = |known: &KnownHour| Arc::ptr_eq(&known.seen, state) || known.seen == *state;
    let known = hours
        .clone()
        .map(|hour| memory.calls.get_if(&hour, is_seen));
    if let Some(known) = known.collect::<Option<Vec<KnownHour>>>() {
        return Ok(known.into_iter().map(|known| known.calls).collect());
    }
    let Some(stored) = snapshot.calls_by_hour(whole.clone(), STORED_MAX)? else {
        return Ok(vec![rows(snapshot, whole)?.into()]);
    };
    let stored = |hour: i64| stored.get(&hour).copied().unwrap_or_default();
    let mut pieces: Vec<Option<Arc<[CohortCall]>>> = Vec::new();
    for hour in hours.clone() {
        let is_right =
            |known: &KnownHour| known.stored == stored(hour) && state.follows(&known.seen);
        let known = memory.calls.get_if(&hour, is_right);
        pieces.push(known.map(|known| known.calls));
    }
    let mut hour = hours.start;
    while hour < hours.end {
        let is_missing = |hour: &i64| pieces[place(hours, *hour)].is_none();
        let end = (hour..hours.end).find(|hour| !is_missing(hour));
        let end = end.unwrap_or(hours.end);
        if hour < end {
            let missing = beginning(hour, whole.start)..beginning(end, whole.end);
            let mut of_hours: HashMap<i64, Vec<CohortCall>> = HashMap::new();
            for call in rows(snapshot, &missing)? {
                of_hours.entry(hour_of(&call)).or_default().push(call);
            }
            for hour in hour..end {
                let calls = of_hours.remove(&hour).unwrap_or_default();
                pieces[place(hours, hour)] = Some(calls.into());
            }
        }
        hour = end + 1;
    }
    let pieces: Vec<Arc<[CohortCall]>> = pieces.into_iter().flatten().collect();
    for (hour, calls) in hours.clone().zip(&pieces) {
        let known = KnownHour {
            seen: Arc::clone(state),
            stored: stored(hour),
            calls: Arc::clone(calls),
        };
        memory.calls.insert(hour, known);
    }
    Ok(pieces)
}

/// Reads the visible calls observed in a range, in the order of observation.
pub(super) fn rows(
    snapshot: &mut Snapshot<'_>,
    observed: &Range<Instant>,
) -> Result<Vec<CohortCall>, Error> {
    if observed.is_empty() {
        return Ok(Vec::new());
    }
    let read = |snapshot: &mut Snapshot<'_>, observed| {
        let mut calls = Vec::new();
        snapshot.calls_observed(observed, up_to(&mut calls, calls_max()))?;
        Ok::<_, StoreError>(calls)
    };
    let hours = whole_hours(observed);
    if hours.end - hours.start < HOURS_OF_HALVES {
        return Ok(read(snapshot, observed.clone())?);
    }
    let (first, second) = halves(observed);
    let (calls, later) = snapshot.both(
        |snapshot| read(snapshot, first),
        |snapshot| read(snapshot, second),
    );
    let (mut calls, later) = (calls?, later?);
    if calls.len() + later.len() > calls_max() {
        return Err(StoreError::TooMany.into());
    }
    calls.extend(later);
    Ok(calls)
}

fn calls_max() -> usize {
    usize::try_from(REPORT_CALLS_MAX).unwrap_or(usize::MAX)
}

/// Returns the whole hours in a range, numbered from the first moment.
fn whole_hours(time: &Range<Instant>) -> Range<i64> {
    let start = (time.start.microseconds() + HOUR_MICROSECONDS - 1).div_euclid(HOUR_MICROSECONDS);
    let end = time.end.microseconds().div_euclid(HOUR_MICROSECONDS);
    start..end.max(start)
}

/// Returns when an hour begins, or `bound` if that is not a valid moment.
fn beginning(hour: i64, bound: Instant) -> Instant {
    Instant::from_microseconds(hour * HOUR_MICROSECONDS).unwrap_or(bound)
}

fn hour_of(call: &CohortCall) -> i64 {
    call.observed_at
        .microseconds()
        .div_euclid(HOUR_MICROSECONDS)
}

fn place(hours: &Range<i64>, hour: i64) -> usize {
    usize::try_from(hour - hours.start).unwrap_or_default()
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
