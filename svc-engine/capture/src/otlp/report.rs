use std::collections::BTreeMap;

use svc_model::ingest::{LogEvent, LogSkip};

use crate::redaction;
use svc_messages::Degradation;

/// The outcome of an export, as counts for the log and the operator. It repeats nothing of the
/// content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsReport {
    /// Its records.
    pub records: RecordCounts,
    /// Containers of records that are not the lists or objects that they should be.
    pub malformed_containers: u64,
    /// Its facts.
    pub facts: FactCounts,
    /// Why records of known events, or single files of a patch, did not become facts: counts by
    /// event and reason.
    pub skipped: BTreeMap<(LogEvent, LogSkip), u64>,
    /// Records whose event the service would have defined, but did not.
    pub unknown_events: u64,
    /// What was left out of the calls.
    pub degradation: Degradation,
    /// What was redacted in the facts.
    pub redactions: redaction::RedactionCounts,
}

/// Counts of an export's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// All records.
    pub received: u64,
    /// Records that became at least one fact.
    pub translated: u64,
    /// Records that became no fact, including results that complete a decision.
    pub untranslated: u64,
    /// Records that are not objects.
    pub malformed: u64,
}

/// The number of facts of each kind in an export, whether or not they were stored before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactCounts {
    /// Developer decisions.
    pub developer_decisions: u64,
    /// Edit observations.
    pub edit_observations: u64,
    /// Rejected edits.
    pub rejected_edits: u64,
    /// Retry linkages.
    pub retry_linkages: u64,
    /// Usage receipts.
    pub usage_receipts: u64,
    /// Inference calls.
    pub inference_calls: u64,
}

impl LogsReport {
    pub(super) fn skip(&mut self, event: LogEvent, reason: LogSkip, times: u64) {
        *self.skipped.entry((event, reason)).or_default() += times;
    }

    /// Counts a record whose fact turned out to be invalid.
    pub(super) fn unmade(&mut self, event: LogEvent) {
        self.skip(event, LogSkip::InvalidFact, 1);
        self.records.translated = self.records.translated.saturating_sub(1);
        self.records.untranslated += 1;
    }

    /// Returns the skipped records and files by reason, for all events together.
    pub fn skipped_by_reason(&self) -> BTreeMap<LogSkip, u64> {
        let mut counts = BTreeMap::new();
        if self.unknown_events > 0 {
            counts.insert(LogSkip::UnknownEvent, self.unknown_events);
        }
        for ((_, reason), count) in &self.skipped {
            *counts.entry(*reason).or_default() += count;
        }
        counts
    }
}
