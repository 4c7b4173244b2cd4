//! Price tables: which is in force at a moment, and its file.

use svc_model::id::OrgId;
use svc_model::open::Open;
use svc_model::spend::{PriceFormat, PriceTable};
use svc_model::time::Instant;
use uuid::Uuid;

use super::snapshot::Snapshot;
use crate::pack::packing;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT price_table_id, format, name, digest, loaded_at_us, models, ignored
            FROM price_tables WHERE (org_id || '') = $1 ",
            $rest
        )
    };
}

const NEWEST: &str = select!("ORDER BY loaded_at_us DESC LIMIT $2");
const IN_FORCE: &str = select!("AND loaded_at_us <= $2 ORDER BY loaded_at_us DESC LIMIT 1");
const FILE: &str = "SELECT file FROM price_tables WHERE price_table_id = $1 AND org_id = $2";

/// Reads a row without its file.
pub(crate) fn read(row: &Row<'_>) -> Result<PriceTable, StoreError> {
    let broken = |column| corrupt("price_tables", column);
    let format = row.with_text(1, PriceFormat::from_wire)?;
    let loaded_at = Instant::from_microseconds(row.integer(4)?);
    Ok(PriceTable {
        price_table_id: row
            .with_text(0, Uuid::parse_str)?
            .map_err(|_| broken("price_table_id"))?,
        format: Open::Known(format.ok_or(broken("format"))?),
        name: row.text(2)?,
        digest: row.text(3)?,
        loaded_at: loaded_at.ok_or(broken("loaded_at_us"))?,
        models: row.count(5)?,
        ignored: row.count(6)?,
    })
}

/// Returns the newest tables, newest first.
pub(crate) fn newest(
    connection: &mut Connection,
    org_id: &OrgId,
    limit: u64,
) -> Result<Vec<PriceTable>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let keys = [org_id.as_str().into(), limit.into()];
    connection.all(NEWEST, &keys, read)
}

impl Snapshot<'_> {
    /// Returns the newest price tables, newest first.
    pub fn price_tables(&mut self, limit: u64) -> Result<Vec<PriceTable>, StoreError> {
        let org_id = self.org_id;
        newest(self.connection()?, org_id, limit)
    }

    /// Returns the price table that was the newest at a moment.
    pub fn price_table_in_force(
        &mut self,
        as_of: Instant,
    ) -> Result<Option<PriceTable>, StoreError> {
        let keys = [self.org_id.as_str().into(), as_of.into()];
        self.connection()?.first(IN_FORCE, &keys, read)
    }

    /// Returns the file of a price table; `None` if there is no such table.
    pub fn price_table_file(&mut self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let keys = [Value::OwnText(id.to_string()), self.org_id.as_str().into()];
        let file = self.connection()?.first(FILE, &keys, |row| row.blob(0))?;
        file.map(|cell| packing::of_cell(&cell)).transpose()
    }
}
