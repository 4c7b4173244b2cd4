//! One connection to either backend. This is the only place that tells them apart.

use std::collections::HashMap;
use std::sync::Arc;

use super::StoreError;
use super::erasure::Compaction;
use super::postgres::PostgresConnection;
use super::sqlite::SqliteConnection;
use super::url::DatabaseUrl;
use super::value::{Row, Value};
use crate::deadline::Deadline;

/// Rows of one insertion. As a statement stays prepared for each count, an insertion of no more rows
/// is one statement.
const ROWS_MAX: usize = 32;
/// Keys of one look-up. Their count is rounded up to a power of two, so that a handful of statements
/// stays prepared.
const KEYS_MAX: usize = 64;
/// Bytes of values that one insertion binds, unless one row has more: every value is copied once.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Placeholders without numbers, which are taken in their order.
const NAMELESS: bool = false;
/// Statements that stay prepared on a connection.
pub(super) const STATEMENTS_MAX: usize = 512;

/// A connection that runs the store's statements.
#[derive(Debug)]
pub(super) struct Connection {
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
pub(super) struct Sql {
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

/// An insertion of many rows: `INSERT INTO table (columns) VALUES`, what follows the values, and how
/// an inserted row is told from one that was there before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Insert {
    pub(super) into: &'static str,
    pub(super) columns: usize,
    pub(super) then: &'static str,
    /// An integer, and a unique column.
    pub(super) returning: &'static str,
    /// The place of the unique column among the columns.
    pub(super) unique: usize,
    /// Whether the integer is the number that SQLite gives to the row, or one that nobody reads:
    /// SQLite then tells it for less than what a returned row costs.
    pub(super) is_row_number: bool,
}

/// A look-up of many keys: a selection that ends with the column that is compared, and what follows.
/// Its first placeholders are for the values that all keys share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup<'a> {
    pub(super) select: &'a str,
    pub(super) then: &'a str,
}

/// What is called with each row.
pub(super) type EachRow<'f> = &'f mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>;

/// What fills in the next row that is to be put in, and says whether there is one.
pub(super) type NextRow<'f> =
    &'f mut dyn FnMut(&mut Vec<Value<'static>>) -> Result<bool, StoreError>;

macro_rules! on {
    ($connection:expr, $inner:ident => $call:expr) => {
        match $connection {
            Backend::Sqlite($inner) => $call,
            Backend::Postgres($inner) => $call,
        }
    };
}

impl Connection {
    /// Connects. A SQLite file is made when it is absent.
    pub(super) fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
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
    pub(super) fn open_reading(url: &DatabaseUrl) -> Result<Self, StoreError> {
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

    /// Returns whether there is anything to connect to.
    pub(super) fn exists(url: &DatabaseUrl) -> bool {
        match url {
            DatabaseUrl::Sqlite(path) => path.exists(),
            DatabaseUrl::Postgres(_) => true,
        }
    }

    /// Returns whether this is SQLite.
    #[cfg(test)]
    pub(super) const fn is_sqlite(&self) -> bool {
        matches!(self.backend, Backend::Sqlite(_))
    }

    /// Begins a write transaction whose statements are given up at the deadline.
    pub(super) fn begin_write(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.begin_write(deadline))
    }

    /// Begins a read snapshot whose statements are stopped at the deadline.
    pub(super) fn begin_read(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.begin_read(deadline))
    }

    /// Lets another connection, which has begun a read snapshot too and has read nothing, see the state
    /// that this one sees. Returns whether it does: SQLite cannot while somebody writes.
    pub(super) fn share_snapshot(
        &mut self,
        other: &mut Self,
        deadline: &Deadline,
    ) -> Result<bool, StoreError> {
        match (&mut self.backend, &mut other.backend) {
            (Backend::Sqlite(own), Backend::Sqlite(other)) => own.share_snapshot(other, deadline),
            (Backend::Postgres(own), Backend::Postgres(other)) => {
                own.share_snapshot(other).map(|()| true)
            }
            (Backend::Sqlite(_), Backend::Postgres(_))
            | (Backend::Postgres(_), Backend::Sqlite(_)) => Ok(false),
        }
    }

    /// Ends a read snapshot. Afterwards the connection serves another.
    pub(super) fn end_read(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("COMMIT"))
    }

    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("COMMIT"))
    }

    pub(super) fn rollback(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.end("ROLLBACK"))
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.batch(sql))
    }

    /// Runs one statement and returns how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.run(sql, values.iter(), &mut |_| Ok(()))
    }

    /// Calls `each` with every row of a selection.
    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.run(sql, values.iter(), &mut each).map(drop)
    }

    /// Returns every row of a selection.
    pub(super) fn all<T>(
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
    pub(super) fn first<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.all(sql, values, read)?.into_iter().next())
    }

    /// Inserts rows. Says of each its integer when it was inserted, and nothing when it was there
    /// before.
    pub(super) fn insert<'v>(
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
        let mut inserted: HashMap<Vec<u8>, i64> = HashMap::with_capacity(rows.len());
        for chunk in self.chunks(&rows) {
            let text = self.insertion(insert, insert.returning, chunk.len());
            let is_text = chunk
                .first()
                .is_some_and(|row| row[insert.unique].is_text());
            self.run(&text, chunk.iter().copied().flatten(), &mut |row| {
                let unique = if is_text {
                    row.text(1)?.into_bytes()
                } else {
                    row.blob(1)?
                };
                inserted.insert(unique, row.integer(0)?);
                Ok(())
            })?;
        }
        // Of two equal rows the first was inserted.
        let unique = |row: &&[Value<'_>]| inserted.remove(row[insert.unique].as_bytes());
        Ok(rows.iter().map(unique).collect())
    }

    /// Inserts rows of which nobody asks which were there before, and returns how many were not.
    pub(super) fn put<'v>(
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
        for chunk in self.chunks(&rows) {
            let text = self.insertion(insert, "", chunk.len());
            inserted += self.run(&text, chunk.iter().copied().flatten(), &mut |_| Ok(()))?;
        }
        Ok(inserted)
    }

    /// Puts rows into columns of a table until `next` gives none, and returns how many: by a statement
    /// each on SQLite, as one stream on PostgreSQL.
    pub(super) fn load(
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

    /// Looks up keys, which share the first values, and calls `each` with every row that is found.
    /// A bound on rows holds for some of the keys at a time.
    pub(super) fn lookup(
        &mut self,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for chunk in keys.chunks(KEYS_MAX) {
            let count = chunk.len().next_power_of_two();
            let text = lookup.text(shared.len(), count);
            let values = shared.iter().chain(filled(chunk, count));
            self.run(&text, values, &mut each)?;
        }
        Ok(())
    }

    /// Looks up keys of two kinds, as [`lookup`](Self::lookup) does, with one statement for some of
    /// each at a time. Both selections have the same columns.
    pub(super) fn lookup_both(
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
    pub(super) const fn text(&self, sql: Sql) -> &'static str {
        match self.backend {
            Backend::Sqlite(_) => sql.sqlite,
            Backend::Postgres(_) => sql.postgres,
        }
    }

    /// Brings the schema to head with a migrator.
    pub(super) fn migrate(&mut self, migrator: &sqlx::migrate::Migrator) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.migrate(migrator))
    }

    /// Lets what is deleted from here on be overwritten where it lay, as far as the backend can.
    pub(super) fn overwrite_what_is_deleted(&mut self) -> Result<(), StoreError> {
        match &mut self.backend {
            Backend::Sqlite(connection) => connection.batch("PRAGMA secure_delete = ON"),
            Backend::Postgres(_) => Ok(()),
        }
    }

    /// Rewrites the database without what was deleted: of PostgreSQL some tables.
    pub(super) fn compact(&mut self, tables: &[&str]) -> Result<Compaction, StoreError> {
        match &mut self.backend {
            Backend::Sqlite(connection) => connection.compact(),
            Backend::Postgres(connection) => connection.compact(tables),
        }
    }

    /// Connects again when the connection cannot serve any more.
    pub(super) fn reconnect(&mut self) -> Result<(), StoreError> {
        if self.is_usable() {
            return Ok(());
        }
        self.reopen()
    }

    /// Connects again, whatever state the connection is in.
    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.reopen())
    }

    /// Returns whether the connection can serve again after an error.
    pub(super) const fn is_usable(&self) -> bool {
        match &self.backend {
            Backend::Sqlite(_) => true,
            Backend::Postgres(connection) => connection.is_usable(),
        }
    }

    /// Refuses a connection that can only read.
    pub(super) fn check_writing(&mut self) -> Result<(), StoreError> {
        on!(&mut self.backend, connection => connection.check_writing())
    }

    /// Returns what the copying of SQLite's log shares with this connection, which writes.
    pub(super) fn turn(&self) -> Option<super::checkpoint::Turn> {
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
        #[cfg(test)]
        super::plan_check::first_use(self, sql);
        on!(&mut self.backend, connection => connection.run(sql, values, each))
    }

    /// SQLite has no round trip to save, and a statement of one row is taken back by itself when it
    /// fails: of many rows SQLite would keep a journal.
    fn chunks<'r, 'v>(&self, rows: &'r [&'r [Value<'v>]]) -> Chunks<'r, 'v> {
        let rows_max = match self.backend {
            Backend::Sqlite(_) => 1,
            Backend::Postgres(_) => ROWS_MAX,
        };
        Chunks { rows, rows_max }
    }

    fn insertion(&mut self, insert: &Insert, returning: &'static str, rows: usize) -> Arc<str> {
        let numbered = matches!(self.backend, Backend::Postgres(_));
        self.insertions.text(insert, returning, rows, numbered)
    }
}

/// The texts of insertions, by what is inserted, what is returned and how many rows.
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

/// Takes rows as many at a time as one statement inserts.
struct Chunks<'r, 'v> {
    rows: &'r [&'r [Value<'v>]],
    rows_max: usize,
}

impl<'r, 'v> Iterator for Chunks<'r, 'v> {
    type Item = &'r [&'r [Value<'v>]];

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fitting = self.rows.iter().take(self.rows_max).take_while(|row| {
            bytes += row
                .iter()
                .map(|value| value.as_bytes().len())
                .sum::<usize>();
            bytes <= BYTES_MAX
        });
        let (chunk, rest) = self.rows.split_at(fitting.count().max(1));
        self.rows = rest;
        Some(chunk)
    }
}

/// Returns keys and some of them again, so many in all. What is asked for twice is found once.
fn filled<'k, 'v>(
    keys: &'k [Value<'v>],
    count: usize,
) -> impl Iterator<Item = &'k Value<'v>> + Clone {
    keys.iter().cycle().take(count)
}

impl Insert {
    /// Returns the text that inserts this many rows. SQLite finds the name of a placeholder by
    /// walking through all of them, so there its placeholders have none.
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
    pub(super) fn text(&self, shared: usize, keys: usize) -> String {
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
