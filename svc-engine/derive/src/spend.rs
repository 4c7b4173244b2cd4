//! What calls of models cost: each call once, whichever sources report it.

mod figure;
mod item;
mod report;
mod row;

use svc_model::spend::SessionSpend;

pub use figure::{Cost, SumTooLarge, add, figure};
pub(crate) use item::COST_TOLERANCE;
pub use item::{CallKeys, Item, Model, ReceiptCounts, Sighting, items};
pub use report::{Question, Work, report};

/// Returns what the visible calls and receipts of a Session cost. A receipt with a key of a call
/// `beyond` these, which is quarantined or which another Session has, forms no item.
pub fn of_session(calls: &[Sighting], receipts: Vec<Sighting>, beyond: &CallKeys) -> SessionSpend {
    let items = items(calls, receipts, beyond);
    let mut spend = SessionSpend {
        calls: calls.len() as u64,
        receipts_only: (items.len() - calls.len()) as u64,
        ..SessionSpend::default()
    };
    for item in &items {
        match item.cost_usd_micros {
            Some(cost) => {
                spend.captured.items += 1;
                let sum = &mut spend.captured.cost_usd_micros;
                *sum = sum.saturating_add(cost);
            }
            None => spend.unpriced_items += 1,
        }
        spend.items_without_counts += u64::from(!item.has_counts);
    }
    spend.cost_usd_micros = spend.captured.cost_usd_micros;
    spend
}
