//! What calls of models cost. Every figure is at list price: it is nobody's bill.

mod price;
mod price_request;
mod report;
mod request;

pub use price::{
    LoadedPrices, ModelPrice, PriceFormat, PriceTable, PriceTableList, PriceTableName, TokenRate,
    TokenRateAbove, TokenRates, UnpricedReason,
};
pub use price_request::{ModelPriceRequest, ModelProviderName, PriceFileRequest, PriceTableLabel};
pub use report::{
    CohortSpend, JoinedReceipts, OtherSpendRows, OutcomeSpend, SpendBasis, SpendBy, SpendCi,
    SpendFigure, SpendKey, SpendOutcomes, SpendReport, SpendRow, SpendRowWithoutKey,
};
pub use request::{SpendRequest, SpendRowLimit};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Items, and what they cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ItemCost {
    /// The number of items.
    pub items: u64,
    /// Their cost in micro-USD.
    pub cost_usd_micros: i64,
}

/// What one Session cost, as far as it is known.
///
/// An item is a visible call with the visible usage receipts that are about it, or the receipts of a
/// call that was not captured. So a call that several sources report is spent once. An item whose
/// cost is unknown adds nothing to the cost, and is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionSpend {
    /// The items with a captured call.
    pub calls: u64,
    /// The items without one.
    pub receipts_only: u64,
    /// The items whose cost a source reported.
    pub captured: ItemCost,
    /// The items whose cost was derived from their tokens and a price table.
    pub derived: ItemCost,
    /// The items whose cost is unknown.
    pub unpriced_items: u64,
    /// The cost of the captured and of the derived items, in micro-USD.
    pub cost_usd_micros: i64,
    /// The items whose input or output tokens are unknown.
    pub items_without_counts: u64,
}
