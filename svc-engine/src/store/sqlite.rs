//! SQLite: one file, one writing connection, read-only readers, write-ahead log.

use std::fmt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, OpenFlags};

use super::StoreError;
use super::connection::{EachRow, Insert, Lookup};
use super::value::{Row, Value};

/// Virtual machine steps between two looks at the deadline: some tens of microseconds.
const STEPS_PER_LOOK: i32 = 10_000;
/// Statements that stay prepared on a connection.
const STATEMENTS_MAX: usize = 128;

pub(super) struct SqliteConnection(rusqlite::Connection);

impl SqliteConnection {
    /// Opens the file for writing, and makes it with its folder when it is absent.
    pub(super) fn writing(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            // What is stored here is as private as what the agents saw.
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let connection = Self::open(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        )?;
        // An acknowledged fact has reached the disk: synchronous = FULL. The log is copied back by a
        // thread of its own; the writer does it only when that thread is far behind. At each commit
        // SQLite looks through its whole cache, so a larger one costs more than it saves: the
        // operating system has the pages too.
        connection.batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 131072;
             PRAGMA cache_size = -16384;
             PRAGMA temp_store = MEMORY;",
        )?;
        Ok(connection)
    }

    /// Opens the file for copying its log back.
    pub(super) fn checkpointing(path: &Path) -> Result<Self, StoreError> {
        let connection = Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // A reader that holds the log up must not hold the writer up with it.
        connection.0.busy_timeout(Duration::from_millis(50))?;
        connection.batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -1024;")?;
        Ok(connection)
    }

    /// Copies the log back, and returns how many pages it has.
    pub(super) fn checkpoint(&self, mode: &str) -> Result<i64, StoreError> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        Ok(self.0.query_row(&sql, [], |row| row.get(1))?)
    }

    /// Opens the file for reading only.
    pub(super) fn reading(path: &Path) -> Result<Self, StoreError> {
        let connection = Self::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.batch("PRAGMA cache_size = -8192; PRAGMA mmap_size = 268435456;")?;
        Ok(connection)
    }

    fn open(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let connection =
            rusqlite::Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // Otherwise a statement is planned anew whenever a value is bound to its LIMIT.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Self(connection))
    }

    pub(super) fn begin_read(&mut self, deadline: Instant) -> Result<(), StoreError> {
        self.0
            .progress_handler(STEPS_PER_LOOK, Some(move || Instant::now() >= deadline))?;
        self.batch("BEGIN")
    }

    pub(super) fn end_read(&mut self) -> Result<(), StoreError> {
        self.0.progress_handler(0, None::<fn() -> bool>)?;
        self.batch("COMMIT")
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        Ok(self.0.execute_batch(sql)?)
    }

    #[cfg(test)]
    pub(super) fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.0.prepare(sql).map(drop).map_err(StoreError::from)
    }

    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement.raw_execute()? as u64)
    }

    pub(super) fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        step(&mut statement, values, each)
    }

    /// Inserts row by row: a prepared statement costs SQLite less than a long text.
    pub(super) fn insert<'v>(
        &self,
        insert: &Insert,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Vec<Option<i64>>, StoreError> {
        let mut statement = self.0.prepare_cached(&insert.text(1))?;
        rows.map(|row| {
            // The placeholders of an insertion stand in their order.
            for (index, value) in (1..).zip(row) {
                statement.raw_bind_parameter(index, value)?;
            }
            let inserted = statement.raw_execute()? > 0;
            Ok(inserted.then(|| self.0.last_insert_rowid()))
        })
        .collect()
    }

    pub(super) fn lookup(
        &self,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(&lookup.text(shared.len(), 1))?;
        let mut values = [shared, &[Value::Null]].concat();
        for key in keys {
            values[shared.len()] = key.clone();
            step(&mut statement, &values, each)?;
        }
        Ok(())
    }
}

fn step(
    statement: &mut CachedStatement<'_>,
    values: &[Value<'_>],
    each: EachRow<'_>,
) -> Result<(), StoreError> {
    bind(statement, values)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        each(&Row::Sqlite(row))?;
    }
    Ok(())
}

/// Binds each placeholder to the value of its number. SQLite itself numbers them by first use.
fn bind(statement: &mut CachedStatement<'_>, values: &[Value<'_>]) -> Result<(), StoreError> {
    for index in 1..=statement.parameter_count() {
        let number = statement
            .parameter_name(index)
            .and_then(|name| name.get(1..)?.parse::<usize>().ok())
            .unwrap_or(index);
        let value = values.get(number.wrapping_sub(1)).unwrap_or(&Value::Null);
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

impl fmt::Debug for SqliteConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteConnection")
    }
}
