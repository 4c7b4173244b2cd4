//! The price table in force, the list of tables, and what a table says of a model.

use std::sync::{Arc, Mutex, PoisonError};

use svc_engine_derive::price::{PriceBook, PriceFile, Rate, Rates};
use svc_engine_store::Snapshot;
use svc_model::endpoint::{PriceRates, PriceTables};
use svc_model::limit::PRICE_TABLES_SHOWN_MAX;
use svc_model::open::Open;
use svc_model::request::NoParameters;
use svc_model::spend::{
    ModelPrice, ModelPriceRequest, ModelProviderName, PriceTable, PriceTableList, PriceTableName,
    TokenRate, TokenRateAbove, TokenRates, UnpricedReason,
};
use svc_model::time::Instant;

use super::answer::{AdmissionKind, Answer, ReadContext};
use crate::error::Error;

/// How many tables are remembered: the one in force, and one of an earlier moment.
const REMEMBERED_MAX: usize = 2;
/// The decimal places between a rate, in 10^-15 USD for a token, and USD for a million tokens.
const PLACES: usize = 9;

/// The price tables that were read last. The file of a digest never changes.
#[derive(Debug, Default)]
pub(super) struct PriceMemory(Mutex<Vec<(String, Arc<PriceBook>)>>);

impl PriceMemory {
    /// Returns the book of a digest, which is read if it is not remembered. Only one file is read at a
    /// time, because it takes memory.
    fn book(
        &self,
        digest: &str,
        read: impl FnOnce() -> Result<PriceBook, Error>,
    ) -> Result<Arc<PriceBook>, Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known.iter().position(|(of, _)| of == digest) {
            let found = known.remove(place);
            let book = Arc::clone(&found.1);
            known.push(found);
            return Ok(book);
        }
        let book = Arc::new(read()?);
        if known.len() >= REMEMBERED_MAX {
            known.remove(0);
        }
        known.push((digest.to_owned(), Arc::clone(&book)));
        Ok(book)
    }
}

/// Returns the price table in force at a moment, and its rates; `None` if none was loaded by then.
pub(in crate::read) fn book_in_force(
    snapshot: &mut Snapshot<'_>,
    memory: &PriceMemory,
    as_of: Instant,
) -> Result<Option<(PriceTableName, Arc<PriceBook>)>, Error> {
    match snapshot.price_table_in_force(as_of)? {
        Some(table) => Ok(Some(book_of(snapshot, memory, table)?)),
        None => Ok(None),
    }
}

/// Returns a price table, and its rates.
pub(in crate::read) fn book_of(
    snapshot: &mut Snapshot<'_>,
    memory: &PriceMemory,
    table: PriceTable,
) -> Result<(PriceTableName, Arc<PriceBook>), Error> {
    let book = memory.book(&table.digest, || {
        // A table is never removed.
        let file = snapshot.price_table_file(table.price_table_id)?;
        let read = PriceFile::read(&file.unwrap_or_default());
        Ok(read.map_err(Error::UnreadablePrices)?.book)
    })?;
    Ok((table.into(), book))
}

/// Returns the newest price table, even if its moment is that of another server's clock, and its
/// rates; `None` if none was loaded.
pub(in crate::read) fn newest_book(
    reading: &mut ReadContext<'_, '_>,
) -> Result<Option<(PriceTableName, Arc<PriceBook>)>, Error> {
    let memory = reading.report_memory()?;
    let newest = reading.snapshot.price_tables(1)?.pop();
    let as_of = newest.map_or(reading.now, |table| table.loaded_at.max(reading.now));
    book_in_force(reading.snapshot, &memory.prices, as_of)
}

impl Answer for PriceTables {
    const ADMISSION: AdmissionKind = AdmissionKind::Short;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        _request: NoParameters,
    ) -> Result<PriceTableList, Error> {
        let tables = reading.snapshot.price_tables(PRICE_TABLES_SHOWN_MAX)?;
        Ok(PriceTableList { tables })
    }
}

impl Answer for PriceRates {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: ModelPriceRequest,
    ) -> Result<ModelPrice, Error> {
        let in_force = newest_book(reading)?;
        let provider = request.provider.as_ref().map(ModelProviderName::as_str);
        let rates = match &in_force {
            Some((_, book)) => book.rates(provider, request.model.as_str()),
            None => Err(UnpricedReason::NoPriceTable),
        };
        Ok(ModelPrice {
            model: request.model.as_str().to_owned(),
            model_provider: request.provider.map(String::from),
            unpriced: rates.err().map(Open::Known),
            rates: rates.ok().map(shown),
            price_table: in_force.map(|(table, _)| table),
        })
    }
}

fn shown(rates: &Rates) -> TokenRates {
    TokenRates {
        input: shown_rate(&rates.input),
        cache_read: shown_rate(&rates.cache_read),
        cache_write_5m: shown_rate(&rates.cache_write_5m),
        cache_write_1h: rates.cache_write_1h.as_ref().map(shown_rate),
        output: shown_rate(&rates.output),
        reasoning: shown_rate(&rates.reasoning),
    }
}

fn shown_rate(rate: &Rate) -> TokenRate {
    let above = rate.above().iter().map(|(input_tokens, rate)| {
        let input_tokens = *input_tokens;
        let usd_per_million = usd_per_million(*rate);
        TokenRateAbove {
            input_tokens,
            usd_per_million,
        }
    });
    TokenRate {
        usd_per_million: usd_per_million(rate.base()),
        above: above.collect(),
    }
}

/// Returns a rate as an exact decimal number.
fn usd_per_million(rate: i64) -> String {
    let digits = format!("{rate:0>width$}", width = PLACES + 1);
    let (whole, fraction) = digits.split_at(digits.len() - PLACES);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_exact_decimal_number() {
        for (rate, expected) in [
            (0, "0"),
            (1, "0.000000001"),
            (300_000_000, "0.3"),
            (3_000_000_000, "3"),
            (3_750_000_000, "3.75"),
            (1_000_000_000_000_000, "1000000"),
        ] {
            assert_eq!(usd_per_million(rate), expected);
        }
    }

    #[test]
    fn the_tables_that_were_used_last_are_remembered() {
        let memory = PriceMemory::default();
        let text = br#"{"m":{"input_cost_per_token":0,"output_cost_per_token":0}}"#;
        let is_read = |digest: &str| {
            let mut is_read = false;
            let read = || {
                is_read = true;
                Ok(PriceFile::read(text).unwrap().book)
            };
            memory.book(digest, read).unwrap();
            is_read
        };
        assert!(is_read("a"));
        assert!(!is_read("a"));
        assert!(is_read("b"));
        assert!(!is_read("a"));
        assert!(is_read("c"));
        assert!(!is_read("a"));
        assert!(is_read("b"), "it was used longest ago");
        assert!(memory.book("z", || Err(Error::MalformedPrices)).is_err());
        assert!(!is_read("a"));
    }
}
