//! Selects the parts of one Session that match a query: retrieval policy version 1.

use std::collections::HashMap;

use svc_engine_derive::rank::{Packer, Packing};
use svc_engine_store::Snapshot;
use svc_model::context::{
    ContextCoverage, ContextItem, ContextResult, ContextSelectedRequest, ContextSkipped,
    ContextStatus,
};
use svc_model::endpoint::Selected;
use svc_model::evidence::CaptureCompleteness;
use svc_model::facts::FactTable;
use svc_model::id::SessionId;
use svc_model::json;
use svc_model::limit::{CONTEXT_ENVELOPE_BYTES_MAX, CONTEXT_STATE_OVERHEAD_BYTES};
use svc_model::problem::Decline;
use svc_model::version::Version1;

use super::ContentCache;
use super::answer::{AdmissionKind, Answer, ReadContext};
use super::occurrence::{Occurrence, Repeats, ScanLimits, VisibleCalls, digits};
use crate::error::Error;

/// The candidate state of a scan, by content.
struct ContentScan<'l> {
    limits: &'l ScanLimits,
    bytes: u64,
    groups: HashMap<[u8; 32], GroupState>,
}

struct GroupState {
    /// The index of its content, in order of first occurrence.
    place: usize,
    /// The bytes of the largest encoded item.
    item_bytes_max: u64,
}

impl<'l> ContentScan<'l> {
    fn new(limits: &'l ScanLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            groups: HashMap::new(),
        }
    }

    /// Adds an occurrence, and returns the index of its content.
    fn add(&mut self, occurrence: &Occurrence<'_>) -> Result<usize, Decline> {
        let sameness = occurrence.sameness();
        // Where repeated content counts once, the texts do not count, because none is kept.
        let (bytes, key_bytes) = match self.limits.repeats {
            Repeats::Count => (item_bytes(occurrence), sameness.key_bytes),
            Repeats::Once => (0, 0),
        };
        let place = self.groups.len();
        let group = self.groups.entry(sameness.digest).or_insert_with(|| {
            self.bytes += key_bytes + CONTEXT_STATE_OVERHEAD_BYTES;
            GroupState {
                place,
                item_bytes_max: 0,
            }
        });
        self.bytes += bytes.saturating_sub(group.item_bytes_max);
        group.item_bytes_max = group.item_bytes_max.max(bytes);
        let place = group.place;
        self.limits.check_state(self.bytes)?;
        Ok(place)
    }
}

fn item_bytes(occurrence: &Occurrence<'_>) -> u64 {
    const NAMES: &str = r#"{"score":,"evidence":}"#;
    NAMES.len() as u64 + digits(occurrence.score()) + occurrence.item_bytes()
}

/// Returns the parts of a Session that match a query.
///
/// # Errors
///
/// Declined if the Session is unknown or the scan exceeds a bound. There is no partial scan.
pub fn selected(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    limits: &ScanLimits,
    request: ContextSelectedRequest,
) -> Result<ContextResult, Error> {
    let session_id = request.session_id;
    let quarantine_revision = snapshot.quarantine_revision()?;
    if !snapshot.session_known(&session_id)? {
        return Err(Decline::EvidenceUnavailable {
            reference_index: None,
        }
        .into());
    }
    let mut measure = snapshot.call_measure(&session_id)?;
    measure.metadata_bytes += session_id.as_str().len() as u64;
    limits.check(&measure)?;
    let calls = VisibleCalls::of(snapshot, &session_id)?;
    if limits.repeats == Repeats::Once {
        limits.check_bytes(calls.bytes(snapshot)?)?;
    }
    let counts = snapshot.session_fact_count(&session_id, FactTable::InferenceCalls)?;
    let scan = calls.scan(snapshot, cache, &request.query)?;

    // Occurrences with the same content form a group, represented by the best ranked one.
    let mut groups: Vec<Occurrence<'_>> = Vec::new();
    let mut state = ContentScan::new(limits);
    let parts = scan.each(|occurrence| {
        let place = state.add(&occurrence)?;
        match groups.get_mut(place) {
            Some(best) if occurrence.rank() < best.rank() => *best = occurrence,
            Some(_) => {}
            None => groups.push(occurrence),
        }
        Ok(())
    })?;
    limits.check_parts(match limits.repeats {
        Repeats::Count => measure.parts,
        Repeats::Once => scan.distinct_parts(),
    })?;
    groups.sort_unstable_by(|a, b| a.rank().cmp(&b.rank()));

    let mut skipped = ContextSkipped {
        reasoning_part: parts.reasoning,
        non_finite_number: parts.non_finite,
        no_match: parts.unmatched,
        repeated_content: parts.matched - groups.len() as u64,
        item_limit: 0,
        response_budget: 0,
        content_erased: snapshot.erased_calls(&session_id)?.len() as u64,
    };
    let mut packer = Packer::new(request.max_bytes.get() - CONTEXT_ENVELOPE_BYTES_MAX as u64);
    let mut items = Vec::new();
    for best in &groups {
        match packer.offer(item_bytes(best)) {
            Packing::Chosen => items.push(ContextItem {
                score: best.score(),
                evidence: best.place().read(snapshot, cache)?,
            }),
            Packing::ItemLimit => skipped.item_limit += 1,
            Packing::Budget => skipped.response_budget += 1,
        }
    }
    let status = match (items.is_empty(), groups.is_empty()) {
        (false, _) => ContextStatus::Matched,
        (true, false) => ContextStatus::BudgetExhausted,
        (true, true) => ContextStatus::NoMatch,
    };
    let mut result = ContextResult {
        schema_version: Version1,
        policy_version: Version1.into(),
        source_session_id: session_id,
        quarantine_revision,
        status: status.into(),
        capture_completeness: CaptureCompleteness::Unknown.into(),
        coverage: ContextCoverage {
            visible_inference_calls: counts.visible,
            quarantined_inference_calls: counts.total - counts.visible,
            scanned_parts: parts.scanned,
            complete_visible_scan: true,
        },
        skipped,
        items: Vec::new(),
    };
    check_envelope(&result)?;
    result.items = items;
    Ok(result)
}

/// Checks that a result without its items fits into the bytes reserved for it.
pub(super) fn check_envelope<T: serde::Serialize>(result: &T) -> Result<(), Decline> {
    json::to_vec(result, CONTEXT_ENVELOPE_BYTES_MAX)
        .map(drop)
        .map_err(|_| Decline::EvidenceResponseLimit {
            limit: CONTEXT_ENVELOPE_BYTES_MAX as u64,
        })
}

impl Answer for Selected {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn session(request: &Self::Request) -> Option<&SessionId> {
        Some(&request.session_id)
    }

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        let content = reading.content()?;
        let limits = reading.resources.scan.of(reading.repeats);
        selected(reading.snapshot, &content, limits, request)
    }
}
