//! Counts of what this process answered. They are kept in memory, beside what was captured: by this
//! process for Prometheus, which sums over servers itself, or by all of them for an operator.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use svc_model::capture::{CaptureCounts, CaptureTotals};
use svc_model::time::Instant;

/// How often each route was answered with each status.
type Answers = BTreeMap<String, BTreeMap<u16, u64>>;

/// The counts of this process.
pub(crate) struct AnswerCounts {
    since: Instant,
    answers: Mutex<Answers>,
}

impl AnswerCounts {
    /// Starts counting.
    pub(crate) fn new(since: Instant) -> Self {
        Self {
            since,
            answers: Mutex::default(),
        }
    }

    /// Counts one answer of a route.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        let mut answers = self.lock();
        let statuses = match answers.get_mut(route) {
            Some(statuses) => statuses,
            None => answers.entry(route.to_owned()).or_default(),
        };
        *statuses.entry(status).or_default() += 1;
    }

    /// Combines what was captured with the answers of this process.
    pub(crate) fn beside(&self, captured: CaptureTotals) -> CaptureCounts {
        CaptureCounts::new(captured, self.since, self.lock().clone())
    }

    /// Counting cannot fail half-way, so the counts stay valid after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
