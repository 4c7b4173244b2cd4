//! Checks in the snapshot where parts that the index found are visible.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use svc_engine_search::{FoundPart, IndexReading, PartDigest, PartPlace, session_score};
use svc_engine_store::{NumberedCall, NumberedSession};
use svc_model::evidence::{Reference, Side};
use svc_model::id::InferenceCallId;
use svc_model::search::{SearchFilters, SearchWord};
use svc_model::time::Instant;

use super::super::answer::ReadContext;
use super::is_in_range;
use crate::error::Error;

/// A part in the earliest visible call that shows it and that the filters allow.
#[derive(Clone, Debug)]
pub(super) struct VisiblePart {
    pub(super) found: FoundPart,
    pub(super) digest: PartDigest,
    pub(super) content_id: i64,
    pub(super) reference: Reference,
    pub(super) observed_at: Instant,
}

/// A Session with parts that may be answered.
#[derive(Clone, Debug)]
pub(super) struct CheckedSession {
    pub(super) row: NumberedSession,
    pub(super) score: f64,
    /// Its visible parts, best first.
    pub(super) parts: Vec<VisiblePart>,
}

impl CheckedSession {
    /// Orders Sessions: the best first, then the one that was observed last, then by id.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| other.row.last_observed_at.cmp(&self.row.last_observed_at))
            .then_with(|| self.row.session_id.cmp(&other.row.session_id))
    }
}

/// What became of a Session.
pub(super) struct Checked {
    /// Nothing if none of its parts is visible.
    pub(super) session: Option<CheckedSession>,
    /// Parts that are no longer visible.
    pub(super) withdrawn: u64,
}

/// Checks the parts of a Session.
pub(super) fn session(
    reading: &mut ReadContext<'_, '_>,
    index: &IndexReading<'_>,
    filters: &SearchFilters,
    row: &NumberedSession,
    parts: &[FoundPart],
) -> Result<Checked, Error> {
    let numbers: Vec<i64> = parts.iter().map(|part| part.part).collect();
    let mut places = index.places(row.session_number, &numbers)?;
    let all = places.len();
    if let Some(role) = &filters.role {
        keep_role(reading, role, &mut places)?;
    }
    let is_filtered = places.len() < all || has_call_filters(filters);
    let occurrences = occurrences(reading, filters, row, &places)?;
    let mut visible = Vec::new();
    let mut withdrawn = 0;
    for part in parts {
        let of_part = places.iter().filter(|place| place.part == part.part);
        let earliest = of_part
            .filter_map(|place| {
                let occurrence = occurrences.get(&place.content_id)?;
                Some((occurrence, place))
            })
            .min_by(|(a, one), (b, other)| a.cmp(b).then(one.part_index.cmp(&other.part_index)));
        match earliest {
            Some((occurrence, place)) => visible.push(occurrence.part(*part, place)),
            // With conditions about calls, it may be visible in others.
            None if is_filtered => {}
            None => withdrawn += 1,
        }
    }
    let score = session_score(visible.iter().map(|part| part.found.score));
    let session = (!visible.is_empty()).then(|| CheckedSession {
        row: row.clone(),
        score,
        parts: visible,
    });
    Ok(Checked { session, withdrawn })
}

/// Returns whether there are conditions about single calls.
pub(super) const fn has_call_filters(filters: &SearchFilters) -> bool {
    filters.model.is_some()
        || filters.agent.is_some()
        || filters.since.is_some()
        || filters.until.is_some()
        || filters.role.is_some()
}

/// Removes the places in messages with another role.
fn keep_role(
    reading: &mut ReadContext<'_, '_>,
    role: &SearchWord,
    places: &mut Vec<PartPlace>,
) -> Result<(), Error> {
    let cache = reading.content()?;
    let ids: HashSet<i64> = places.iter().map(|place| place.content_id).collect();
    let mut kept = HashSet::new();
    cache.each_known(reading.snapshot, ids, |id, content| {
        if content.message.role == role.as_str() {
            kept.insert(id);
        }
    })?;
    places.retain(|place| kept.contains(&place.content_id));
    Ok(())
}

/// A message in the earliest visible call that shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Occurrence {
    observed_at: Instant,
    inference_call_id: InferenceCallId,
    is_output: bool,
    message_index: usize,
}

impl Occurrence {
    fn of(call: &NumberedCall, is_output: bool, message_index: usize) -> Self {
        Self {
            observed_at: call.observed_at,
            inference_call_id: call.inference_call_id.clone(),
            is_output,
            message_index,
        }
    }

    fn part(&self, found: FoundPart, place: &PartPlace) -> VisiblePart {
        let side = if self.is_output {
            Side::Output
        } else {
            Side::Input
        };
        VisiblePart {
            found,
            digest: place.digest,
            content_id: place.content_id,
            reference: Reference {
                inference_call_id: self.inference_call_id.clone(),
                side: side.into(),
                message_index: self.message_index as u64,
                part_index: place.part_index as u64,
            },
            observed_at: self.observed_at,
        }
    }
}

/// Returns the earliest visible occurrences of messages in a Session that the filters allow.
///
/// The index names the first call that shows each. If that is not visible, or not allowed, the calls
/// of the Session are read until every message is found.
fn occurrences(
    reading: &mut ReadContext<'_, '_>,
    filters: &SearchFilters,
    row: &NumberedSession,
    places: &[PartPlace],
) -> Result<BTreeMap<i64, Occurrence>, Error> {
    let mut numbers: Vec<i64> = places.iter().map(|place| place.call_number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let calls = reading.snapshot.calls_at(&numbers)?;
    let calls: HashMap<i64, &NumberedCall> =
        calls.iter().map(|call| (call.call_number, call)).collect();
    let mut found = BTreeMap::new();
    let mut missing = HashSet::new();
    for place in places {
        let call = calls.get(&place.call_number);
        let call = call
            .filter(|call| call.session_number == row.session_number && is_allowed(filters, call));
        let shown = call.filter(|call| shows(call, place));
        match shown {
            Some(call) => {
                let occurrence = Occurrence::of(call, place.is_output, place.message_index);
                found.insert(place.content_id, occurrence);
            }
            None => {
                missing.insert(place.content_id);
            }
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let (since, until) = (filters.since, filters.until);
    let read = |call: NumberedCall| {
        if is_allowed(filters, &call) {
            for (is_output, contents) in [(false, &call.input), (true, &call.output)] {
                for (message_index, content) in contents.iter().enumerate() {
                    if missing.remove(&content) {
                        let occurrence = Occurrence::of(&call, is_output, message_index);
                        found.insert(content, occurrence);
                    }
                }
            }
        }
        if missing.is_empty() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    reading
        .snapshot
        .calls_of_session(row.session_number, since, until, read)?;
    Ok(found)
}

fn shows(call: &NumberedCall, place: &PartPlace) -> bool {
    let contents = if place.is_output {
        &call.output
    } else {
        &call.input
    };
    contents.iter().nth(place.message_index) == Some(place.content_id)
}

/// Returns whether the conditions about calls hold. The Session has the agent, if one is asked for.
fn is_allowed(filters: &SearchFilters, call: &NumberedCall) -> bool {
    let is = |asked: &Option<SearchWord>, value: &Option<String>| match (asked, value) {
        (None, _) => true,
        (Some(asked), Some(value)) => asked.as_str() == value,
        (Some(_), None) => false,
    };
    is(&filters.model, &call.model)
        && (call.agent.is_none() || is(&filters.agent, &call.agent))
        && is_in_range(filters.since, filters.until, call.observed_at)
}
