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
