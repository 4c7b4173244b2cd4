//! Connections for reading: opened when needed, kept for the next snapshot, bounded.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::StoreError;
use super::connection::Connection;
use super::url::DatabaseUrl;

#[derive(Debug)]
pub(super) struct Pool {
    url: DatabaseUrl,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug)]
struct State {
    idle: Vec<Connection>,
    /// How many more may be opened.
    left: usize,
}

impl Pool {
    pub(super) fn new(url: DatabaseUrl, connections_max: usize) -> Self {
        Self {
            url,
            state: Mutex::new(State {
                idle: Vec::new(),
                left: connections_max.max(1),
            }),
            returned: Condvar::new(),
        }
    }

    /// Takes a connection, waiting until the deadline for one.
    pub(super) fn take(&self, deadline: Instant) -> Result<Connection, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok(connection);
            }
            if state.left > 0 {
                state.left -= 1;
                drop(state);
                return Connection::open_reading(&self.url).inspect_err(|_| self.lost());
            }
            let wait = deadline.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return Err(StoreError::Deadline);
            }
            state = self
                .returned
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Gives a connection back; one that cannot serve again is closed.
    pub(super) fn give(&self, connection: Connection) {
        if !connection.is_usable() {
            self.lost();
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.idle.push(connection);
        self.returned.notify_one();
    }

    /// A taken connection is gone.
    pub(super) fn lost(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left += 1;
        self.returned.notify_one();
    }

    /// Opens a connection that may write, outside the pool.
    pub(super) fn writing(&self) -> Result<Connection, StoreError> {
        Connection::open(&self.url)
    }
}
