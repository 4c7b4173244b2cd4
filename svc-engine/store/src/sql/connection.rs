//! A connection to either backend. Only this module tells the backends apart.
//!
//! Statements are one text for both, over integers, reals, texts and bytes, with `$1` placeholders.
//! SQLite is called directly, so that one statement a row costs it less than one long statement for
//! all rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use svc_engine_fact::deadline::Deadline;

use super::driver::{Compaction, EachRow, LockWait, NextRow};
use super::error::{Obstacle, StoreError};
use super::postgres::PostgresConnection;
use super::sqlite::SqliteConnection;
use super::turn::Turn;
use super::url::DatabaseUrl;
use super::value::{Row, Value};

/// The maximum rows of one insertion. Each number of rows has its own prepared statement.
const ROWS_MAX: usize = 32;
/// The maximum keys of one look-up. Their number is rounded up to a power of two, so that few
/// statements are prepared.
const KEYS_MAX: usize = 64;
/// The maximum keys of a report's look-up on PostgreSQL, where each statement costs a round trip.
/// With so many keys, PostgreSQL may scan a table without statistics, so the plans of these
/// look-ups are checked.
const MANY_KEYS_MAX: usize = 256;
/// The maximum bytes of values that one insertion binds, because every value is copied once. A
/// single row may have more.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Placeholders without numbers, bound in order.
const NAMELESS: bool = false;

/// A connection that runs the store's statements.
#[derive(Debug)]
pub(crate) struct Connection {
    backend: Backend,
    insertions: Insertions,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Box<SqliteConnection>),
    Postgres(Box<PostgresConnection>),
}

/// A statement whose text differs between the backends. There are few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// An insertion of many rows: `INSERT INTO table (columns) VALUES`, what follows the values, and
/// how to tell an inserted row from an existing one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insert {
    pub(crate) into: &'static str,
    pub(crate) columns: usize,
    pub(crate) then: &'static str,
    /// An integer, and a unique column.
    pub(crate) returning: &'static str,
    /// The index of the unique column.
    pub(crate) unique: usize,
    /// Whether the integer is SQLite's rowid, or not used. SQLite reports a rowid at less cost than
    /// a returned row.
    pub(crate) is_row_number: bool,
}

/// A look-up of many keys: a selection that ends with the compared column, and what follows the
/// keys. Its first placeholders are for the values that all keys share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'a> {
    pub(crate) select: &'a str,
    pub(crate) then: &'a str,
}

macro_rules! on {
    ($connection:expr, $inner:ident => $call:expr) => {
        match $connection {
            Backend::Sqlite($inner) => $call,
            Backend::Postgres($inner) => $call,
        }
    };
}

impl Connection {
    /// Connects. An absent SQLite file is created.
    pub(crate) fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
        Ok(Self::of(match url {
            DatabaseUrl::Sqlite(path) => {
                Backend::Sqlite(Box::new(SqliteConnection::writing(path)?))
            }
            DatabaseUrl::Postgres(options) => {
                Backend::Postgres(Box::new(PostgresConnection::open(options)?))
            }
        }))
    }

    /// Connects for reading only.
    pub(crate) fn open_reading(url: &DatabaseUrl) -> Result<Self, StoreError> {
        match url {
            DatabaseUrl::Sqlite(path) => Ok(Self::of(Backend::Sqlite(Box::new(
                SqliteConnection::reading(path)?,
            )))),
            DatabaseUrl::Postgres(_) => Self::open(url),
        }
    }

    fn of(backend: Backend) -> Self {
        Self {
            backend,
            insertions: Insertions::default(),
        }
    }

    /// Returns whether this is SQLite.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) const fn is_sqlite(&self) -> bool {
        matches!(self.backend, Backend::Sqlite(_))
    }

    /// Begins a write transaction, whose statements fail after the deadline.
    pub(crate) fn begin_write(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.begin_write(deadline))
    }

    /// Begins a write transaction of very many rows, whose statements fail after the deadline.
    pub(crate) fn begin_load(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(connection) => connection.begin_write(deadline),
            Backend::Postgres(connection) => connection.begin_load(deadline),
        }
    }

    /// Begins a read snapshot, whose statements are stopped at the deadline.
    pub(crate) fn begin_read(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.begin_read(deadline))
    }

    /// Shows another connection, which has begun a read snapshot but read nothing yet, the state
    /// that this one sees. Returns whether it worked: SQLite cannot do this during a write, and
    /// PostgreSQL cannot do it between two servers.
    pub(crate) fn share_snapshot(
        &mut self,
        other: &mut Self,
        deadline: &Deadline,
    ) -> Result<bool, StoreError> {
        match (&mut self.backend, &mut other.backend) {
            (Backend::Sqlite(own), Backend::Sqlite(other)) => own.share_snapshot(other, deadline),
            (Backend::Postgres(own), Backend::Postgres(other)) => own.share_snapshot(other),
            (Backend::Sqlite(_), Backend::Postgres(_))
            | (Backend::Postgres(_), Backend::Sqlite(_)) => Ok(false),
        }
    }

    /// Ends a read snapshot, so that the connection can serve another.
    pub(crate) fn end_read(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("COMMIT"))
    }

    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("COMMIT"))
    }

    pub(crate) fn rollback(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("ROLLBACK"))
    }

    /// Sets how long the open transaction waits for somebody else's lock. SQLite has only one lock,
    /// which an open transaction holds already.
    pub(crate) fn set_lock_wait(&mut self, wait: LockWait) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(_) => Ok(()),
            Backend::Postgres(connection) => connection.set_lock_wait(wait),
        }
    }

    /// Runs statements without parameters.
    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.batch(sql))
    }

    /// Runs one statement and returns how many rows it changed.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.run(sql, values.iter(), &mut |_| Ok(()))
    }

    /// Calls `each` with every row of a selection.
    pub(crate) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.run(sql, values.iter(), &mut each).map(drop)
    }

    /// Returns every row of a selection.
    pub(crate) fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        self.each(sql, values, |row| {
            rows.push(read(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the first row of a selection.
    pub(crate) fn first<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.all(sql, values, read)?.into_iter().next())
    }

    /// Inserts rows. Returns the integer of each inserted row; nothing for an existing one.
    pub(crate) fn insert<'v>(
        &mut self,
        insert: &Insert,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Vec<Option<i64>>, StoreError> {
        if let Backend::Sqlite(connection) = &mut self.backend
            && insert.is_row_number
        {
            let text = self.insertions.text(insert, "", 1, NAMELESS);
            return connection.insert(&text, rows);
        }
        let rows: Vec<&[Value<'_>]> = rows.collect();
        let mut inserted = Vec::with_capacity(rows.len());
        for chunk in self.chunks(&rows, Some(insert.unique)) {
            let text = self.insertion(insert, insert.returning, chunk.len());
            let is_text = chunk
                .first()
                .is_some_and(|row| row[insert.unique].is_text());
            let mut integers: HashMap<Vec<u8>, i64> = HashMap::with_capacity(chunk.len());
            self.run(&text, chunk.iter().copied().flatten(), &mut |row| {
                let unique = if is_text {
                    row.text(1)?.into_bytes()
                } else {
                    row.blob(1)?
                };
                integers.insert(unique, row.integer(0)?);
                Ok(())
            })?;
            let of_row = |row: &&[Value<'_>]| integers.remove(row[insert.unique].as_bytes());
            inserted.extend(chunk.iter().map(of_row));
        }
        Ok(inserted)
    }

    /// Inserts rows, and returns how many were new.
    pub(crate) fn put<'v>(
        &mut self,
        insert: &Insert,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<u64, StoreError> {
        if let Backend::Sqlite(connection) = &mut self.backend {
            let text = self.insertions.text(insert, "", 1, NAMELESS);
            let inserted = connection.insert(&text, rows)?;
            return Ok(inserted.iter().flatten().count() as u64);
        }
        let rows: Vec<&[Value<'_>]> = rows.collect();
        let mut inserted = 0;
        for chunk in self.chunks(&rows, None) {
            let text = self.insertion(insert, "", chunk.len());
            inserted += self.run(&text, chunk.iter().copied().flatten(), &mut |_| Ok(()))?;
        }
        Ok(inserted)
    }

    /// Loads rows into columns of a table until `next` has no more, and returns their number.
    /// SQLite runs one statement per row; PostgreSQL reads one stream.
    pub(crate) fn load(
        &mut self,
        table: &str,
        columns: &[&str],
        next: NextRow<'_>,
    ) -> Result<u64, StoreError> {
        let list = columns.join(", ");
        match &mut self.backend {
            Backend::Sqlite(connection) => {
                let places = vec!["?"; columns.len()].join(", ");
                let text = format!("INSERT INTO {table} ({list}) VALUES ({places})");
                let mut rows = 0;
                let mut values = Vec::new();
                while next(&mut values)? {
                    connection.run(&text, values.iter(), &mut |_| Ok(()))?;
                    rows += 1;
                }
                Ok(rows)
            }
            Backend::Postgres(connection) => {
                let text = format!("COPY {table} ({list}) FROM STDIN (FORMAT binary)");
                connection.copy_in(&text, next)
            }
        }
    }

    /// Looks up keys that share the first values, and calls `each` with every row. A limit on rows
    /// applies to each group of keys.
    pub(crate) fn lookup(
        &mut self,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.lookup_in_groups(KEYS_MAX, lookup, shared, keys, each)
    }

    /// Looks up a report's keys, as [`lookup`](Self::lookup) does. There may be very many.
    pub(crate) fn lookup_many(
        &mut self,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let keys_max = match self.backend {
            Backend::Sqlite(_) => KEYS_MAX,
            Backend::Postgres(_) => MANY_KEYS_MAX,
        };
        self.lookup_in_groups(keys_max, lookup, shared, keys, each)
    }

    fn lookup_in_groups(
        &mut self,
        keys_max: usize,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for chunk in keys.chunks(keys_max) {
            let count = chunk.len().next_power_of_two();
            let text = lookup.text(shared.len(), count);
            let values = shared.iter().chain(filled(chunk, count));
            self.run(&text, values, &mut each)?;
        }
        Ok(())
    }

    /// Looks up keys of two kinds, as [`lookup`](Self::lookup) does, with one statement for a group
    /// of each. Both selections have the same columns.
    pub(crate) fn lookup_both(
        &mut self,
        one: &Lookup<'_>,
        ones: &[Value<'_>],
        other: &Lookup<'_>,
        others: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (mut ones, mut others) = (ones.chunks(KEYS_MAX), others.chunks(KEYS_MAX));
        loop {
            match (ones.next(), others.next()) {
                (None, None) => return Ok(()),
                (Some(keys), None) => self.lookup(one, &[], keys, &mut each)?,
                (None, Some(keys)) => self.lookup(other, &[], keys, &mut each)?,
                (Some(some), Some(more)) => {
                    let count = some.len().max(more.len()).next_power_of_two();
                    let text = format!(
                        "{} UNION ALL {}",
                        one.text(0, count),
                        other.text(count, count)
                    );
                    let values = filled(some, count).chain(filled(more, count));
                    self.run(&text, values, &mut each)?;
                }
            }
        }
    }

    /// Returns the text of a statement for this backend.
    pub(crate) const fn text(&self, sql: Sql) -> &'static str {
        match self.backend {
            Backend::Sqlite(_) => sql.sqlite,
            Backend::Postgres(_) => sql.postgres,
        }
    }

    /// Upgrades the schema with a migrator.
    pub(crate) fn migrate(&mut self, migrator: &sqlx::migrate::Migrator) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.migrate(migrator))
    }

    /// Makes the backend overwrite in place what is deleted from here on, if it can.
    pub(crate) fn overwrite_what_is_deleted(&mut self) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(connection) => connection.batch("PRAGMA secure_delete = ON"),
            Backend::Postgres(_) => Ok(()),
        }
    }

    /// Refuses a role of PostgreSQL that may not rewrite these tables.
    pub(crate) fn check_compaction(&mut self, tables: &[&str]) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(_) => Ok(()),
            Backend::Postgres(connection) => connection.check_compaction(tables),
        }
    }

    /// Rewrites the database without deleted data; on PostgreSQL, only these tables.
    pub(crate) fn compact(&mut self, tables: &[&'static str]) -> Result<Compaction, StoreError> {
        match &mut self.backend {
            Backend::Sqlite(connection) => connection.compact(),
            Backend::Postgres(connection) => connection.compact(tables),
        }
    }

    /// Reconnects if the connection cannot be used any more.
    pub(crate) fn reconnect(&mut self) -> Result<(), StoreError> {
        if self.is_usable() {
            return Ok(());
        }
        self.reopen()
    }

    /// Reconnects in any case.
    pub(crate) fn reopen(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.reopen())
    }

    /// Returns whether the connection can be used again after an error.
    pub(crate) const fn is_usable(&self) -> bool {
        match &self.backend {
            Backend::Sqlite(_) => true,
            Backend::Postgres(connection) => connection.is_usable(),
        }
    }

    /// Refuses a pooler of PostgreSQL that keeps no sessions.
    pub(crate) fn check_session(&mut self) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(_) => Ok(()),
            Backend::Postgres(connection) => connection.check_session(),
        }
    }

    /// Refuses a connection that can only read.
    pub(crate) fn check_writing(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.check_writing())
    }

    /// Returns why a write failed: if the database can only be read, it may be a standby.
    pub(crate) fn explained(&mut self, error: StoreError) -> StoreError {
        if error.obstacle() != Some(Obstacle::ReadOnly) {
            return error;
        }
        match self.reconnect().and_then(|()| self.check_writing()) {
            Err(StoreError::Standby) => StoreError::Standby,
            _ => error,
        }
    }

    /// Returns the turn that this writing connection shares with the checkpoint of SQLite's log.
    pub(crate) fn turn(&self) -> Option<Turn> {
        match &self.backend {
            Backend::Sqlite(connection) => connection.turn(),
            Backend::Postgres(_) => None,
        }
    }

    fn run<'v>(
        &mut self,
        sql: &str,
        values: impl Iterator<Item = &'v Value<'v>>,
        each: EachRow<'_>,
    ) -> Result<u64, StoreError> {
        #[cfg(any(test, feature = "testing"))]
        crate::testing::plan_check::first_use(self, sql);
        on!(&mut self.backend, connection => connection.run(sql, values, each))
    }

    /// On SQLite, each row is a statement of its own: there are no round trips to save, and a
    /// failed statement of one row is undone without the journal that many rows would need.
    fn chunks<'r, 'v>(
        &self,
        rows: &'r [&'r [Value<'v>]],
        distinct: Option<usize>,
    ) -> Chunks<'r, 'v> {
        let rows_max = match self.backend {
            Backend::Sqlite(_) => 1,
            Backend::Postgres(_) => ROWS_MAX,
        };
        Chunks {
            rows,
            rows_max,
            distinct,
        }
    }

    fn insertion(&mut self, insert: &Insert, returning: &'static str, rows: usize) -> Arc<str> {
        let numbered = matches!(self.backend, Backend::Postgres(_));
        self.insertions.text(insert, returning, rows, numbered)
    }
}

/// The texts of insertions, by the insertion, the returned column and the number of rows.
#[derive(Debug, Default)]
struct Insertions(HashMap<(&'static str, &'static str, usize), Arc<str>>);

impl Insertions {
    fn text(
        &mut self,
        insert: &Insert,
        returning: &'static str,
        rows: usize,
        numbered: bool,
    ) -> Arc<str> {
        let text = || {
            let mut text = insert.text(rows, numbered);
            if !returning.is_empty() {
                text.push_str(" RETURNING ");
                text.push_str(returning);
            }
            text.into()
        };
        let key = (insert.into, returning, rows);
        Arc::clone(self.0.entry(key).or_insert_with(text))
    }
}

/// Splits rows into groups that one statement inserts.
struct Chunks<'r, 'v> {
    rows: &'r [&'r [Value<'v>]],
    rows_max: usize,
    /// The column whose values differ within a group. What a statement returns for a value then
    /// belongs to one row, even if another row with that value would have been refused for a
    /// different reason.
    distinct: Option<usize>,
}

impl<'r, 'v> Iterator for Chunks<'r, 'v> {
    type Item = &'r [&'r [Value<'v>]];

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let fitting = self.rows.iter().take(self.rows_max).take_while(|row| {
            bytes += row
                .iter()
                .map(|value| value.as_bytes().len())
                .sum::<usize>();
            let is_distinct = |column: usize| seen.insert(row[column].as_bytes());
            bytes <= BYTES_MAX && self.distinct.is_none_or(is_distinct)
        });
        let (chunk, rest) = self.rows.split_at(fitting.count().max(1));
        self.rows = rest;
        Some(chunk)
    }
}

/// Returns this many keys, repeating some. A repeated key is found once.
fn filled<'k, 'v>(
    keys: &'k [Value<'v>],
    count: usize,
) -> impl Iterator<Item = &'k Value<'v>> + Clone {
    keys.iter().cycle().take(count)
}

impl Insert {
    /// Returns the text that inserts this many rows. SQLite finds a named placeholder by searching
    /// all names, so its placeholders have none.
    fn text(&self, rows: usize, numbered: bool) -> String {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(self.into.len() + rows * self.columns * 5 + 64);
        text.push_str(self.into);
        text.push_str(" VALUES ");
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 1..=self.columns {
                text.push_str(if column == 1 { "" } else { ", " });
                if numbered {
                    let number = row * self.columns + column;
                    write!(text, "${number}").expect("writing to a string cannot fail");
                } else {
                    text.push('?');
                }
            }
            text.push(')');
        }
        text.push(' ');
        text.push_str(self.then);
        text
    }
}

impl Lookup<'_> {
    /// Returns the text that looks up this many keys, which share this many values.
    pub(crate) fn text(&self, shared: usize, keys: usize) -> String {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(self.select.len() + self.then.len() + keys * 5 + 8);
        text.push_str(self.select);
        text.push_str(" IN (");
        for key in 1..=keys {
            let separator = if key == 1 { "" } else { ", " };
            write!(text, "{separator}${}", shared + key).expect("writing to a string cannot fail");
        }
        text.push(')');
        text.push_str(self.then);
        text
    }
}
