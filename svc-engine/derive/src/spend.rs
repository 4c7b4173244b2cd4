//! What calls of models cost: each call once, whichever sources report it.

mod figure;
mod item;
mod report;
mod row;

use svc_model::spend::{ItemCost, SessionSpend};

pub use figure::{Cost, SumTooLarge, add, figure};
pub(crate) use item::COST_TOLERANCE;
pub use item::{CallKeys, Item, Model, ReceiptCounts, Sighting, items};
pub use report::{Question, Work, report};

use crate::price::PriceBook;

/// Returns what the visible calls and receipts of a Session cost, by the table in force where no
/// source says so. A hidden call is not counted, and a receipt that joins one, or that has a key of a
/// call `beyond` these, which is quarantined or which another Session has, forms no item. A sum beyond 2^63-1 is 2^63-1.
pub fn of_session(
    calls: &[Sighting],
    receipts: Vec<Sighting>,
    beyond: &CallKeys,
    book: Option<&PriceBook>,
) -> SessionSpend {
    let items = items(calls, receipts, beyond);
    let of_calls = items.iter().filter(|item| item.call.is_some()).count();
    let mut spend = SessionSpend {
        calls: of_calls as u64,
        receipts_only: (items.len() - of_calls) as u64,
        ..SessionSpend::default()
    };
    for item in &items {
        match Cost::of(item, book) {
            Cost::Captured(cost) => count(&mut spend.captured, cost),
            Cost::Derived(cost) => count(&mut spend.derived, cost),
            Cost::Unknown(_) => spend.unpriced_items += 1,
        }
        spend.items_without_counts += u64::from(!item.has_counts);
    }
    let [captured, derived] = [spend.captured, spend.derived].map(|of| of.cost_usd_micros);
    spend.cost_usd_micros = captured.saturating_add(derived);
    spend
}

fn count(sum: &mut ItemCost, cost: i64) {
    sum.items += 1;
    sum.cost_usd_micros = sum.cost_usd_micros.saturating_add(cost);
}
