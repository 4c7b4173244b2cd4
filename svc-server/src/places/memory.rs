//! The memory of bodies: who holds some, who waits for some, and who gives way when it runs short.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::progress::{Phase, Progress};
use super::{ConnectionPlace, PlacesState};
use crate::memory::ReservedBytes;

/// No memory is free for a body, and nobody gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The memory that a body holds until this is dropped.
pub(crate) struct BodyMemory {
    pub(super) place: ConnectionPlace,
    pub(super) held: Vec<ReservedBytes>,
}

impl BodyMemory {
    fn bytes(&self) -> usize {
        self.held.iter().map(ReservedBytes::bytes).sum()
    }

    /// Reserves memory up to this many bytes in total. If not enough is free, waits or makes others
    /// give way.
    ///
    /// # Errors
    ///
    /// If the body itself must give way, or has waited too long.
    pub(crate) async fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes());
        if more == 0 {
            return Ok(());
        }
        let known = self.place.record.progress().known;
        let held = if known {
            self.acquire_known(more).await?
        } else {
            self.acquire_stranger(more).await?
        };
        self.held.push(held);
        self.place.record.progress().held = self.bytes();
        Ok(())
    }

    /// Moves the reservation out of the strangers' memory, because the sender is known now. If
    /// there is no room, it stays there: the body is complete, so the memory is held only briefly.
    pub(crate) fn sender_is_known(&mut self) {
        if let Some(held) = self.place.shared.known_bytes.try_acquire(self.bytes()) {
            self.held = vec![held];
            self.place.shared.freed.notify_waiters();
        }
    }

    async fn acquire_stranger(&self, more: usize) -> Result<ReservedBytes, NoRoom> {
        let shared = &self.place.shared;
        if self.bytes() + more > shared.stranger_bytes.bytes_max() {
            return Err(NoRoom);
        }
        loop {
            let freed = shared.freed.notified();
            if let Some(held) = shared.stranger_bytes.try_acquire(more) {
                return Ok(held);
            }
            let holds = |progress: &Progress| {
                !progress.known && progress.phase == Phase::Receiving && progress.held > 0
            };
            let lowest = PlacesState::lowest(&shared.open(), holds);
            let (own, due) = {
                let progress = self.place.record.progress();
                (progress.standing, progress.deadline(&shared.limits))
            };
            if let Some((standing, record)) = lowest {
                if record.id == self.place.record.id || standing > own {
                    return Err(NoRoom);
                }
                record.end();
                shared.log_gave_way("memory");
            }
            let due = due.unwrap_or_else(Instant::now);
            timeout_at(due, freed).await.map_err(|_| NoRoom)?;
        }
    }

    async fn acquire_known(&self, more: usize) -> Result<ReservedBytes, NoRoom> {
        let shared = &self.place.shared;
        let limits = &shared.limits;
        let until = Instant::now() + limits.memory_for;
        let _waiting = WaitingBody::new(&self.place);
        loop {
            let freed = shared.freed.notified();
            if let Some(held) = shared.known_bytes.try_acquire(more) {
                return Ok(held);
            }
            if self.is_oldest()
                && let Some(held) = shared.oldest_bytes.try_acquire(more)
            {
                return Ok(held);
            }
            let still = limits.body_idle_when_short_for;
            let stalled = |progress: &Progress| {
                progress.phase == Phase::Receiving
                    && progress.held > 0
                    && !progress.waits_for_memory
                    && progress.last.elapsed() > still
            };
            let lowest = PlacesState::lowest(&shared.open(), stalled);
            if let Some((_, record)) = lowest {
                record.end();
                shared.log_gave_way("memory");
            }
            let now = Instant::now();
            if now >= until {
                return Err(NoRoom);
            }
            // Another body may stall without freeing anything, so look again after a while.
            let again = until.min(now + (still / 4).max(Duration::from_millis(10)));
            drop(timeout_at(again, freed).await);
        }
    }

    /// Returns whether this is the oldest unfinished body of a known sender.
    fn is_oldest(&self) -> bool {
        let own = self.place.record.progress().since;
        let open = self.place.shared.open();
        open.records.values().all(|record| {
            let progress = record.progress();
            record.id == self.place.record.id
                || progress.ended
                || !progress.known
                || progress.phase != Phase::Receiving
                || (progress.since, record.id) > (own, self.place.record.id)
        })
    }
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.held.clear();
            self.place.record.progress().held = 0;
            self.place.shared.freed.notify_waiters();
        }
    }
}

/// A body that is waiting for memory. Its sender's deadline does not run meanwhile.
struct WaitingBody<'p>(&'p ConnectionPlace);

impl<'p> WaitingBody<'p> {
    fn new(place: &'p ConnectionPlace) -> Self {
        place.record.progress().waits_for_memory = true;
        Self(place)
    }
}

impl Drop for WaitingBody<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.record.progress();
        progress.waits_for_memory = false;
        progress.last = Instant::now();
    }
}
