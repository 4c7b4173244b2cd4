//! `POST /v1/traces` as exporters use it: the calls of models that spans become, and the answers
//! that tell exporters whether to send again.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::delivery::{log_record, logs, span, traced_attributes, traced_call, traces};
use harness::http::{Reply, Request};
use harness::pattern::{dig, matches, shown};
use harness::server::{Backend, Configuration, INGEST_TOKEN, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};
use svc_engine::testing::otlp;
use svc_model::json::Json;
use svc_model::limit::{BODY_BYTES_MAX, SPANS_MAX};

const PATH: &str = "/v1/traces";
const PROTOBUF: &str = "application/x-protobuf";

on_both_backends! {
    a_span_of_a_call_becomes_an_inference_call,
    an_event_and_a_span_of_one_call_are_one_call,
    calls_that_share_an_id_of_a_response_stay_apart_by_their_spans,
    equal_answers_under_a_shared_id_are_calls_of_their_own,
    a_span_without_content_becomes_a_usage_receipt,
    spans_are_counted_once_one_was_delivered,
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn exact(value: &Value) -> Json {
    Json::parse(value.to_string().as_bytes()).expect("JSON")
}

fn check(wanted: &Value, found: &Json) {
    matches(&exact(wanted), found, "$")
        .unwrap_or_else(|reason| panic!("{reason}: {}", shown(found)));
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

fn in_protobuf(body: impl Into<Vec<u8>>) -> Request {
    Request {
        method: "POST".into(),
        path: PATH.into(),
        body: Some(body.into()),
        ..Request::default()
    }
    .header("content-type", PROTOBUF)
}

fn encoded(spans: &[Value]) -> Vec<u8> {
    otlp::traces_protobuf(&exact(&traces(spans)))
}

fn deliver(server: &Server, request: Request) -> Reply {
    server.send(&request.bearer(INGEST_TOKEN))
}

fn stored(server: &Server, spans: &[Value]) {
    let reply = deliver(server, Request::post(PATH, traces(spans).to_string()));
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
}

fn calls(server: &Server, session: &str) -> Json {
    let calls = server.read_json(&format!("/v1/facts/session/{session}/inference-calls"));
    dig(&calls, "inference_calls").expect("a list").clone()
}

fn total(server: &Server, table: &str) -> Option<Json> {
    let counts = server.read_json("/v1/facts");
    dig(&counts, &format!("tables.{table}.total")).cloned()
}

fn a_span_of_a_call_becomes_an_inference_call(backend: Backend) {
    let Some(server) = start(backend) else { return };
    stored(&server, &[traced_call("c-9", "chatcmpl-7")]);
    let call = json!({ "$subset": {
        "inference_call_id": "$uuid",
        "model_call_id": "chatcmpl-7",
        "gateway_provider": "unknown",
        "input_tokens": 1500,
        "cache_read_tokens": 1024,
        "output_tokens": 64,
        "duration_ms": 1500,
        "capture_source": "span",
    }});
    let listed = calls(&server, "c-9");
    check(&json!([call]), &listed);
    let id = dig(&listed, "0.inference_call_id").and_then(Json::as_str);
    let id = id.expect("an id");
    let reference = json!({ "inference_call_id": id, "side": "output", "message_index": 0,
        "part_index": 0 });
    let read =
        json!({ "schema_version": 1, "session_id": "c-9", "references": [reference] }).to_string();
    let read = Request::post("/query/evidence/read", read).bearer(harness::server::OPERATOR_TOKEN);
    let reply = server.send(&read);
    let part = r#"{"type":"tool_call","id":"t1","name":"ls","arguments":{"p":"."}}"#;
    assert!(reply.text().contains(part), "{}", reply.text());
    // Again, packed and in the other encoding.
    stored(&server, &[traced_call("c-9", "chatcmpl-7")]);
    let packed = gzip(&encoded(&[traced_call("c-9", "chatcmpl-7")]));
    let reply = deliver(
        &server,
        in_protobuf(packed).header("content-encoding", "gzip"),
    );
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    assert_eq!(reply.header("content-type"), Some(PROTOBUF));
    assert_eq!(calls(&server, "c-9").as_array().map(<[_]>::len), Some(1));
    let counts = server.read_json("/v1/capture");
    let facts = dig(&counts, "sources.traces.facts.inference_calls");
    check(
        &json!({ "stored": 1, "duplicates": 2 }),
        facts.expect("a count"),
    );
}

fn an_event_and_a_span_of_one_call_are_one_call(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let event = |session: &str, response: &str| {
        let mut attributes = traced_attributes(session, response);
        attributes["event.name"] = "gen_ai.client.inference.operation.details".into();
        let export = logs(&[log_record("", &attributes)]).to_string();
        let reply = deliver(&server, Request::post("/v1/logs", export));
        assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    };
    stored(&server, &[traced_call("one", "chatcmpl-1")]);
    event("one", "chatcmpl-1");
    event("two", "chatcmpl-2");
    let mut other = traced_call("two", "chatcmpl-2");
    other["spanId"] = "0000000000000002".into();
    stored(&server, &[other]);
    for (session, source) in [("one", "span"), ("two", "telemetry")] {
        let call = json!({ "$subset": { "capture_source": source, "input_tokens": 1500 } });
        check(&json!([call]), &calls(&server, session));
    }
}

fn calls_that_share_an_id_of_a_response_stay_apart_by_their_spans(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let call = |id: &str, more: Value| {
        let mut attributes = traced_attributes("shared", "shared");
        for (name, value) in more.as_object().expect("an object") {
            attributes[name] = value.clone();
        }
        span(id, "chat gpt-x", &attributes)
    };
    let window = json!({ "copilot_chat.chat_session_id": "window" });
    let mut inside = call("0000000000000003", json!({ "copilot_chat.x": "y" }));
    inside["parentSpanId"] = "0000000000000009".into();
    let around = json!({ "copilot_chat.chat_session_id": "window",
        "gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 3000 });
    stored(
        &server,
        &[
            call("0000000000000001", window.clone()),
            call("0000000000000002", window),
            inside,
            span("0000000000000009", "invoke_agent", &around),
            call("0000000000000004", json!({ "copilot_chat.x": "y" })),
        ],
    );
    assert_eq!(calls(&server, "window").as_array().map(<[_]>::len), Some(3));
    assert_eq!(total(&server, "inference_calls"), Some(3_u64.into()));
    let counts = server.read_json("/v1/capture");
    let skipped = dig(&counts, "sources.traces.skipped").expect("the reasons");
    check(
        &json!({ "missing_session": 1, "not_a_model_call": 1 }),
        skipped,
    );
}

fn a_span_without_content_becomes_a_usage_receipt(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let mut attributes = traced_attributes("s-1", "chatcmpl-7");
    let members = attributes.as_object_mut().expect("an object");
    members.remove("gen_ai.input.messages");
    members.remove("gen_ai.output.messages");
    stored(&server, &[span("0011223344556677", "chat", &attributes)]);
    assert_eq!(total(&server, "inference_calls"), Some(0_u64.into()));
    assert_eq!(total(&server, "usage_receipts"), Some(1_u64.into()));
    let exported = server.shell().arg("export").output().expect("it runs");
    let exported = String::from_utf8(exported.stdout).expect("text");
    let mut lines = exported.lines();
    let line = lines.find(|line| line.contains("usage_receipts"));
    let line = line.expect("a receipt");
    for member in [
        r#""source":"genai""#,
        r#""trace_id":"00112233445566778899aabbccddeeff""#,
        r#""span_id":"0011223344556677""#,
        r#""response_id":"chatcmpl-7""#,
    ] {
        assert!(line.contains(member), "{member}: {line}");
    }
}

fn spans_are_counted_once_one_was_delivered(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let counts = server.read_json("/v1/capture");
    assert_eq!(dig(&counts, "sources.traces"), None);
    assert_eq!(dig(&counts, "span_records"), None);
    let claude_code = span("0000000000000001", "claude_code.llm_request", &json!({}));
    let codex = json!({ "codex.turn.token_usage.total_tokens": 5 });
    let mut export = traces(&[
        traced_call("s", "chatcmpl-1"),
        claude_code,
        span("0000000000000002", "GET /", &json!({})),
        json!(5),
    ]);
    let turn = span("0000000000000003", "session_task.turn", &codex);
    let turn = json!({ "scopeSpans": [{ "scope": { "name": "codex_otel" }, "spans": [turn] }] });
    export["resourceSpans"]
        .as_array_mut()
        .expect("a list")
        .push(turn);
    let reply = deliver(&server, Request::post(PATH, export.to_string()));
    assert_eq!(reply.status, 200);
    let counts = server.read_json("/v1/capture");
    check(
        &json!({ "received": 5, "translated": 1, "untranslated": 3, "malformed": 1,
            "malformed_containers": 0 }),
        dig(&counts, "span_records").expect("the counts"),
    );
    check(
        &json!({ "covered_by_logs": 1, "turn_total": 1 }),
        dig(&counts, "sources.traces.skipped").expect("the reasons"),
    );
    let shell = server.shell().arg("capture").output().expect("it runs");
    let shell = String::from_utf8(shell.stdout).expect("text");
    assert!(shell.contains("spans: 5 received, 1 translated"), "{shell}");
}

#[test]
fn a_sender_learns_whether_to_send_again() {
    let server = Server::start(Backend::Sqlite, &Configuration::granting_one("s"));
    let server = server.expect("SQLite is never skipped");
    let good = traces(&[traced_call("s", "chatcmpl-1")]).to_string();
    let post = |body: &str| Request::post(PATH, body.to_owned());
    assert_eq!(server.send(&post(&good)).status, 401);
    assert_eq!(
        server.send(&post(&good).bearer(RETRIEVAL_TOKEN)).status,
        403
    );
    for (body, detail) in [
        ("", "Malformed JSON body"),
        ("{", "Malformed JSON body"),
        ("[]", "OTLP body must be a JSON object"),
    ] {
        let reply = deliver(&server, post(body));
        let expected = json!({ "detail": detail }).to_string();
        assert_eq!((reply.status, reply.text()), (400, expected), "{body}");
    }
    let reply = deliver(&server, in_protobuf(vec![0xff; 20]));
    assert_eq!(reply.status, 400);
    assert_eq!(reply.header("content-type"), Some(PROTOBUF));
    assert!(reply.text().contains("Malformed protobuf body"));
    assert_eq!(deliver(&server, in_protobuf(Vec::new())).status, 200);
    assert_eq!(total(&server, "inference_calls"), Some(0_u64.into()));
}

#[test]
fn too_large_an_export_is_refused() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let export = traces(&[traced_call("s", "chatcmpl-1")]).to_string();
    let mut body = vec![b' '; BODY_BYTES_MAX - export.len()];
    body.extend_from_slice(export.as_bytes());
    let packed = |body: &[u8]| Request::post(PATH, gzip(body)).header("content-encoding", "gzip");
    assert_eq!(deliver(&server, packed(&body)).status, 200);
    body.push(b' ');
    assert_eq!(deliver(&server, packed(&body)).status, 413);
    let spans = vec![json!({}); SPANS_MAX + 1];
    let reply = deliver(&server, Request::post(PATH, traces(&spans).to_string()));
    assert_eq!(reply.status, 413);
    assert_eq!(deliver(&server, in_protobuf(encoded(&spans))).status, 413);
    assert_eq!(
        deliver(&server, in_protobuf(encoded(&spans[1..]))).status,
        200
    );
    assert_eq!(total(&server, "inference_calls"), Some(1_u64.into()));
}

#[test]
fn ids_of_zeros_are_none() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let call = |answer: &str| {
        let mut attributes = traced_attributes("s", "");
        attributes["gen_ai.output.messages"] = json!([{ "role": "assistant", "content": answer }])
            .to_string()
            .into();
        let mut span = span("0000000000000000", "chat", &attributes);
        span["traceId"] = "0".repeat(32).into();
        span
    };
    stored(&server, &[call("one"), call("two"), call("one")]);
    let listed = calls(&server, "s");
    let call = json!({ "$subset": { "model_call_id": null } });
    check(&json!([call, call]), &listed);
}

fn equal_answers_under_a_shared_id_are_calls_of_their_own(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let spans: Vec<Value> = ["one", "two", "two"]
        .iter()
        .zip(1..)
        .map(|(answer, number)| {
            let mut attributes = traced_attributes("same", "chatcmpl-0");
            attributes["gen_ai.output.messages"] = json!(
                json!([{ "role": "assistant", "parts": [{ "type": "text", "content": answer }] }])
                    .to_string()
            );
            span(
                &format!("000000000000000{number}"),
                "chat gpt-x",
                &attributes,
            )
        })
        .collect();
    for _ in 0..2 {
        for one in &spans {
            stored(&server, std::slice::from_ref(one));
        }
    }
    assert_eq!(calls(&server, "same").as_array().map(<[_]>::len), Some(3));
    let counts = server.read_json("/v1/capture");
    let skipped = dig(&counts, "sources.traces.skipped").expect("the reasons");
    check(&json!({ "shared_response_id": 2 }), skipped);
}
