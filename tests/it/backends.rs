//! Both backends answer with the same bytes.
//!
//! The ids of facts are derived from the captures, and the times are given. So two servers that
//! received the same deliveries must answer the same, byte for byte, on every route that reads.

use harness::delivery::{Call, LOGGED_AT, Receipt, ci_outcome, log_record, logs};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;

/// Sessions whose order by bytes is not a linguistic order.
const SESSIONS: [&str; 6] = ["a-1", "B-2", "_3", "Z 4", "\u{e9}-5", "ab/6"];

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Returns the deliveries: path and body.
fn deliveries() -> Vec<(&'static str, Vec<u8>)> {
    let mut deliveries = Vec::new();
    for (index, session) in SESSIONS.iter().enumerate() {
        let mut history: Vec<Value> = vec![json!({"role": "system", "content": "careful"})];
        for turn in 0..4 {
            history.push(json!({
                "role": "user",
                "content": format!("{session} turn {turn}: fix the pager \u{0} \u{1f600} window"),
            }));
            let number = index * 10 + turn;
            let tool = json!({
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "the window is closed"}],
                "tool_calls": [{
                    "id": format!("tool-{number}"),
                    "function": {"name": "read_file", "arguments": "{\"path\":\"src/pager.rs\",\"n\":1.10}"},
                }],
            });
            // Two calls of a Session have the same time, so their ids decide the order.
            let call = Call::new(session, &format!("call-{number}"))
                .captured(
                    &format!("00000000-0000-4000-8000-{:012}", 99 - number),
                    &format!("2026-01-02T03:04:{:02}.5Z", turn / 2),
                )
                .model(["b-model", "A-model", "_model", "\u{e9}-model"][turn])
                .messages(history.clone())
                .answer(tool.clone());
            deliveries.push(("/ingest/gateway", call.body()));
            history.push(tool);
            history.push(json!({
                "role": "tool",
                "tool_call_id": format!("tool-{number}"),
                "content": "{\"lines\":[1e5,12345678901234567890123],\"text\":\"\\ud800 window\"}",
            }));
        }
    }
    // A redelivery with different content, a second delivery of one call, and outcomes.
    deliveries.push((
        "/ingest/gateway",
        Call::new(SESSIONS[0], "call-0")
            .captured(
                "00000000-0000-4000-8000-000000000099",
                "2026-01-03T00:00:00Z",
            )
            .body(),
    ));
    deliveries.push(("/ingest/gateway", Call::new(SESSIONS[0], "call-1").body()));
    deliveries.push(("/ingest/ci", ci_outcome("run-1").to_string().into_bytes()));
    deliveries.push(("/ingest/ci", ci_outcome("run-1").to_string().into_bytes()));
    deliveries
}

/// Returns an export of decisions whose ids are derived from what was decided.
fn decisions() -> Value {
    let records: Vec<Value> = (0..18_u64)
        .map(|number| {
            let mut record = log_record(
                "svc.tool_decision",
                &json!({
                    "agent": "cursor",
                    "session.id": SESSIONS[usize::try_from(number % 6).expect("small")],
                    "tool_use_id": format!("write-{number}"),
                    "file_path": "src/\u{e9}.rs",
                    "decision": "accept",
                    "explicit": false,
                    "tool_name": "Write",
                }),
            );
            // Two decisions of a Session have the same time, so their ids decide the order.
            let time = LOGGED_AT + number / 12 * 1_000;
            record["timeUnixNano"] = json!(time.to_string());
            record
        })
        .collect();
    logs(&records)
}

fn query(path: &str, body: &Value) -> Request {
    Request::post(path, body.to_string())
}

/// Returns every reading request for which there are facts.
fn reads(server: &Server) -> Vec<Request> {
    let mut reads = vec![
        Request::get("/v1/facts"),
        Request::get("/v1/me"),
        Request::get("/health"),
    ];
    for query_text in [
        "pager window",
        "read_file lines",
        "careful",
        "nothing_of_it",
    ] {
        for bytes in [4_096, 65_536] {
            let mut body = json!({"schema_version": 1, "query": query_text, "max_bytes": bytes});
            reads.push(query("/query/context/discover", &body));
            for session in SESSIONS {
                body["session_id"] = json!(session);
                reads.push(query("/query/context/selected", &body));
            }
        }
    }
    for session in SESSIONS.iter().chain(&["other", "unknown"]) {
        let encoded = percent_encoded(session);
        for rest in ["", "/inference-calls", "/compatibility-evidence"] {
            reads.push(Request::get(format!("/v1/facts/session/{encoded}{rest}")));
        }
        for prefix in ["/query", "/query/context"] {
            let inventory = format!("{prefix}/evidence?session_id={encoded}");
            reads.push(Request::get(inventory.clone()));
            reads.extend(reads_of_a_session(server, prefix, session, &inventory));
        }
    }
    reads
}

fn reads_of_a_session(
    server: &Server,
    prefix: &str,
    session: &str,
    inventory: &str,
) -> Vec<Request> {
    let inventory = server.read(inventory);
    if inventory.status != 200 {
        return Vec::new();
    }
    let inventory = inventory.json();
    let calls = dig(&inventory, "calls")
        .and_then(Json::as_array)
        .unwrap_or_default();
    let mut reads = Vec::new();
    for call in calls {
        let call = dig(call, "inference_call_id")
            .and_then(Json::as_str)
            .expect("an id");
        let session_id = percent_encoded(session);
        let manifest =
            format!("{prefix}/evidence/manifest?session_id={session_id}&inference_call_id={call}");
        reads.push(Request::get(manifest.clone()));
        let manifest = server.read_json(&manifest);
        let messages = dig(&manifest, "messages")
            .and_then(Json::as_array)
            .unwrap_or_default();
        let references: Vec<Value> = messages
            .iter()
            .filter_map(|message| dig(message, "parts")?.as_array())
            .flatten()
            .map(|part| {
                let reference = dig(part, "reference").expect("a reference").to_canonical();
                serde_json::from_slice(&reference).expect("plain JSON")
            })
            .collect();
        for some in references.chunks(32) {
            let body = json!({"schema_version": 1, "session_id": session, "references": some});
            reads.push(query(&format!("{prefix}/evidence/read"), &body));
        }
    }
    reads
}

#[test]
fn both_backends_answer_every_read_with_equal_bytes() {
    let configuration = Configuration::granting(&SESSIONS);
    let Some(postgres) = Server::start(Backend::Postgres, &configuration) else {
        return;
    };
    let sqlite = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    for (path, body) in deliveries() {
        let (first, second) = (
            sqlite.deliver(path, body.clone()),
            postgres.deliver(path, body),
        );
        let (first, second) = (Receipt::of(&first), Receipt::of(&second));
        assert_eq!(first.stored, second.stored, "{path}");
        if path == "/ingest/gateway" {
            assert_eq!(first.fact, second.fact, "the id follows from the capture");
        }
    }
    for server in [&sqlite, &postgres] {
        let reply = server.deliver("/v1/logs", decisions().to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let reads = reads(&sqlite);
    assert!(
        reads.len() > 150,
        "{} reads: the facts are not there",
        reads.len()
    );
    let mut differences = Vec::new();
    let mut answered = 0;
    for read in reads {
        let read = read.bearer(OPERATOR_TOKEN);
        let (first, second) = (sqlite.send(&read), postgres.send(&read));
        answered += usize::from(first.status == 200);
        if (first.status, &first.body) != (second.status, &second.body) {
            differences.push(format!(
                "{} {} {}\n    SQLite     {} {}\n    PostgreSQL {} {}",
                read.method,
                read.path,
                String::from_utf8_lossy(read.body.as_deref().unwrap_or_default()),
                first.status,
                first.text(),
                second.status,
                second.text()
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(
        answered > 150,
        "only {answered} reads were answered with success"
    );
}
