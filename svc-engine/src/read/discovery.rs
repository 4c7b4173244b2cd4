//! Finds the granted Sessions that match a query or made a commit.

use std::cmp::Reverse;

use svc_engine_derive::rank::{Packer, Packing};
use svc_engine_store::{ScanMeasure, Snapshot};
use svc_model::context::{
    CommitMatch, ContextDiscoveryRequest, ContextStatus, DiscoveryCandidate, DiscoveryCoverage,
    DiscoveryResult, DiscoverySkipped, Query,
};
use svc_model::endpoint::Discovery;
use svc_model::evidence::CaptureCompleteness;
use svc_model::facts::{FactCount, FactTable};
use svc_model::id::SessionId;
use svc_model::json;
use svc_model::limit::{
    CONTEXT_ENVELOPE_BYTES_MAX, CONTEXT_REPLY_BYTES_HIGH, CONTEXT_STATE_OVERHEAD_BYTES,
    DISCOVERY_SESSIONS_MAX,
};
use svc_model::problem::Decline;
use svc_model::version::Version1;

use super::ContentCache;
use super::answer::{AdmissionKind, Answer, ReadContext};
use super::context::check_envelope;
use super::grant::reached;
use super::occurrence::{
    Occurrence, OccurrencePlace, PartCounts, Repeats, Scan, ScanLimits, VisibleCalls,
};
use crate::error::Error;

/// Bytes of the two ids of a commit match, which count as metadata of the scan.
const MATCH_ID_BYTES: u64 = 2 * 36;

/// The candidate state of a scan, Session by Session.
struct SessionScan<'l> {
    limits: &'l ScanLimits,
    bytes: u64,
    /// The size of the largest encoded item of the current Session.
    item_bytes_max: u64,
}

impl<'l> SessionScan<'l> {
    const fn new(limits: &'l ScanLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            item_bytes_max: 0,
        }
    }

    /// Starts the next Session.
    fn begin(&mut self) -> Result<(), Decline> {
        self.bytes += CONTEXT_STATE_OVERHEAD_BYTES;
        self.item_bytes_max = 0;
        self.limits.check_state(self.bytes)
    }

    /// Adds an occurrence of a matching part.
    fn add(&mut self, occurrence: &Occurrence<'_>) -> Result<(), Decline> {
        if self.limits.repeats == Repeats::Once {
            return Ok(());
        }
        let bytes = occurrence.item_bytes();
        if bytes <= self.item_bytes_max {
            return Ok(());
        }
        self.bytes += bytes - self.item_bytes_max;
        self.item_bytes_max = bytes;
        self.limits.check_state(self.bytes)
    }
}

/// A granted Session that some fact names.
struct GrantedSession<'g> {
    session_id: &'g SessionId,
    commit_match: Option<CommitMatch>,
    calls: u64,
    counts: FactCount,
}

/// What the Sessions searched so far take of the limits, if repeated content counts once.
#[derive(Clone, Copy, Default)]
struct ScanUse {
    calls: u64,
    bytes: u64,
    parts: u64,
}

impl ScanUse {
    /// Matches the messages of a Session against the query, if they fit into what is left.
    fn scan(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
        limits: &ScanLimits,
        found: &GrantedSession<'_>,
        query: &Query,
    ) -> Result<Scan, Error> {
        let mut spent = *self;
        spent.calls += found.calls;
        limits.check(&ScanMeasure {
            calls: spent.calls,
            ..ScanMeasure::default()
        })?;
        let calls = VisibleCalls::of(snapshot, found.session_id)?;
        spent.bytes += calls.bytes(snapshot)?;
        limits.check_bytes(spent.bytes)?;
        let scan = calls.scan(snapshot, cache, query)?;
        spent.parts += scan.distinct_parts();
        limits.check_parts(spent.parts)?;
        *self = spent;
        Ok(scan)
    }
}

/// Returns the granted Sessions that match the query or made the commit.
///
/// If repeated content counts once, the latest Sessions are searched that fit into the limits
/// together; the others are only counted.
///
/// # Errors
///
/// Declined if the scan exceeds a bound; where repeated content counts once, if each Session does
/// so alone. A grant without a known Session is not an error.
pub fn discover(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    limits: &ScanLimits,
    grant: &[SessionId],
    request: ContextDiscoveryRequest,
) -> Result<DiscoveryResult, Error> {
    let quarantine_revision = snapshot.quarantine_revision()?;
    let is_whole = limits.repeats == Repeats::Count;
    let known = snapshot.latest_first(grant)?;
    let mut coverage = DiscoveryCoverage {
        authorized_sessions: grant.len() as u64,
        found_sessions: known.len() as u64,
        searched_sessions: None,
        visible_inference_calls: 0,
        quarantined_inference_calls: 0,
        scanned_parts: 0,
        matched_parts: 0,
        complete_visible_scan: true,
    };
    let looked_at = if is_whole {
        known.len()
    } else {
        DISCOVERY_SESSIONS_MAX
    };
    let mut found = Vec::new();
    let mut measure = ScanMeasure::default();
    for session_id in known.into_iter().take(looked_at) {
        let commit_match = match &request.commit {
            Some(anchor) => snapshot.commit_match(session_id, anchor)?,
            None => None,
        };
        let of_session = snapshot.call_measure(session_id)?;
        let is_match = commit_match.is_some();
        add(&mut measure, of_session, session_id, is_match);
        found.push(GrantedSession {
            session_id,
            commit_match,
            calls: of_session.calls,
            counts: snapshot.session_fact_count(session_id, FactTable::InferenceCalls)?,
        });
    }
    if is_whole {
        limits.check(&measure)?;
    }

    let mut state = SessionScan::new(limits);
    let mut spent = ScanUse::default();
    let mut parts = PartCounts::default();
    let mut candidates = Vec::new();
    let mut skipped = DiscoverySkipped::default();
    let mut searched = 0;
    let mut refused = None;
    for found in found {
        let session_id = found.session_id;
        let scan = if is_whole {
            VisibleCalls::of(snapshot, session_id)?.scan(snapshot, cache, &request.query)?
        } else {
            match spent.scan(snapshot, cache, limits, &found, &request.query) {
                Err(Error::Declined(decline)) => {
                    refused.get_or_insert(decline);
                    continue;
                }
                scan => scan?,
            }
        };
        state.begin()?;
        searched += 1;
        coverage.visible_inference_calls += found.counts.visible;
        coverage.quarantined_inference_calls += found.counts.total - found.counts.visible;
        skipped.content_erased += snapshot.erased_calls(session_id)?.len() as u64;
        let mut best: Option<Occurrence<'_>> = None;
        let counts = scan.each(|occurrence| {
            state.add(&occurrence)?;
            if best.is_none_or(|best| occurrence.rank() < best.rank()) {
                best = Some(occurrence);
            }
            Ok(())
        })?;
        parts += counts;
        if best.is_none() && found.commit_match.is_none() {
            skipped.unmatched_session += 1;
            continue;
        }
        candidates.push(Candidate {
            session_id: session_id.clone(),
            score: best.map_or(0, |best| best.score()),
            matched_parts: counts.matched,
            preview: best.map(|best| best.place()),
            commit_match: found.commit_match,
        });
    }
    if is_whole {
        limits.check_parts(measure.parts)?;
    }
    if searched < coverage.found_sessions {
        if let (0, Some(decline)) = (searched, refused) {
            return Err(decline.into());
        }
        coverage.searched_sessions = Some(searched);
        coverage.complete_visible_scan = false;
    }
    candidates.sort_by(|a, b| a.key().cmp(&b.key()));
    coverage.scanned_parts = parts.scanned;
    coverage.matched_parts = parts.matched;
    skipped.reasoning_part = parts.reasoning;
    skipped.non_finite_number = parts.non_finite;
    skipped.unmatched_part = parts.unmatched;

    let any = !candidates.is_empty();
    let mut packer = Packer::new(request.max_bytes.get() - CONTEXT_ENVELOPE_BYTES_MAX as u64);
    let mut items = Vec::new();
    for candidate in candidates {
        match candidate.pack(snapshot, cache, &mut packer)? {
            Ok(item) => items.push(item),
            Err(Packing::ItemLimit) => skipped.candidate_limit += 1,
            Err(Packing::Budget | Packing::Chosen) => skipped.response_budget += 1,
        }
    }
    let status = match (items.is_empty(), any) {
        (false, _) => ContextStatus::Matched,
        (true, true) => ContextStatus::BudgetExhausted,
        (true, false) => ContextStatus::NoMatch,
    };
    let mut result = DiscoveryResult {
        schema_version: Version1,
        policy_version: Version1.into(),
        quarantine_revision,
        capture_completeness: CaptureCompleteness::Unknown.into(),
        commit: request.commit,
        status: status.into(),
        coverage,
        skipped,
        items: Vec::new(),
    };
    check_envelope(&result)?;
    result.items = items;
    Ok(result)
}

/// Adds one granted Session to the measure of the scan.
fn add(total: &mut ScanMeasure, session: ScanMeasure, session_id: &SessionId, matched: bool) {
    let id_bytes = session_id.as_str().len() as u64;
    let link_bytes = if matched {
        id_bytes + MATCH_ID_BYTES
    } else {
        0
    };
    let rows = session.calls * id_bytes;
    total.calls += session.calls;
    total.parts += session.parts;
    total.metadata_bytes += session.metadata_bytes + rows + id_bytes + link_bytes;
    total.row_bytes += session.row_bytes + rows + id_bytes + link_bytes;
    let row_bytes_max = if session.calls == 0 {
        0
    } else {
        session.row_bytes_max + id_bytes
    };
    total.row_bytes_max = total
        .row_bytes_max
        .max(row_bytes_max)
        .max(id_bytes)
        .max(link_bytes);
}

struct Candidate {
    session_id: SessionId,
    score: u64,
    matched_parts: u64,
    /// Its best part, if one matches.
    preview: Option<OccurrencePlace>,
    commit_match: Option<CommitMatch>,
}

impl Candidate {
    fn key(&self) -> impl Ord + '_ {
        (
            self.commit_match.is_none(),
            Reverse(self.score),
            &self.session_id,
        )
    }

    /// Offers the candidate and its preview to the packer. A candidate that matches the commit is
    /// offered again without its preview if it does not fit with it.
    fn pack(
        self,
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
        packer: &mut Packer,
    ) -> Result<Result<DiscoveryCandidate, Packing>, Error> {
        let by_commit = self.commit_match.is_some();
        let preview = match self.preview {
            None => None,
            Some(place) if packer.is_full() => return Ok(Err(packer.offer(place.item_bytes))),
            // It fits into no reply. It is not read, because it may take megabytes.
            Some(place) if place.item_bytes > CONTEXT_REPLY_BYTES_HIGH => {
                if !by_commit {
                    return Ok(Err(packer.offer(CONTEXT_REPLY_BYTES_HIGH)));
                }
                None
            }
            Some(place) => Some(place.read(snapshot, cache)?),
        };
        let mut candidate = DiscoveryCandidate {
            session_id: self.session_id,
            score: self.score,
            matched_parts: self.matched_parts,
            preview,
            commit_match: self.commit_match,
        };
        let mut packing = packer.offer(bytes(&candidate));
        if packing == Packing::Budget && by_commit && candidate.preview.is_some() {
            candidate.preview = None;
            packing = packer.offer(bytes(&candidate));
        }
        Ok(match packing {
            Packing::Chosen => Ok(candidate),
            refused => Err(refused),
        })
    }
}

/// Returns the encoded size of a candidate; larger than any reply if it cannot be encoded.
fn bytes(candidate: &DiscoveryCandidate) -> u64 {
    let most = 2 * usize::try_from(CONTEXT_REPLY_BYTES_HIGH).unwrap_or(usize::MAX);
    json::to_vec(candidate, most).map_or(u64::MAX / 2, |bytes| bytes.len() as u64)
}

impl Answer for Discovery {
    const ADMISSION: AdmissionKind = AdmissionKind::Slot;

    fn answer(
        reading: &mut ReadContext<'_, '_>,
        request: Self::Request,
    ) -> Result<Self::Reply, Error> {
        let grant = reached(reading.snapshot, &reading.resources.grants, reading.reach)?;
        let content = reading.content()?;
        let limits = reading.resources.scan.of(reading.repeats);
        discover(reading.snapshot, &content, limits, &grant, request)
    }
}
