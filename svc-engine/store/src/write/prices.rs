//! Price tables that an operator loads. A table is never changed, and never removed by loading
//! another.

use svc_model::limit::PRICE_TABLES_MAX;
use svc_model::open::Open;
use svc_model::spend::{PriceFormat, PriceTable};
use svc_model::time::Instant;
use uuid::Uuid;

use super::store::Store;
use super::transaction::{Transaction, after};
use crate::pack::packing;
use crate::read::prices;
use crate::sql::error::StoreError;
use crate::sql::value::Value;

const COUNT: &str = "SELECT COUNT(*) FROM price_tables WHERE (org_id || '') = $1";
const INSERT: &str = "INSERT INTO price_tables (price_table_id, org_id, format, name, digest,
    loaded_at_us, models, ignored, byte_count, file)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// A price table to store.
#[derive(Clone, Debug)]
pub struct NewPriceTable {
    /// Its id, if it is stored.
    pub price_table_id: Uuid,
    /// The form of its file.
    pub format: PriceFormat,
    /// Its name.
    pub name: String,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// When it was received.
    pub loaded_at: Instant,
    /// How many models have a price.
    pub models: u64,
    /// How many entries were passed over.
    pub ignored: u64,
    /// The file.
    pub file: Vec<u8>,
}

/// What became of a price table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceLoad {
    /// It is stored, and in force.
    New(PriceTable),
    /// The table in force has the same file. Nothing was stored.
    InForce(PriceTable),
    /// There are as many tables as are kept. Nothing was stored.
    Full,
}

impl Store {
    /// Stores a price table unless its file is that of the table in force, and waits for the commit.
    ///
    /// # Errors
    ///
    /// If nothing was stored, or it is unknown whether it was.
    pub async fn load_price_table(&self, table: NewPriceTable) -> Result<PriceLoad, StoreError> {
        let byte_count = table.file.len();
        let pack = move || {
            let NewPriceTable { file, .. } = table;
            let cell = packing::cell(file);
            let file = Vec::new();
            (NewPriceTable { file, ..table }, cell)
        };
        let packed = tokio::task::spawn_blocking(pack).await;
        let (table, cell) = packed.map_err(|_| StoreError::NotStored)?;
        let load =
            move |transaction: &mut Transaction<'_>| load(transaction, &table, &cell, byte_count);
        self.writer.run(load).await
    }
}

fn load(
    transaction: &mut Transaction<'_>,
    table: &NewPriceTable,
    cell: &[u8],
    byte_count: usize,
) -> Result<PriceLoad, StoreError> {
    // Lock before the table in force is read.
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let in_force = prices::newest(connection, org_id, 1)?.pop();
    let in_force = match in_force {
        Some(in_force) if in_force.digest == table.digest => {
            return Ok(PriceLoad::InForce(in_force));
        }
        in_force => in_force,
    };
    let count = connection.first(COUNT, &[org_id.as_str().into()], |row| row.count(0))?;
    if count.unwrap_or(0) >= PRICE_TABLES_MAX {
        return Ok(PriceLoad::Full);
    }
    // The newest table stays the newest even if the clock was set back.
    let earliest = in_force.map(|table| after(table.loaded_at));
    let loaded_at = earliest.map_or(table.loaded_at, |earliest| earliest.max(table.loaded_at));
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let values = [
        Value::OwnText(table.price_table_id.to_string()),
        org_id.as_str().into(),
        table.format.as_str().into(),
        Value::Text(&table.name),
        Value::Text(&table.digest),
        loaded_at.into(),
        number(table.models),
        number(table.ignored),
        number(byte_count as u64),
        Value::Blob(cell),
    ];
    connection.execute(INSERT, &values)?;
    Ok(PriceLoad::New(PriceTable {
        price_table_id: table.price_table_id,
        format: Open::Known(table.format),
        name: table.name.clone(),
        digest: table.digest.clone(),
        loaded_at,
        models: table.models,
        ignored: table.ignored,
    }))
}
