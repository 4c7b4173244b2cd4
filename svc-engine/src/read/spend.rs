//! What a Session cost, and which calls its usage receipts are about.

use std::collections::{HashMap, HashSet};

use svc_engine_derive::price::PriceBook;
use svc_engine_derive::session_usage::CallIdentities;
use svc_engine_derive::spend::{self, Model, Sighting};
use svc_engine_fact::{CallKey, UsageReceipt};
use svc_engine_store::{CallUsageRow, Snapshot};
use svc_model::id::SessionId;
use svc_model::spend::SessionSpend;
use svc_model::usage::{TokenCounts, UsageSource};

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
        } else if visible.contains_key(&call) {
            identities.elsewhere.insert(key);
        } else {
            identities.hidden.insert(key);
        }
    }
    Ok(identities)
}

/// Returns what a Session cost, by the table in force where no source says so.
pub(super) fn session_spend(
    snapshot: &mut Snapshot<'_>,
    session_id: &SessionId,
    book: Option<&PriceBook>,
) -> Result<SessionSpend, Error> {
    snapshot.check_deadline()?;
    let calls = snapshot.session_call_usage(session_id)?;
    let receipts = snapshot.session_usage(session_id)?;
    let mut identities = identities(snapshot, &calls, &receipts)?;
    let earlier = if calls.iter().any(|call| call.is_earlier) {
        earlier_costs(snapshot, session_id)?
    } else {
        HashMap::new()
    };
    let mut calls: Vec<Sighting> = calls
        .into_iter()
        .map(|call| {
            let earlier = earlier.get(&call.inference_call_id).copied();
            let keys = identities.of_session.remove(&call.inference_call_id);
            let seen = of_call(call);
            Sighting {
                cost_usd_micros: seen.cost_usd_micros.or(earlier),
                keys: keys.unwrap_or_default(),
                ..seen
            }
        })
        .collect();
    if !receipts.is_empty() && snapshot.quarantine_revision()? > 0 {
        let hidden = snapshot.hidden_session_call_usage(session_id)?;
        calls.extend(hidden.into_iter().map(of_hidden_call));
    }
    let receipts = receipts.into_iter().map(of_receipt).collect();
    let elsewhere = identities.elsewhere.into_iter();
    let beyond = elsewhere.chain(identities.hidden).collect();
    Ok(spend::of_session(&calls, receipts, &beyond, book))
}

/// Returns what a call says of what was used, with the keys in its row.
pub(super) fn of_call(call: CallUsageRow) -> Sighting {
    let usage = call.usage;
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let input = call.input_tokens.filter(|_| !call.is_earlier);
    let cached = [read, written];
    let uncached = input.and_then(|input| {
        let mut cached = cached.iter().flatten();
        cached.try_fold(input, |rest, part| rest.checked_sub(*part))
    });
    Sighting {
        fact_id: call.inference_call_id,
        session_id: call.session_id,
        user_id: call.user_id,
        agent: call.agent.map(Into::into),
        model: model(call.model_provider, call.model),
        at: call.observed_at,
        captured_at: call.captured_at,
        tokens: TokenCounts {
            input_tokens_uncached: uncached.filter(|uncached| *uncached >= 0),
            cache_read_tokens: read,
            cache_write_tokens: written,
            cache_write_5m_tokens: usage.cache_write_5m_tokens,
            cache_write_1h_tokens: usage.cache_write_1h_tokens,
            output_tokens: call.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        },
        unsplit_input: call.input_tokens.filter(|_| call.is_earlier),
        tier: usage.tier.map(Into::into),
        cost_usd_micros: usage.cost_usd_micros,
        keys: call.keys,
        is_hidden: false,
    }
}

/// Returns what a call in quarantine says of what was used: its receipts are in quarantine with it.
pub(super) fn of_hidden_call(call: CallUsageRow) -> Sighting {
    Sighting {
        is_hidden: true,
        ..of_call(call)
    }
}

/// Returns what a receipt says of what was used.
pub(super) fn of_receipt(receipt: UsageReceipt) -> Sighting {
    Sighting {
        keys: receipt.keys(),
        fact_id: receipt.usage_receipt_id,
        session_id: receipt.session_id,
        user_id: receipt.user_id,
        agent: agent_of(receipt.source).map(Into::into),
        model: model(receipt.model_provider, receipt.model),
        at: receipt.occurred_at,
        captured_at: receipt.captured_at,
        tokens: receipt.tokens,
        unsplit_input: None,
        tier: receipt.tier.map(Into::into),
        cost_usd_micros: receipt.cost_usd_micros,
        is_hidden: false,
    }
}

/// Returns the agent whose client wrote a receipt.
const fn agent_of(source: UsageSource) -> Option<&'static str> {
    match source {
        UsageSource::ClaudeCode => Some("claude-code"),
        UsageSource::Codex => Some("codex"),
        UsageSource::GeminiCli => Some("gemini"),
        UsageSource::Copilot => Some("copilot"),
        UsageSource::GenAi | UsageSource::Other => None,
    }
}

fn model(provider: Option<String>, name: Option<String>) -> Option<Model> {
    Some(Model {
        name: name?.into(),
        provider: provider.map(Into::into),
    })
}
