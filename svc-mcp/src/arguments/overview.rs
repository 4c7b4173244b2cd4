//! What an overview covers.

use rmcp::model::JsonObject;
use svc_model::overview::{OverviewDays, OverviewLimit, OverviewRequest};
use svc_model::query::RepositorySelector;
use svc_model::repository::RepositoryName;

use super::taking::{Arguments, wrong};
use super::{ToolCaller, View, ViewedQuestion};
use crate::refusal::ToolRefusal;
use crate::tool::Question;

/// The Sessions of an answer unless the call says otherwise, and at most.
const SESSIONS: u64 = 5;
pub(crate) const SESSIONS_MAX: u64 = 20;

/// Reads what an overview covers: by default the last seven days.
///
/// # Errors
///
/// If the arguments are not valid.
pub(crate) fn overview(
    arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    let days = arguments.number("days", 1..=31)?.map(|days| {
        OverviewDays::from_wire(&days.to_string())
            .ok_or_else(|| wrong("days", "must be 1, 7 or 31"))
    });
    let repository = arguments.take::<RepositoryName>("repo")?;
    let limit = arguments.number("limit", 1..=SESSIONS_MAX)?;
    let request = OverviewRequest {
        days: days.transpose()?,
        as_of: arguments.moment("as_of")?,
        repository: repository.map_or_else(RepositorySelector::default, RepositorySelector::named),
        model: arguments.take("model")?,
        user_id: arguments.take("user")?,
        outcome: arguments.take("outcome")?,
        limit: OverviewLimit::new(limit.unwrap_or(SESSIONS)).unwrap_or_default(),
    };
    Ok((Question::OverviewQuery(request), View::Whole))
}
