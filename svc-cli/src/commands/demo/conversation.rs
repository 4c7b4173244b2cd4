//! A conversation as a gateway logs it, with one payload for each answer of the model.
//!
//! Like a real agent, it sends its whole history with every call, so each call contains the earlier
//! ones.

use svc_model::id::{SessionId, UserId};
use svc_model::ingest::{Capture, GatewayIngestRequest, GatewayProvider};
use svc_model::json::{Json, Object};
use svc_model::time::Instant;
use uuid::Uuid;

/// A Session and its messages, in order.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) session_id: SessionId,
    pub(super) user: &'static str,
    pub(super) model: &'static str,
    pub(super) provider: &'static str,
    /// The capture id of the first call; each call adds one.
    pub(super) first_capture: u128,
    /// When the first call was observed, in microseconds of Unix time.
    pub(super) observed_us: i64,
    /// How long a turn takes, in microseconds.
    pub(super) turn_us: i64,
    pub(super) messages: Vec<Json>,
}

impl Conversation {
    /// Returns the deliveries of the calls, in order.
    pub(super) fn calls(&self) -> Vec<GatewayIngestRequest> {
        let answers = self
            .messages
            .iter()
            .enumerate()
            .filter(|(_, message)| is_answer(message));
        answers
            .zip(0_u32..)
            .map(|((position, answer), turn)| self.call(turn, &self.messages[..position], answer))
            .collect()
    }

    fn call(&self, turn: u32, history: &[Json], answer: &Json) -> GatewayIngestRequest {
        let observed_us = self.observed_us + self.turn_us * i64::from(turn);
        GatewayIngestRequest {
            provider: GatewayProvider::GatewayA,
            session_id: Some(self.session_id.clone()),
            user_id: UserId::new(self.user).ok(),
            payload: Json::Object(self.payload(turn, history, answer)),
            capture: Some(Capture {
                id: Uuid::from_u128(self.first_capture + u128::from(turn)),
                observed_at: Instant::from_microseconds(observed_us).expect("a moment of our time"),
            }),
            compare: false,
        }
    }

    /// Returns the payload that a gateway would log for a call.
    fn payload(&self, turn: u32, history: &[Json], answer: &Json) -> Object {
        let asks = answer
            .as_object()
            .is_some_and(|answer| answer.contains_key("tool_calls"));
        let finish_reason = if asks { "tool_calls" } else { "stop" };
        let choice = Object::from_iter([
            ("index", Json::from(0_i32)),
            ("finish_reason", Json::from(finish_reason)),
            ("message", answer.clone()),
        ]);
        let [input, output] = [tokens(history), tokens(std::slice::from_ref(answer))];
        let usage = Object::from_iter([
            ("prompt_tokens", Json::from(input)),
            ("completion_tokens", Json::from(output)),
        ]);
        let session = self.session_id.as_str();
        let mut payload = Object::from_iter([
            ("litellm_call_id", Json::from(format!("{session}-{turn}"))),
            ("call_type", Json::from("acompletion")),
            ("model", Json::from(self.model)),
            ("custom_llm_provider", Json::from(self.provider)),
            ("response_time_ms", Json::from(4_200 + 310 * turn)),
            ("messages", Json::Array(history.to_vec())),
            (
                "response",
                Json::Object(Object::from_iter([
                    ("id", Json::from(format!("chatcmpl-{session}-{turn}"))),
                    ("choices", Json::Array(vec![Json::Object(choice)])),
                    ("usage", Json::Object(usage)),
                ])),
            ),
        ]);
        if let Some([of_input, of_output]) = cents_a_million(self.model) {
            let cost = input * of_input + output * of_output;
            let spelling = format!("{}.{:08}", cost / 100_000_000, cost % 100_000_000);
            let cost = Json::parse(spelling.as_bytes()).expect("a number");
            payload.insert("response_cost".to_owned(), cost);
        }
        payload
    }
}

fn is_answer(message: &Json) -> bool {
    let role = message.as_object().and_then(|message| message.get("role"));
    role.and_then(Json::as_str) == Some("assistant")
}

/// Returns the list prices, in cents for a million tokens of input and of output, that the gateway
/// knows: not those of a model that the organization runs itself.
fn cents_a_million(model: &str) -> Option<[u64; 2]> {
    match model {
        "claude-sonnet-4-5" => Some([300, 1500]),
        "gpt-5-codex" => Some([125, 1000]),
        _ => None,
    }
}

/// Returns an estimate of the tokens that a model would count.
fn tokens(messages: &[Json]) -> u64 {
    messages
        .iter()
        .map(|message| message.canonical_len() as u64 / 4)
        .sum()
}
