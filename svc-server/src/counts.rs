//! What this process captured, skipped and refused: counts for the operator, in memory only.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use svc_engine::store::Outcome;
use svc_model::capture::{CaptureCounts, CaptureSource, SourceCounts};
use svc_model::facts::FactTable;
use svc_model::time::Instant;

/// The counts of this process.
pub(crate) struct Counts(Mutex<CaptureCounts>);

impl Counts {
    /// Begins to count.
    pub(crate) fn new(since: Instant) -> Self {
        Self(Mutex::new(CaptureCounts {
            since,
            sources: CaptureSource::ALL
                .iter()
                .map(|source| (*source, SourceCounts::default()))
                .collect(),
            log_records: svc_model::capture::LogRecordCounts::default(),
            answers: BTreeMap::new(),
        }))
    }

    /// Counts one answer of a route.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        let mut counts = self.lock();
        let statuses = match counts.answers.get_mut(route) {
            Some(statuses) => statuses,
            None => counts.answers.entry(route.to_owned()).or_default(),
        };
        *statuses.entry(status).or_default() += 1;
    }

    /// Counts one delivery of a source: what became of its facts, each with its table.
    pub(crate) fn delivered(
        &self,
        source: CaptureSource,
        at: Instant,
        facts: impl IntoIterator<Item = (FactTable, Outcome)>,
        more: impl FnOnce(&mut CaptureCounts),
    ) {
        let mut counts = self.lock();
        let delivery = counts.sources.entry(source).or_default();
        delivery.deliveries += 1;
        delivery.last_delivery_at = Some(at);
        for (table, outcome) in facts {
            match outcome {
                Outcome::Stored(_) => {
                    delivery.facts.entry(table).or_default().stored += 1;
                    delivery.last_stored_at = Some(at);
                }
                Outcome::Redelivered(_) | Outcome::Known => {
                    delivery.facts.entry(table).or_default().duplicates += 1;
                }
                Outcome::Conflict(_) => delivery.conflicts += 1,
            }
        }
        more(&mut counts);
    }

    /// Counts one delivery that was declined with success.
    pub(crate) fn skipped(&self, source: CaptureSource, at: Instant, reason: &'static str) {
        self.delivered(source, at, [], |counts| {
            if let Some(counts) = counts.sources.get_mut(&source) {
                count(&mut counts.skipped, reason, 1);
            }
        });
    }

    /// Returns the counts.
    pub(crate) fn snapshot(&self) -> CaptureCounts {
        self.lock().clone()
    }

    /// Counting cannot fail half-way, so a panic elsewhere does not spoil the counts.
    fn lock(&self) -> MutexGuard<'_, CaptureCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds to the count of a reason.
pub(crate) fn count(counts: &mut BTreeMap<String, u64>, reason: &'static str, by: u64) {
    match counts.get_mut(reason) {
        Some(known) => *known += by,
        None => {
            counts.insert(reason.to_owned(), by);
        }
    }
}
