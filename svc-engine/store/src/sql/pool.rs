//! Connections for reading: opened on demand, kept for the next snapshot, limited in number.
//!
//! A connection is taken as a guard. When the guard is dropped, a usable connection returns to the
//! pool, and an unusable one is replaced on demand. So no failure shrinks the pool.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use svc_engine_fact::deadline::Deadline;

use super::connection::Connection;
use super::error::StoreError;
use super::sqlite::File;
use super::url::DatabaseUrl;

#[derive(Debug)]
pub(crate) struct Pool {
    url: DatabaseUrl,
    /// The SQLite file. It must not change.
    file: Option<File>,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Debug)]
struct PoolState {
    idle: Vec<Connection>,
    /// How many more connections may be taken.
    left: usize,
}

/// A connection from the pool, or a place for one.
#[derive(Debug)]
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
}

impl Pool {
    pub(crate) fn new(url: DatabaseUrl, connections_max: usize) -> Self {
        let file = match &url {
            // An absent file is reported when it is opened.
            DatabaseUrl::Sqlite(path) => File::at(path).ok(),
            DatabaseUrl::Postgres(_) => None,
        };
        Self {
            url,
            file,
            state: Mutex::new(PoolState {
                idle: Vec::new(),
                left: connections_max.max(1),
            }),
            returned: Condvar::new(),
        }
    }

    /// Takes a connection, waiting for one until the deadline, and begins a read snapshot.
    pub(crate) fn begin_read(&self, deadline: &Deadline) -> Result<Lease<'_>, StoreError> {
        let mut lease = self.place(deadline)?;
        if let Some(file) = &self.file {
            file.check()?;
        }
        // After a restart of the database server, idle connections only seem usable, possibly all
        // of them.
        while let Some(mut connection) = self.idle() {
            match connection.begin_read(deadline) {
                Ok(()) => {
                    lease.connection = Some(connection);
                    return Ok(lease);
                }
                Err(_) if !connection.is_usable() && deadline.check().is_ok() => {}
                Err(error) => return Err(error),
            }
        }
        let mut connection = Connection::open_reading(&self.url)?;
        connection.begin_read(deadline)?;
        lease.connection = Some(connection);
        Ok(lease)
    }

    /// Begins two read snapshots of the same state. The second is left out if no connection is
    /// free, or if somebody writes at that moment.
    pub(crate) fn begin_read_twice(
        &self,
        deadline: &Deadline,
    ) -> Result<(Lease<'_>, Option<Lease<'_>>), StoreError> {
        let mut first = self.begin_read(deadline)?;
        let is_to_spare = self.state().left > 0;
        if !is_to_spare {
            return Ok((first, None));
        }
        // One connection reads the same, only later.
        let Ok(mut second) = self.begin_read(deadline) else {
            return Ok((first, None));
        };
        let is_shared = first.share_snapshot(&mut second, deadline)?;
        Ok((first, is_shared.then_some(second)))
    }

    /// Waits for a place.
    fn place(&self, deadline: &Deadline) -> Result<Lease<'_>, StoreError> {
        let mut state = self.state();
        while state.left == 0 {
            let Some(left) = deadline.remaining() else {
                return Err(StoreError::Deadline);
            };
            let waited = self.returned.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.left -= 1;
        Ok(Lease {
            pool: self,
            connection: None,
        })
    }

    fn idle(&self) -> Option<Connection> {
        self.state().idle.pop()
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection for writing, outside the pool.
    pub(crate) fn writing(&self) -> Result<Connection, StoreError> {
        Connection::open(&self.url)
    }

    /// Returns how many connections may still be taken.
    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.state().left
    }
}

impl Deref for Lease<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("a lease is given out with its connection")
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
            .as_mut()
            .expect("a lease is given out with its connection")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Closing a connection ends its transaction too.
        let kept = self.connection.take().and_then(|mut connection| {
            let ended = connection.is_usable() && connection.end_read().is_ok();
            ended.then_some(connection)
        });
        let mut state = self.pool.state();
        state.idle.extend(kept);
        state.left += 1;
        drop(state);
        self.pool.returned.notify_one();
    }
}
