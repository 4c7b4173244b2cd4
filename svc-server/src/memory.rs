//! Memory that requests share. Each part of it is reserved from a budget first, so many requests at
//! once need no more than the budget.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of bytes that many callers can reserve parts of. Clones share the same bytes.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    bytes_max: usize,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes, up to 4 GiB, the maximum of one reservation.
    pub fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(u32::MAX as usize);
        Self {
            free: Arc::new(Semaphore::new(bytes_max)),
            bytes_max,
        }
    }

    /// Returns the size of the budget in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Reserves bytes, after everybody who asked earlier. Returns `None` if they exceed the budget.
    ///
    /// A caller that stops waiting leaves the queue.
    pub async fn acquire(&self, bytes: usize) -> Option<ReservedBytes> {
        let bytes = self.acquirable(bytes)?;
        let permit = Arc::clone(&self.free).acquire_many_owned(bytes).await;
        permit.ok().map(ReservedBytes)
    }

    /// Reserves bytes if they are free and nobody is waiting for them.
    pub fn try_acquire(&self, bytes: usize) -> Option<ReservedBytes> {
        let bytes = self.acquirable(bytes)?;
        let permit = Arc::clone(&self.free).try_acquire_many_owned(bytes);
        permit.ok().map(ReservedBytes)
    }

    fn acquirable(&self, bytes: usize) -> Option<u32> {
        let bytes = u32::try_from(bytes).ok()?;
        (bytes as usize <= self.bytes_max).then_some(bytes)
    }
}

/// Bytes reserved from a budget until this is dropped.
#[derive(Debug)]
#[must_use = "the bytes are given back at once"]
pub struct ReservedBytes(OwnedSemaphorePermit);

impl ReservedBytes {
    /// Returns how many bytes are held.
    pub fn bytes(&self) -> usize {
        self.0.num_permits()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn held_memory_is_returned_on_drop() {
        let budget = MemoryBudget::new(100);
        let held = budget.try_acquire(60).unwrap();
        assert_eq!((held.bytes(), budget.free.available_permits()), (60, 40));
        assert!(budget.try_acquire(41).is_none());
        drop(held);
        assert_eq!(budget.free.available_permits(), budget.bytes_max());
    }

    #[tokio::test]
    async fn waiters_are_served_in_order_and_may_give_up() {
        let budget = MemoryBudget::new(100);
        let held = budget.try_acquire(100).unwrap();
        let mut large = Box::pin(budget.acquire(80));
        let mut small = Box::pin(budget.acquire(10));
        assert!((&mut large).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        assert!(budget.acquire(101).await.is_none(), "it would wait forever");
        drop(held);
        assert!(budget.try_acquire(50).is_none(), "others were first");
        drop(large);
        let small = small.now_or_never().flatten().expect("there is room");
        assert_eq!((small.bytes(), budget.free.available_permits()), (10, 90));
    }
}
