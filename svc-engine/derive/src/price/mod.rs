//! What a call costs by a price table: the rates of its file, and the tokens of the call.
//!
//! Every number is an integer. A rate is read from its spelling and counts 10^-15 USD for a token,
//! so that a cost is exact until it is rounded, once, to micro-USD.

mod book;
mod cost;
mod litellm;
mod models_dev;
mod provider;
mod rates;
#[cfg(test)]
mod tests;

pub use book::PriceBook;
pub use cost::{PricedUse, cost};
pub use rates::{Rate, Rates, TokenPrices};

use svc_model::json::{Json, NodeBudget, Object, ParseError, ParseErrorKind};
use svc_model::limit::{PRICE_MODELS_MAX, REQUEST_MEMORY_BYTES_MAX};
use svc_model::spend::PriceFormat;

/// What a file of prices has.
#[derive(Clone, Debug)]
pub struct PriceFile {
    /// Its rates.
    pub book: PriceBook,
    /// Its form.
    pub format: PriceFormat,
    /// The number of entries with a price that can be found.
    pub models: u64,
    /// The number of entries that were passed over.
    pub ignored: u64,
}

/// Why a file is no price table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceFileError {
    /// It is no JSON.
    #[error("the file is not valid JSON: {0}")]
    Malformed(ParseError),
    /// Its values take too much memory.
    #[error("the values of the file take more than {REQUEST_MEMORY_BYTES_MAX} bytes of memory")]
    TooLarge,
    /// It has neither form.
    #[error("the file is neither LiteLLM's list of models nor the document of models.dev")]
    UnknownForm,
    /// No entry has a price.
    #[error("the file has no model with a price")]
    NoModels,
    /// Too many entries have a price.
    #[error("the file has more than {PRICE_MODELS_MAX} models with a price")]
    TooManyModels,
}

impl From<ParseError> for PriceFileError {
    fn from(error: ParseError) -> Self {
        match error.kind {
            ParseErrorKind::OverBudget => Self::TooLarge,
            _ => Self::Malformed(error),
        }
    }
}

impl PriceFile {
    /// Reads a file, whose shape tells its form.
    pub fn read(bytes: &[u8]) -> Result<Self, PriceFileError> {
        let budget = NodeBudget::new(REQUEST_MEMORY_BYTES_MAX);
        let document = Json::parse_within(bytes, &budget)?;
        let entries = document.as_object().ok_or(PriceFileError::UnknownForm)?;
        let format = format(entries).ok_or(PriceFileError::UnknownForm)?;
        let (book, ignored) = match format {
            PriceFormat::Litellm => litellm::book(entries),
            PriceFormat::ModelsDev => models_dev::book(entries),
        };
        match book.len() {
            0 => Err(PriceFileError::NoModels),
            models if models > PRICE_MODELS_MAX => Err(PriceFileError::TooManyModels),
            models => Ok(Self {
                book,
                format,
                models: models as u64,
                ignored,
            }),
        }
    }
}

/// Returns the form of a document, if it has one.
fn format(document: &Object) -> Option<PriceFormat> {
    let mut entries = document.iter().filter_map(|(_, entry)| entry.as_object());
    if entries.clone().any(litellm::is_entry) {
        return Some(PriceFormat::Litellm);
    }
    entries
        .any(models_dev::is_provider)
        .then_some(PriceFormat::ModelsDev)
}
