//! What is searched, and which Sessions are listed.

use rmcp::model::JsonObject;
use svc_model::context::MaxBytes;
use svc_model::evidence::InventoryRequest;
use svc_model::id::SessionId;
use svc_model::limit::{CONTEXT_REPLY_BYTES_HIGH, SEARCH_SESSIONS_MAX, SESSION_PAGE_MAX};
use svc_model::problem::QueryFault;
use svc_model::query::{RepositorySelector, SessionPageLimit, SessionsRequest};
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::search::{SearchFilters, SearchLimit, SearchQuery, SearchRepository, SearchRequest};
use svc_model::time::Instant;

use super::opening::inventory;
use super::taking::{Arguments, wrong};
use super::{ToolCaller, View, ViewedQuestion};
use crate::refusal::ToolRefusal;
use crate::tool::Question;

/// The number of Sessions that are listed unless the call says otherwise.
const LISTED: u64 = 20;

/// Reads what is searched. Without words, the Sessions are listed that meet the conditions, or the
/// calls of the one that is named.
///
/// # Errors
///
/// If the arguments are not valid.
pub(crate) fn search(
    arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    if !arguments.has("query") {
        return without_words(arguments, caller);
    }
    let query: SearchQuery = arguments.require("query")?;
    let (since, until) = period(&mut arguments)?;
    let filters = SearchFilters {
        session_id: arguments.take("session_id")?,
        repository: arguments.take("repo")?.map(SearchRepository::Named),
        commit: commit(&mut arguments)?,
        file: arguments.take("file")?,
        user: arguments.take_of_operator("user")?,
        model: arguments.take("model")?,
        agent: arguments.take("agent")?,
        since,
        until,
        role: arguments.take("role")?,
        kind: arguments.take("kind")?,
    };
    let limit = arguments.number("limit", 1..=SEARCH_SESSIONS_MAX)?;
    let request = SearchRequest {
        limit: limit.and_then(SearchLimit::new).unwrap_or_default(),
        max_bytes: MaxBytes::new(CONTEXT_REPLY_BYTES_HIGH).unwrap_or_default(),
        filters,
        ..SearchRequest::new(query)
    };
    Ok((Question::Search(request), View::Whole))
}

fn without_words(
    mut arguments: Arguments<'_>,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    if arguments.has("session_id") {
        let session_id: SessionId = arguments.require("session_id")?;
        return Ok(inventory(InventoryRequest { session_id }, caller));
    }
    if !["commit", "file"].iter().any(|name| arguments.has(name)) {
        return Err(wrong(
            "query",
            "is missing: give words of the code or the problem, or a commit, a file or a session_id",
        ));
    }
    for name in ["role", "kind"] {
        if arguments.has(name) {
            return Err(wrong(name, "requires query"));
        }
    }
    list(arguments.rest(), caller)
}

/// Reads which Sessions are listed.
///
/// # Errors
///
/// If the arguments are not valid.
pub(crate) fn list(
    arguments: JsonObject,
    caller: &ToolCaller,
) -> Result<ViewedQuestion, ToolRefusal> {
    let mut arguments = Arguments::new(arguments, caller);
    let (captured_after, captured_before) = period(&mut arguments)?;
    let repository = arguments.take::<RepositoryName>("repo")?;
    let limit = arguments.number("limit", 1..=SESSION_PAGE_MAX)?;
    let request = SessionsRequest {
        captured_after,
        captured_before,
        user_id: arguments.take_of_operator("user")?,
        model: arguments.take("model")?,
        agent_harness: arguments.take("agent")?,
        repository: repository.map_or_else(RepositorySelector::default, RepositorySelector::named),
        commit: commit(&mut arguments)?,
        file: arguments.take("file")?,
        limit: SessionPageLimit::new(limit.unwrap_or(LISTED)).unwrap_or_default(),
        cursor: arguments.take("cursor")?,
        spend: false,
        titles: true,
    };
    Ok((Question::GrantSessions(request), View::Whole))
}

/// Takes a commit. Only its full id is the same everywhere.
fn commit(arguments: &mut Arguments<'_>) -> Result<Option<CommitSha>, ToolRefusal> {
    let commit = arguments.take::<CommitSha>("commit");
    commit.map_err(|_| {
        wrong(
            "commit",
            "must be the full id, 40 or 64 hexadecimal digits: git rev-parse COMMIT prints it",
        )
    })
}

/// Takes the period.
fn period(
    arguments: &mut Arguments<'_>,
) -> Result<(Option<Instant>, Option<Instant>), ToolRefusal> {
    let (since, until) = (arguments.moment("since")?, arguments.moment("until")?);
    match (since, until) {
        (Some(since), Some(until)) if until <= since => Err(ToolRefusal {
            code: QueryFault::ReversedBounds.as_str().to_owned(),
            ..wrong("until", "must be later than since")
        }),
        bounds => Ok(bounds),
    }
}
