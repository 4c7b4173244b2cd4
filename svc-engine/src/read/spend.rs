//! What a Session cost, and which calls its usage receipts are about.

use std::collections::{HashMap, HashSet};

use svc_engine_derive::session_usage::CallIdentities;
use svc_engine_derive::spend::{self, CallCost};
use svc_engine_derive::usage::Usage;
use svc_engine_fact::{CallKey, UsageReceipt};
use svc_engine_store::{CallUsageRow, Snapshot};
use svc_model::id::SessionId;
use svc_model::spend::SessionSpend;

use super::earlier_cost::earlier_costs;
use crate::error::Error;

/// Returns what identifies the calls that the receipts of a Session may be about.
pub(super) fn identities(
    snapshot: &mut Snapshot<'_>,
    calls: &[CallUsageRow],
    receipts: &[UsageReceipt],
) -> Result<CallIdentities, Error> {
    let of_session = calls
        .iter()
        .map(|call| (call.inference_call_id, call.keys.clone()));
    let mut identities = CallIdentities {
        of_session: of_session.collect(),
        ..CallIdentities::default()
    };
    let keys: Vec<CallKey> = receipts.iter().flat_map(UsageReceipt::keys).collect();
    let known = snapshot.calls_of_keys(&keys)?;
    let others: HashSet<_> = known
        .values()
        .copied()
        .filter(|call| !identities.of_session.contains_key(call))
        .collect();
    let visible = snapshot.visible_calls(others)?;
    for (key, call) in known {
        if let Some(keys) = identities.of_session.get_mut(&call) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        } else if visible.contains(&call) {
            identities.elsewhere.insert(key);
        } else {
            identities.hidden.insert(key);
        }
    }
    Ok(identities)
}

/// Returns what a Session cost.
pub(super) fn session_spend(
    snapshot: &mut Snapshot<'_>,
    session_id: &SessionId,
) -> Result<SessionSpend, Error> {
    snapshot.check_deadline()?;
    let calls = snapshot.session_call_usage(session_id)?;
    let receipts = snapshot.session_usage(session_id)?;
    let identities = identities(snapshot, &calls, &receipts)?;
    let earlier = if calls.iter().any(|call| call.is_earlier) {
        earlier_costs(snapshot, session_id)?
    } else {
        HashMap::new()
    };
    let calls: Vec<CallCost> = calls
        .into_iter()
        .map(|call| {
            let cost = call.usage.cost_usd_micros;
            let keys = identities.of_session.get(&call.inference_call_id);
            CallCost {
                cost_usd_micros: cost.or(earlier.get(&call.inference_call_id).copied()),
                usage: Usage {
                    at: Some(call.observed_at),
                    model: call.model,
                    counts: Usage::counts_of_call(
                        call.input_tokens,
                        &call.usage,
                        call.output_tokens,
                    ),
                    keys: keys.cloned().unwrap_or_default(),
                },
            }
        })
        .collect();
    Ok(spend::of_session(&calls, &identities, receipts))
}
