//! The schema and its revisions. A released migration is never changed.

use std::fmt;
#[cfg(any(test, feature = "testing"))]
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::StoreError;
use super::connection::{Connection, Sql};
use super::value::Value;

/// The migrations in order, with their names. The revision is the position, counted from 1.
const MIGRATIONS: &[(&str, Sql)] = &[(
    "facts",
    Sql {
        sqlite: include_str!("../migrations/sqlite/0001_facts.sql"),
        postgres: include_str!("../migrations/postgres/0001_facts.sql"),
    },
)];

/// The revision that this service needs.
#[expect(clippy::cast_possible_wrap, reason = "there are few migrations")]
pub(super) const HEAD: i64 = MIGRATIONS.len() as i64;

/// Returns a number that tells one schema of PostgreSQL from another.
#[cfg(any(test, feature = "testing"))]
pub(super) fn digest() -> u64 {
    let mut hasher = DefaultHasher::new();
    for (_, sql) in MIGRATIONS {
        sql.postgres.hash(&mut hasher);
    }
    hasher.finish()
}

/// The table of the driver's migrator.
const TABLE: &str = "_sqlx_migrations";
const REVISION: &str = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
const APPLIED: &str = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";
const HAS_TABLE: Sql = Sql {
    sqlite: "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
    postgres: "SELECT COUNT(*) FROM pg_catalog.pg_class
               WHERE relname = CAST($1 AS TEXT) AND pg_table_is_visible(oid)",
};

/// The time limit for upgrading a schema: building an index of a large table takes hours, and other
/// servers wait for the one that does it.
const MIGRATING_HOURS: u64 = 24;

/// The stored schema, compared with the one that this service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is no schema.
    Absent,
    /// It is of an earlier version.
    Behind(i64),
    /// It is current.
    AtHead(i64),
    /// It is of a later version.
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
///
/// # Errors
///
/// [`StoreError::MigrationChanged`] if the schema is of this version by its number, but was made by
/// another migration.
pub(super) fn state(connection: &mut Connection) -> Result<SchemaState, StoreError> {
    if !has_table(connection, TABLE)? {
        return Ok(SchemaState::Absent);
    }
    let revision = connection
        .first(REVISION, &[], |row| row.integer(0))?
        .unwrap_or(0);
    Ok(match revision {
        HEAD => {
            let migrator = migrator(connection);
            verify(connection, &migrator)?;
            SchemaState::AtHead(revision)
        }
        revision if revision < HEAD => SchemaState::Behind(revision),
        revision => SchemaState::Ahead(revision),
    })
}

/// Returns the migrations of this version.
fn migrator(connection: &Connection) -> Migrator {
    let migrations = (1_i64..).zip(MIGRATIONS).map(|(revision, (name, sql))| {
        let sql = SqlStr::from_static(connection.text(*sql));
        Migration::new(revision, (*name).into(), MigrationType::Simple, sql, false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// Returns whether the schema has a table.
pub(super) fn has_table(connection: &mut Connection, name: &str) -> Result<bool, StoreError> {
    let sql = connection.text(HAS_TABLE);
    let tables = connection.first(sql, &[Value::Text(name)], |row| row.integer(0))?;
    Ok(tables.unwrap_or(0) > 0)
}

/// Upgrades an absent or older schema. A schema of a later version is left alone; [`state`] tells.
///
/// # Errors
///
/// [`StoreError::MigrationChanged`] if an applied migration differs from this version's.
pub(super) fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    let migrator = migrator(connection);
    match state(connection)? {
        SchemaState::AtHead(_) => Ok(()),
        SchemaState::Ahead(_) => verify(connection, &migrator),
        SchemaState::Absent | SchemaState::Behind(_) => connection.migrate(&migrator),
    }
}

fn verify(connection: &mut Connection, migrator: &Migrator) -> Result<(), StoreError> {
    let applied = connection.all(APPLIED, &[], |row| Ok((row.integer(0)?, row.blob(1)?)))?;
    for (revision, checksum) in applied {
        let migration = migrator
            .iter()
            .find(|migration| migration.version == revision);
        if migration.is_some_and(|migration| *migration.checksum != checksum) {
            return Err(StoreError::MigrationChanged(revision));
        }
    }
    Ok(())
}

/// Returns the deadline of a migration.
pub(super) fn until() -> Instant {
    Instant::now() + Duration::from_secs(MIGRATING_HOURS * 60 * 60)
}
