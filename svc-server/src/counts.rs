//! Counts of what this process captured, skipped and refused. They are kept in memory for
//! Prometheus, which sums over servers itself. The totals of the organization are in the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use svc_model::capture::{CaptureCounts, CaptureTotals};
use svc_model::time::Instant;

/// The counts of this process.
pub(crate) struct Counts {
    since: Instant,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    totals: CaptureTotals,
    answers: BTreeMap<String, BTreeMap<u16, u64>>,
}

impl Counts {
    /// Starts counting.
    pub(crate) fn new(since: Instant) -> Self {
        Self {
            since,
            counted: Mutex::default(),
        }
    }

    /// Counts one answer of a route.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        let answers = &mut self.lock().answers;
        let statuses = match answers.get_mut(route) {
            Some(statuses) => statuses,
            None => answers.entry(route.to_owned()).or_default(),
        };
        *statuses.entry(status).or_default() += 1;
    }

    /// Counts one delivery of a source.
    pub(crate) fn delivered(&self, totals: &CaptureTotals) {
        self.lock().totals.add(totals);
    }

    /// Returns the counts of this process.
    pub(crate) fn snapshot(&self) -> CaptureCounts {
        let counted = self.lock();
        let (totals, answers) = (counted.totals.clone(), counted.answers.clone());
        CaptureCounts::new(totals, self.since, answers)
    }

    /// Combines the totals of the organization with the answers of this process.
    pub(crate) fn beside(&self, totals: CaptureTotals) -> CaptureCounts {
        CaptureCounts::new(totals, self.since, self.lock().answers.clone())
    }

    /// Counting cannot fail half-way, so the counts stay valid after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds to the count of a reason.
pub(crate) fn count(counts: &mut BTreeMap<String, u64>, reason: &str, by: u64) {
    match counts.get_mut(reason) {
        Some(known) => *known += by,
        None => {
            counts.insert(reason.to_owned(), by);
        }
    }
}
