//! The schema and its revisions. A released migration is never changed.

#[cfg(any(test, feature = "testing"))]
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::connection::{Connection, Sql};
use super::error::{SchemaState, StoreError};
use super::value::Value;

/// The migrations in order, with their names. The revision is the position, counted from 1.
pub(crate) const MIGRATIONS: &[(&str, Sql)] = &[
    (
        "facts",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0001_facts.sql"),
            postgres: include_str!("../../migrations/postgres/0001_facts.sql"),
        },
    ),
    (
        "usage",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0002_usage.sql"),
            postgres: include_str!("../../migrations/postgres/0002_usage.sql"),
        },
    ),
    (
        "sources",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0003_sources.sql"),
            postgres: include_str!("../../migrations/postgres/0003_sources.sql"),
        },
    ),
    (
        "transcripts",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0004_transcripts.sql"),
            postgres: include_str!("../../migrations/postgres/0004_transcripts.sql"),
        },
    ),
    (
        "search",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0005_search.sql"),
            postgres: include_str!("../../migrations/postgres/0005_search.sql"),
        },
    ),
    (
        "prices",
        Sql {
            sqlite: include_str!("../../migrations/sqlite/0006_prices.sql"),
            postgres: include_str!("../../migrations/postgres/0006_prices.sql"),
        },
    ),
];

/// The revision that this service needs.
#[expect(clippy::cast_possible_wrap, reason = "there are few migrations")]
pub(crate) const HEAD: i64 = MIGRATIONS.len() as i64;

/// Returns a number that tells one schema of PostgreSQL from another.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn digest() -> u64 {
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

/// Returns the state of the schema.
///
/// # Errors
///
/// [`StoreError::MigrationChanged`] if the schema is of this version by its number, but was made by
/// another migration.
pub(crate) fn state(connection: &mut Connection) -> Result<SchemaState, StoreError> {
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

/// Upgrades an absent schema to an older revision, as an older version of the service left it.
///
/// # Errors
///
/// If a migration fails.
#[cfg(test)]
pub(crate) fn upgrade_to(connection: &mut Connection, revision: usize) -> Result<(), StoreError> {
    let older = migrator(connection);
    let older = older.iter().take(revision).cloned().collect();
    connection.migrate(&Migrator::with_migrations(older))
}

/// Returns whether the schema has a table.
pub(crate) fn has_table(connection: &mut Connection, name: &str) -> Result<bool, StoreError> {
    let sql = connection.text(HAS_TABLE);
    let tables = connection.first(sql, &[Value::Text(name)], |row| row.integer(0))?;
    Ok(tables.unwrap_or(0) > 0)
}

/// Upgrades an absent or older schema. A schema of a later version is left alone; [`state`] tells.
///
/// # Errors
///
/// [`StoreError::MigrationChanged`] if an applied migration differs from this version's.
pub(crate) fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
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

impl SchemaState {
    /// Returns the revision that this service needs.
    pub const fn head() -> i64 {
        HEAD
    }
}
