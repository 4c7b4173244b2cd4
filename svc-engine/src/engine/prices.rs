//! Loading price tables.

use sha2::{Digest as _, Sha256};
use svc_engine_derive::price::{PriceFile, PriceFileError};
use svc_engine_store::{NewPriceTable, PriceLoad, backup};
use svc_model::problem::QueryFault;
use svc_model::spend::{LoadedPrices, PriceFileRequest, PriceTable, PriceTableLabel};

use super::Engine;
use crate::error::Error;

/// What a table is called that was given no name.
const UNNAMED: &str = "prices";

impl From<PriceFileError> for Error {
    fn from(error: PriceFileError) -> Self {
        match error {
            PriceFileError::Malformed(_) => Self::MalformedPrices,
            PriceFileError::TooLarge | PriceFileError::TooManyModels => Self::TooManyValues,
            PriceFileError::UnknownForm => Self::Query(QueryFault::UnknownPriceFormat),
            PriceFileError::NoModels => Self::Query(QueryFault::NoModels),
        }
    }
}

impl Engine {
    /// Loads a file of prices. The file of the table in force is not stored again.
    ///
    /// # Errors
    ///
    /// If the file is no price table, there are too many tables, or the table was not stored.
    pub async fn load_prices(&self, request: PriceFileRequest) -> Result<LoadedPrices, Error> {
        let (price_table_id, loaded_at) = (self.0.ids.fresh(), self.0.clock.now());
        let read = move || -> Result<NewPriceTable, Error> {
            let file = PriceFile::read(&request.file)?;
            let name = request
                .name
                .as_ref()
                .map_or(UNNAMED, PriceTableLabel::as_str);
            Ok(NewPriceTable {
                price_table_id,
                format: file.format,
                name: name.to_owned(),
                digest: backup::hexadecimal(&Sha256::digest(&request.file)),
                loaded_at,
                models: file.models,
                ignored: file.ignored,
                file: request.file,
            })
        };
        let read = tokio::task::spawn_blocking(read).await;
        let table = read.map_err(|_| Error::NoOutcome)??;
        match self.0.store.load_price_table(table).await? {
            PriceLoad::New(table) => Ok(loaded(table, true)),
            PriceLoad::InForce(table) => Ok(loaded(table, false)),
            PriceLoad::Full => Err(QueryFault::PriceTablesFull.into()),
        }
    }
}

fn loaded(table: PriceTable, new: bool) -> LoadedPrices {
    LoadedPrices {
        price_table_id: table.price_table_id,
        format: table.format,
        digest: table.digest,
        models: table.models,
        ignored: table.ignored,
        loaded_at: table.loaded_at,
        new,
    }
}
