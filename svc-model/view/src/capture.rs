//! What arrived, and what became of it.

use svc_model::capture::{CommitClaimCounts, LogRecordCounts, SourceCounts};

use crate::surface::Surface;

/// Returns the number of facts that a source brought first.
pub fn stored(of: &SourceCounts) -> u64 {
    of.facts.values().map(|facts| facts.stored).sum()
}

/// Returns the number of facts that a source brought again.
pub fn duplicates(of: &SourceCounts) -> u64 {
    of.facts.values().map(|facts| facts.duplicates).sum()
}

/// Returns how something was declined, why, and how often.
pub fn declined(of: &SourceCounts) -> impl Iterator<Item = (&'static str, &str, u64)> {
    let skipped = of.skipped.iter().map(|skipped| ("skipped", skipped));
    let rejected = of.rejected.iter().map(|rejected| ("rejected", rejected));
    let all = skipped.chain(rejected);
    all.map(|(how, (reason, count))| (how, reason.as_str(), *count))
}

impl Surface {
    /// Says what became of log records, if any arrived.
    pub fn log_records(self, records: LogRecordCounts) -> Option<String> {
        if records.received == 0 && records.malformed_containers == 0 {
            return None;
        }
        let containers = match records.malformed_containers {
            0 => String::new(),
            containers => format!("; {} malformed around them", self.whole(containers)),
        };
        Some(format!(
            "{} received, {} translated, {} not, {} malformed{containers}",
            self.whole(records.received),
            self.whole(records.translated),
            self.whole(records.untranslated),
            self.whole(records.malformed)
        ))
    }

    /// Says what became of the commits that clients reported.
    pub fn commit_claims(self, claims: CommitClaimCounts) -> String {
        format!(
            "{} open, {} linked to their Sessions, {} ambiguous, {} expired",
            self.whole(claims.open),
            self.whole(claims.resolved),
            self.whole(claims.ambiguous),
            self.whole(claims.expired)
        )
    }
}
