//! Properties that hold for every payload.

use proptest::prelude::*;
use svc_engine_fact::InferenceCall;
use svc_model::evidence::{Message, Part};
use svc_model::id::{SessionId, identity};
use svc_model::ingest::GatewayProvider;
use svc_model::json::{Json, Object, Text};

use super::testing::{deliver, request};
use super::{Captured, GatewayError};
use crate::Redaction;
use crate::redaction::{Redactor, redact_json};

/// Names that mean something here or to redaction, with some values for each.
const WORDS: [&str; 66] = [
    "messages",
    "response",
    "choices",
    "message",
    "output",
    "content",
    "role",
    "type",
    "text",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "input",
    "result",
    "thinking",
    "reasoning",
    "thinking_blocks",
    "reasoning_content",
    "provider_specific_fields",
    "summary",
    "refusal",
    "finish_reason",
    "stop_reason",
    "usage",
    "prompt_tokens",
    "startTime",
    "endTime",
    "response_time",
    "stream",
    "metadata",
    "user_id",
    "session_id",
    "end_user",
    "litellm_call_id",
    "model",
    "custom_llm_provider",
    "requester_metadata",
    "headers",
    "key",
    "value",
    "api_key",
    "authorization",
    "assistant",
    "tool",
    "user",
    "tool_use",
    "tool_result",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "hunter2",
    "a\nhunter2",
    "{\"api_key\":\"hunter2\"}",
    "[{\"text\":\"sk-abcdefghijklmnopqrst\"}]",
    "{\"\\u0061pi_key\":\"hunter2\"}",
    "\"hunter2\"",
    "Bearer abcdefghijklmnop",
    "api_key=abcdefghijklmnop",
    "5",
    "\0",
    " ",
];

fn word() -> impl Strategy<Value = Text> {
    prop_oneof![
        12 => prop::sample::select(WORDS.to_vec()).prop_map(Text::from),
        1 => any::<String>().prop_map(Text::from),
        1 => Just(Text::from_wtf8(vec![0xed, 0xa0, 0x80]).unwrap()),
    ]
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        1 => prop::sample::select(vec!["0", "-1", "1.5", "1e400", "NaN", "1e18", "99999999999999999999"])
            .prop_map(|number| Json::parse(number.as_bytes()).unwrap()),
        6 => word().prop_map(Json::String),
    ];
    leaf.prop_recursive(7, 96, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::vec((word(), inner), 0..7).prop_map(object),
        ]
    })
}

fn object(members: Vec<(Text, Json)>) -> Json {
    Json::Object(members.into_iter().collect::<Object>())
}

/// A content, often made of typed blocks.
fn content() -> impl Strategy<Value = Json> {
    let kind = prop::sample::select(vec![
        "text",
        "thinking",
        "tool_use",
        "tool_result",
        "refusal",
        "image",
    ]);
    let block =
        (kind, prop::collection::vec((word(), value()), 0..5)).prop_map(|(kind, members)| {
            let mut block = object(members);
            if let Json::Object(block) = &mut block {
                block.insert("type", kind);
                block.insert("id", "i");
            }
            block
        });
    prop_oneof![
        word().prop_map(Json::String),
        prop::collection::vec(block, 0..4).prop_map(Json::Array),
        value()
    ]
}

/// A message, often a complete one.
fn message() -> impl Strategy<Value = Json> {
    let role = prop::sample::select(vec!["user", "assistant", "tool"]);
    let arguments = word().prop_map(Json::String);
    let complete =
        (role, content(), arguments, value()).prop_map(|(role, content, arguments, result)| {
            let function = Object::from_iter([("name", Json::from("f")), ("arguments", arguments)]);
            let call = Object::from_iter([
                ("id", Json::from("c")),
                ("function", Json::Object(function)),
            ]);
            Json::Object(Object::from_iter([
                ("role", Json::from(role)),
                ("content", if role == "tool" { result } else { content }),
                ("tool_call_id", Json::from("c")),
                ("tool_calls", Json::Array(vec![Json::Object(call)])),
            ]))
        });
    prop_oneof![3 => complete, 1 => value()]
}

fn payload() -> impl Strategy<Value = Json> {
    let messages = prop::collection::vec(message(), 0..6);
    (
        messages,
        message(),
        prop::collection::vec((word(), value()), 0..8),
    )
        .prop_map(|(messages, answer, members)| {
            let mut payload = object(members);
            if let Json::Object(payload) = &mut payload {
                let choice = Json::Object(Object::from_iter([("message", answer)]));
                payload.insert("messages", Json::Array(messages));
                let choices = Json::Array(vec![choice]);
                payload.insert(
                    "response",
                    Json::Object(Object::from_iter([("choices", choices)])),
                );
            }
            payload
        })
}

fn captured(payload: &Json, redaction: Redaction) -> Option<InferenceCall> {
    let mut request = request(payload.clone());
    request.session_id = SessionId::new("s").ok();
    match deliver(request, redaction).ok()?.0 {
        Captured::Call(call) => Some(*call),
        Captured::Skipped { .. } => None,
    }
}

fn parts(messages: &[Message]) -> impl Iterator<Item = &Part> {
    messages.iter().flat_map(|message| &message.parts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_is_read_without_a_panic(payload in prop_oneof![value(), payload()]) {
        prop_assert_ne!(
            deliver(request(payload), Redaction::On).err(),
            Some(GatewayError::UnsupportedProvider(GatewayProvider::GatewayA))
        );
    }

    #[test]
    fn captured_messages_are_canonical(payload in payload()) {
        let Some(call) = captured(&payload, Redaction::Off) else {
            return Ok(());
        };
        prop_assert_eq!(&call.raw.payload, &payload);
        for message in call.input_messages.iter().chain(&call.output_messages) {
            prop_assert!(!message.role.is_blank());
            prop_assert_eq!(&message.role, &message.role.trimmed());
        }
        for part in parts(&call.input_messages).chain(parts(&call.output_messages)) {
            match part {
                Part::ToolCall { id, .. } | Part::ToolCallResponse { id, .. } => {
                    prop_assert_eq!(identity(id), Ok(id.as_str()));
                }
                Part::Reasoning { content } => prop_assert!(!content.is_blank()),
                Part::Text { .. } => {}
            }
        }
        prop_assert!(call.call_aliases.is_sorted_by(|a, b| a < b));
        for part in parts(&call.output_messages) {
            if let Part::ToolCall { id, .. } = part {
                prop_assert!(call.call_aliases.contains(id));
            }
        }
    }

    /// Parts that repeat the payload are not searched if nothing in the payload was replaced. The
    /// result is the same as if they were.
    #[test]
    fn no_part_escapes_redaction(payload in payload()) {
        let Some(redacted) = captured(&payload, Redaction::On) else {
            return Ok(());
        };
        let mut expected = captured(&payload, Redaction::Off).unwrap();
        let mut redactor = Redactor::default();
        for part in parts(&expected.input_messages).chain(parts(&expected.output_messages)) {
            match part {
                Part::ToolCall { arguments, .. } => redactor.learn_object(arguments),
                Part::ToolCallResponse { result, .. } => redactor.learn(result),
                Part::Text { .. } | Part::Reasoning { .. } => {}
            }
        }
        redactor.json(&mut expected.raw.payload);
        for message in expected.input_messages.iter_mut().chain(&mut expected.output_messages) {
            for part in &mut message.parts {
                match part {
                    Part::Text { content } | Part::Reasoning { content } => redactor.text(content),
                    Part::ToolCall { name, arguments, sent, .. } => {
                        redactor.text(name);
                        redactor.object(arguments);
                        if let Some(sent) = sent {
                            redactor.text(sent);
                        }
                    }
                    Part::ToolCallResponse { result, .. } => redactor.json(result),
                }
            }
        }
        prop_assert_eq!(&redacted, &expected);
        let mut again = redacted.raw.payload.clone();
        prop_assert!(redact_json(&mut again).is_empty());
    }
}
