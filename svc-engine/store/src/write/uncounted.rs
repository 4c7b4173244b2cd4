//! What arrived but is not yet counted in the store, because it stored nothing.
//!
//! It waits for the next commit, a second at most. A server that dies loses the last second of
//! these counts and nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};

use svc_model::capture::CaptureTotals;

/// These counts, shared by those who deliver and the writer.
#[derive(Debug, Default)]
pub(crate) struct Uncounted(Mutex<WaitingCounts>);

#[derive(Debug, Default)]
struct WaitingCounts {
    totals: CaptureTotals,
    /// What the writer has taken and not yet written.
    taken: CaptureTotals,
}

impl Uncounted {
    pub(crate) fn add(&self, more: &CaptureTotals) {
        self.lock().totals.add(more);
    }

    /// Returns whether everything is counted in the store. What the writer has taken is not counted
    /// until it is committed.
    pub(crate) fn is_empty(&self) -> bool {
        let waiting = self.lock();
        waiting.totals.is_empty() && waiting.taken.is_empty()
    }

    pub(crate) fn totals(&self) -> CaptureTotals {
        self.lock().totals.clone()
    }

    pub(crate) fn take(&self) -> CaptureTotals {
        let mut waiting = self.lock();
        waiting.taken = std::mem::take(&mut waiting.totals);
        waiting.taken.clone()
    }

    /// Records that what was taken is committed, except for the counts that are left for later.
    pub(crate) fn committed(&self, later: Option<&CaptureTotals>) {
        let mut waiting = self.lock();
        waiting.taken = CaptureTotals::default();
        if let Some(later) = later {
            waiting.totals.add(later);
        }
    }

    /// Returns what was taken to the waiting counts, because nothing was written.
    pub(crate) fn put_back(&self) {
        let mut waiting = self.lock();
        let taken = std::mem::take(&mut waiting.taken);
        waiting.totals.add(&taken);
    }

    /// Adding cannot fail half-way, so a panic elsewhere does not corrupt the counts.
    fn lock(&self) -> MutexGuard<'_, WaitingCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use svc_model::capture::CaptureSource;
    use svc_model::time::Instant;

    use super::*;

    #[test]
    fn counts_are_added_only_after_the_commit() {
        let at = Instant::from_microseconds(1).unwrap();
        let delivery = CaptureTotals::delivery(CaptureSource::Gateway, at);
        let uncounted = Uncounted::default();
        assert!(uncounted.is_empty());
        uncounted.take();
        assert!(uncounted.is_empty());
        uncounted.add(&delivery);
        uncounted.take();
        assert!(!uncounted.is_empty());
        uncounted.put_back();
        assert!(!uncounted.is_empty());
        uncounted.take();
        uncounted.committed(Some(&delivery));
        assert_eq!(uncounted.totals(), delivery);
        uncounted.take();
        uncounted.committed(None);
        assert!(uncounted.is_empty());
    }
}
