//! One connection to either backend. This is the only place that tells them apart.

use std::time::Instant;

use super::StoreError;
use super::postgres::PostgresConnection;
use super::sqlite::SqliteConnection;
use super::url::DatabaseUrl;
use super::value::{Row, Value};

/// A connection that runs the store's statements.
#[derive(Debug)]
pub(super) enum Connection {
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
    /// The integer key of the table, or 0, and a unique column. PostgreSQL returns them of what it
    /// inserted; SQLite counts changes instead, which costs it less.
    pub(super) returning: &'static str,
    /// The place of the unique column among the columns.
    pub(super) unique: usize,
}

/// A look-up of many keys: a selection that ends with the column that is compared, and what follows.
/// Its first placeholders are for the values that all keys share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup<'a> {
    pub(super) select: &'a str,
    pub(super) then: &'a str,
}

macro_rules! on {
    ($connection:expr, $inner:ident => $call:expr) => {
        match $connection {
            Connection::Sqlite($inner) => $call,
            Connection::Postgres($inner) => $call,
        }
    };
}

impl Connection {
    /// Connects. A SQLite file is made when it is absent.
    pub(super) fn open(url: &DatabaseUrl) -> Result<Self, StoreError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => Self::Sqlite(Box::new(SqliteConnection::writing(path)?)),
            DatabaseUrl::Postgres(config) => {
                Self::Postgres(Box::new(PostgresConnection::open(config)?))
            }
        })
    }

    /// Connects for reading only.
    pub(super) fn open_reading(url: &DatabaseUrl) -> Result<Self, StoreError> {
        match url {
            DatabaseUrl::Sqlite(path) => {
                Ok(Self::Sqlite(Box::new(SqliteConnection::reading(path)?)))
            }
            DatabaseUrl::Postgres(_) => Self::open(url),
        }
    }

    /// Returns whether there is anything to connect to.
    pub(super) fn exists(url: &DatabaseUrl) -> bool {
        match url {
            DatabaseUrl::Sqlite(path) => path.exists(),
            DatabaseUrl::Postgres(_) => true,
        }
    }

    /// Begins the one writing transaction.
    pub(super) fn begin_write(&mut self) -> Result<(), StoreError> {
        match self {
            // A deferred transaction that turns into a writing one fails at once when another
            // process wrote in between, whatever the busy timeout.
            Self::Sqlite(connection) => connection.batch("BEGIN IMMEDIATE"),
            Self::Postgres(connection) => connection.batch("BEGIN"),
        }
    }

    /// Begins a read snapshot whose statements are stopped at the deadline.
    pub(super) fn begin_read(&mut self, deadline: Instant) -> Result<(), StoreError> {
        on!(self, connection => connection.begin_read(deadline))
    }

    /// Ends a read snapshot. Afterwards the connection serves another.
    pub(super) fn end_read(&mut self) -> Result<(), StoreError> {
        on!(self, connection => connection.end_read())
    }

    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        on!(self, connection => connection.batch("COMMIT"))
    }

    pub(super) fn rollback(&mut self) -> Result<(), StoreError> {
        on!(self, connection => connection.batch("ROLLBACK"))
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        on!(self, connection => connection.batch(sql))
    }

    /// Runs one statement and returns how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        on!(self, connection => connection.execute(sql, values))
    }

    /// Calls `each` with every row of a selection.
    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        on!(self, connection => connection.each(sql, values, &mut each))
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

    /// Inserts rows. Says of each its integer key when it was inserted, and nothing when it was
    /// there before.
    pub(super) fn insert<'v>(
        &mut self,
        insert: &Insert,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Vec<Option<i64>>, StoreError> {
        on!(self, connection => connection.insert(insert, rows))
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
        on!(self, connection => connection.lookup(lookup, shared, keys, &mut each))
    }

    /// Returns the text of a statement for this backend.
    pub(super) fn text(&self, sql: Sql) -> &'static str {
        match self {
            Self::Sqlite(_) => sql.sqlite,
            Self::Postgres(_) => sql.postgres,
        }
    }

    /// Prepares a statement without running it.
    #[cfg(test)]
    pub(super) fn prepare(&mut self, sql: &str) -> Result<(), StoreError> {
        on!(self, connection => connection.prepare(sql))
    }

    /// Connects again when the connection cannot serve any more.
    pub(super) fn reconnect(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(connection) if !connection.is_usable() => connection.reopen(),
            Self::Postgres(_) | Self::Sqlite(_) => Ok(()),
        }
    }

    /// Returns whether the connection can serve again after an error.
    pub(super) fn is_usable(&self) -> bool {
        match self {
            Self::Sqlite(_) => true,
            Self::Postgres(connection) => connection.is_usable(),
        }
    }
}

/// What is called with each row.
pub(super) type EachRow<'f> = &'f mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>;

impl Insert {
    /// Returns the text that inserts this many rows.
    pub(super) fn text(&self, rows: usize) -> String {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(self.into.len() + rows * self.columns * 5 + 64);
        text.push_str(self.into);
        text.push_str(" VALUES ");
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 1..=self.columns {
                let separator = if column == 1 { "" } else { ", " };
                let number = row * self.columns + column;
                write!(text, "{separator}${number}").expect("writing to a string cannot fail");
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
