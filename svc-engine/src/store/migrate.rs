//! The schema and its revisions. A migration is never edited after it was released.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::StoreError;
use super::connection::{Connection, Sql};
use super::value::Value;

/// The migrations in order; the revision is the position, from 1.
const MIGRATIONS: &[Sql] = &[Sql {
    sqlite: include_str!("../../migrations/sqlite/0001_facts.sql"),
    postgres: include_str!("../../migrations/postgres/0001_facts.sql"),
}];

/// The revision that this service needs.
#[expect(clippy::cast_possible_wrap, reason = "there are few migrations")]
pub(super) const HEAD: i64 = MIGRATIONS.len() as i64;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_revisions (
    revision BIGINT PRIMARY KEY,
    digest TEXT NOT NULL
)";

const HAS_TABLE: Sql = Sql {
    sqlite: "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
    postgres: "SELECT COUNT(*) FROM pg_catalog.pg_class
               WHERE relname = CAST($1 AS TEXT) AND pg_table_is_visible(oid)",
};

/// How the stored schema relates to the one this service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is none.
    Absent,
    /// It is of an earlier service.
    Behind(i64),
    /// It is the right one.
    AtHead(i64),
    /// It is of a later service.
    Ahead(i64),
}

impl SchemaState {
    /// Returns the word for the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Behind(_) => "behind",
            Self::AtHead(_) => "at_head",
            Self::Ahead(_) => "ahead",
        }
    }

    /// Returns the revision that this service needs.
    pub const fn head() -> i64 {
        HEAD
    }
}

impl fmt::Display for SchemaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the state of the schema.
pub(super) fn state(connection: &mut Connection) -> Result<SchemaState, StoreError> {
    if !has_table(connection, "schema_revisions")? {
        return Ok(SchemaState::Absent);
    }
    let revision = connection
        .first(
            "SELECT COALESCE(MAX(revision), 0) FROM schema_revisions",
            &[],
            |row| row.integer(0),
        )?
        .unwrap_or(0);
    Ok(match revision {
        revision if revision == HEAD => SchemaState::AtHead(revision),
        revision if revision < HEAD => SchemaState::Behind(revision),
        revision => SchemaState::Ahead(revision),
    })
}

/// Returns whether the schema has a table.
pub(super) fn has_table(connection: &mut Connection, name: &str) -> Result<bool, StoreError> {
    let text = connection.text(HAS_TABLE);
    let tables = connection.first(text, &[Value::Text(name)], |row| row.count(0))?;
    Ok(tables.unwrap_or_default() > 0)
}

/// Brings the schema to head. Several processes may try at once: one does it, the others wait.
pub(super) fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    if matches!(
        state(connection)?,
        SchemaState::AtHead(_) | SchemaState::Ahead(_)
    ) {
        return verify(connection);
    }
    connection.begin_write()?;
    let result = apply(connection);
    match result {
        Ok(()) => connection.commit(),
        Err(error) => {
            connection.rollback()?;
            Err(error)
        }
    }
}

fn apply(connection: &mut Connection) -> Result<(), StoreError> {
    if matches!(connection, Connection::Postgres(_)) {
        // Creating the same table twice at once is an error even with IF NOT EXISTS.
        connection
            .batch("SET LOCAL lock_timeout = '120s'; SELECT pg_advisory_xact_lock(7238510923)")?;
    }
    connection.batch(TABLE)?;
    verify(connection)?;
    let done = connection
        .first(
            "SELECT COALESCE(MAX(revision), 0) FROM schema_revisions",
            &[],
            |row| row.integer(0),
        )?
        .unwrap_or(0);
    for (revision, migration) in (1_i64..).zip(MIGRATIONS) {
        if revision <= done {
            continue;
        }
        let text = connection.text(*migration);
        connection.batch(text)?;
        connection.execute(
            "INSERT INTO schema_revisions (revision, digest) VALUES ($1, $2)",
            &[Value::Integer(revision), Value::Text(&digest(text))],
        )?;
    }
    Ok(())
}

fn verify(connection: &mut Connection) -> Result<(), StoreError> {
    let applied = connection.all(
        "SELECT revision, digest FROM schema_revisions ORDER BY revision",
        &[],
        |row| Ok((row.integer(0)?, row.text(1)?)),
    )?;
    for ((revision, applied), migration) in applied.into_iter().zip(MIGRATIONS) {
        if applied != digest(connection.text(*migration)) {
            return Err(StoreError::MigrationChanged(revision));
        }
    }
    Ok(())
}

fn digest(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut digits, byte| {
            write!(digits, "{byte:02x}").expect("writing to a string cannot fail");
            digits
        })
}
