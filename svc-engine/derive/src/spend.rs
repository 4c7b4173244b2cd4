//! What a Session cost: each call of a model once, whichever sources report it.

use std::collections::HashMap;

use svc_engine_fact::{CallKey, UsageReceipt};
use svc_model::spend::SessionSpend;

use super::session_usage::{CallIdentities, of_receipt};
use super::usage::{Usage, join};

/// What a visible call says of its cost.
#[derive(Clone, Debug, Default)]
pub struct CallCost {
    /// What tells the receipts that are about it.
    pub usage: Usage,
    /// The cost in micro-USD, as its source reported it.
    pub cost_usd_micros: Option<i64>,
}

/// What is known of the cost of one item.
#[derive(Clone, Copy, Default)]
struct Item {
    cost: Option<i64>,
    has_counts: bool,
}

impl Item {
    /// Adds a receipt. What is known already stands.
    fn add(&mut self, receipt: &UsageReceipt) {
        self.cost = self.cost.or(receipt.cost_usd_micros);
        self.has_counts |= Usage::counts(&receipt.tokens).is_some();
    }
}

/// Returns what the visible calls and receipts of a Session cost. A receipt about a call that is
/// quarantined, or that another Session has, forms no item.
pub fn of_session(
    calls: &[CallCost],
    identities: &CallIdentities,
    mut receipts: Vec<UsageReceipt>,
) -> SessionSpend {
    let is_own = |receipt: &UsageReceipt| {
        let mut keys = receipt.keys().into_iter();
        !keys.any(|key| identities.elsewhere.contains(&key) || identities.hidden.contains(&key))
    };
    receipts.retain(is_own);
    // The receipt that was captured first says what a call cost.
    receipts.sort_by_key(|receipt| (receipt.captured_at, receipt.usage_receipt_id));
    let usages: Vec<Usage> = calls.iter().map(|call| call.usage.clone()).collect();
    let joined = join(
        &usages,
        &receipts.iter().map(of_receipt).collect::<Vec<_>>(),
    );
    let mut of_calls: Vec<Item> = calls
        .iter()
        .map(|call| Item {
            cost: call.cost_usd_micros,
            has_counts: call.usage.counts.is_some(),
        })
        .collect();
    let mut alone = Vec::new();
    for (receipt, join) in receipts.iter().zip(joined) {
        match join {
            Some((call, _)) => of_calls[call].add(receipt),
            None => alone.push(receipt),
        }
    }
    let alone = grouped(&alone);
    let mut spend = SessionSpend {
        calls: of_calls.len() as u64,
        receipts_only: alone.len() as u64,
        ..SessionSpend::default()
    };
    for item in of_calls.iter().chain(&alone) {
        match item.cost {
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

/// Returns an item for each call that only receipts report. Receipts with a common key are about one
/// call.
fn grouped(receipts: &[&UsageReceipt]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut by_key: HashMap<CallKey, usize> = HashMap::new();
    for receipt in receipts {
        let keys = receipt.keys();
        let known = keys.iter().find_map(|key| by_key.get(key).copied());
        let place = known.unwrap_or_else(|| {
            items.push(Item::default());
            items.len() - 1
        });
        items[place].add(receipt);
        by_key.extend(keys.into_iter().map(|key| (key, place)));
    }
    items
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::CallKeyKind;
    use svc_engine_fact::testing::builders::{at, usage};
    use svc_model::spend::ItemCost;

    use super::*;

    fn call(request_id: &str, cost_usd_micros: Option<i64>) -> CallCost {
        CallCost {
            usage: Usage {
                at: Some(at(1)),
                keys: vec![CallKey::new(CallKeyKind::Request, request_id)],
                counts: Some([1, 0, 0, 1]),
                ..Usage::default()
            },
            cost_usd_micros,
        }
    }

    fn receipt(number: u128, request_id: &str, cost_usd_micros: Option<i64>) -> UsageReceipt {
        UsageReceipt {
            request_id: Some(request_id.to_owned()),
            cost_usd_micros,
            ..usage(number)
        }
    }

    #[test]
    fn a_call_is_spent_once_whoever_reports_it() {
        let calls = [call("1", Some(40)), call("2", None), call("3", None)];
        let receipts = vec![
            receipt(11, "1", Some(41)),
            receipt(12, "2", Some(10)),
            receipt(13, "2", Some(12)),
            receipt(14, "4", None),
            receipt(15, "4", Some(5)),
            receipt(16, "5", None),
        ];
        let spend = of_session(&calls, &CallIdentities::default(), receipts);
        assert_eq!((spend.calls, spend.receipts_only), (3, 2));
        let captured = ItemCost {
            items: 3,
            cost_usd_micros: 55,
        };
        assert_eq!((spend.captured, spend.unpriced_items), (captured, 2));
        assert_eq!((spend.cost_usd_micros, spend.items_without_counts), (55, 0));
        assert_eq!(spend.derived, ItemCost::default());
    }

    #[test]
    fn a_receipt_of_a_call_elsewhere_or_in_quarantine_is_no_item() {
        let key = |id| CallKey::new(CallKeyKind::Request, id);
        let identities = CallIdentities {
            elsewhere: [key("1")].into(),
            hidden: [key("2")].into(),
            ..CallIdentities::default()
        };
        let receipts = vec![receipt(11, "1", Some(1)), receipt(12, "2", Some(2))];
        let spend = of_session(&[], &identities, receipts);
        assert_eq!(spend, SessionSpend::default());
    }
}
