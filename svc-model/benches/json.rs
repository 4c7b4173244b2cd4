//! Exact JSON against `serde_json::Value`, on documents of the kind that gateways deliver.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};
use svc_model::json::{Json, to_vec};

fn main() {
    divan::main();
}

/// What the tools of an agent read: source code, no matter which.
const SOURCE: &str = include_str!("../src/json/parse.rs");

/// The request of an agent: a system prompt and a long history of tool calls. The arguments are
/// JSON in a string, the results are source code, and some of the prose is not ASCII.
fn agent_request(bytes: usize) -> Vec<u8> {
    let prompt = "You are a careful software engineer. Answer in short sentences.\n".repeat(40);
    let mut messages = vec![json!({"role": "system", "content": prompt})];
    for turn in 0..bytes / 4400 {
        let user = format!(
            "Schritt {turn}: prüfe bitte die Ausgabe – danke 🙂. 次のファイルを読んでください。"
        );
        let path = format!("src/module_{turn}.rs");
        let arguments = json!({"path": path, "offset": turn * 40, "limit": 80, "literal": true});
        let function = json!({"name": "read_file", "arguments": arguments.to_string()});
        let call = format!("call_{turn:024}");
        let lines: Vec<_> = SOURCE.lines().cycle().skip(turn * 40).take(80).collect();
        let usage = json!({"prompt_tokens": 1200 + turn, "completion_tokens": 48, "cost": 0.00125});
        let answer = "The module defines one function and has no tests yet.";
        let turn = [
            json!({"role": "user", "content": [{"type": "text", "text": user}]}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": call, "type": "function", "function": function},
            ]}),
            json!({"role": "tool", "tool_call_id": call, "content": lines.join("\n")}),
            json!({"role": "assistant", "content": answer, "usage": usage, "cached": false}),
        ];
        messages.extend(turn);
    }
    let request = json!({
        "model": "large-2026", "temperature": 0.2, "stream": true, "messages": messages,
    });
    request.to_string().into_bytes()
}

/// Chat without tools: short members, prose, hardly any escapes.
fn chat(bytes: usize) -> Vec<u8> {
    let prose = "Could you explain how the scheduler decides which task runs next, and why? ";
    let mut messages = Vec::new();
    for turn in 0..bytes / 250 {
        let role = if turn % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({"role": role, "content": prose.repeat(1 + turn % 3), "index": turn}));
    }
    json!({"model": "small-2026", "messages": messages})
        .to_string()
        .into_bytes()
}

/// Telemetry: deep nesting, many small members and numbers.
fn telemetry(bytes: usize) -> Vec<u8> {
    let records: Vec<Value> = (0..bytes / 330)
        .map(|n| {
            let attributes = json!([
                {"key": "session.id", "value": {"stringValue": "6a3b2c1d-0000-4000-8000"}},
                {"key": "duration_ms", "value": {"intValue": n}},
                {"key": "cost_usd", "value": {"doubleValue": 0.0125}},
                {"key": "success", "value": {"boolValue": true}},
            ]);
            json!({
                "timeUnixNano": format!("17611234567{n:08}"), "severityNumber": 9,
                "body": {"stringValue": "claude_code.tool_result"}, "attributes": attributes,
            })
        })
        .collect();
    let scope = json!({"logRecords": records});
    let document =
        json!({"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [scope]}]});
    document.to_string().into_bytes()
}

#[derive(Clone, Copy, Debug)]
enum Document {
    Agent,
    AgentAscii,
    Chat,
    Telemetry,
}

const DOCUMENTS: [Document; 4] = [
    Document::Agent,
    Document::AgentAscii,
    Document::Chat,
    Document::Telemetry,
];

impl Document {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Agent => agent_request(1 << 20),
            Self::AgentAscii => Json::parse(&agent_request(1 << 20))
                .expect("a document")
                .to_canonical(),
            Self::Chat => chat(57 << 10),
            Self::Telemetry => telemetry(1 << 20),
        }
    }
}

#[divan::bench(args = DOCUMENTS)]
fn parse_ours(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| Json::parse(black_box(&bytes)));
}

#[divan::bench(args = DOCUMENTS)]
fn parse_serde_json(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| serde_json::from_slice::<Value>(black_box(&bytes)));
}

#[divan::bench(args = DOCUMENTS)]
fn write_canonical(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    let value = Json::parse(&bytes).expect("a document");
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| black_box(&value).to_canonical());
}

#[divan::bench(args = DOCUMENTS)]
fn write_budgeted(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    let value = Json::parse(&bytes).expect("a document");
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| to_vec(black_box(&value), 8 << 20));
}

#[divan::bench(args = DOCUMENTS)]
fn write_serde_json(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    let value: Value = serde_json::from_slice(&bytes).expect("a document");
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| serde_json::to_vec(black_box(&value)));
}

#[divan::bench(args = DOCUMENTS)]
fn canonical_len(bencher: Bencher<'_, '_>, document: Document) {
    let bytes = document.bytes();
    let value = Json::parse(&bytes).expect("a document");
    bencher
        .counter(BytesCount::of_slice(&bytes))
        .bench_local(|| black_box(&value).canonical_len());
}
