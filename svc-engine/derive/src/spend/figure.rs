//! What items cost and used, and the sums. Each sum is exact or refused.

use svc_model::spend::{ItemCost, SpendFigure, UnpricedReason};

use super::Item;
use crate::price::{self, PriceBook, PricedUse};

/// A sum is beyond 2^63-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum of costs or tokens is larger than any number that an answer can hold")]
pub struct SumTooLarge;

/// What an item cost, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A source reported it.
    Captured(i64),
    /// It follows from the tokens and a price table.
    Derived(i64),
    /// It is unknown.
    Unknown(UnpricedReason),
}

impl Cost {
    /// Returns what an item cost, by the table in force.
    pub fn of(item: &Item, book: Option<&PriceBook>) -> Self {
        if let Some(cost) = item.cost_usd_micros {
            return Self::Captured(cost);
        }
        let model = item.model.as_ref();
        let used = PricedUse {
            model_provider: model.and_then(|model| model.provider.as_deref()),
            model: model.map(|model| &*model.name),
            tokens: item.tokens,
            has_unsplit_input: item.has_unsplit_input,
            tier: item.tier.as_deref(),
        };
        match price::cost(book, &used) {
            Ok(cost) => Self::Derived(cost),
            Err(reason) => Self::Unknown(reason),
        }
    }
}

/// Returns the figure of one item.
pub fn figure(item: &Item, cost: Cost) -> SpendFigure {
    let is_call = item.call.is_some();
    let mut figure = SpendFigure {
        calls: u64::from(is_call),
        receipts_only: u64::from(!is_call),
        input_tokens_uncached: item.tokens.input_tokens_uncached.unwrap_or(0),
        cache_read_tokens: item.tokens.cache_read_tokens.unwrap_or(0),
        cache_write_tokens: item.tokens.cache_write_tokens.unwrap_or(0),
        output_tokens: item.tokens.output_tokens.unwrap_or(0),
        items_without_counts: u64::from(!item.has_counts),
        ..SpendFigure::default()
    };
    let of_one = |cost_usd_micros| ItemCost {
        items: 1,
        cost_usd_micros,
    };
    match cost {
        Cost::Captured(cost) => figure.captured = of_one(cost),
        Cost::Derived(cost) => figure.derived = of_one(cost),
        Cost::Unknown(_) => figure.unpriced_items = 1,
    }
    figure.cost_usd_micros = figure.captured.cost_usd_micros + figure.derived.cost_usd_micros;
    figure
}

/// Adds a figure to another one.
///
/// # Errors
///
/// If a sum is too large.
pub fn add(sum: &mut SpendFigure, figure: &SpendFigure) -> Result<(), SumTooLarge> {
    sum.calls += figure.calls;
    sum.receipts_only += figure.receipts_only;
    add_cost(&mut sum.captured, figure.captured)?;
    add_cost(&mut sum.derived, figure.derived)?;
    sum.unpriced_items += figure.unpriced_items;
    sum.items_without_counts += figure.items_without_counts;
    for (sum, added) in [
        (&mut sum.cost_usd_micros, figure.cost_usd_micros),
        (&mut sum.input_tokens_uncached, figure.input_tokens_uncached),
        (&mut sum.cache_read_tokens, figure.cache_read_tokens),
        (&mut sum.cache_write_tokens, figure.cache_write_tokens),
        (&mut sum.output_tokens, figure.output_tokens),
    ] {
        *sum = sum.checked_add(added).ok_or(SumTooLarge)?;
    }
    Ok(())
}

fn add_cost(sum: &mut ItemCost, added: ItemCost) -> Result<(), SumTooLarge> {
    sum.items += added.items;
    let cost = sum.cost_usd_micros.checked_add(added.cost_usd_micros);
    sum.cost_usd_micros = cost.ok_or(SumTooLarge)?;
    Ok(())
}
