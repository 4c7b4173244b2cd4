//! What is kept in memory of content, for as long as none is erased.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that is kept of the content that was there at one revision of the log of erasures.
pub(super) struct Remembered<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    current: Mutex<(u64, Arc<T>)>,
}

impl<T> Remembered<T> {
    /// Returns an empty one.
    pub(super) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            current: Mutex::new((0, Arc::new(make()))),
            make: Box::new(make),
        }
    }

    /// Returns what is kept for a read of this revision. With the first one after an erasure everything
    /// of before is dropped, once those have ended who read it still. To one that began before an erasure
    /// and ends after it an empty one is lent, so that what it reads is kept by nobody.
    pub(super) fn at(&self, revision: u64) -> Arc<T> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if revision > current.0 {
            *current = (revision, Arc::new((self.make)()));
        }
        if revision < current.0 {
            return Arc::new((self.make)());
        }
        Arc::clone(&current.1)
    }

    /// Drops what is kept of another revision than this one, which is of a snapshot that begins now: if it
    /// is a lower one, the database was set back, and its next erasures may have the same revisions.
    pub(super) fn settle(&self, revision: u64) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if revision != current.0 {
            *current = (revision, Arc::new((self.make)()));
        }
    }

    /// Returns whether nothing was kept yet of a revision.
    pub(super) fn is_behind(&self, revision: u64) -> bool {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 < revision
    }

    /// Returns what is kept at present.
    pub(super) fn latest(&self) -> Arc<T> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.1)
    }
}

impl<T> fmt::Debug for Remembered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remembered")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kept = Mutex<Vec<&'static str>>;

    /// Keeps something for a read of a revision, and returns all that is kept for it.
    fn keep(remembered: &Remembered<Kept>, revision: u64, what: &'static str) -> Vec<&'static str> {
        let kept = remembered.at(revision);
        let mut kept = kept.lock().unwrap();
        kept.push(what);
        kept.clone()
    }

    #[test]
    fn an_erasure_drops_what_was_kept_and_nobody_puts_it_back() {
        let remembered = Remembered::new(|| Mutex::new(Vec::new()));
        let keep = |revision, what| keep(&remembered, revision, what);
        assert_eq!(keep(0, "before"), ["before"]);
        assert_eq!(keep(0, "again"), ["before", "again"]);
        let reading = remembered.at(0);
        let weak = Arc::downgrade(&reading);
        assert_eq!(keep(1, "after"), ["after"]);
        assert_eq!(keep(0, "late"), ["late"]);
        assert_eq!(*remembered.latest().lock().unwrap(), ["after"]);
        assert!(weak.upgrade().is_some(), "somebody reads it still");
        drop(reading);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn a_database_that_was_set_back_is_remembered_anew() {
        let remembered = Remembered::new(|| Mutex::new(Vec::new()));
        let keep = |revision, what| keep(&remembered, revision, what);
        remembered.settle(0);
        keep(1, "of erasures that will not have happened");
        remembered.settle(1);
        assert_eq!(keep(1, "more").len(), 2);
        remembered.settle(0);
        keep(0, "one");
        assert_eq!(keep(0, "two"), ["one", "two"]);
        assert_eq!(keep(1, "of another erasure"), ["of another erasure"]);
    }
}
