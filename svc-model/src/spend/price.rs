#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::closed_set;
use crate::open::Open;
use crate::time::Instant;

closed_set! {
    /// The form of a file with prices.
    pub enum PriceFormat {
        /// LiteLLM's list of models: an object from a model's key to its rates.
        Litellm = "litellm",
        /// The document of models.dev: an object from a provider to its models.
        ModelsDev = "models_dev",
    }
}

closed_set! {
    /// Why the cost of an item is unknown. The first that applies, in this order.
    pub enum UnpricedReason {
        /// The call names no model.
        NoModel = "no_model",
        /// Its uncached input or its output is unknown.
        NoCounts = "no_counts",
        /// It was stored with its whole input, before the parts of the input were read.
        UsageNotRecorded = "usage_not_recorded",
        /// It has a service tier, whose price is unknown.
        TierPriceUnknown = "tier_price_unknown",
        /// No price table was loaded.
        NoPriceTable = "no_price_table",
        /// The table has no such model of its provider.
        ModelNotInTable = "model_not_in_table",
        /// Several providers of the table have the model at different prices, and the call names
        /// none.
        AmbiguousPrice = "ambiguous_price",
        /// The table gives the price in a form that is not read.
        PriceFormUnknown = "price_form_unknown",
        /// It wrote to a cache whose lifetime, or the price of it, is unknown.
        CacheLifetimeUnknown = "cache_lifetime_unknown",
    }
}

/// Which price table costs were derived with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct PriceTableName {
    /// The id of the table.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "uuid")))]
    pub price_table_id: Uuid,
    /// The form of its file.
    pub format: Open<PriceFormat>,
    /// Its name: that of the file, unless another was given.
    pub name: String,
    /// The SHA-256 of the file.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub digest: String,
    /// When it was loaded, by the service's clock.
    pub loaded_at: Instant,
}

/// A price table that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct PriceTable {
    /// The id of the table.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "uuid")))]
    pub price_table_id: Uuid,
    /// The form of its file.
    pub format: Open<PriceFormat>,
    /// Its name: that of the file, unless another was given.
    pub name: String,
    /// The SHA-256 of the file.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub digest: String,
    /// When it was loaded, by the service's clock.
    pub loaded_at: Instant,
    /// The models that have a price in it.
    pub models: u64,
    /// The entries of the file that were passed over: they are no models of text, or have no price.
    pub ignored: u64,
}

#[cfg(feature = "service")]
impl From<PriceTable> for PriceTableName {
    fn from(table: PriceTable) -> Self {
        Self {
            price_table_id: table.price_table_id,
            format: table.format,
            name: table.name,
            digest: table.digest,
            loaded_at: table.loaded_at,
        }
    }
}

/// The price tables that were loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct PriceTableList {
    /// The newest ones, newest first. The first is in force.
    pub tables: Vec<PriceTable>,
}

/// The answer to a file of prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LoadedPrices {
    /// The id of the table that is in force.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "uuid")))]
    pub price_table_id: Uuid,
    /// The form of the file.
    pub format: Open<PriceFormat>,
    /// The SHA-256 of the file.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub digest: String,
    /// The models that have a price in it.
    pub models: u64,
    /// The entries of the file that were passed over: they are no models of text, or have no price.
    pub ignored: u64,
    /// When the table was loaded, by the service's clock.
    pub loaded_at: Instant,
    /// Whether the table is new. The file of the table in force is not stored again.
    pub new: bool,
}

/// What a token costs, as exact decimal numbers of USD for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct TokenRate {
    /// The price of a million tokens in USD, such as `0.3`.
    pub usd_per_million: String,
    /// The prices of calls with more input than a threshold, by threshold. The last whose threshold is
    /// exceeded holds, for the whole call.
    pub above: Vec<TokenRateAbove>,
}

/// What a token costs in a call with a large input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct TokenRateAbove {
    /// The input tokens that the call must have more of, whether a cache held them or not.
    pub input_tokens: u64,
    /// The price of a million tokens in USD.
    pub usd_per_million: String,
}

/// What the tokens of a model cost. A rate that the table does not give is that of the input; that of
/// reasoning is the one of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct TokenRates {
    /// Input outside any cache.
    pub input: TokenRate,
    /// Input that was read from a cache.
    pub cache_read: TokenRate,
    /// Input that was written to a cache for five minutes.
    pub cache_write_5m: TokenRate,
    /// Input that was written to a cache for an hour; null if the table does not give it.
    pub cache_write_1h: Option<TokenRate>,
    /// Output.
    pub output: TokenRate,
    /// Output that was reasoning.
    pub reasoning: TokenRate,
}

/// What the price table in force says of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelPrice {
    /// The table; null if none was loaded.
    pub price_table: Option<PriceTableName>,
    /// The model.
    pub model: String,
    /// The provider; null if none was named.
    pub model_provider: Option<String>,
    /// What its tokens cost; null if that is unknown.
    pub rates: Option<TokenRates>,
    /// Why that is unknown; null if it is known.
    pub unpriced: Option<Open<UnpricedReason>>,
}
