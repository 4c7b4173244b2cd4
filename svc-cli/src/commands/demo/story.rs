//! A plausible Session: an agent fixes a pager in four calls, its user accepts the edit, and CI
//! passes. Ids and times are fixed, so loading it again stores nothing new.

use svc_model::facts::AgentHarness;
use svc_model::id::{ForeignId, SessionId, UserId};
use svc_model::ingest::event::{Event, EventKind, EventTime, FilePath, ToolDecision};
use svc_model::ingest::{GatewayIngestRequest, VendorCIRequest};
use svc_model::json::{self, Json};
use svc_model::time::Instant;

use super::conversation::Conversation;

/// The Session of the story.
pub(super) const SESSION: &str = "svc-demo";
/// The keywords that find the story.
pub(super) const QUERY: &str = "half-open window";

const USER: &str = "demo";
const MESSAGES: &str = include_str!("story.json");
const OUTCOME: &str = r#"{
    "provider": "other",
    "run_id": "svc-demo-1",
    "run_attempt": 1,
    "repo": "demo/pager",
    "commit_sha": "5e1f0a2b9c7d4e6f8091a2b3c4d5e6f708192a3b",
    "branch": "main",
    "workflow_name": "tests",
    "result": "passed",
    "provider_result": "success"
}"#;

/// The first capture id; each call adds one.
const FIRST_CAPTURE: u128 = 0x5bc0_de00_0000_4000_8000_0000_0000_0001;
/// 2026-01-15T09:30:00Z.
const FIRST_OBSERVED_US: i64 = 1_768_469_400_000_000;
/// How long a turn takes.
const TURN_US: i64 = 21_500_000;
/// The edit of the pager, which the second call asks for.
const EDIT: &str = "call_demo_edit";
const EDITED: &str = "src/pager.rs";
/// 2026-01-15T09:30:30Z: after the call that asks for the edit.
const DECIDED: &str = "2026-01-15T09:30:30Z";

/// Returns the Session.
pub(super) fn session_id() -> SessionId {
    SessionId::new(SESSION).expect("a name without blanks")
}

/// Returns the deliveries of the calls, in order.
pub(super) fn calls() -> Vec<GatewayIngestRequest> {
    let messages = Json::parse(MESSAGES.as_bytes())
        .ok()
        .and_then(Json::into_array);
    let conversation = Conversation {
        session_id: session_id(),
        user: USER,
        model: "demo/model-1",
        provider: "demo",
        first_capture: FIRST_CAPTURE,
        observed_us: FIRST_OBSERVED_US,
        turn_us: TURN_US,
        messages: messages.expect("the story is a list"),
    };
    conversation.calls()
}

/// Returns the user's decision to accept the edit.
pub(super) fn decision() -> Event {
    const VALID: &str = "the story's values are valid";
    let occurred_at = Instant::parse(DECIDED).expect(VALID);
    Event {
        agent: AgentHarness::ClaudeCode,
        session_id: session_id(),
        user_id: UserId::new(USER).ok(),
        occurred_at: EventTime::try_from(occurred_at).expect(VALID),
        kind: EventKind::ToolDecision(ToolDecision {
            call_id: ForeignId::new(EDIT).expect(VALID),
            file_path: Some(FilePath::new(EDITED).expect(VALID)),
            accepted: true,
            explicit: true,
            tool_name: Some("edit_file".to_owned()),
        }),
    }
}

/// Returns the outcome of the CI run.
pub(super) fn outcome() -> VendorCIRequest {
    json::from_slice(OUTCOME.as_bytes()).expect("the outcome is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_the_story_has_more_messages_than_the_one_before() {
        let calls = calls();
        let lengths: Vec<_> = calls
            .iter()
            .map(|call| {
                let payload = call.payload.as_object().unwrap();
                payload.get("messages").unwrap().as_array().unwrap().len()
            })
            .collect();
        assert_eq!(lengths, [2, 4, 6, 9]);
    }

    #[test]
    fn the_story_is_the_same_every_time() {
        assert_eq!(calls(), calls());
        assert_eq!(decision(), decision());
        let last = calls().pop().unwrap();
        let capture = last.capture.unwrap();
        assert_eq!(
            capture.id.to_string(),
            "5bc0de00-0000-4000-8000-000000000004"
        );
        assert_eq!(
            capture.observed_at.to_string(),
            "2026-01-15T09:31:04.500000Z"
        );
    }

    #[test]
    fn the_accepted_edit_is_one_of_the_story() {
        assert!(MESSAGES.contains(EDIT) && MESSAGES.contains(EDITED));
        let calls = calls();
        let asked = calls[1].capture.as_ref().unwrap().observed_at;
        let decided = Instant::parse(DECIDED).unwrap();
        assert!(asked <= decided, "{asked}");
    }

    #[test]
    fn the_outcome_is_valid() {
        assert_eq!(outcome().run_id.as_str(), "svc-demo-1");
    }
}
