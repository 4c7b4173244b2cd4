//! Where the drivers' futures run.
//!
//! The store is synchronous: a snapshot and its derivation run to the end on one blocking thread, and
//! the writer is one thread. The drivers are asynchronous, so each of their futures is waited for
//! here, with a client-side deadline: a database that hangs without a word costs a caller its
//! deadline and no more.

use std::sync::OnceLock;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::StoreError;

/// The runtime of every connection of the process. One thread serves the sockets and the timers; the
/// work is done by whoever waits. It lives as long as the process, so no connection outlives it.
fn runtime() -> Result<&'static Runtime, StoreError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("svc-store")
        .enable_all()
        .build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// Waits for a future until the deadline. The calling thread must be one that may block.
///
/// # Errors
///
/// [`StoreError::Deadline`] when the future is not ready by then; it is dropped.
pub(super) fn wait<F: Future>(deadline: Instant, future: F) -> Result<F::Output, StoreError> {
    runtime()?.block_on(async {
        tokio::time::timeout_at(deadline.into(), future)
            .await
            .map_err(|_| StoreError::Deadline)
    })
}
