//! Checks price tables: each can be read, and its file is the one that was loaded.

use sha2::{Digest as _, Sha256};

use super::block::hexadecimal;
use super::finding::Damage;
use super::scan::Laws;
use crate::pack::packing;
use crate::read::prices;
use crate::sql::error::StoreError;

impl Laws<'_, '_, '_> {
    pub(crate) fn price_tables(&mut self) -> Result<(), StoreError> {
        let columns = [
            "price_table_id",
            "format",
            "name",
            "digest",
            "loaded_at_us",
            "models",
            "ignored",
            "byte_count",
            "file",
        ];
        self.scan("price_tables", &columns, |row, _, found| {
            let table = prices::read(row)?;
            let file = row.with_blob(8, packing::of_cell)??;
            let mut damaged = |damage| {
                let id = table.price_table_id.to_string();
                found.add("price_tables", Some(&id), damage, "");
            };
            if file.len() as u64 != row.count(7)? {
                damaged(Damage::SizeDiffers);
            }
            if hexadecimal(&Sha256::digest(&file)) != table.digest {
                damaged(Damage::DigestDiffers);
            }
            Ok(())
        })
    }
}
