//! Statements that tests run on a store's database.

use super::plan_check;
use crate::sql::connection::Connection;
use crate::sql::migrate;
use crate::{DatabaseUrl, StoreError};

/// Returns rows of text columns, for tests of what is stored.
pub(super) fn text_rows(
    url: &DatabaseUrl,
    sql: &str,
    columns: usize,
) -> Result<Vec<Vec<String>>, StoreError> {
    let mut connection = Connection::open_reading(url)?;
    plan_check::unchecked(|| {
        connection.all(sql, &[], |row| {
            (0..columns).map(|column| row.text(column)).collect()
        })
    })
}

/// Runs a statement without values and returns the number of changed rows. Tests use it to damage a
/// store.
pub fn change_rows(url: &DatabaseUrl, sql: &str) -> Result<u64, StoreError> {
    let mut connection = Connection::open(url)?;
    plan_check::unchecked(|| connection.execute(sql, &[]))
}

/// Returns a number that tells one schema of PostgreSQL from another.
pub fn schema_digest() -> u64 {
    migrate::digest()
}

/// Runs statements that put a database into a state in which no service would leave it.
///
/// # Errors
///
/// If the store cannot be reached, or refuses them.
pub fn run_sql(url: &DatabaseUrl, sql: &str) -> Result<(), StoreError> {
    Connection::open(url)?.batch(sql)
}
