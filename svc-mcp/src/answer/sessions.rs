//! The Sessions that the caller may read.

use serde_json::Value;
use svc_model::endpoint::GrantSessions;
use svc_model::json::Json;
use svc_model::query::{SessionList, SessionSummary};

use super::{Answer, Members, NOTHING, NOTICE, Step, typed};
use crate::arguments::Shown;
use crate::moment::minute;
use crate::refusal::ToolRefusal;

/// The number of calls at which the list stops counting.
const CALLS_COUNTED_MAX: u64 = 1_000;

/// Makes an answer of a list of Sessions.
pub(crate) fn sessions(shown: &Shown, reply: Json) -> Result<Step, ToolRefusal> {
    let list = typed::<GrantSessions>(reply)?;
    let sessions: Vec<Value> = list.sessions.iter().map(entry).collect();
    let is_nothing = sessions.is_empty() && list.next_cursor.is_none();
    let mut structured = Members::default()
        .with("next", next(shown, &list))
        .with("notice", (!sessions.is_empty()).then_some(NOTICE))
        .with("note", is_nothing.then_some(NOTHING))
        .0;
    structured.insert("sessions".to_owned(), sessions.into());
    Ok(Step::Answer(Answer::new(structured)))
}

fn entry(session: &SessionSummary) -> Value {
    let texts = |texts: Vec<String>| Value::from(texts);
    let first = minute(session.first_observed_at);
    let last = minute(session.last_observed_at);
    let calls = if session.inference_calls >= CALLS_COUNTED_MAX {
        Value::from("1000 or more")
    } else {
        session.inference_calls.into()
    };
    let agents = session.agent_harnesses.iter().map(ToString::to_string);
    let repos = session.repositories.iter().map(ToString::to_string);
    let users: Vec<String> = session.user_ids.iter().map(ToString::to_string).collect();
    Members::default()
        .with("session", session.session_id.as_str())
        .with("title", session.title.as_deref())
        .with(
            "time",
            if first == last {
                first
            } else {
                format!("{first}..{last}")
            },
        )
        .with("user", (!users.is_empty()).then(|| users.join(", ")))
        .with("models", texts(session.models.clone()))
        .with("agent", texts(agents.collect()))
        .with("repos", texts(repos.collect()))
        .with("calls", calls)
        .value()
}

fn next(shown: &Shown, list: &SessionList) -> String {
    // A page that examined many Sessions may be empty and still not the last.
    let more = list.next_cursor.as_ref().map(|cursor| {
        let mut arguments = shown.arguments.clone();
        arguments.remove("query");
        arguments.insert("cursor".to_owned(), cursor.as_str().into());
        format!("For the next: {}", super::call("list_sessions", arguments))
    });
    let open = list.sessions.first().map(|session| {
        let session = super::of_session(session.session_id.as_str());
        let open = super::call("open_evidence", session);
        format!("To browse the first: {open}; to find words in one, search_evidence with its id as session_id")
    });
    match (open, more) {
        (Some(open), Some(more)) => format!("{open}. {more}"),
        (Some(open), None) => open,
        (None, Some(more)) => more,
        (None, None) => "Call list_sessions with fewer conditions; what is only mentioned, such as a commit, is \
             found by search_evidence with it as the query."
                .to_owned(),
    }
}
