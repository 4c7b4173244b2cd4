//! What clients reported of a Session's use of models, beside the calls that were captured.

use std::collections::{HashMap, HashSet};

use svc_engine_fact::{CallKey, UsageReceipt};
use svc_model::id::FactId;
use svc_model::query::{SessionUsage, TimelineEvent};
use svc_model::usage::JoinBasis;

use super::dossier;
use super::usage::{Usage, join};

/// What identifies the calls that the receipts of a Session may be about.
#[derive(Clone, Debug, Default)]
pub struct CallIdentities {
    /// The keys of the visible calls of the Session.
    pub of_session: HashMap<FactId, Vec<CallKey>>,
    /// The keys of visible calls of other Sessions. A receipt with one of them is about such a call.
    pub elsewhere: HashSet<CallKey>,
    /// The keys of quarantined calls.
    pub hidden: HashSet<CallKey>,
}

/// Adds the visible usage receipts of a Session to its events, and returns their sums; `None` if
/// there are none.
///
/// A receipt of a visible call stands with the call, in its own Session only. Each other is an event
/// of its own, unless there would be more than `events_max`: then none of these is.
pub fn add(
    timeline: &mut Vec<TimelineEvent>,
    identities: &CallIdentities,
    receipts: Vec<UsageReceipt>,
    events_max: u64,
) -> Option<SessionUsage> {
    if receipts.is_empty() {
        return None;
    }
    let places: Vec<usize> = (0..timeline.len())
        .filter(|place| matches!(timeline[*place], TimelineEvent::InferenceCall { .. }))
        .collect();
    let calls: Vec<Usage> = places
        .iter()
        .map(|place| of_call(&timeline[*place], identities))
        .collect();
    let (elsewhere, receipts): (Vec<_>, Vec<_>) = receipts.into_iter().partition(|receipt| {
        let mut keys = receipt.keys().into_iter();
        keys.any(|key| identities.elsewhere.contains(&key))
    });
    let joined = join(&calls, &receipts.iter().map(of_receipt).collect::<Vec<_>>());
    let costs = receipts
        .iter()
        .chain(&elsewhere)
        .filter_map(|receipt| receipt.cost_usd_micros);
    let mut usage = SessionUsage {
        receipts: (receipts.len() + elsewhere.len()) as u64,
        joined: (joined.iter().flatten().count() + elsewhere.len()) as u64,
        unjoined: 0,
        cost_usd_micros: costs.fold(None, |sum: Option<i64>, cost| {
            Some(sum.unwrap_or(0).saturating_add(cost))
        }),
    };
    usage.unjoined = usage.receipts - usage.joined;
    let is_shown = timeline.len() as u64 + usage.unjoined <= events_max;
    let mut together: Vec<_> = receipts.into_iter().zip(joined).collect();
    // The receipt that was captured first says what a call cost.
    together.sort_by_key(|(receipt, _)| (receipt.captured_at, receipt.usage_receipt_id));
    for (receipt, join) in together {
        match join {
            Some((call, basis)) => attach(&mut timeline[places[call]], &receipt, basis),
            None if is_shown => timeline.push(event(receipt)),
            None => {}
        }
    }
    timeline.sort_unstable_by(dossier::order);
    Some(usage)
}

fn of_call(event: &TimelineEvent, identities: &CallIdentities) -> Usage {
    let TimelineEvent::InferenceCall {
        fact_id,
        occurred_at,
        model,
        input_tokens,
        output_tokens,
        usage,
        ..
    } = event
    else {
        return Usage::default();
    };
    Usage {
        at: Some(*occurred_at),
        model: model.clone(),
        counts: Usage::counts_of_call(*input_tokens, usage, *output_tokens),
        keys: identities
            .of_session
            .get(fact_id)
            .cloned()
            .unwrap_or_default(),
    }
}

fn of_receipt(receipt: &UsageReceipt) -> Usage {
    Usage {
        at: Some(receipt.occurred_at),
        model: receipt.model.clone(),
        counts: Usage::counts(&receipt.tokens),
        keys: receipt.keys(),
    }
}

fn attach(call: &mut TimelineEvent, receipt: &UsageReceipt, basis: JoinBasis) {
    let TimelineEvent::InferenceCall {
        usage,
        usage_receipt_ids,
        joined_by,
        ..
    } = call
    else {
        return;
    };
    usage.cost_usd_micros = usage.cost_usd_micros.or(receipt.cost_usd_micros);
    usage_receipt_ids.push(receipt.usage_receipt_id);
    usage_receipt_ids.sort_unstable();
    joined_by.get_or_insert(basis.into());
}

fn event(receipt: UsageReceipt) -> TimelineEvent {
    TimelineEvent::UsageReceipt {
        fact_id: receipt.usage_receipt_id,
        occurred_at: receipt.occurred_at,
        source: receipt.source.into(),
        model: receipt.model,
        query_source: receipt.query_source,
        tokens: receipt.tokens,
        cost_usd_micros: receipt.cost_usd_micros,
        duration_ms: receipt.duration_ms,
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::CallKeyKind;
    use svc_engine_fact::testing::builders::{at, id, usage};
    use svc_model::ingest::GatewayProvider;
    use svc_model::usage::CallUsage;

    use super::*;

    /// A call with the counts of the receipts of the builder.
    fn call(number: u128) -> TimelineEvent {
        TimelineEvent::InferenceCall {
            fact_id: id(number),
            occurred_at: at(i64::try_from(number).unwrap()),
            gateway_provider: GatewayProvider::GatewayA.into(),
            model_provider: None,
            model: Some("m".to_owned()),
            input_tokens: Some(3),
            output_tokens: Some(5),
            duration_ms: None,
            model_call_id: None,
            capture_source: None,
            agent: None,
            usage: CallUsage::default(),
            usage_receipt_ids: Vec::new(),
            joined_by: None,
        }
    }

    fn receipt(number: u128, request_id: &str) -> UsageReceipt {
        UsageReceipt {
            request_id: Some(request_id.to_owned()),
            ..usage(number)
        }
    }

    fn identities(number: u128, request_id: &str) -> CallIdentities {
        let key = CallKey::new(CallKeyKind::Request, request_id);
        CallIdentities {
            of_session: HashMap::from([(id(number), vec![key])]),
            ..CallIdentities::default()
        }
    }

    #[test]
    fn a_receipt_of_a_call_of_another_session_is_no_event_of_this_one() {
        let mut timeline = vec![call(1)];
        let elsewhere = CallKey::new(CallKeyKind::Request, "req_2");
        let identities = CallIdentities {
            elsewhere: HashSet::from([elsewhere]),
            ..CallIdentities::default()
        };
        let found = add(&mut timeline, &identities, vec![receipt(11, "req_2")], 500).unwrap();
        assert_eq!((found.receipts, found.joined, found.unjoined), (1, 1, 0));
        assert_eq!((found.cost_usd_micros, timeline.len()), (Some(7), 1));
    }

    #[test]
    fn a_session_without_receipts_stays_as_it_is() {
        let mut timeline = vec![call(2), call(1)];
        let before = timeline.clone();
        assert_eq!(
            add(&mut timeline, &CallIdentities::default(), Vec::new(), 500),
            None
        );
        assert_eq!(timeline, before);
    }

    #[test]
    fn a_receipt_of_a_call_stands_with_it_and_gives_its_cost() {
        let mut timeline = vec![call(1), call(2)];
        let ids = identities(2, "req_2");
        let receipts = vec![receipt(11, "req_2"), receipt(12, "req_2"), usage(13)];
        let found = add(&mut timeline, &ids, receipts, 500).unwrap();
        assert_eq!((found.receipts, found.joined, found.unjoined), (3, 3, 0));
        assert_eq!(found.cost_usd_micros, Some(21));
        for (event, receipts, basis) in [
            (&timeline[0], vec![id(13)], JoinBasis::Counts),
            (&timeline[1], vec![id(11), id(12)], JoinBasis::Ids),
        ] {
            let TimelineEvent::InferenceCall {
                usage,
                usage_receipt_ids,
                joined_by,
                ..
            } = event
            else {
                panic!("{event:?}");
            };
            assert_eq!(usage.cost_usd_micros, Some(7));
            assert_eq!(usage_receipt_ids, &receipts);
            assert_eq!(joined_by, &Some(basis.into()));
        }
    }

    #[test]
    fn other_receipts_are_events_unless_there_would_be_too_many() {
        for (events_max, kinds) in [
            (3, vec!["inference_call", "usage_receipt", "usage_receipt"]),
            (2, vec!["inference_call"]),
        ] {
            let mut timeline = vec![call(1)];
            let ids = identities(1, "req_1");
            let receipts = vec![receipt(13, "req_3"), receipt(12, "req_2")];
            let found = add(&mut timeline, &ids, receipts, events_max).unwrap();
            assert_eq!((found.joined, found.unjoined), (0, 2));
            let found: Vec<_> = timeline.iter().map(TimelineEvent::event_type).collect();
            assert_eq!(found, kinds);
        }
    }
}
