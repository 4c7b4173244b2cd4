//! The event of the conventions, and the parts of its messages.

use svc_engine_fact::InferenceCall;
use svc_model::ingest::{LogSkip, LogsRequest};
use svc_model::json::{Json, Object};
use svc_model::usage::{CallSource, UsageSource};

use super::super::testing::{
    TIME, any_value, as_texts, captured, captured_as, changed, export, json, object, pairs,
};
use super::super::{CapturedLogs, LogEvent};
use super::DETAILS;
use crate::Redaction;
use crate::testing::protobuf;
use svc_messages::testing::parts_json;

const EVENT: &str = r#"{"gen_ai.operation.name":"chat","gen_ai.conversation.id":"c-1",
    "gen_ai.response.id":"msg_1","gen_ai.request.model":"m",
    "gen_ai.usage.input_tokens":9,"gen_ai.usage.output_tokens":4,
    "gen_ai.response.finish_reasons":["stop","length"],
    "gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"hi"}]}],
    "gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"text","content":"one"}]},
        {"role":"assistant","content":"two"}]}"#;

fn record(members: &Object) -> Object {
    Object::from_iter([
        ("timeUnixNano", TIME.into()),
        ("attributes", pairs(members)),
        ("traceId", "00112233445566778899aabbccddeeff".into()),
        ("spanId", "0011223344556677".into()),
        ("eventName", DETAILS.into()),
    ])
}

/// Captures an event in both encodings and both forms of values, which must give the same.
fn event_of(resource: &str, members: &str) -> CapturedLogs {
    let members = object(members);
    let of = |members: &Object| {
        let export = export(resource, [record(members).into()]);
        let message = protobuf(&export.clone().into());
        let read = captured(export);
        check_equal(
            captured_as(LogsRequest::Protobuf(message), Redaction::On),
            &read,
        );
        read
    };
    let structured = of(&members);
    check_equal(of(&as_texts(&members)), &structured);
    structured
}

/// Checks that exports are equal but for the payloads. An empty list is absent in protobuf.
fn check_equal(mut one: CapturedLogs, other: &CapturedLogs) {
    for (call, other) in one.calls.iter_mut().zip(&other.calls) {
        call.raw = other.raw.clone();
    }
    assert_eq!(one, *other);
}

fn call_of(resource: &str, members: &str) -> InferenceCall {
    let mut captured = event_of(resource, members);
    assert_eq!(captured.calls.len(), 1, "{:?}", captured.report);
    assert_eq!(captured.report.records.translated, 1);
    assert_eq!(captured.report.facts.inference_calls, 1);
    captured.calls.remove(0)
}

fn said(messages: &[svc_model::evidence::Message]) -> Vec<String> {
    messages.iter().map(parts_json).collect()
}

fn skip(resource: &str, members: &str) -> LogSkip {
    let captured = event_of(resource, members);
    assert_eq!(captured.report.records.untranslated, 1);
    let skipped: Vec<_> = captured.report.skipped.into_iter().collect();
    let [((LogEvent::GenAiInference, reason), 1)] = skipped.as_slice() else {
        panic!("{skipped:?}");
    };
    *reason
}

#[test]
fn an_event_with_content_is_a_call() {
    let call = call_of("{}", EVENT);
    assert_eq!(call.session_id.as_str(), "c-1");
    assert_eq!(call.capture_source, CallSource::Telemetry);
    assert_eq!(call.model.as_deref(), Some("m"));
    assert_eq!(call.duration_ms, None);
    let keys: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
    let span = "span:00112233445566778899aabbccddeeff:0011223344556677";
    assert_eq!(keys, ["response:msg_1", span]);
    assert_eq!(
        said(&call.output_messages),
        [
            r#"assistant [{"type":"text","content":"one"}]"#,
            r#"assistant [{"type":"text","content":"two"}]"#,
        ]
    );
    let reasons: Vec<_> = call
        .output_messages
        .iter()
        .map(|message| &message.finish_reason)
        .collect();
    assert_eq!(reasons, [&Some("stop".into()), &Some("length".into())]);
    assert!(
        call.raw
            .payload
            .as_object()
            .unwrap()
            .contains_key("eventName")
    );
}

#[test]
fn a_request_id_in_the_place_of_the_response_id_is_one() {
    let call = call_of("{}", &changed(EVENT, r#"{"gen_ai.response.id":"req_1"}"#));
    assert_eq!(call.keys[0].to_string(), "request:req_1");
    assert_eq!(call.request_id.as_deref(), Some("req_1"));
    assert_eq!((&call.response_id, &call.model_call_id), (&None, &None));
}

#[test]
fn what_an_event_lacks_decides_what_becomes_of_it() {
    let changed = |changes: &str| changed(EVENT, changes);
    let receipt = event_of("{}", &changed(r#"{"gen_ai.output.messages":[]}"#));
    let [receipt] = receipt.usage_receipts.as_slice() else {
        panic!("{:?}", receipt.report);
    };
    assert_eq!(
        (receipt.source, &receipt.span_id),
        (UsageSource::GenAi, &None)
    );
    let no_usage = r#""gen_ai.usage.input_tokens":null,"gen_ai.usage.output_tokens":null"#;
    let lacking = |members: &str| changed(&format!("{{{no_usage},{members}}}"));
    for (members, expected) in [
        (
            changed(r#"{"gen_ai.operation.name":"execute_tool"}"#),
            LogSkip::NotAModelCall,
        ),
        (
            changed(r#"{"gen_ai.conversation.id":null}"#),
            LogSkip::MissingSession,
        ),
        (
            changed(r#"{"gen_ai.input.messages":"<REDACTED>"}"#),
            LogSkip::MalformedMessages,
        ),
        (
            changed(r#"{"gen_ai.output.messages":{"role":"x"}}"#),
            LogSkip::MalformedMessages,
        ),
        (
            lacking(r#""gen_ai.output.messages":null"#),
            LogSkip::RequestOnly,
        ),
        (
            lacking(r#""gen_ai.output.messages":null,"gen_ai.input.messages":null"#),
            LogSkip::EmptyUsage,
        ),
    ] {
        assert_eq!(skip("{}", &members), expected, "{members}");
    }
    for session in ["session.id", "traceloop.association.properties.session_id"] {
        let members = changed(r#"{"gen_ai.conversation.id":null}"#);
        let call = call_of(&format!(r#"{{"{session}":"of resource"}}"#), &members);
        assert_eq!(call.session_id.as_str(), "of resource");
    }
}

/// Returns the answer with these parts, and what was left out of the call.
fn parts(parts: &str) -> (String, svc_model::evidence::LeftOut) {
    let members = changed(
        EVENT,
        &format!(r#"{{"gen_ai.output.messages":[{{"role":"assistant","parts":{parts}}}]}}"#),
    );
    let call = call_of("{}", &members);
    let said = said(&call.output_messages).concat();
    (
        said.trim_start_matches("assistant ").to_owned(),
        call.left_out,
    )
}

#[test]
fn each_type_of_part_becomes_its_kind() {
    for (sent, expected) in [
        (
            r#"{"type":"text","content":"a"}"#,
            r#"{"type":"text","content":"a"}"#,
        ),
        (
            r#"{"type":"compaction","content":"a"}"#,
            r#"{"type":"text","content":"a"}"#,
        ),
        (
            r#"{"type":"reasoning","content":"a"}"#,
            r#"{"type":"reasoning","content":"a"}"#,
        ),
        (
            r#"{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}"#,
            r#"{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}"#,
        ),
        (
            r#"{"type":"server_tool_call","id":"t","name":"f","server_tool_call":{"a":1}}"#,
            r#"{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}"#,
        ),
        (
            r#"{"type":"tool_call_response","id":"t","response":"{\"a\":1}","result":"x"}"#,
            r#"{"type":"tool_call_response","id":"t","result":{"a":1}}"#,
        ),
        (
            r#"{"type":"server_tool_call_response","id":"t","result":"x"}"#,
            r#"{"type":"tool_call_response","id":"t","result":"x"}"#,
        ),
    ] {
        let (said, left_out) = parts(&format!("[{sent}]"));
        assert_eq!(said, format!("[{expected}]"), "{sent}");
        assert_eq!(left_out, svc_model::evidence::LeftOut::default(), "{sent}");
    }
}

#[test]
fn parts_that_are_left_out_are_counted() {
    let (said, left_out) = parts(
        r#"[{"type":"blob","content":"x"},{"type":"file"},{"type":"uri"},{"type":"other","text":"x"},
            {"type":"compaction"},{"type":"reasoning","content":" "},
            {"type":"tool_call","name":"f","arguments":{}},{"type":"tool_call_response","response":"x"},
            {"type":"server_tool_call","name":"f"},
            {"type":"tool_call","id":"t","name":"f","arguments":"{cut"}]"#,
    );
    assert!(
        said.contains(r#""id":"t","name":"f","arguments":{}"#),
        "{said}"
    );
    assert_eq!(left_out.unsupported_content, 5);
    assert_eq!(left_out.opaque_reasoning, 1);
    assert_eq!(left_out.missing_id, 3);
    assert_eq!(left_out.malformed_arguments, 1);
    assert_eq!(left_out.truncated, 0);
}

#[test]
fn instructions_come_first_unless_the_messages_repeat_them() {
    let system = r#"{"role":"system","parts":[{"type":"text","content":"be brief"}]}"#;
    let user = r#"{"role":"user","parts":[{"type":"text","content":"hi"}]}"#;
    let brief = r#"[{"type":"text","content":"be "},{"type":"text","content":"brief"}]"#;
    let other = r#"[{"type":"text","content":"be long"}]"#;
    for (instructions, input, roles) in [
        (brief, format!("[{user}]"), vec!["system", "user"]),
        (brief, format!("[{system},{user}]"), vec!["system", "user"]),
        (
            other,
            format!("[{system},{user}]"),
            vec!["system", "system", "user"],
        ),
        (
            r#""plain words""#,
            format!("[{user}]"),
            vec!["system", "user"],
        ),
        ("[]", format!("[{user}]"), vec!["user"]),
    ] {
        let changes = format!(
            r#"{{"gen_ai.system_instructions":{instructions},"gen_ai.input.messages":{input}}}"#
        );
        let call = call_of("{}", &changed(EVENT, &changes));
        let found = call
            .input_messages
            .iter()
            .map(|message| message.role.to_string());
        assert_eq!(found.collect::<Vec<_>>(), roles, "{changes}");
    }
}

const GEMINI: &str = r#"{"session.id":"g-1","event.timestamp":"2026-07-07T19:00:00.5Z",
    "gen_ai.request.model":"gemini-2.5-pro","gen_ai.usage.input_tokens":9400,
    "gen_ai.system_instructions":[{"type":"text","content":"be brief"}],
    "gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"long...[TRUNCATED]"}]},
        {"role":"system","parts":[{"type":"tool_call","id":"t","name":"ls","arguments":"{\"p\":1}"}]},
        {"role":"user","parts":[{"type":"tool_call_response","id":"t","response":"{\"o\":\"a\"}"}]}],
    "gen_ai.output.messages":[{"role":"system","parts":[{"type":"text","content":"ok"}],
        "finish_reason":"stop"}]}"#;

#[test]
fn gemini_cli_calls_the_model_system_and_is_known_by_the_time_it_writes() {
    let call = call_of(r#"{"service.name":"gemini-cli"}"#, GEMINI);
    assert_eq!(
        said(&call.input_messages),
        [
            r#"system [{"type":"text","content":"be brief"}]"#,
            r#"user [{"type":"text","content":"long...[TRUNCATED]"}]"#,
            r#"assistant [{"type":"tool_call","id":"t","name":"ls","arguments":{"p":1}}]"#,
            r#"user [{"type":"tool_call_response","id":"t","result":{"o":"a"}}]"#,
        ]
    );
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"text","content":"ok"}]"#]
    );
    assert_eq!(call.left_out.truncated, 1);
    assert_eq!(call.observed_at.to_string(), "2026-07-07T19:00:00.500000Z");
    let [key] = call.keys.as_slice() else {
        panic!("{:?}", call.keys);
    };
    assert_eq!(
        key.to_string(),
        "event:gemini_cli/g-1/2026-07-07T19:00:00.500000Z"
    );
    let other = call_of("{}", GEMINI);
    assert_eq!(other.output_messages[0].role, "system");
    assert_eq!(other.left_out.truncated, 0);
    let named = r#"{"gen_ai.response.id":"free form"}"#;
    let call = call_of(r#"{"service.name":"gemini-cli"}"#, &changed(GEMINI, named));
    assert_eq!(call.model_call_id.as_deref(), Some("free form"));
    assert_eq!(call.keys.len(), 2);
}

#[test]
fn records_of_gemini_cli_in_the_same_session_say_whose_the_event_is() {
    let reported = r#"{"event.name":"gemini_cli.api_response","session.id":"g-1",
        "event.timestamp":"2026-07-07T19:00:00.5Z","input_token_count":9400,
        "cached_content_token_count":6000,"output_token_count":210,"thoughts_token_count":590,
        "model":"gemini-2.5-pro"}"#;
    let records = |session: &str| {
        let details = changed(GEMINI, &format!(r#"{{"session.id":"{session}"}}"#));
        let mut named = record(&object(reported));
        named.remove("eventName");
        captured(export(
            "{}",
            [record(&object(&details)).into(), named.into()],
        ))
    };
    let own = records("g-1");
    assert_eq!(own.calls[0].keys, own.usage_receipts[0].keys());
    assert_eq!(records("other").calls[0].keys.len(), 1);
    assert_eq!(records("other").calls[0].output_messages[0].role, "system");
}

#[test]
fn an_event_of_gemini_cli_without_an_answer_is_no_second_receipt() {
    let resource = r#"{"service.name":"gemini-cli"}"#;
    let request = r#"{"gen_ai.output.messages":null,"gen_ai.usage.input_tokens":null}"#;
    assert_eq!(
        skip(resource, &changed(GEMINI, request)),
        LogSkip::RequestOnly
    );
    let usage = r#"{"gen_ai.output.messages":null}"#;
    assert_eq!(
        skip(resource, &changed(GEMINI, usage)),
        LogSkip::CoveredByLogs
    );
}

#[test]
fn an_event_of_copilot_chat_is_known_by_its_span() {
    let members = changed(EVENT, r#"{"copilot_chat.session_id":"window"}"#);
    let call = call_of("{}", &members);
    assert_eq!((call.session_id.as_str(), call.keys.len()), ("window", 1));
    assert_eq!(call.model_call_id, None);
}

#[test]
fn a_record_may_be_this_event_and_another() {
    let decision = r#"{"event.name":"svc.tool_decision","agent":"pi","session.id":"s",
        "tool_use_id":"t","file_path":"a","decision":"accept","explicit":true}"#;
    let mut both = record(&object(EVENT));
    let Some(Json::Array(list)) = both.get_mut("attributes") else {
        panic!("a list");
    };
    for (name, value) in object(decision) {
        list.push(Object::from_iter([("key", name.into()), ("value", any_value(&value))]).into());
    }
    let captured = captured(export("{}", [both.into(), json("{}")]));
    assert_eq!((captured.calls.len(), captured.decisions.len()), (1, 1));
    let raw = [&captured.decisions[0].raw, &captured.calls[0].raw.payload];
    assert!(
        raw.iter()
            .all(|raw| raw.as_object().is_some_and(|raw| !raw.is_empty()))
    );
    assert_eq!(captured.report.records.translated, 1);
}
