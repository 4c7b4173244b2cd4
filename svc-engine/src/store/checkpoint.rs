//! Copies SQLite's write-ahead log back into the database, beside the writer and not in its way.
//!
//! Left to itself SQLite copies the log inside the commit that makes it too long, and every sender
//! of that group waits. Here a thread of its own copies what is there every fifth of a second, while
//! commits go on. Only the last bit, when the log is long enough to be begun anew, holds the writer
//! up, for the few milliseconds that the newest pages take.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::StoreError;
use super::sqlite::SqliteConnection;

const INTERVAL: Duration = Duration::from_millis(200);
/// Pages after which the log is begun anew: 64 MiB.
const PAGES_MAX: i64 = 16_384;

/// The thread that copies; it ends when this is dropped.
pub(super) struct Checkpoint {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoint {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let (stop, stopped) = mpsc::channel();
        let path: PathBuf = path.to_owned();
        let connection = SqliteConnection::checkpointing(&path)?;
        let thread = std::thread::Builder::new()
            .name("svc-checkpoint".to_owned())
            .spawn(move || run(&connection, &stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

fn run(connection: &SqliteConnection, stopped: &mpsc::Receiver<()>) {
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let copied = connection.checkpoint("PASSIVE").and_then(|pages| {
            if pages < PAGES_MAX {
                return Ok(pages);
            }
            connection.checkpoint("RESTART")
        });
        if let Err(error) = copied {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "store.checkpoint_failed"
            );
        }
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread says itself what goes wrong.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checkpoint")
    }
}
