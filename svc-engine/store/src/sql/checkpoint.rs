//! Copies SQLite's write-ahead log back into the database without delaying the writer.
//!
//! By default, SQLite copies the log within the commit that makes it too long, and every sender of
//! that group waits. Here a separate thread copies the log every fifth of a second while commits
//! continue. SQLite restarts the log once all of it is copied, which never happens under load,
//! because there is always a newer commit. So the thread copies until little is left, and then
//! takes the writer's turn for the few milliseconds that the rest needs. It never waits for a
//! reader: the log keeps growing during a long read, and is shortened after it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::StoreError;
use super::sqlite::SqliteConnection;
use super::turn::Turn;

const INTERVAL: Duration = Duration::from_millis(200);
/// From this many pages on, restarting the log is worth the writer's turn: 32 MiB.
const PAGES_MAX: i64 = 8_192;
/// Pages that may be copied while the writer waits: 4 MiB.
const PAGES_IN_TURN: i64 = 1_024;
/// How often in a row the log is copied to get near its end.
const PASSES_MAX: usize = 4;

/// The thread that copies the log; it ends when this is dropped.
pub(crate) struct Checkpoint {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoint {
    pub(crate) fn start(path: &Path, turn: Turn) -> Result<Self, StoreError> {
        let (stop, stopped) = mpsc::channel();
        let path: PathBuf = path.to_owned();
        let mut connection = SqliteConnection::checkpointing(&path)?;
        let thread = std::thread::Builder::new()
            .name("svc-checkpoint".to_owned())
            .spawn(move || run(&mut connection, &turn, &stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

fn run(connection: &mut SqliteConnection, turn: &Turn, stopped: &mpsc::Receiver<()>) {
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if let Err(error) = copy(connection, turn) {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "store.checkpoint_failed"
            );
        }
    }
}

fn copy(connection: &mut SqliteConnection, turn: &Turn) -> Result<(), StoreError> {
    let mut copied_before = None;
    for _ in 0..PASSES_MAX {
        let (pages, copied) = connection.checkpoint()?;
        if pages < PAGES_MAX || copied == pages {
            return Ok(());
        }
        if copied_before == Some(copied) {
            // A reader needs the rest.
            return Ok(());
        }
        copied_before = Some(copied);
        if pages - copied <= PAGES_IN_TURN {
            break;
        }
    }
    // The rest arrived during the last pass, so it takes about as long as a pass.
    let _writing = turn.copy();
    connection.checkpoint().map(drop)
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread logs its own errors.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checkpoint")
    }
}
