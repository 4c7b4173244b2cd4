//! The items of spend of a cohort: its calls, the receipts that are about them wherever their times
//! lie, and the receipts about no call.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::spend::{self, CallKeys, Item, Sighting};
use svc_engine_fact::CallKey;
use svc_engine_store::{Snapshot, StoreError};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::ingest::GatewayProvider;
use svc_model::limit::SPEND_RECEIPTS_MAX;
use svc_model::time::Instant;

use super::calls::in_halves;
use super::halves::look_up;
use super::population::up_to;
use super::{Extent, minutes_later};
use crate::error::Error;
use crate::read::earlier_cost::earlier_cost;
use crate::read::spend::{of_call, of_hidden_call, of_receipt};

/// How long before and after a cohort calls are read that its receipts may be about by their counts,
/// four times as far apart as these may be.
const CALL_MINUTES: i64 = 60;
/// How long before and after a cohort receipts are read whose Session has nothing else in it.
const RECEIPT_MINUTES: i64 = 24 * 60;

/// Reads the items of a cohort, at most `items_max`.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are more, or too many receipts.
pub(in crate::read) fn read(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    items_max: usize,
) -> Result<Vec<Item>, Error> {
    let cohort = extent.observed();
    let mut calls = calls(snapshot, extent, items_max)?;
    let receipts = receipts(snapshot, extent, &calls)?;
    if !receipts.is_empty() && snapshot.quarantine_revision()? > 0 {
        calls.extend(hidden_calls(snapshot, extent)?);
    }
    let beyond = tie(snapshot, &mut calls, &receipts, extent.as_of)?;
    let mut items = spend::items(&calls, receipts, &beyond);
    items.retain(|item| cohort.contains(&item.at));
    if items.len() > items_max {
        return Err(StoreError::TooMany.into());
    }
    Ok(items)
}

/// Texts that many facts have.
#[derive(Default)]
struct Texts {
    words: HashSet<Arc<str>, RandomState>,
    sessions: HashSet<SessionId, RandomState>,
    users: HashSet<UserId, RandomState>,
}

impl Texts {
    /// Returns the same with texts that are in memory once.
    fn shared(&mut self, mut seen: Sighting) -> Sighting {
        share(&mut self.sessions, &mut seen.session_id);
        if let Some(user_id) = &mut seen.user_id {
            share(&mut self.users, user_id);
        }
        if let Some(model) = &mut seen.model {
            share(&mut self.words, &mut model.name);
            if let Some(provider) = &mut model.provider {
                share(&mut self.words, provider);
            }
        }
        for word in [&mut seen.agent, &mut seen.tier].into_iter().flatten() {
            share(&mut self.words, word);
        }
        seen
    }
}

fn share<T: Clone + Eq + Hash>(known: &mut HashSet<T, RandomState>, text: &mut T) {
    match known.get(text) {
        Some(same) => *text = same.clone(),
        None => drop(known.insert(text.clone())),
    }
}

/// Returns a range of time with more before and after it.
fn around(range: &Range<Instant>, minutes: i64) -> Range<Instant> {
    minutes_later(range.start, -minutes)..minutes_later(range.end, minutes)
}

/// Counts what is in the cohort, and refuses more than a maximum.
struct Bound {
    cohort: Range<Instant>,
    rows: usize,
    rows_max: usize,
}

impl Bound {
    fn count(&mut self, at: Instant) -> Result<(), StoreError> {
        self.rows += usize::from(self.cohort.contains(&at));
        if self.rows > self.rows_max {
            return Err(StoreError::TooMany);
        }
        Ok(())
    }
}

/// Reads the calls of a cohort, and those near it.
fn calls(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    items_max: usize,
) -> Result<Vec<Sighting>, Error> {
    let bound = || Bound {
        cohort: extent.observed(),
        rows: 0,
        rows_max: items_max,
    };
    let near = around(&extent.observed(), CALL_MINUTES);
    let rows = in_halves(snapshot, &near, |snapshot, observed| {
        let (mut rows, mut texts, mut bound) = (Vec::new(), Texts::default(), bound());
        snapshot.call_usage_observed(observed, extent.as_of, |call| {
            bound.count(call.observed_at)?;
            let earlier = call.is_earlier.then_some(call.gateway_provider);
            rows.push((texts.shared(of_call(call)), earlier));
            Ok(())
        })?;
        Ok(rows)
    })?;
    let mut all = bound();
    let mut calls = Vec::with_capacity(rows.len());
    for (mut call, earlier) in rows {
        all.count(call.at)?;
        let earlier = earlier.filter(|_| all.cohort.contains(&call.at));
        call.cost_usd_micros = cost(snapshot, &call, earlier)?;
        calls.push(call);
    }
    Ok(calls)
}

/// Reads the calls in quarantine that receipts of the cohort may be about by their counts.
fn hidden_calls(snapshot: &mut Snapshot<'_>, extent: &Extent) -> Result<Vec<Sighting>, Error> {
    let near = around(&extent.observed(), CALL_MINUTES);
    let (mut hidden, mut texts) = (Vec::new(), Texts::default());
    let mut take = up_to(&mut hidden, SPEND_RECEIPTS_MAX);
    snapshot.hidden_call_usage_observed(near, extent.as_of, |call| {
        take(texts.shared(of_hidden_call(call)))
    })?;
    drop(take);
    Ok(hidden)
}

fn cost(
    snapshot: &mut Snapshot<'_>,
    call: &Sighting,
    earlier: Option<GatewayProvider>,
) -> Result<Option<i64>, Error> {
    match (call.cost_usd_micros, earlier) {
        (None, Some(provider)) => earlier_cost(snapshot, call.fact_id, provider),
        (known, _) => Ok(known),
    }
}

/// Reads the receipts of a cohort, those near it, and all others of its Sessions.
fn receipts(
    snapshot: &mut Snapshot<'_>,
    extent: &Extent,
    calls: &[Sighting],
) -> Result<Vec<Sighting>, Error> {
    let cohort = extent.observed();
    let near = around(&cohort, RECEIPT_MINUTES);
    let bound = || Bound {
        cohort: cohort.clone(),
        rows: 0,
        rows_max: SPEND_RECEIPTS_MAX,
    };
    let mut receipts = in_halves(snapshot, &near, |snapshot, occurred| {
        let (mut rows, mut texts, mut bound) = (Vec::new(), Texts::default(), bound());
        snapshot.usage_reported(occurred, extent.as_of, |receipt| {
            bound.count(receipt.occurred_at)?;
            rows.push(texts.shared(of_receipt(receipt)));
            Ok(())
        })?;
        Ok(rows)
    })?;
    let mut all = bound();
    receipts
        .iter()
        .try_for_each(|receipt| all.count(receipt.at))?;
    let of_cohort = calls.iter().chain(&receipts);
    let of_cohort = of_cohort.filter(|seen| cohort.contains(&seen.at));
    let sessions: HashSet<&SessionId, RandomState> =
        of_cohort.map(|seen| &seen.session_id).collect();
    let sessions: Vec<SessionId> = sessions.into_iter().cloned().collect();
    let beyond = look_up(snapshot, &sessions, |snapshot, sessions, take| {
        let near = near.clone();
        snapshot.usage_of_sessions_beyond(sessions, near, extent.as_of, |receipt| {
            take(of_receipt(receipt))
        })
    })?;
    receipts.extend(beyond);
    Ok(receipts)
}

/// Gives the calls the keys that receipts name them by, and returns the keys of other calls: visible
/// ones that are not among these, and those in quarantine.
fn tie(
    snapshot: &mut Snapshot<'_>,
    calls: &mut [Sighting],
    receipts: &[Sighting],
    as_of: Instant,
) -> Result<CallKeys, Error> {
    let own: HashSet<&CallKey> = calls.iter().flat_map(|call| &call.keys).collect();
    let keys: HashSet<&CallKey> = receipts.iter().flat_map(|receipt| &receipt.keys).collect();
    let keys: Vec<CallKey> = keys.difference(&own).map(|key| (*key).clone()).collect();
    let known = look_up(snapshot, &keys, |snapshot, keys, take| {
        snapshot.calls_of_keys(keys)?.into_iter().try_for_each(take)
    })?;
    let numbers: HashMap<FactId, usize, RandomState> = (calls.iter().enumerate())
        .map(|(number, call)| (call.fact_id, number))
        .collect();
    let others: HashSet<FactId> = (known.iter())
        .map(|(_, call)| *call)
        .filter(|call| !numbers.contains_key(call))
        .collect();
    let visible = snapshot.visible_calls(others)?;
    let mut beyond = CallKeys::default();
    for (key, call) in known {
        if let Some(number) = numbers.get(&call) {
            calls[*number].keys.push(key);
        } else if visible
            .get(&call)
            .is_none_or(|captured_at| *captured_at <= as_of)
        {
            beyond.insert(key);
        }
    }
    Ok(beyond)
}
