//! How long it takes to make facts of what gateways and agents send: parsed JSON in, facts out.
//!
//! ```sh
//! cargo bench -p svc-engine-capture --features testing --bench capture
//! ```

use std::fmt::Write as _;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use svc_engine_capture::redaction::Secrets;
use svc_engine_capture::testing;
use svc_engine_capture::{Receipt, Redaction, gateway, otlp};
use svc_engine_fact::clock::Ids;
use svc_model::id::{OrgId, SessionId};
use svc_model::ingest::{GatewayIngestRequest, GatewayProvider, LogsRequest};
use svc_model::json::{Json, NodeBudget};
use svc_model::time::Instant;

fn main() {
    divan::main();
}

/// What a real proxy sends of a call.
const DELIVERED: &str = include_str!("../../../tests/fixtures/litellm/generic_api_json_array.json");
/// Ordinary source code, and such that is full of credentials.
const CLEAN: &str = include_str!("../../../svc-model/messages/src/message.rs");
const DIRTY: &str = include_str!("../src/redaction/rewrite.rs");

/// A conversation: what its tools read, its messages and its bytes, nearly.
const CONVERSATIONS: [(&str, &str, usize, usize); 4] = [
    ("3 KB", CLEAN, 10, 3_000),
    ("40 KB", CLEAN, 80, 40_000),
    ("40 KB, full of credentials", DIRTY, 80, 40_000),
    ("1 MB", CLEAN, 400, 1_000_000),
];
/// Edits of an export; each is a decision and the result that completes it.
const EDITS: [usize; 2] = [5, 50];

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

fn quoted(text: &str) -> String {
    String::from_utf8(Json::from(text).to_canonical()).expect("ASCII")
}

/// Returns what a proxy sends of a conversation of an agent at work on this very crate.
fn conversation(source: &str, messages: usize, bytes: usize) -> Json {
    let each = bytes / messages;
    let source = source.repeat(2 + bytes / source.len());
    let mut list = String::new();
    for (index, chunk) in source.as_bytes().chunks(each).take(messages).enumerate() {
        let text = quoted(&String::from_utf8_lossy(chunk));
        let comma = if index > 0 { "," } else { "" };
        let message = match index % 4 {
            0 => format!(r#"{{"role":"user","content":{text}}}"#),
            1 => format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}]}}"#),
            2 => {
                let arguments = quoted(&format!(r#"{{"path":"src/call.rs","new":{text}}}"#));
                let function = format!(r#"{{"name":"edit","arguments":{arguments}}}"#);
                format!(
                    r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{index}","type":"function","function":{function}}}]}}"#
                )
            }
            _ => format!(r#"{{"role":"tool","tool_call_id":"call_{index}","content":{text}}}"#),
        };
        write!(list, "{comma}{message}").expect("a string takes everything");
    }
    let delivered = json(DELIVERED)
        .into_array()
        .expect("an array")
        .swap_remove(0);
    let mut payload = delivered.into_object().expect("an object");
    payload.insert("messages", json(&format!("[{list}]")));
    payload.into()
}

/// Returns what Claude Code exports of so many edits that a person allowed.
fn edits(count: usize) -> Json {
    let common = |name: &str| {
        let attributes = [
            ("user.id", "7f3a9c517f3a9c517f3a9c517f3a9c51"),
            ("session.id", "4a1f6f3c-90a7-4d52-8a6e-2f3b1c9d7e10"),
            ("user.email", "developer-7@acme.example"),
            ("terminal.type", "iTerm.app"),
            ("event.timestamp", "2026-11-20T00:00:00.000Z"),
            ("event.name", name),
            ("prompt.id", "23279188-c89f-40fe-8122-d8796501faad"),
            ("tool_name", "Edit"),
        ];
        attributes
            .map(|(name, value)| attribute(name, value))
            .join(",")
    };
    let record = |name: &str, attributes: &str| {
        format!(
            r#"{{"timeUnixNano":"1783454255424000000","body":{{"stringValue":"claude_code.{name}"}},"attributes":[{},{attributes}]}}"#,
            common(name)
        )
    };
    let mut records = Vec::new();
    for number in 0..count {
        let call = attribute("tool_use_id", &format!("toolu_01abcdefghijklmnop{number}"));
        let decided = [
            call.clone(),
            attribute("decision", "accept"),
            attribute("source", "user_temporary"),
        ];
        records.push(record("tool_decision", &decided.join(",")));
        let (old, new) = (&CLEAN[number * 90..][..480], &CLEAN[number * 90..][..512]);
        let input = format!(
            r#"{{"file_path":"src/own.rs","old_string":{},"new_string":{}}}"#,
            quoted(old),
            quoted(new)
        );
        let ended = [
            call,
            attribute("success", "true"),
            attribute("duration_ms", "38"),
            attribute("tool_input", &input),
        ];
        records.push(record("tool_result", &ended.join(",")));
    }
    json(&format!(
        r#"{{"resourceLogs":[{{"resource":{{"attributes":[{}]}},"scopeLogs":[{{"logRecords":[{}]}}]}}]}}"#,
        attribute("service.name", "claude-code"),
        records.join(",")
    ))
}

fn attribute(name: &str, value: &str) -> String {
    let value = quoted(value);
    format!(r#"{{"key":"{name}","value":{{"stringValue":{value}}}}}"#)
}

/// Calls `work` with what capture is told of a delivery.
fn with_receipt<T>(redaction: Redaction, work: impl FnOnce(Receipt<'_>) -> T) -> T {
    work(Receipt {
        org_id: &OrgId::new("acme").expect("an organization"),
        received_at: Instant::from_microseconds(1).expect("in range"),
        ids: &Ids::counting(),
        redaction,
        secrets: &Secrets::new([
            "operator-operator-operator",
            "webhook-webhook-webhook-webhook",
        ]),
    })
}

/// Captures a call of the conversation of this name.
fn call(bencher: Bencher<'_, '_>, name: &str, redaction: Redaction) {
    let (_, source, messages, bytes) = CONVERSATIONS
        .into_iter()
        .find(|(one, ..)| *one == name)
        .expect("a conversation");
    let payload = conversation(source, messages, bytes);
    bencher
        .counter(BytesCount::new(payload.canonical_len()))
        .with_inputs(|| GatewayIngestRequest {
            provider: GatewayProvider::GatewayA,
            session_id: SessionId::new("s").ok(),
            user_id: None,
            payload: payload.clone(),
            capture: None,
            compare: false,
        })
        .bench_values(|request| {
            let captured = with_receipt(redaction, |receipt| {
                gateway::capture(request, receipt, &NodeBudget::unlimited())
            });
            black_box(captured.expect("a call"))
        });
}

/// Captures an export.
fn logs(bencher: Bencher<'_, '_>, request: impl Fn() -> LogsRequest + Sync, bytes: usize) {
    bencher
        .counter(BytesCount::new(bytes))
        .with_inputs(request)
        .bench_values(|request| {
            let captured = with_receipt(Redaction::On, |receipt| {
                otlp::capture(request, receipt, &NodeBudget::unlimited())
            });
            let captured = captured.expect("an export");
            assert!(!captured.decisions.is_empty());
            black_box(captured)
        });
}

#[divan::bench(args = CONVERSATIONS.map(|(name, ..)| name))]
fn gateway_call(bencher: Bencher<'_, '_>, conversation: &str) {
    call(bencher, conversation, Redaction::On);
}

#[divan::bench(args = CONVERSATIONS.map(|(name, ..)| name))]
fn gateway_call_without_redaction(bencher: Bencher<'_, '_>, conversation: &str) {
    call(bencher, conversation, Redaction::Off);
}

#[divan::bench(args = EDITS)]
fn logs_as_json(bencher: Bencher<'_, '_>, count: usize) {
    let export = edits(count);
    let bytes = export.canonical_len();
    let export = export.into_object().expect("an object");
    logs(bencher, || LogsRequest::Json(export.clone()), bytes);
}

#[divan::bench(args = EDITS)]
fn logs_as_protobuf(bencher: Bencher<'_, '_>, count: usize) {
    let message = testing::protobuf(&edits(count));
    logs(
        bencher,
        || LogsRequest::Protobuf(message.clone()),
        message.len(),
    );
}
