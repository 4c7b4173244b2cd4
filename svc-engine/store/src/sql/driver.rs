//! What both drivers agree on: how rows come and go, how long something waits, and what a rewrite
//! of the files leaves behind.

use std::time::{Duration, Instant};

use super::error::StoreError;
use super::value::{Row, Value};

/// The maximum statements that stay prepared on a connection.
pub(crate) const STATEMENTS_MAX: usize = 512;

/// How long a transaction waits for somebody else's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockWait {
    /// The usual time.
    Usual,
    /// Hardly at all, because the lock was found held before.
    Short,
}

/// Called with each row.
pub(crate) type EachRow<'f> = &'f mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>;

/// Fills in the next row to insert, and returns whether there is one.
pub(crate) type NextRow<'f> =
    &'f mut dyn FnMut(&mut Vec<Value<'static>>) -> Result<bool, StoreError>;

/// Whether the files of a database still hold deleted data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// They hold none.
    Done,
    /// Others still use the database, so some may be left. Compact again later to remove it.
    InUse,
}

/// The time limit for upgrading a schema: building an index of a large table takes hours, and other
/// servers wait for the one that does it.
const MIGRATING_HOURS: u64 = 24;

/// Returns the deadline of a migration.
pub(crate) fn migration_deadline() -> Instant {
    Instant::now() + Duration::from_secs(MIGRATING_HOURS * 60 * 60)
}
