//! The period of a report.

use rmcp::model::JsonObject;
use svc_model::limit::{REPORT_COHORT_DAYS_MAX, SPEND_ROWS_MAX};
use svc_model::reports::{ReportRequest, ReportScope};
use svc_model::request::Refusal as Unread;
use svc_model::spend::{SpendRequest, SpendRowLimit};
use svc_model::time::Instant;

use super::taking::{Arguments, wrong};
use super::{ToolCaller, View, ViewedQuestion, refusal};
use crate::refusal::ToolRefusal;
use crate::tool::Question;

/// The days of a report unless the call says otherwise.
const DAYS: u64 = 30;
/// The rows of a spend report unless the call says otherwise.
const ROWS: u64 = 20;
const DAY_MICROSECONDS: u64 = 86_400_000_000;

/// Reads the period of a report: by default the last 30 days.
///
/// # Errors
///
/// If the arguments are not valid, or do not go together.
pub(crate) fn report(
    arguments: JsonObject,
    caller: &ToolCaller,
    question: fn(ReportRequest) -> Question,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    let scope = scope(&mut arguments)?;
    Ok((question(ReportRequest { scope }), View::Whole))
}

/// Reads what a spend report is asked: its period, and what its rows stand for.
///
/// # Errors
///
/// As [`report`].
pub(crate) fn spend(
    arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    let mut request = SpendRequest::new(scope(&mut arguments)?);
    request.by = arguments.take("by")?.unwrap_or(request.by);
    let rows = arguments.number("limit", 1..=SPEND_ROWS_MAX)?;
    request.limit = SpendRowLimit::new(rows.unwrap_or(ROWS)).unwrap_or_default();
    Ok((Question::CohortSpendReport(request), View::Whole))
}

fn scope(arguments: &mut Arguments<'_>) -> Result<ReportScope, ToolRefusal> {
    if arguments.has("since_days") && arguments.has("cohort_start") {
        return Err(wrong("since_days", "cannot be used with cohort_start"));
    }
    let as_of = arguments.moment("as_of")?.unwrap_or(arguments.now());
    let end = arguments.moment("cohort_end")?.unwrap_or(as_of);
    let days = arguments.number("since_days", 1..=REPORT_COHORT_DAYS_MAX.unsigned_abs())?;
    let start = match arguments.moment("cohort_start")? {
        Some(start) => start,
        None => before(end, days.unwrap_or(DAYS))
            .ok_or_else(|| wrong("cohort_end", "must be later in 1970"))?,
    };
    let scope = ReportScope::new(start..end, as_of);
    scope.map_err(|fault| refusal(Unread::Query(fault)))
}

fn before(end: Instant, days: u64) -> Option<Instant> {
    let length = i64::try_from(days.checked_mul(DAY_MICROSECONDS)?).ok()?;
    Instant::from_microseconds(end.microseconds().checked_sub(length)?)
}
