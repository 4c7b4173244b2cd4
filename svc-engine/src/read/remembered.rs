//! What is cached from content, valid until any content is erased.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_engine_store::ErasureEnd;

/// A cache of the content that existed in one state of the erasure log.
pub(crate) struct Remembered<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    current: Mutex<(ErasureEnd, Arc<T>)>,
}

impl<T> Remembered<T> {
    /// Returns an empty cache.
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            current: Mutex::new((ErasureEnd::default(), Arc::new(make()))),
            make: Box::new(make),
        }
    }

    /// Returns the cache for a read of this state. The first read after an erasure drops the old
    /// cache, which then lives only as long as the reads that still use it. A read that began
    /// before an erasure and ends after it gets an empty cache of its own, so that nobody keeps
    /// what it reads.
    pub(crate) fn at(&self, end: ErasureEnd) -> Arc<T> {
        let mut current = self.current();
        if is_later(end, current.0) {
            *current = (end, Arc::new((self.make)()));
        }
        if end != current.0 {
            return Arc::new((self.make)());
        }
        Arc::clone(&current.1)
    }

    /// Drops the cache unless it belongs to this state, which is that of a snapshot that begins
    /// now. If the state is an earlier one, the database was set back.
    pub(crate) fn settle(&self, end: ErasureEnd) {
        let mut current = self.current();
        if end != current.0 {
            *current = (end, Arc::new((self.make)()));
        }
    }

    /// Returns whether the cache belongs to an earlier state than this one.
    pub(crate) fn is_behind(&self, end: ErasureEnd) -> bool {
        is_later(end, self.current().0)
    }

    /// Returns the current cache.
    pub(crate) fn latest(&self) -> Arc<T> {
        Arc::clone(&self.current().1)
    }

    fn current(&self) -> MutexGuard<'_, (ErasureEnd, Arc<T>)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a state has erasures that `known` lacks. A different erasure with the same
/// revision means that the database was set back, and that the known erasure has not happened in
/// it.
fn is_later(end: ErasureEnd, known: ErasureEnd) -> bool {
    end.revision > known.revision || end.revision == known.revision && end != known
}

impl<T> fmt::Debug for Remembered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remembered")
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    type Kept = Mutex<Vec<&'static str>>;

    /// The end of a log with this many erasures.
    fn erasures(count: u64) -> ErasureEnd {
        ErasureEnd {
            revision: count,
            erasure_id: (count > 0).then(|| Uuid::from_u128(count.into())),
        }
    }

    /// Keeps an item for a read of this state, and returns all items kept for it.
    fn keep(
        remembered: &Remembered<Kept>,
        end: ErasureEnd,
        what: &'static str,
    ) -> Vec<&'static str> {
        let kept = remembered.at(end);
        let mut kept = kept.lock().unwrap();
        kept.push(what);
        kept.clone()
    }

    #[test]
    fn an_erasure_drops_the_memory_and_a_late_reader_cannot_restore_it() {
        let remembered = Remembered::new(|| Mutex::new(Vec::new()));
        let keep = |count, what| keep(&remembered, erasures(count), what);
        assert_eq!(keep(0, "before"), ["before"]);
        assert_eq!(keep(0, "again"), ["before", "again"]);
        let reading = remembered.at(erasures(0));
        let weak = Arc::downgrade(&reading);
        assert_eq!(keep(1, "after"), ["after"]);
        assert_eq!(keep(0, "late"), ["late"]);
        assert_eq!(*remembered.latest().lock().unwrap(), ["after"]);
        assert!(weak.upgrade().is_some(), "somebody is still reading it");
        drop(reading);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn setting_the_database_back_starts_a_new_memory() {
        let remembered = Remembered::new(|| Mutex::new(Vec::new()));
        let keep = |count, what| keep(&remembered, erasures(count), what);
        remembered.settle(erasures(0));
        keep(1, "of erasures that will not have happened");
        remembered.settle(erasures(1));
        assert_eq!(keep(1, "more").len(), 2);
        remembered.settle(erasures(0));
        keep(0, "one");
        assert_eq!(keep(0, "two"), ["one", "two"]);
        assert_eq!(keep(1, "of another erasure"), ["of another erasure"]);
    }

    #[test]
    fn a_different_erasure_of_the_same_revision_drops_the_memory() {
        let remembered = Remembered::new(|| Mutex::new(Vec::new()));
        keep(
            &remembered,
            erasures(1),
            "of an erasure that will not have happened",
        );
        let other = ErasureEnd {
            erasure_id: Some(Uuid::from_u128(7)),
            ..erasures(1)
        };
        assert!(remembered.is_behind(other));
        assert_eq!(keep(&remembered, other, "new"), ["new"]);
        assert!(!remembered.is_behind(other));
    }
}
