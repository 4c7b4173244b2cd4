//! Matches every part of a Session's visible calls against a query.
//!
//! A history that is sent again with every call is one message with many occurrences: each message
//! is scored once and its occurrences are counted. Only matches are kept, and chosen parts are read
//! again, so a Session of any length takes the memory of its list of calls.

use std::collections::{HashMap, HashSet};

use svc_engine_derive::rank::Rank;
use svc_engine_derive::score::{Exclusion, Sameness};
use svc_engine_store::{CallContents, ScanMeasure, Snapshot, StoreError};
use svc_model::context::Query;
use svc_model::evidence::{EvidenceReadItem, Reference, Side};
use svc_model::id::SessionId;
use svc_model::limit::EVIDENCE_SOURCE_BYTES_MAX;
use svc_model::problem::Decline;
use svc_model::time::Instant;

use super::{ContentCache, MessageContent};
use crate::error::Error;

/// How a scan counts content that is repeated, as the history of a Session is in each of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Each time.
    Count,
    /// Once, as the scan reads it. Only what takes memory or time is bounded then.
    Once,
}

/// The bounds of scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanBounds {
    /// Of scans that count repeated content each time.
    pub repeated: ScanLimits,
    /// Of scans that count it once.
    pub distinct: ScanLimits,
}

impl Default for ScanBounds {
    fn default() -> Self {
        Self {
            repeated: ScanLimits::of(Repeats::Count),
            distinct: ScanLimits::of(Repeats::Once),
        }
    }
}

impl ScanBounds {
    pub(crate) const fn of(&self, repeats: Repeats) -> &ScanLimits {
        match repeats {
            Repeats::Count => &self.repeated,
            Repeats::Once => &self.distinct,
        }
    }
}

/// The bounds of a scan that an operator may raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// How repeated content counts.
    pub repeats: Repeats,
    /// Visible calls.
    pub calls: u64,
    /// Parts of these calls.
    pub parts: u64,
    /// Canonical bytes of their rows.
    pub source_bytes: u64,
    /// Bytes of candidate state.
    pub state_bytes: u64,
}

impl ScanLimits {
    /// Returns the defaults.
    pub const fn of(repeats: Repeats) -> Self {
        use svc_model::limit;
        let (calls, parts, source_bytes) = match repeats {
            Repeats::Count => (
                limit::EVIDENCE_CALLS_MAX,
                limit::CONTEXT_PARTS_MAX,
                limit::CONTEXT_SOURCE_BYTES_MAX,
            ),
            Repeats::Once => (
                limit::DISTINCT_CALLS_MAX,
                limit::DISTINCT_PARTS_MAX,
                limit::DISTINCT_SOURCE_BYTES_MAX,
            ),
        };
        Self {
            repeats,
            calls,
            parts,
            source_bytes,
            state_bytes: limit::CONTEXT_STATE_BYTES_MAX,
        }
    }

    /// Checks the size of a scan before anything is read.
    pub(super) fn check(&self, measure: &ScanMeasure) -> Result<(), Decline> {
        if measure.calls > self.calls {
            return Err(Decline::EvidenceInventoryLimit {
                count: measure.calls,
                limit: self.calls,
            });
        }
        if self.repeats == Repeats::Once {
            return Ok(());
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

    /// Checks the canonical bytes of the distinct messages.
    pub(super) fn check_bytes(&self, bytes: u64) -> Result<(), Decline> {
        if bytes > self.source_bytes {
            let limit = self.source_bytes;
            return Err(Decline::EvidenceSourceLimit { bytes, limit });
        }
        Ok(())
    }

    /// Checks the number of parts, the last of the limits: a scan whose candidate state is also too
    /// large is declined for its state.
    pub(super) fn check_parts(&self, count: u64) -> Result<(), Decline> {
        if count > self.parts {
            return Err(Decline::RetrievalPartLimit {
                count,
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

/// One distinct message, matched against the query once, however often it occurs. The message itself
/// is not kept: those of a long Session take more memory than a read may.
struct Matches {
    counts: PartCounts,
    matched: Vec<PartMatch>,
}

#[derive(Clone, Copy)]
struct PartMatch {
    part_index: usize,
    score: u64,
    sameness: Sameness,
}

impl Matches {
    fn of(content: &MessageContent, query: &Query) -> Self {
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
                        matched.push(PartMatch {
                            part_index,
                            score,
                            sameness,
                        });
                    }
                },
            }
        }
        Self { counts, matched }
    }
}

/// One occurrence of a matching part.
#[derive(Clone, Copy)]
pub(super) struct Occurrence<'a> {
    call: &'a CallContents,
    side: Side,
    message_index: usize,
    found: PartMatch,
    content_id: i64,
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

    /// Returns the occurrence without what is borrowed from its scan.
    pub(super) fn place(&self) -> OccurrencePlace {
        OccurrencePlace {
            reference: Reference {
                inference_call_id: self.call.inference_call_id.clone(),
                side: self.side.into(),
                message_index: self.message_index as u64,
                part_index: self.found.part_index as u64,
            },
            observed_at: self.call.observed_at,
            part_index: self.found.part_index,
            content_id: self.content_id,
            item_bytes: self.item_bytes(),
        }
    }
}

/// Where a matching part is. Its content is read again once it is chosen.
pub(super) struct OccurrencePlace {
    reference: Reference,
    observed_at: Instant,
    part_index: usize,
    content_id: i64,
    pub(super) item_bytes: u64,
}

impl OccurrencePlace {
    /// Reads the part.
    pub(super) fn read(
        self,
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
    ) -> Result<EvidenceReadItem, Error> {
        let contents = cache.load(snapshot, [self.content_id])?;
        let message = &contents[&self.content_id].message;
        Ok(EvidenceReadItem {
            reference: self.reference,
            observed_at: self.observed_at,
            role: message.role.clone(),
            finish_reason: message.finish_reason.clone(),
            part: message.parts[self.part_index].clone().into(),
            sent_arguments: None,
        })
    }
}

/// Returns the number of decimal digits.
pub(super) fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

/// The visible calls of one Session, and the ids of their distinct messages.
pub(super) struct VisibleCalls {
    calls: Vec<CallContents>,
    ids: HashSet<i64>,
}

impl VisibleCalls {
    /// Reads the visible calls of a Session.
    pub(super) fn of(
        snapshot: &mut Snapshot<'_>,
        session_id: &SessionId,
    ) -> Result<Self, StoreError> {
        let calls = snapshot.call_contents(session_id)?;
        let ids = calls
            .iter()
            .flat_map(|call| call.input.iter().chain(call.output.iter()));
        let ids = ids.collect();
        Ok(Self { calls, ids })
    }

    /// Returns the canonical bytes of the distinct messages.
    pub(super) fn bytes(&self, snapshot: &mut Snapshot<'_>) -> Result<u64, StoreError> {
        let mut ids: Vec<i64> = self.ids.iter().copied().collect();
        ids.sort_unstable();
        snapshot.content_bytes(&ids)
    }

    /// Matches the messages against a query.
    pub(super) fn scan(
        self,
        snapshot: &mut Snapshot<'_>,
        cache: &ContentCache,
        query: &Query,
    ) -> Result<Scan, StoreError> {
        let mut matches = HashMap::with_capacity(self.ids.len());
        cache.each(snapshot, self.ids, |id, content| {
            matches.insert(id, Matches::of(content, query));
        })?;
        let calls = self.calls;
        Ok(Scan { calls, matches })
    }
}

/// The visible calls of one Session, with their matched messages.
pub(super) struct Scan {
    calls: Vec<CallContents>,
    matches: HashMap<i64, Matches>,
}

impl Scan {
    /// Returns the number of parts of the distinct messages.
    pub(super) fn distinct_parts(&self) -> u64 {
        let each = self.matches.values();
        each.map(|matches| matches.counts.scanned).sum()
    }

    /// Calls `each` with every occurrence of a matching part, and returns the counts of all parts.
    pub(super) fn each<'a>(
        &'a self,
        mut each: impl FnMut(Occurrence<'a>) -> Result<(), Error>,
    ) -> Result<PartCounts, Error> {
        let mut counts = PartCounts::default();
        for call in &self.calls {
            for (side, contents) in [(Side::Input, &call.input), (Side::Output, &call.output)] {
                for (message_index, content_id) in contents.iter().enumerate() {
                    let matches = &self.matches[&content_id];
                    counts += matches.counts;
                    for found in &matches.matched {
                        each(Occurrence {
                            call,
                            side,
                            message_index,
                            found: *found,
                            content_id,
                        })?;
                    }
                }
            }
        }
        Ok(counts)
    }
}
