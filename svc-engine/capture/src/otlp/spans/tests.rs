//! Spans of each sender, in both encodings, with structured values and with JSON text.

use proptest::prelude::*;
use svc_engine_fact::clock::Ids;
use svc_model::evidence::Message;
use svc_model::id::OrgId;
use svc_model::time::Instant;
use svc_model::usage::UsageSource;

use super::super::genai::DETAILS;
use super::super::testing::{TIME, as_texts, changed, json, object, pairs};
use super::*;
use crate::Redaction;
use crate::redaction::Secrets;
use crate::testing::traces_protobuf;
use svc_messages::testing::parts_json;

const TRACE: &str = "00112233445566778899aabbccddeeff";

/// Returns a span that ended at [`TIME`] after 1.5 s.
fn span(id: &str, name: &str, members: &Object) -> Object {
    Object::from_iter([
        ("traceId", TRACE.into()),
        ("spanId", id.into()),
        ("name", name.into()),
        ("startTimeUnixNano", "1783454253924000000".into()),
        ("endTimeUnixNano", TIME.into()),
        ("attributes", pairs(members)),
    ])
}

fn export(scope: &str, spans: impl IntoIterator<Item = Object>) -> Object {
    let spans: Json = spans.into_iter().map(Json::Object).collect();
    let of_scope = Object::from_iter([
        ("scope", json(&format!(r#"{{"name":"{scope}"}}"#))),
        ("spans", spans),
    ]);
    let resource = r#"{"attributes":[{"key":"user.id","value":{"stringValue":"dev"}}]}"#;
    let of_resource = Object::from_iter([
        ("resource", json(resource)),
        ("scopeSpans", Json::from_iter([of_scope])),
    ]);
    Object::from_iter([("resourceSpans", Json::from_iter([of_resource]))])
}

fn captured_as(request: TracesRequest) -> Result<CapturedTraces, LogsError> {
    let receipt = Receipt {
        org_id: &OrgId::new("acme").unwrap(),
        received_at: Instant::from_microseconds(1).unwrap(),
        ids: &Ids::counting(),
        redaction: Redaction::On,
        secrets: &Secrets::default(),
    };
    capture_traces(request, receipt, &NodeBudget::unlimited())
}

/// Captures an export in both encodings, which must give the same.
fn captured(export: Object) -> CapturedTraces {
    let message = traces_protobuf(&export.clone().into());
    let captured = captured_as(TracesRequest::Json(export)).unwrap();
    let protobuf = captured_as(TracesRequest::Protobuf(message)).unwrap();
    assert_eq!(protobuf, captured);
    captured
}

/// Captures one span with structured values and with JSON text, which must give the same apart from
/// the payload.
fn one(scope: &str, name: &str, members: &str) -> CapturedTraces {
    let members = object(members);
    let of = |members: &Object| captured(export(scope, [span("0011223344556677", name, members)]));
    let (structured, mut texts) = (of(&members), of(&as_texts(&members)));
    for (text, structured) in texts.calls.iter_mut().zip(&structured.calls) {
        text.raw = structured.raw.clone();
    }
    assert_eq!(texts, structured);
    structured
}

fn call(scope: &str, name: &str, members: &str) -> InferenceCall {
    let mut captured = one(scope, name, members);
    assert_eq!(captured.calls.len(), 1, "{:?}", captured.report);
    assert_eq!(captured.report.spans.translated, 1);
    captured.calls.remove(0)
}

fn said(messages: &[Message]) -> Vec<String> {
    messages.iter().map(parts_json).collect()
}

fn skipped(scope: &str, name: &str, members: &str) -> Option<LogSkip> {
    let captured = one(scope, name, members);
    assert_eq!(captured.report.spans.untranslated, 1, "{members}");
    let skipped: Vec<_> = captured.report.skipped.into_iter().collect();
    assert!(skipped.len() <= 1 && skipped.iter().all(|(_, count)| *count == 1));
    skipped.first().map(|(reason, _)| *reason)
}

const CONVENTION: &str = r#"{"gen_ai.operation.name":"chat","gen_ai.conversation.id":"c-9",
    "gen_ai.response.id":"chatcmpl-7","gen_ai.response.model":"m-1","gen_ai.provider.name":"openai",
    "gen_ai.usage.input_tokens":1500,"gen_ai.usage.cache_read.input_tokens":1024,
    "gen_ai.usage.output_tokens":64,
    "gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"hi"}]}],
    "gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"t1","name":"ls",
        "arguments":"{\"p\":\".\"}"}],"finish_reason":"tool_call"}]}"#;

#[test]
fn a_span_by_the_conventions_is_a_call() {
    let call = call("x", "chat m-1", CONVENTION);
    assert_eq!(call.session_id.as_str(), "c-9");
    assert_eq!(call.user_id.as_ref().unwrap().as_str(), "dev");
    assert_eq!(call.capture_source, CallSource::Span);
    assert_eq!(call.model_call_id.as_deref(), Some("chatcmpl-7"));
    assert_eq!(
        (call.input_tokens, call.output_tokens),
        (Some(1_500), Some(64))
    );
    assert_eq!(call.usage.cache_read_tokens, Some(1_024));
    assert_eq!(call.duration_ms, Some(1_500));
    assert_eq!(call.observed_at.to_string(), "2026-07-07T19:57:35.424000Z");
    let keys: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
    let span = format!("span:{TRACE}:0011223344556677");
    assert_eq!(keys, ["response:chatcmpl-7", &span]);
    assert_eq!(
        said(&call.input_messages),
        [r#"user [{"type":"text","content":"hi"}]"#]
    );
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"tool_call","id":"t1","name":"ls","arguments":{"p":"."}}]"#]
    );
    assert_eq!(
        call.output_messages[0].finish_reason,
        Some("tool_call".into())
    );
}

#[test]
fn what_a_span_lacks_decides_what_becomes_of_it() {
    let changed = |changes: &str| changed(CONVENTION, changes);
    let no_tokens = r#""gen_ai.usage.input_tokens":null,"gen_ai.usage.output_tokens":null,
        "gen_ai.usage.cache_read.input_tokens":null"#;
    let without = |members: &str| changed(&format!("{{{members},{no_tokens}}}"));
    for (members, expected) in [
        (
            changed(r#"{"gen_ai.conversation.id":null}"#),
            LogSkip::MissingSession,
        ),
        (
            changed(r#"{"gen_ai.operation.name":"invoke_agent"}"#),
            LogSkip::NotAModelCall,
        ),
        (
            changed(r#"{"gen_ai.operation.name":"embeddings"}"#),
            LogSkip::NotAModelCall,
        ),
        (
            changed(r#"{"gen_ai.output.messages":"x"}"#),
            LogSkip::MalformedMessages,
        ),
        (
            changed(r#"{"gen_ai.input.messages":5}"#),
            LogSkip::MalformedMessages,
        ),
        (
            without(r#""gen_ai.output.messages":[]"#),
            LogSkip::RequestOnly,
        ),
        (
            without(r#""gen_ai.output.messages":[],"gen_ai.input.messages":[]"#),
            LogSkip::EmptyUsage,
        ),
    ] {
        assert_eq!(skipped("x", "chat", &members), Some(expected), "{members}");
    }
    let captured = one("x", "chat", &changed(r#"{"gen_ai.output.messages":null}"#));
    let [receipt] = captured.usage_receipts.as_slice() else {
        panic!("{:?}", captured.report);
    };
    assert_eq!(receipt.source, UsageSource::GenAi);
    assert_eq!(receipt.tokens.input_tokens_uncached, Some(476));
    assert_eq!(receipt.response_id.as_deref(), Some("chatcmpl-7"));
    assert_eq!(receipt.trace_id.as_deref(), Some(TRACE));
    assert_eq!(receipt.span_id.as_deref(), Some("0011223344556677"));
    let captured = one("x", "chat", &changed(r#"{"gen_ai.usage.input_tokens":5}"#));
    assert_eq!(captured.calls[0].input_tokens, None);
    assert_eq!(captured.report.skipped[&LogSkip::InconsistentUsage], 1);
}

#[test]
fn spans_that_are_no_calls_are_counted_by_their_reason() {
    for (scope, name, members, expected) in [
        (
            "x",
            "claude_code.llm_request",
            CONVENTION,
            Some(LogSkip::CoveredByLogs),
        ),
        (
            "codex_otel",
            "session_task.turn",
            r#"{"codex.turn.token_usage.total":5}"#,
            Some(LogSkip::TurnTotal),
        ),
        ("codex_otel", "other", "{}", None),
        (
            "x",
            "session_task.turn",
            r#"{"codex.turn.token_usage.total":5}"#,
            None,
        ),
        (
            "ai",
            "ai.generateText",
            r#"{"ai.response.text":"x"}"#,
            Some(LogSkip::NotAModelCall),
        ),
        ("x", "span", r#"{"openinference.span.kind":"TOOL"}"#, None),
        ("x", "GET /", r#"{"http.method":"GET"}"#, None),
    ] {
        assert_eq!(skipped(scope, name, members), expected, "{name}");
    }
}

#[test]
fn a_failed_span_without_an_answer_is_an_attempt() {
    let members = changed(CONVENTION, r#"{"gen_ai.output.messages":null}"#);
    let mut failed = span("0011223344556677", "chat", &object(&members));
    failed.insert("status", json(r#"{"message":"timeout","code":2}"#));
    let report = captured(export("x", [failed.clone()])).report;
    assert_eq!(report.skipped[&LogSkip::AttemptWithoutResponse], 1);
    failed.insert("status", json(r#"{"code":"STATUS_CODE_ERROR"}"#));
    let request = TracesRequest::Json(export("x", [failed.clone()]));
    assert_eq!(captured_as(request).unwrap().report.skipped, report.skipped);
    failed.insert("attributes", pairs(&object(CONVENTION)));
    let request = TracesRequest::Json(export("x", [failed]));
    assert_eq!(captured_as(request).unwrap().calls.len(), 1);
}

#[test]
fn copilot_chat_is_identified_by_its_span_and_takes_its_session_from_around_it() {
    let chat = |more: &str| {
        let members = changed(CONVENTION, more);
        object(&members)
    };
    let around = object(
        r#"{"gen_ai.operation.name":"invoke_agent","copilot_chat.chat_session_id":"window",
            "gen_ai.usage.input_tokens":99}"#,
    );
    let mut inside = span(
        "0000000000000002",
        "chat",
        &chat(r#"{"copilot_chat.x":"y"}"#),
    );
    inside.insert("parentSpanId", "0000000000000001");
    let other = chat(r#"{"github.copilot.x":1,"copilot_chat.parent_chat_session_id":"parent"}"#);
    let spans = [
        inside,
        span("0000000000000001", "invoke_agent", &around),
        span("0000000000000003", "chat", &other),
        span(
            "0000000000000004",
            "chat",
            &chat(r#"{"copilot_chat.x":"y"}"#),
        ),
    ];
    let captured = captured_as(TracesRequest::Json(export("copilot", spans))).unwrap();
    let sessions: Vec<&str> = captured
        .calls
        .iter()
        .map(|call| call.session_id.as_str())
        .collect();
    assert_eq!(sessions, ["window", "parent"]);
    for (call, span) in captured.calls.iter().zip(["2", "3"]) {
        let [key] = call.keys.as_slice() else {
            panic!("{:?}", call.keys);
        };
        assert_eq!(
            key.to_string(),
            format!("span:{TRACE}:000000000000000{span}")
        );
        assert_eq!((&call.model_call_id, &call.response_id), (&None, &None));
    }
    assert_eq!(captured.report.skipped[&LogSkip::MissingSession], 1);
    assert_eq!(captured.report.skipped[&LogSkip::NotAModelCall], 1);
}

#[test]
fn spans_that_contain_each_other_end_the_search() {
    let members = changed(CONVENTION, r#"{"copilot_chat.x":"y"}"#);
    let mut one = span("0000000000000001", "chat", &object(&members));
    let mut two = span("0000000000000002", "chat", &object(&members));
    one.insert("parentSpanId", "0000000000000002");
    two.insert("parentSpanId", "0000000000000001");
    let report = captured_as(TracesRequest::Json(export("x", [one, two])))
        .unwrap()
        .report;
    assert_eq!(report.skipped[&LogSkip::MissingSession], 2);
}

#[test]
fn a_step_of_the_vercel_ai_sdk_is_a_call() {
    let members = r#"{"operation.name":"ai.streamText.doStream my-function",
        "ai.telemetry.metadata.sessionId":"v-1","ai.model.provider":"openai.responses",
        "ai.prompt.messages":[{"role":"system","content":"be brief"},
            {"role":"user","content":[{"type":"text","text":"hi"},{"type":"file","data":"x"}]},
            {"role":"assistant","content":[{"type":"reasoning","text":"hm"},
                {"type":"tool-call","toolCallId":"t1","toolName":"ls","input":{"p":"."}}]},
            {"role":"tool","content":[{"type":"tool-result","toolCallId":"t1",
                "output":{"type":"text","value":"a.py"}}]}],
        "ai.response.reasoning":"well","ai.response.text":"done",
        "ai.response.toolCalls":[{"toolCallId":"t2","toolName":"rm","args":"{\"p\":\"a\"}"}],
        "ai.response.id":"resp_1","ai.response.model":"gpt-x","ai.response.finishReason":"stop",
        "ai.response.providerMetadata":{"openai":{"serviceTier":"flex"}},
        "ai.usage.inputTokens":15,"ai.usage.cachedInputTokens":5,"ai.usage.outputTokens":112,
        "ai.usage.reasoningTokens":12}"#;
    let call = call("ai", "any", members);
    assert_eq!(call.session_id.as_str(), "v-1");
    assert_eq!(call.model_call_id.as_deref(), Some("resp_1"));
    assert_eq!(call.model.as_deref(), Some("gpt-x"));
    assert_eq!(call.model_provider.as_deref(), Some("openai.responses"));
    assert_eq!(
        (call.input_tokens, call.output_tokens),
        (Some(15), Some(112))
    );
    assert_eq!(call.usage.reasoning_tokens, Some(12));
    assert_eq!(call.usage.tier.as_deref(), Some("flex"));
    assert_eq!(call.left_out.unsupported_content, 1);
    assert_eq!(
        said(&call.input_messages),
        [
            r#"system [{"type":"text","content":"be brief"}]"#,
            r#"user [{"type":"text","content":"hi"}]"#,
            r#"assistant [{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"t1","name":"ls","arguments":{"p":"."}}]"#,
            r#"tool [{"type":"tool_call_response","id":"t1","result":"a.py"}]"#,
        ]
    );
    assert_eq!(
        said(&call.output_messages),
        [
            r#"assistant [{"type":"reasoning","content":"well"},{"type":"text","content":"done"},{"type":"tool_call","id":"t2","name":"rm","arguments":{"p":"a"}}]"#
        ]
    );
    assert_eq!(call.output_messages[0].finish_reason, Some("stop".into()));
    let object = r#"{"session.id":"s","ai.response.object":"{\"a\":1}","ai.usage.promptTokens":3}"#;
    let call = self::call("ai", "ai.generateObject.doGenerate", object);
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"text","content":"{\"a\":1}"}]"#]
    );
    let usage = r#"{"session.id":"s","ai.usage.promptTokens":3}"#;
    let captured = one("ai", "ai.generateText.doGenerate", usage);
    assert_eq!(captured.usage_receipts[0].source, UsageSource::Other);
}

#[test]
fn openinference_spreads_messages_over_numbered_attributes() {
    let members = r#"{"openinference.span.kind":"LLM","session.id":"o-1","llm.model_name":"m",
        "llm.provider":"anthropic",
        "llm.input_messages.10.message.role":"tool","llm.input_messages.10.message.content":"rain",
        "llm.input_messages.10.message.tool_call_id":"t1",
        "llm.input_messages.0.message.role":"user",
        "llm.input_messages.0.message.contents.1.message_content.type":"image",
        "llm.input_messages.0.message.contents.0.message_content.type":"text",
        "llm.input_messages.0.message.contents.0.message_content.text":"weather?",
        "llm.input_messages.2.message.role":"assistant",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id":"t1",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name":"get",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments":"{\"c\":1}",
        "llm.output_messages.0.message.role":"assistant",
        "llm.output_messages.0.message.content":"wet",
        "llm.token_count.prompt":97,"llm.token_count.completion":52,
        "llm.token_count.prompt_details.cache_read":7,"llm.token_count.prompt_details.cache_write":10,
        "llm.token_count.completion_details.reasoning":2}"#;
    let call = call("x", "any", members);
    assert_eq!(call.session_id.as_str(), "o-1");
    assert_eq!(
        (call.input_tokens, call.output_tokens),
        (Some(97), Some(52))
    );
    assert_eq!(call.usage.cache_write_tokens, Some(10));
    assert_eq!(call.left_out.unsupported_content, 1);
    assert_eq!(
        said(&call.input_messages),
        [
            r#"user [{"type":"text","content":"weather?"}]"#,
            r#"assistant [{"type":"tool_call","id":"t1","name":"get","arguments":{"c":1}}]"#,
            r#"tool [{"type":"tool_call_response","id":"t1","result":"rain"}]"#,
        ]
    );
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"text","content":"wet"}]"#]
    );
}

#[test]
fn openinference_may_write_messages_out_and_anything_else() {
    let members = r#"{"openinference.span.kind":"LLM","session.id":"o-1",
        "input.value":{"model":"m","messages":[{"role":"user","parts":[{"type":"text","content":"a"}]}]},
        "output.value":{"text":"b","finish_reason":"stop"}}"#;
    let written = call("x", "any", members);
    assert_eq!(
        said(&written.input_messages),
        [r#"user [{"type":"text","content":"a"}]"#]
    );
    assert_eq!(
        said(&written.output_messages),
        [r#"assistant [{"type":"text","content":"b"}]"#]
    );
    assert_eq!(
        written.output_messages[0].finish_reason,
        Some("stop".into())
    );
    let prose = r#"{"openinference.span.kind":"LLM","session.id":"o-1","input.value":"hi",
        "output.value":"[1]","llm.token_count.prompt":1}"#;
    assert_eq!(one("x", "any", prose).usage_receipts.len(), 1);
}

/// Returns what a span with these events becomes.
fn with_events(scope: &str, members: &str, events: &[(&str, &str)]) -> CapturedTraces {
    let event = |(name, members): &(&str, &str)| {
        let members = pairs(&object(members));
        Object::from_iter([("name", (*name).into()), ("attributes", members)])
    };
    let mut span = span("0011223344556677", "chat", &object(members));
    span.insert("events", events.iter().map(event).collect::<Json>());
    captured(export(scope, [span]))
}

#[test]
fn strands_puts_messages_into_events_and_counts_input_beside_the_cache() {
    let members = r#"{"gen_ai.operation.name":"chat","session.id":"st","gen_ai.conversation.id":"c",
        "gen_ai.usage.input_tokens":10,"gen_ai.usage.output_tokens":5,
        "gen_ai.usage.cache_read_input_tokens":100,"gen_ai.usage.cache_write_input_tokens":20}"#;
    let events = [
        ("gen_ai.system.message", r#"{"content":"be brief"}"#),
        (
            "gen_ai.user.message",
            r#"{"content":"[{\"text\":\"hi\"}]"}"#,
        ),
        (
            "gen_ai.assistant.message",
            r#"{"content":"[{\"toolUse\":{\"toolUseId\":\"t1\",\"name\":\"ls\",\"input\":{\"p\":1}}}]"}"#,
        ),
        (
            "gen_ai.tool.message",
            r#"{"content":"[{\"toolResult\":{\"toolUseId\":\"t1\",\"status\":\"success\",\"content\":[{\"text\":\"a\"}]}}]"}"#,
        ),
        ("unrelated", r#"{"content":"x"}"#),
        (
            "gen_ai.choice",
            r#"{"message":"[{\"reasoningContent\":{\"reasoningText\":{\"text\":\"hm\"}}},{\"text\":\"ok\"}]","finish_reason":"end_turn"}"#,
        ),
    ];
    let call = with_events("strands.telemetry.tracer", members, &events)
        .calls
        .remove(0);
    assert_eq!(call.session_id.as_str(), "st");
    assert_eq!(call.input_tokens, Some(130));
    assert_eq!(
        said(&call.input_messages),
        [
            r#"system [{"type":"text","content":"be brief"}]"#,
            r#"user [{"type":"text","content":"hi"}]"#,
            r#"assistant [{"type":"tool_call","id":"t1","name":"ls","arguments":{"p":1}}]"#,
            r#"tool [{"type":"tool_call_response","id":"t1","result":[{"text":"a"}]}]"#,
        ]
    );
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"reasoning","content":"hm"},{"type":"text","content":"ok"}]"#]
    );
    assert_eq!(
        call.output_messages[0].finish_reason,
        Some("end_turn".into())
    );
    // Elsewhere the same is read by the conventions.
    let call = with_events("other", members, &events).calls.remove(0);
    assert_eq!(
        (call.session_id.as_str(), call.input_tokens),
        ("c", Some(10))
    );
    assert_eq!(call.output_messages.len(), 1);
}

#[test]
fn attributes_of_the_details_are_united_over_several_events() {
    let members = r#"{"gen_ai.operation.name":"chat","session.id":"st"}"#;
    let name = DETAILS;
    let events = [
        (
            name,
            r#"{"gen_ai.input.messages":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"hi\"}]}]"}"#,
        ),
        (
            name,
            r#"{"gen_ai.output.messages":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"ok\"}]}]"}"#,
        ),
    ];
    let call = with_events("strands.telemetry.tracer", members, &events)
        .calls
        .remove(0);
    assert_eq!(
        (call.input_messages.len(), call.output_messages.len()),
        (1, 1)
    );
}

#[test]
fn older_conventions_number_messages_or_write_them_out() {
    let numbered = r#"{"llm.request.type":"chat","traceloop.association.properties.session_id":"t",
        "gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"hi",
        "gen_ai.completion.0.role":"assistant","gen_ai.completion.0.content":"ok",
        "gen_ai.completion.0.finish_reason":"stop",
        "gen_ai.completion.0.tool_calls.0.id":"t1","gen_ai.completion.0.tool_calls.0.name":"ls",
        "gen_ai.completion.0.tool_calls.0.arguments":"{}",
        "gen_ai.usage.prompt_tokens":"9","gen_ai.usage.completion_tokens":"4","gen_ai.system":"OpenAI",
        "gen_ai.request.model":"m"}"#;
    let call = call("x", "openai.chat", numbered);
    assert_eq!(call.session_id.as_str(), "t");
    assert_eq!((call.input_tokens, call.output_tokens), (Some(9), Some(4)));
    assert_eq!(call.model_provider.as_deref(), Some("OpenAI"));
    assert_eq!(
        said(&call.input_messages),
        [r#"user [{"type":"text","content":"hi"}]"#]
    );
    assert_eq!(
        said(&call.output_messages),
        [
            r#"assistant [{"type":"text","content":"ok"},{"type":"tool_call","id":"t1","name":"ls","arguments":{}}]"#
        ]
    );
    assert_eq!(call.output_messages[0].finish_reason, Some("stop".into()));
    let written = r#"{"gen_ai.operation.name":"chat","session.id":"s",
        "gen_ai.prompt":[{"role":"user","parts":[{"type":"text","content":"a"}]}],
        "gen_ai.completion":{"text":"b","finish_reason":"stop"}}"#;
    let call = self::call("x", "chat", written);
    assert_eq!(
        said(&call.output_messages),
        [r#"assistant [{"type":"text","content":"b"}]"#]
    );
    let prose = r#"{"gen_ai.operation.name":"chat","session.id":"s","gen_ai.completion":"b"}"#;
    assert_eq!(
        skipped("x", "chat", prose),
        Some(LogSkip::MalformedMessages)
    );
}

#[test]
fn a_span_without_an_identity_is_read() {
    let mut span = span("0000000000000000", "chat", &object(CONVENTION));
    let call = captured(export("x", [span.clone()])).calls.remove(0);
    assert_eq!(call.keys.len(), 1);
    let nameless = changed(CONVENTION, r#"{"gen_ai.response.id":null}"#);
    span.insert("attributes", pairs(&object(&nameless)));
    let call = captured(export("x", [span.clone()])).calls.remove(0);
    assert_eq!(call.keys, []);
    span.remove("endTimeUnixNano");
    let report = captured(export("x", [span])).report;
    assert_eq!(report.skipped[&LogSkip::MissingEventTime], 1);
}

#[test]
fn a_bad_span_does_not_affect_the_others() {
    let good = span("0000000000000001", "chat", &object(CONVENTION));
    let mut malformed = good.clone();
    malformed.insert("attributes", "x");
    let id = "x".repeat(2_000);
    let invalid = changed(
        CONVENTION,
        &format!(
            r#"{{"gen_ai.output.messages":[{{"role":"assistant","parts":[{{"type":"tool_call","id":"{id}"}}]}}]}}"#
        ),
    );
    let invalid = span("0000000000000002", "chat", &object(&invalid));
    let mut export = export("x", [malformed, invalid, good]);
    let Some(Json::Array(of_resource)) = export.get_mut("resourceSpans") else {
        panic!("a list");
    };
    of_resource.push(json(r#"{"scopeSpans":[{"spans":[5]}]}"#));
    let captured = captured_as(TracesRequest::Json(export)).unwrap();
    assert_eq!(captured.calls.len(), 1);
    let counts = RecordCounts {
        received: 4,
        translated: 1,
        untranslated: 2,
        malformed: 1,
    };
    assert_eq!(captured.report.spans, counts);
    assert_eq!(captured.report.skipped[&LogSkip::MalformedAttributes], 1);
    assert_eq!(captured.report.skipped[&LogSkip::InvalidFact], 1);
}

#[test]
fn a_span_is_kept_redacted_and_without_the_account() {
    let members = r#"{"gen_ai.operation.name":"chat","session.id":"s","user.email":"a@b.c",
        "gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"text",
            "content":"key sk-abcdefghijklmnopqrst"}]}]}"#;
    let call = call("x", "chat", members);
    let raw = String::from_utf8(call.raw.payload.to_canonical()).unwrap();
    assert!(
        raw.contains(r#""name":"chat""#) && !raw.contains("a@b.c"),
        "{raw}"
    );
    let said = said(&call.output_messages).concat() + &raw;
    assert!(!said.contains("sk-abcdef"), "{said}");
}

#[test]
fn too_many_spans_and_too_many_values_are_refused() {
    let spans = |count: usize| {
        let spans = vec![Json::Object(Object::new()); count];
        let of_scope = Object::from_iter([("spans", Json::Array(spans))]);
        let of_resource = Object::from_iter([("scopeSpans", Json::from_iter([of_scope]))]);
        Object::from_iter([("resourceSpans", Json::from_iter([of_resource]))])
    };
    let max = svc_model::limit::SPANS_MAX;
    let captured = captured_as(TracesRequest::Json(spans(max))).unwrap();
    assert_eq!(captured.report.spans.untranslated, max as u64);
    for request in [
        TracesRequest::Protobuf(traces_protobuf(&spans(max + 1).into())),
        TracesRequest::Json(spans(max + 1)),
    ] {
        assert_eq!(captured_as(request), Err(LogsError::TooLarge));
    }
    let dense = format!("[{}0]", "[],".repeat(10_000));
    let members = changed(
        CONVENTION,
        &format!(r#"{{"gen_ai.input.messages":"{dense}"}}"#),
    );
    let request = export("x", [span("0000000000000001", "chat", &object(&members))]);
    let receipt = Receipt {
        org_id: &OrgId::new("acme").unwrap(),
        received_at: Instant::from_microseconds(1).unwrap(),
        ids: &Ids::counting(),
        redaction: Redaction::On,
        secrets: &Secrets::default(),
    };
    let memory = NodeBudget::new(100_000);
    let refused = capture_traces(TracesRequest::Json(request), receipt, &memory);
    assert_eq!(refused, Err(LogsError::TooLarge));
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(captured_as(TracesRequest::Protobuf(bytes)));
    }

    #[test]
    fn any_change_of_a_message_is_refused_or_read(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let good = export("x", [span("0000000000000001", "chat", &object(CONVENTION))]);
        let mut message = traces_protobuf(&good.into());
        for (place, byte) in changes {
            let length = message.len();
            message[place.index(length)] = byte;
        }
        drop(captured_as(TracesRequest::Protobuf(message)));
    }

    #[test]
    fn any_value_of_any_attribute_is_read(
        name in prop::sample::select(vec![
            "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
            "gen_ai.response.finish_reasons", "ai.prompt.messages", "ai.response.toolCalls",
            "gen_ai.prompt", "gen_ai.completion", "input.value", "gen_ai.prompt.0.content",
        ]),
        value in prop::sample::select(vec![
            "5", "null", "true", "[]", "{}", "[1,null]", r#"[{"role":5}]"#, r#"[{"parts":5}]"#,
            r#"[{"parts":[5,{"type":"tool_call"},{"type":7}]}]"#, r#"{"messages":{}}"#, r#""[""#,
            r#"[{"role":"user","content":[{"type":"tool-result","output":[]}]}]"#,
        ]),
        kind in prop::sample::select(vec!["gen_ai.operation.name", "openinference.span.kind", "x"]),
    ) {
        let members = format!(
            r#"{{"{kind}":"LLM","llm.request.type":"chat","session.id":"s","{name}":{value}}}"#
        );
        let members = object(&members);
        for members in [as_texts(&members), members] {
            for name in ["chat", "ai.streamText.doStream"] {
                let export = export("x", [span("0000000000000001", name, &members)]);
                let message = traces_protobuf(&export.clone().into());
                let read = captured_as(TracesRequest::Json(export)).unwrap().report;
                let protobuf = captured_as(TracesRequest::Protobuf(message)).unwrap().report;
                prop_assert_eq!(read, protobuf);
            }
        }
    }
}
