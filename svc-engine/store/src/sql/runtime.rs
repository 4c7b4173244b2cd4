//! How the store waits for the futures of the PostgreSQL driver.
//!
//! The store is synchronous: a snapshot and its derivation run to the end on one blocking thread,
//! and the writer is one thread. The driver is asynchronous, so the store waits for each of its
//! futures here, with a deadline on the client's side: a database that hangs costs a caller the
//! deadline and nothing else. The thread that waits also drives the connection. No other thread
//! takes part, because a hop between threads costs more than most statements.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::error::StoreError;

/// The sockets and timers of one connection. They are served only while somebody waits for the
/// connection.
#[derive(Debug)]
pub(crate) struct Reactor(Option<Runtime>);

impl Reactor {
    pub(crate) fn new() -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    /// Waits for a future until the deadline. The calling thread must be one that may block.
    ///
    /// # Errors
    ///
    /// [`StoreError::Deadline`] if the future is not ready by then. The future is dropped.
    pub(crate) fn wait<F: Future>(
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
        // Dropping a runtime waits for its threads, which is not allowed where futures run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
