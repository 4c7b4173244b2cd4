use std::ops::Range;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LifecycleReport, ModelReport};
use crate::field::Violations;
use crate::json::WriteError;
use crate::limit::{REPORT_CALLS_MAX, REPORT_COHORT_DAYS_MAX};
use crate::parameter::{Declared, Parameter, parameters};
use crate::problem::QueryFault;
use crate::request::{Incoming, Outgoing, Refusal, Request};
use crate::time::Instant;
use crate::version::Version1;

/// The calls that a report covers, and the boundary up to which facts count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ReportScope {
    /// The start of the cohort, included. A call belongs to the cohort by its observation time.
    pub cohort_start: Instant,
    /// The end of the cohort, not included. At most 31 days after its start.
    pub cohort_end: Instant,
    /// The boundary: only facts that the service received at or before this moment count. Not
    /// before the end of the cohort.
    pub as_of: Instant,
    /// The maximum number of calls in a cohort: 50,000, or 1,000,000 for a spend report that does not
    /// say what the calls became. A report over a larger cohort is refused.
    pub max_inference_calls: u64,
}

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

impl ReportScope {
    /// Returns the scope of the calls that were observed in a half-open range, with a boundary.
    ///
    /// # Errors
    ///
    /// The first of these that applies: [`QueryFault::CohortTooLong`] if the range is longer than
    /// 31 days, [`QueryFault::CohortReversed`] if it is empty or reversed,
    /// [`QueryFault::CohortAfterBoundary`] if it ends after the boundary.
    pub fn new(cohort: Range<Instant>, as_of: Instant) -> Result<Self, QueryFault> {
        let length = cohort.end.microseconds() - cohort.start.microseconds();
        if length > REPORT_COHORT_DAYS_MAX * DAY_MICROSECONDS {
            return Err(QueryFault::CohortTooLong);
        }
        if length <= 0 {
            return Err(QueryFault::CohortReversed);
        }
        if cohort.end > as_of {
            return Err(QueryFault::CohortAfterBoundary);
        }
        Ok(Self {
            cohort_start: cohort.start,
            cohort_end: cohort.end,
            as_of,
            max_inference_calls: REPORT_CALLS_MAX,
        })
    }

    /// Returns the length of the cohort in days, rounded up; at least 1.
    pub fn since_days(&self) -> u64 {
        let length = self.cohort_end.microseconds() - self.cohort_start.microseconds();
        let started = length / DAY_MICROSECONDS + i64::from(length % DAY_MICROSECONDS > 0);
        u64::try_from(started).unwrap_or(0).max(1)
    }
}

/// Asks for a report about one cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// The calls to cover, and the boundary.
    pub scope: ReportScope,
}

impl ReportRequest {
    pub(crate) const COHORT_START: Declared<Instant> = Declared::required(
        "cohort_start",
        "The start of the cohort. A call belongs to it by its observation time.",
    );
    pub(crate) const COHORT_END: Declared<Instant> = Declared::required(
        "cohort_end",
        "The end of the cohort, not included; at most 31 days after its start.",
    );
    pub(crate) const AS_OF: Declared<Instant> = Declared::required(
        "as_of",
        "Count only facts received at or before this moment; not before the end of the cohort.",
    );
}

impl Request for ReportRequest {
    const PARAMETERS: &'static [Parameter] =
        parameters![Self::COHORT_START, Self::COHORT_END, Self::AS_OF,];

    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal> {
        let mut violations = Violations::default();
        let v = &mut violations;
        let start = Self::COHORT_START.read(incoming, v);
        let end = Self::COHORT_END.read(incoming, v);
        let as_of = Self::AS_OF.read(incoming, v);
        let (start, end, as_of) = violations.finish(|| Some((start?, end?, as_of?)))?;
        Ok(Self {
            scope: ReportScope::new(start..end, as_of)?,
        })
    }

    fn write(&self) -> Result<Outgoing, WriteError> {
        let scope = &self.scope;
        let outgoing = Self::COHORT_START.write(Outgoing::default(), &scope.cohort_start);
        let outgoing = Self::COHORT_END.write(outgoing, &scope.cohort_end);
        Ok(Self::AS_OF.write(outgoing, &scope.as_of))
    }
}

/// The model report: what became of each model's calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ModelOutcomes {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The calls that the report covers, and its boundary.
    pub scope: ReportScope,
    /// The report.
    pub report: ModelReport,
}

/// The lifecycle report: what became of accepted work, panel by panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AcceptedWorkLifecycle {
    /// The version of this message: always 1.
    pub schema_version: Version1,
    /// The calls that the report covers, and its boundary.
    pub scope: ReportScope,
    /// The report.
    pub report: LifecycleReport,
}

/// What a part of a report was derived by: the version of the rules, and the state of the
/// quarantine log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct Provenance {
    /// The version of the rules. It changes with every threshold, window and formula.
    pub policy_version: String,
    /// The revision of the quarantine log that this answer was made under; 0 if the log is empty.
    pub quarantine_revision: u64,
    /// The SHA-256 of the parameters of the rules as a JSON document; null if the rules have no
    /// such document.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub policy_digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_scope_is_reported_with_its_first_fault() {
        const DAY: i64 = DAY_MICROSECONDS;
        let at = |microseconds: i64| Instant::from_microseconds(microseconds).unwrap();
        for (start, end, as_of, fault) in [
            (0, 31 * DAY, 31 * DAY, None),
            (0, 31 * DAY + 1, 0, Some(QueryFault::CohortTooLong)),
            (5, 5, 0, Some(QueryFault::CohortReversed)),
            (6, 5, 9, Some(QueryFault::CohortReversed)),
            (5, 6, 5, Some(QueryFault::CohortAfterBoundary)),
        ] {
            let scope = ReportScope::new(at(start)..at(end), at(as_of));
            assert_eq!(scope.err(), fault, "{start} {end} {as_of}");
        }
    }

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
