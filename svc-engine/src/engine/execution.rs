//! How a read runs: admitted, on a thread where it may block, over one snapshot, until its deadline.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_engine_store::{Snapshot, Store, StoreError};
use svc_model::limit::READ_DEADLINE_SECONDS;
use tokio::sync::oneshot;

use super::{Engine, EngineState};
use crate::admission::ReadPlace;
use crate::error::Error;
use crate::priority;

/// Opens the snapshot of a read.
type SnapshotOpening = for<'s> fn(&'s Store, &Deadline) -> Result<Snapshot<'s>, StoreError>;

impl Engine {
    /// Runs a read that takes a slot.
    pub(super) async fn scan<T: Send + 'static>(
        &self,
        read: impl FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.0.admission.slot(&self.1).await?;
        self.read(place, read_deadline(), Store::snapshot, read)
            .await
    }

    /// Runs a read as [`scan`](Self::scan) does, over two connections.
    pub(super) async fn scan_of_two<T: Send + 'static>(
        &self,
        read: impl FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.0.admission.slot(&self.1).await?;
        self.read(place, read_deadline(), Store::snapshot_of_two, read)
            .await
    }

    /// Runs a short read, which takes no slot and may wait for its turn.
    pub(super) async fn short<T: Send + 'static>(
        &self,
        read: impl FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let deadline = read_deadline();
        let place = self.0.admission.short(&deadline).await?;
        self.read(place, deadline, Store::snapshot, read).await
    }

    /// Runs a read that takes a slot on a low-priority thread of its own: a report takes seconds of
    /// processor time, and capture must not wait for that.
    pub(super) async fn report<T: Send + 'static>(
        &self,
        read: impl FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.0.admission.slot(&self.1).await?;
        let deadline = read_deadline();
        let _caller = CancelledWhenDropped(deadline.clone());
        let work = self.work(place, deadline, Store::snapshot_of_two, read);
        let (answer, answered) = oneshot::channel();
        let run = move || {
            priority::give_way();
            // If the caller is gone, nobody waits for the answer.
            drop(answer.send(work()));
        };
        let thread = thread::Builder::new().name("svc-report".to_owned());
        match thread.spawn(run) {
            Ok(_) => answered.await.unwrap_or_else(|_| {
                tracing::error!(panicked = true, "read.failed");
                Err(Error::Store(StoreError::Closed))
            }),
            Err(error) => {
                tracing::error!(%error, "read.failed");
                Err(Error::Busy)
            }
        }
    }

    /// Runs a read on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        place: ReadPlace,
        deadline: Deadline,
        open: SnapshotOpening,
        read: impl FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _caller = CancelledWhenDropped(deadline.clone());
        match tokio::task::spawn_blocking(self.work(place, deadline, open, read)).await {
            Ok(result) => result,
            Err(failure) => {
                tracing::error!(panicked = failure.is_panic(), "read.failed");
                Err(Error::Store(StoreError::Closed))
            }
        }
    }

    /// Returns the work of a read, over one snapshot. It stops at the deadline, or when the caller
    /// is gone.
    fn work<T, R>(
        &self,
        place: ReadPlace,
        deadline: Deadline,
        open: SnapshotOpening,
        read: R,
    ) -> impl FnOnce() -> Result<T, Error> + use<T, R>
    where
        R: FnOnce(&EngineState, &mut Snapshot<'_>) -> Result<T, Error>,
    {
        let inner = Arc::clone(&self.0);
        // Ties log events on the thread to the request.
        let span = tracing::Span::current();
        move || {
            // Held until the work has ended, even if the caller is gone.
            let _place = place;
            let _entered = span.entered();
            let mut snapshot = open(&inner.store, &deadline)?;
            read(&inner, &mut snapshot)
        }
    }
}

pub(super) fn read_deadline() -> Deadline {
    Deadline::after(Duration::from_secs(READ_DEADLINE_SECONDS))
}

/// Cancels the work under a deadline once nobody waits for it.
struct CancelledWhenDropped(Deadline);

impl Drop for CancelledWhenDropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
