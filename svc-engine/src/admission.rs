//! Limits how many reads run at once.
//!
//! A read that scans takes one of the read slots. There is no queue: if none is free, it is refused
//! at once. A short read, of counts or of CI outcomes, takes no slot but is bounded too: some run
//! at once, some wait without a thread until their deadline, and any more are refused. Each read
//! has its connections reserved, a read with a slot two, so neither kind waits for the other, nor
//! for background work.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::deadline::Deadline;
use crate::error::Error;

/// Short reads that may run at once.
const SHORT_READS: usize = 4;
/// Short reads that may wait for their turn.
const SHORT_READS_WAITING: usize = 256;
/// Snapshots of the mirror workers, of the derivation after refreshes, and of an operator's
/// question about the schema.
const BACKGROUND_READS: usize = svc_model::limit::MIRROR_WORKERS + 2;

/// The places for reads.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    short: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// The place of one read, returned when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    /// Creates the places, `slots` of them with a read slot.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            short: Arc::new(Semaphore::new(SHORT_READS)),
            waiting: Arc::new(Semaphore::new(SHORT_READS_WAITING)),
        }
    }

    /// Returns the number of connections for this many slots and everything else.
    pub(crate) const fn connections(slots: usize) -> usize {
        2 * slots + SHORT_READS + BACKGROUND_READS
    }

    /// Takes a read slot.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if none is free.
    pub(crate) fn slot(&self) -> Result<Place, Error> {
        let permit = Arc::clone(&self.slots).try_acquire_owned();
        permit
            .map(|permit| Place { _permit: permit })
            .map_err(|_| Error::Busy)
    }

    /// Waits for a place of a short read.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if too many wait already, [`Error::Deadline`] if none becomes free in time.
    pub(crate) async fn short(&self, deadline: &Deadline) -> Result<Place, Error> {
        if let Ok(permit) = Arc::clone(&self.short).try_acquire_owned() {
            return Ok(Place { _permit: permit });
        }
        let waiting = self.waiting.try_acquire().map_err(|_| Error::Busy)?;
        let permit = Arc::clone(&self.short).acquire_owned();
        let permit = tokio::time::timeout_at(deadline.instant().into(), permit).await;
        drop(waiting);
        match permit {
            Ok(Ok(permit)) => Ok(Place { _permit: permit }),
            Ok(Err(_)) => Err(Error::Busy),
            Err(_) => Err(Error::Deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn a_slot_is_refused_when_none_is_free_and_freed_on_drop() {
        let admission = Admission::new(2);
        let first = admission.slot().unwrap();
        let _second = admission.slot().unwrap();
        assert!(matches!(admission.slot(), Err(Error::Busy)));
        drop(first);
        admission.slot().unwrap();
    }

    #[test]
    fn short_reads_take_no_slot_and_wait_in_a_bounded_queue() {
        run(async {
            let admission = Admission::new(1);
            let long = Deadline::after(Duration::from_mins(1));
            let _slot = admission.slot().unwrap();
            let mut running = Vec::new();
            for _ in 0..SHORT_READS {
                running.push(admission.short(&long).await.unwrap());
            }
            let soon = Deadline::after(Duration::from_millis(5));
            let late = admission.short(&soon).await;
            assert!(matches!(late, Err(Error::Deadline)));

            let mut queue: Vec<_> = (0..SHORT_READS_WAITING)
                .map(|_| Box::pin(admission.short(&long)))
                .collect();
            for waiting in &mut queue {
                let mut context = Context::from_waker(Waker::noop());
                assert!(waiting.as_mut().poll(&mut context).is_pending());
            }
            assert!(matches!(admission.short(&long).await, Err(Error::Busy)));
            drop(running.pop());
            queue.remove(0).await.unwrap();
        });
    }
}
