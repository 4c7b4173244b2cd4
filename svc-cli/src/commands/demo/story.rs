//! A session that could have happened: an agent mends a pager in four calls, and CI passes.
//!
//! Like a real agent it sends its whole history with every call, so each call holds the ones before
//! it. Ids and times are fixed: planting it again stores nothing new.

use svc_model::id::{SessionId, UserId};
use svc_model::ingest::{Capture, GatewayIngestRequest, GatewayProvider, VendorCIRequest};
use svc_model::json::{self, Json, Object};
use svc_model::time::Instant;
use uuid::Uuid;

/// The Session of the story.
pub(super) const SESSION: &str = "svc-demo";
/// Words that find its point.
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

/// Returns the Session.
pub(super) fn session_id() -> SessionId {
    SessionId::new(SESSION).expect("a name without blanks")
}

/// Returns the deliveries of the calls, in order.
pub(super) fn calls() -> Vec<GatewayIngestRequest> {
    let messages = Json::parse(MESSAGES.as_bytes())
        .ok()
        .and_then(Json::into_array);
    let messages = messages.expect("the story is a list");
    let answers = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| is_answer(message));
    answers
        .zip(0_u32..)
        .map(|((position, answer), turn)| call(turn, &messages[..position], answer))
        .collect()
}

/// Returns the outcome of the CI run.
pub(super) fn outcome() -> VendorCIRequest {
    json::from_slice(OUTCOME.as_bytes()).expect("the outcome is one")
}

fn is_answer(message: &Json) -> bool {
    let role = message.as_object().and_then(|message| message.get("role"));
    role.and_then(Json::as_str) == Some("assistant")
}

fn call(turn: u32, history: &[Json], answer: &Json) -> GatewayIngestRequest {
    let observed_us = FIRST_OBSERVED_US + TURN_US * i64::from(turn);
    GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: Some(session_id()),
        user_id: UserId::new(USER).ok(),
        payload: Json::Object(payload(turn, history, answer)),
        capture: Some(Capture {
            id: Uuid::from_u128(FIRST_CAPTURE + u128::from(turn)),
            observed_at: Instant::from_microseconds(observed_us).expect("a moment of our time"),
        }),
    }
}

/// Returns what the gateway would log of the call.
fn payload(turn: u32, history: &[Json], answer: &Json) -> Object {
    let asks = answer
        .as_object()
        .is_some_and(|answer| answer.contains_key("tool_calls"));
    let finish_reason = if asks { "tool_calls" } else { "stop" };
    let choice = Object::from_iter([
        ("index", Json::from(0_i32)),
        ("finish_reason", Json::from(finish_reason)),
        ("message", answer.clone()),
    ]);
    let usage = Object::from_iter([
        ("prompt_tokens", Json::from(tokens(history))),
        (
            "completion_tokens",
            Json::from(tokens(std::slice::from_ref(answer))),
        ),
    ]);
    Object::from_iter([
        ("litellm_call_id", Json::from(format!("svc-demo-{turn}"))),
        ("call_type", Json::from("acompletion")),
        ("model", Json::from("demo/model-1")),
        ("custom_llm_provider", Json::from("demo")),
        ("response_time_ms", Json::from(4_200 + 310 * turn)),
        ("messages", Json::Array(history.to_vec())),
        (
            "response",
            Json::Object(Object::from_iter([
                ("id", Json::from(format!("chatcmpl-svc-demo-{turn}"))),
                ("choices", Json::Array(vec![Json::Object(choice)])),
                ("usage", Json::Object(usage)),
            ])),
        ),
    ])
}

/// Returns about as many tokens as a model would count.
fn tokens(messages: &[Json]) -> u64 {
    messages
        .iter()
        .map(|message| message.canonical_len() as u64 / 4)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_holds_the_ones_before_it() {
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
    fn the_outcome_is_valid() {
        assert_eq!(outcome().run_id.as_str(), "svc-demo-1");
    }
}
