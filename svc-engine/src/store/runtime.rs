//! How the futures of the driver of PostgreSQL are waited for.
//!
//! The store is synchronous: a snapshot and its derivation run to the end on one blocking thread, and
//! the writer is one thread. The driver is asynchronous, so each of its futures is waited for here
//! with a client-side deadline: a database that hangs without a word costs a caller its deadline and
//! no more. A connection is driven by whoever waits for it, so no other thread takes part: a hop
//! between threads costs more than most statements.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::StoreError;

/// The sockets and timers of one connection. They are served while somebody waits for it.
#[derive(Debug)]
pub(super) struct Reactor(Option<Runtime>);

impl Reactor {
    pub(super) fn new() -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    /// Waits for a future until the deadline. The calling thread must be one that may block.
    ///
    /// # Errors
    ///
    /// [`StoreError::Deadline`] when the future is not ready by then; it is dropped.
    pub(super) fn wait<F: Future>(
        &self,
        deadline: Instant,
        future: F,
    ) -> Result<F::Output, StoreError> {
        let runtime = self.0.as_ref().ok_or(StoreError::Closed)?;
        runtime.block_on(async {
            tokio::time::timeout_at(deadline.into(), future)
                .await
                .map_err(|_| StoreError::Deadline)
        })
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        // A runtime that is just dropped waits for its threads, and must not where futures run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
