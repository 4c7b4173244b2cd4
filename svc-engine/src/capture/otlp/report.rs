use std::collections::BTreeMap;

use svc_model::ingest::{LogEvent, LogSkip};

use crate::capture::redaction;

/// What became of an export, as counts for the log and the operator. Nothing of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsReport {
    /// Its records.
    pub records: RecordCounts,
    /// Containers of records that are not lists or not objects.
    pub malformed_containers: u64,
    /// The facts that it gave.
    pub facts: FactCounts,
    /// Records of known events, and single files of a patch, that became no fact, by why.
    pub skipped: BTreeMap<(LogEvent, LogSkip), u64>,
    /// What was redacted in the facts.
    pub redactions: redaction::Counts,
}

/// How many records an export had, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// All of them.
    pub received: u64,
    /// Those that became at least one fact.
    pub translated: u64,
    /// Those that became none; results that complete a decision are among them.
    pub untranslated: u64,
    /// Those that are not objects.
    pub malformed: u64,
}

/// How many facts of each kind an export gave, stored already or not.
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
}

impl LogsReport {
    pub(super) fn skip(&mut self, event: LogEvent, reason: LogSkip, times: u64) {
        *self.skipped.entry((event, reason)).or_default() += times;
    }

    /// Returns how many records or files were skipped for each reason, whatever the event.
    pub fn skipped_by_reason(&self) -> BTreeMap<LogSkip, u64> {
        let mut counts = BTreeMap::new();
        for ((_, reason), count) in &self.skipped {
            *counts.entry(*reason).or_default() += count;
        }
        counts
    }
}
