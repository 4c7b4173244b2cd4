//! What a start and an operator ask of a database before they open a store: whether there is a
//! schema, whether it can be written, and what time its server has.

use svc_engine_fact::clock::Clock;
use svc_model::time::Instant;

use super::connection::{Connection, Sql};
use super::error::{SchemaState, StoreError};
use super::url::DatabaseUrl;
use super::{clock_fault, migrate};

/// The time of the database server, if it has a clock of its own.
const NOW: Sql = Sql {
    sqlite: "SELECT NULL",
    postgres: "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
};

/// Returns the state of the schema.
///
/// # Errors
///
/// If the store cannot be reached, or this user cannot tell whether there is one.
pub fn schema_state(url: &DatabaseUrl) -> Result<SchemaState, StoreError> {
    if !url.is_there()? {
        return Ok(SchemaState::Absent);
    }
    migrate::state(&mut Connection::open(url)?)
}

/// Checks that the store can be written, as far as possible without writing.
///
/// # Errors
///
/// If it cannot be written, or cannot be reached.
pub fn check_writing(url: &DatabaseUrl) -> Result<(), StoreError> {
    Connection::open(url)?.check_writing()
}

/// Compares a time with the database server's, if it has a clock of its own.
///
/// # Errors
///
/// [`StoreError::Clock`] if they differ by more than a minute, or if the store cannot be reached.
pub fn check_clock(url: &DatabaseUrl, clock: &Clock) -> Result<(), StoreError> {
    let database = database_now(&mut Connection::open(url)?)?;
    clock_fault::compare(clock.now(), database).map_err(StoreError::Clock)
}

/// Brings the schema to head and returns its revision.
///
/// # Errors
///
/// If the store cannot be reached, its schema is of a later version, or an applied migration was
/// changed.
pub fn upgrade(url: &DatabaseUrl) -> Result<i64, StoreError> {
    let mut connection = Connection::open(url)?;
    migrate::upgrade(&mut connection)?;
    match migrate::state(&mut connection)? {
        SchemaState::AtHead(revision) => Ok(revision),
        state => Err(StoreError::Schema(state)),
    }
}

/// Returns the time of the database server, if it has a clock of its own.
fn database_now(connection: &mut Connection) -> Result<Option<Instant>, StoreError> {
    let text = connection.text(NOW);
    let now = connection.first(text, &[], |row| row.optional_integer(0))?;
    Ok(now.flatten().and_then(Instant::from_microseconds))
}

/// Opens a database for reading. Its schema must be at head.
pub(crate) fn opened(url: &DatabaseUrl) -> Result<Connection, StoreError> {
    if !url.is_there()? {
        return Err(StoreError::Schema(SchemaState::Absent));
    }
    let mut connection = Connection::open_reading(url)?;
    match migrate::state(&mut connection)? {
        SchemaState::AtHead(_) => Ok(connection),
        state => Err(StoreError::Schema(state)),
    }
}
