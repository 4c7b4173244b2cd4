//! The calls that a report covers.

use maud::{Markup, html};
use svc_engine::read::Extent;
use svc_model::limit::REPORT_COHORT_DAYS_MAX;
use svc_model::problem::{Problem, QueryFault};
use svc_model::reports::{ReportRequest, ReportScope};
use svc_model::time::Instant;
use svc_view::{is_date, midnight};

use crate::console::layout::{Field, InputKind, narrowing};
use crate::console::text::{day, moment};
use crate::console::visit::{Visit, invalid};

/// The numbers of days to choose from. Reports accept at most 31.
const DAYS: [(&str, &str); 4] = [
    ("1", "1 day"),
    ("7", "7 days"),
    ("14", "14 days"),
    ("31", "31 days"),
];
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// The number of days, and the end.
pub(super) struct Period {
    days: u32,
    as_of: Instant,
}

impl Period {
    /// Reads the period from the address. By default it is the maximum number of days, up to now.
    pub(super) fn read(visit: &Visit) -> Result<Self, Problem> {
        let most = u32::try_from(REPORT_COHORT_DAYS_MAX).unwrap_or(1);
        let days = match visit.given("days").map(str::parse) {
            None => most,
            Some(Ok(days)) if days > most => {
                return Err(Problem::Query(QueryFault::CohortTooLong));
            }
            Some(Ok(days @ 1..)) => days,
            Some(Ok(0) | Err(_)) => return Err(invalid("days", "must be a number, 1 to 31")),
        };
        Ok(Self {
            days,
            as_of: until(visit)?,
        })
    }

    pub(super) fn request(&self) -> Result<ReportRequest, Problem> {
        let cohort = Extent::days_before(self.as_of, self.days).observed();
        let scope = ReportScope::new(cohort, self.as_of).map_err(Problem::Query)?;
        Ok(ReportRequest { scope })
    }

    /// Shows the calls that a report covers.
    pub(super) fn describe(&self, scope: &ReportScope) -> Markup {
        html! {
            p {
                "Calls that were observed from " (moment(scope.cohort_start)) " to "
                (moment(scope.cohort_end)) " (" (self.days) " days), with what was known "
                (moment(scope.as_of)) "."
            }
        }
    }
}

/// Returns the boundary for facts: the end of the given day, or now.
pub(super) fn until(visit: &Visit) -> Result<Instant, Problem> {
    let Some(date) = visit.given("until") else {
        return Ok(visit.now);
    };
    let start = Some(date)
        .filter(|date| is_date(date))
        .and_then(|date| Instant::parse(&midnight(date)).ok());
    let end = start
        .and_then(|at| Instant::from_microseconds(at.microseconds() + DAY_MICROSECONDS - 1))
        .ok_or_else(|| invalid("until", "must be a date, such as 2026-01-31"))?;
    if day(end) > day(visit.now) {
        return Err(Problem::Query(QueryFault::CohortAfterBoundary));
    }
    Ok(end.min(visit.now))
}

/// Returns a form for the days and the end.
pub(super) fn form(visit: &Visit, path: &str) -> Markup {
    let fields = [days_field(visit), until_field(visit)];
    narrowing(path, "Choose the days of the report", &fields)
}

/// Returns a field for the number of days.
pub(super) fn days_field(visit: &Visit) -> Field<'_> {
    Field {
        label: "Calls of",
        name: "days",
        value: visit.given("days").unwrap_or("31"),
        kind: InputKind::One(&DAYS),
    }
}

/// Returns a field for the end.
pub(super) fn until_field(visit: &Visit) -> Field<'_> {
    Field {
        label: "Until the end of",
        name: "until",
        value: visit.given("until").unwrap_or_default(),
        kind: InputKind::Date,
    }
}
