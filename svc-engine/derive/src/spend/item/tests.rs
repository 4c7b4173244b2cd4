use svc_engine_fact::CallKeyKind;
use svc_engine_fact::testing::builders::{at, id};
use svc_model::spend::ItemCost;

use super::*;
use crate::price::PriceFile;
use crate::spend::of_session;

fn key(id: &str) -> CallKey {
    CallKey::new(CallKeyKind::Request, id)
}

fn sighting(number: u128, request_id: &str, cost_usd_micros: Option<i64>) -> Sighting {
    Sighting {
        fact_id: id(number),
        session_id: SessionId::new("s").unwrap(),
        user_id: None,
        agent: None,
        model: Some(Model {
            provider: None,
            name: "m".into(),
        }),
        at: at(i64::try_from(number).unwrap()),
        captured_at: at(i64::try_from(number).unwrap()),
        tokens: TokenCounts {
            input_tokens_uncached: Some(3),
            output_tokens: Some(5),
            ..TokenCounts::default()
        },
        unsplit_input: None,
        tier: None,
        cost_usd_micros,
        keys: vec![key(request_id)],
        is_hidden: false,
    }
}

fn without_counts(sighting: Sighting) -> Sighting {
    Sighting {
        tokens: TokenCounts::default(),
        ..sighting
    }
}

#[test]
fn a_hidden_call_takes_its_receipts_with_it_however_they_join() {
    let mut hidden = [sighting(1, "1", Some(40)), sighting(2, "2", Some(2))];
    for call in &mut hidden {
        call.is_hidden = true;
    }
    let visible = [sighting(3, "3", None)];
    let by_counts = Sighting {
        keys: Vec::new(),
        ..sighting(12, "", Some(10))
    };
    let receipts = vec![sighting(11, "1", Some(41)), by_counts];
    let calls = [&visible[..], &hidden].concat();
    let found = items(&calls, receipts.clone(), &CallKeys::default());
    // The second receipt joins the earlier of the calls that are left, which is hidden.
    let of: Vec<_> = found
        .iter()
        .map(|item| (item.call, item.receipts))
        .collect();
    assert_eq!(of, [(Some(id(3)), ReceiptCounts::default())]);
    let spend = of_session(&calls, receipts, &CallKeys::default(), None);
    assert_eq!((spend.calls, spend.receipts_only), (1, 0));
}

#[test]
fn a_call_is_spent_once_whoever_reports_it() {
    let calls = [
        sighting(1, "1", Some(40)),
        sighting(2, "2", None),
        sighting(3, "3", None),
    ];
    let receipts = vec![
        sighting(11, "1", Some(41)),
        sighting(12, "2", Some(10)),
        sighting(13, "2", Some(12)),
        sighting(14, "4", None),
        sighting(15, "4", Some(5)),
        sighting(16, "5", None),
    ];
    let spend = of_session(&calls, receipts, &CallKeys::default(), None);
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
fn what_no_source_says_of_a_session_is_derived_by_the_table() {
    let file = br#"{"m":{"input_cost_per_token":1e-6,"output_cost_per_token":2e-6}}"#;
    let book = PriceFile::read(file).unwrap().book;
    let without_model = Sighting {
        model: None,
        ..sighting(3, "3", None)
    };
    let calls = [
        sighting(1, "1", Some(40)),
        sighting(2, "2", None),
        without_model,
    ];
    let receipts = vec![sighting(11, "4", None)];
    let spend = of_session(&calls, receipts, &CallKeys::default(), Some(&book));
    let of = |items, cost_usd_micros| ItemCost {
        items,
        cost_usd_micros,
    };
    assert_eq!((spend.captured, spend.derived), (of(1, 40), of(2, 26)));
    assert_eq!((spend.cost_usd_micros, spend.unpriced_items), (66, 1));
}

#[test]
fn a_receipt_of_a_call_elsewhere_or_in_quarantine_is_no_item() {
    let receipts = vec![sighting(11, "1", Some(1)), sighting(12, "2", Some(2))];
    let beyond = CallKeys::from_iter([key("1"), key("2")]);
    assert_eq!(items(&[], receipts, &beyond), []);
}

#[test]
fn a_receipt_with_a_key_of_a_visible_call_is_about_it_whatever_else_it_names() {
    let mut receipt = sighting(11, "1", Some(1));
    receipt.keys.insert(0, key("hidden"));
    let found = items(
        &[sighting(1, "1", None)],
        vec![receipt],
        &CallKeys::from_iter([key("hidden")]),
    );
    assert_eq!((found.len(), found[0].cost_usd_micros), (1, Some(1)));
}

#[test]
fn a_receipt_follows_a_call_of_another_session_by_its_key_only() {
    let elsewhere = |mut sighting: Sighting| {
        sighting.session_id = SessionId::new("t").unwrap();
        sighting
    };
    let calls = [sighting(1, "1", None)];
    let receipts = vec![
        elsewhere(sighting(11, "1", Some(1))),
        elsewhere(sighting(12, "2", Some(2))),
    ];
    let found = items(&calls, receipts, &CallKeys::default());
    let costs: Vec<_> = found.iter().map(|item| item.cost_usd_micros).collect();
    assert_eq!(costs, [Some(1), Some(2)]);
    assert_eq!(found[1].session_id.as_str(), "t");
}

#[test]
fn counts_join_what_no_key_does() {
    let call = Sighting {
        keys: Vec::new(),
        ..sighting(1, "", None)
    };
    let receipts = vec![sighting(12, "2", Some(2)), sighting(13, "3", Some(3))];
    let found = items(&[call], receipts, &CallKeys::default());
    let receipts: Vec<_> = found
        .iter()
        .map(|item| (item.receipts.counts, item.receipts.unjoined))
        .collect();
    assert_eq!(receipts, [(1, 0), (0, 1)]);
    assert_eq!(found[0].cost_usd_micros, Some(2));
}

#[test]
fn a_third_receipt_ties_two_others() {
    let mut third = sighting(13, "1", Some(9));
    third.keys.push(key("2"));
    let receipts = vec![sighting(11, "1", None), sighting(12, "2", None), third];
    let found = items(&[], receipts, &CallKeys::default());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].at, found[0].receipts.unjoined), (at(11), 3));
}

#[test]
fn what_a_call_does_not_say_its_receipt_says() {
    let call = Sighting {
        model: None,
        unsplit_input: Some(7),
        ..without_counts(sighting(1, "1", Some(5)))
    };
    let receipt = Sighting {
        agent: Some("codex".into()),
        tier: Some("priority".into()),
        user_id: UserId::new("ada").ok(),
        ..sighting(11, "1", Some(7))
    };
    let found = items(&[call], vec![receipt.clone()], &CallKeys::default());
    let item = &found[0];
    assert_eq!((&item.model, &item.agent), (&receipt.model, &receipt.agent));
    assert_eq!(
        (&item.tier, &item.user_id),
        (&receipt.tier, &receipt.user_id)
    );
    assert_eq!(item.tokens, receipt.tokens);
    assert!(item.has_counts && !item.has_unsplit_input);
    assert_eq!((item.cost_usd_micros, item.is_disputed), (Some(5), true));
    assert_eq!(item.call, Some(id(1)));
}

#[test]
fn costs_that_differ_by_rounding_do_not_contradict_each_other() {
    for (cost, is_disputed) in [(4, false), (5, false), (6, false), (7, true), (3, true)] {
        let found = items(
            &[sighting(1, "1", Some(5))],
            vec![sighting(11, "1", Some(cost))],
            &CallKeys::default(),
        );
        assert_eq!(found[0].is_disputed, is_disputed, "{cost}");
    }
}
