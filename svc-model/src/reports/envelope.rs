use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LifecycleReport, ModelReport};
use crate::time::Instant;
use crate::version::Version1;

/// Which calls a report is about, and up to when facts count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportScope {
    /// The first moment of the cohort. A call belongs to the cohort by when it was observed.
    pub cohort_start: Instant,
    /// The end of the cohort; a call of this very moment is not in it.
    pub cohort_end: Instant,
    /// The moment up to which facts count, itself included, by when the service received them.
    pub as_of: Instant,
    /// How many calls a cohort may have; one with more is refused as a whole.
    pub max_inference_calls: u64,
}

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

impl ReportScope {
    /// Returns the days of the cohort, rounded up; at least 1.
    pub fn since_days(&self) -> u64 {
        let length = self.cohort_end.microseconds() - self.cohort_start.microseconds();
        let started = length / DAY_MICROSECONDS + i64::from(length % DAY_MICROSECONDS > 0);
        u64::try_from(started).unwrap_or(0).max(1)
    }
}

/// What became of the calls of each model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelOutcomes {
    /// Always 1.
    pub schema_version: Version1,
    /// What the report is about.
    pub scope: ReportScope,
    /// The report.
    pub report: ModelReport,
}

/// What became of accepted work, panel by panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedWorkLifecycle {
    /// Always 1.
    pub schema_version: Version1,
    /// What the report is about.
    pub scope: ReportScope,
    /// The report.
    pub report: LifecycleReport,
}

/// By which rules something was derived, and from which facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The version of the rules: it changes when a floor, a window or a formula does.
    pub policy_version: String,
    /// The high-water mark of the quarantine log in the snapshot of this answer.
    pub quarantine_revision: u64,
    /// SHA-256 of the rules' numbers as a JSON document, where there is one.
    #[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
    pub policy_digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_a_cohort_are_rounded_up() {
        let at = |text: &str| Instant::parse(text).unwrap();
        for (end, days) in [
            ("2026-01-01T03:00:00Z", 1),
            ("2026-01-02T00:00:00Z", 1),
            ("2026-01-02T00:00:00.000001Z", 2),
            ("2026-01-02T00:00:01Z", 2),
            ("2026-02-01T00:00:00Z", 31),
        ] {
            let scope = ReportScope {
                cohort_start: at("2026-01-01T00:00:00Z"),
                cohort_end: at(end),
                as_of: at(end),
                max_inference_calls: 50_000,
            };
            assert_eq!(scope.since_days(), days, "{end}");
        }
    }
}
