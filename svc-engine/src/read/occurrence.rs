//! Matches every part of a Session's visible calls against a query.

use std::collections::HashMap;
use std::sync::Arc;

use svc_model::context::Query;
use svc_model::evidence::{EvidenceReadItem, Reference, Side};
use svc_model::limit::EVIDENCE_SOURCE_BYTES_MAX;
use svc_model::problem::Decline;

use super::{Content, ContentCache};
use crate::derive::rank::Rank;
use crate::derive::score::{Exclusion, Sameness};
use crate::error::Error;
use crate::store::{CallContents, ScanMeasure, Snapshot};

/// The bounds of a scan that an operator may raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Visible calls.
    pub calls: u64,
    /// Parts of these calls.
    pub parts: u64,
    /// Canonical bytes of their rows.
    pub source_bytes: u64,
    /// Bytes of candidate state.
    pub state_bytes: u64,
}

impl Default for ScanLimits {
    fn default() -> Self {
        use svc_model::limit;
        Self {
            calls: limit::EVIDENCE_CALLS_MAX,
            parts: limit::CONTEXT_PARTS_MAX,
            source_bytes: limit::CONTEXT_SOURCE_BYTES_MAX,
            state_bytes: limit::CONTEXT_STATE_BYTES_MAX,
        }
    }
}

impl ScanLimits {
    /// Checks the size of a scan before anything is read.
    pub(super) fn check(&self, measure: &ScanMeasure) -> Result<(), Decline> {
        if measure.calls > self.calls {
            return Err(Decline::EvidenceInventoryLimit {
                count: measure.calls,
                limit: self.calls,
            });
        }
        for (bytes, limit) in [
            (measure.row_bytes, self.source_bytes),
            (measure.row_bytes_max, EVIDENCE_SOURCE_BYTES_MAX),
            (measure.metadata_bytes, EVIDENCE_SOURCE_BYTES_MAX),
        ] {
            if bytes > limit {
                return Err(Decline::EvidenceSourceLimit { bytes, limit });
            }
        }
        Ok(())
    }

    /// Checks the number of parts, the last of the limits: a scan whose candidate state is also too
    /// large is declined for its state.
    pub(super) fn check_parts(&self, measure: &ScanMeasure) -> Result<(), Decline> {
        if measure.parts > self.parts {
            return Err(Decline::RetrievalPartLimit {
                count: measure.parts,
                limit: self.parts,
            });
        }
        Ok(())
    }

    /// Checks the size of the candidate state.
    pub(super) fn check_state(&self, bytes: u64) -> Result<(), Decline> {
        if bytes > self.state_bytes {
            return Err(Decline::RetrievalStateLimit {
                limit_bytes: self.state_bytes,
            });
        }
        Ok(())
    }
}

/// The number of parts of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartCounts {
    pub(super) scanned: u64,
    pub(super) reasoning: u64,
    pub(super) non_finite: u64,
    pub(super) unmatched: u64,
    pub(super) matched: u64,
}

impl std::ops::AddAssign for PartCounts {
    fn add_assign(&mut self, other: Self) {
        self.scanned += other.scanned;
        self.reasoning += other.reasoning;
        self.non_finite += other.non_finite;
        self.unmatched += other.unmatched;
        self.matched += other.matched;
    }
}

/// One distinct message, matched against the query once, however often it occurs.
struct Matches {
    content: Arc<Content>,
    counts: PartCounts,
    matched: Vec<Match>,
}

#[derive(Clone, Copy)]
struct Match {
    part_index: usize,
    score: u64,
    sameness: Sameness,
}

impl Matches {
    fn of(content: Arc<Content>, query: &Query) -> Self {
        let mut counts = PartCounts::default();
        let mut matched = Vec::new();
        let parts = content.searchable().iter().zip(&content.message.parts);
        for (part_index, (searchable, part)) in parts.enumerate() {
            counts.scanned += 1;
            match searchable.excluded {
                Some(Exclusion::Reasoning) => counts.reasoning += 1,
                Some(Exclusion::NonFinite) => counts.non_finite += 1,
                None => match searchable.score(query) {
                    0 => counts.unmatched += 1,
                    score => {
                        counts.matched += 1;
                        let sameness = searchable.sameness(&content.message, part);
                        matched.push(Match {
                            part_index,
                            score,
                            sameness,
                        });
                    }
                },
            }
        }
        Self {
            content,
            counts,
            matched,
        }
    }
}

/// One occurrence of a matching part.
#[derive(Clone, Copy)]
pub(super) struct Occurrence<'a> {
    call: &'a CallContents,
    side: Side,
    message_index: usize,
    found: Match,
    content: &'a Arc<Content>,
}

impl<'a> Occurrence<'a> {
    pub(super) fn score(&self) -> u64 {
        self.found.score
    }

    pub(super) fn sameness(&self) -> Sameness {
        self.found.sameness
    }

    pub(super) fn rank(&self) -> Rank<'a> {
        Rank {
            score: self.found.score,
            observed_at: self.call.observed_at,
            inference_call_id: self.call.inference_call_id.as_str(),
            side: self.side,
            message_index: self.message_index as u64,
            part_index: self.found.part_index as u64,
        }
    }

    /// Returns the encoded size of [`Occurrence::item`], without encoding it.
    pub(super) fn item_bytes(&self) -> u64 {
        const NAMES: &str = concat!(
            r#"{"reference":{"inference_call_id":"","side":"","message_index":,"part_index":},"#,
            r#""observed_at":"","role":,"finish_reason":,"part":}"#
        );
        let instant = if self.call.observed_at.microseconds() % 1_000_000 == 0 {
            20
        } else {
            27
        };
        NAMES.len() as u64
            + self.call.inference_call_id.as_str().len() as u64
            + self.side.as_str().len() as u64
            + digits(self.message_index as u64)
            + digits(self.found.part_index as u64)
            + instant
            + self.found.sameness.body_bytes
    }

    pub(super) fn item(&self) -> EvidenceReadItem {
        let message = &self.content.message;
        EvidenceReadItem {
            reference: Reference {
                inference_call_id: self.call.inference_call_id.clone(),
                side: self.side.into(),
                message_index: self.message_index as u64,
                part_index: self.found.part_index as u64,
            },
            observed_at: self.call.observed_at,
            role: message.role.clone(),
            finish_reason: message.finish_reason.clone(),
            part: message.parts[self.found.part_index].clone().into(),
        }
    }
}

/// Returns the number of decimal digits.
pub(super) fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

/// The visible calls of one Session, with their matched messages.
pub(super) struct Scan {
    calls: Vec<CallContents>,
    matches: HashMap<i64, Matches>,
}

impl Scan {
    /// Reads the visible calls of a Session.
    pub(super) fn open(
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
        session_id: &svc_model::id::SessionId,
        query: &Query,
    ) -> Result<Self, Error> {
        let calls = snapshot.call_contents(session_id)?;
        Self::of(snapshot, cache, calls, query)
    }

    fn of(
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
        calls: Vec<CallContents>,
        query: &Query,
    ) -> Result<Self, Error> {
        let ids = calls
            .iter()
            .flat_map(|call| call.input.iter().chain(&call.output).copied());
        let contents = cache.load(snapshot, ids)?;
        let mut matches = HashMap::with_capacity(contents.len());
        for (id, content) in contents {
            snapshot.check_deadline()?;
            matches.insert(id, Matches::of(content, query));
        }
        Ok(Self { calls, matches })
    }

    /// Calls `each` with every occurrence of a matching part, and returns the counts of all parts.
    pub(super) fn each<'a>(
        &'a self,
        mut each: impl FnMut(Occurrence<'a>) -> Result<(), Error>,
    ) -> Result<PartCounts, Error> {
        let mut counts = PartCounts::default();
        for call in &self.calls {
            for (side, contents) in [(Side::Input, &call.input), (Side::Output, &call.output)] {
                for (message_index, id) in contents.iter().enumerate() {
                    let matches = &self.matches[id];
                    counts += matches.counts;
                    for found in &matches.matched {
                        each(Occurrence {
                            call,
                            side,
                            message_index,
                            found: *found,
                            content: &matches.content,
                        })?;
                    }
                }
            }
        }
        Ok(counts)
    }
}

/// Calls `each` with every occurrence of a matching part of a Session, holding one call at a time
/// in memory. For scans with too many parts to hold them all.
pub(super) fn each_by_call(
    snapshot: &mut Snapshot<'_>,
    cache: &ContentCache,
    session_id: &svc_model::id::SessionId,
    query: &Query,
    mut each: impl FnMut(&Occurrence<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for call in snapshot.call_contents(session_id)? {
        snapshot.check_deadline()?;
        let scan = Scan::of(snapshot, cache, vec![call], query)?;
        scan.each(|occurrence| each(&occurrence))?;
    }
    Ok(())
}
