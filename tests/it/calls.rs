//! `POST /ingest/calls`: calls that programs send themselves, each with what it adds to the call before
//! it.

use harness::delivery::{Call, first_two_calls, said, sent_calls};
use harness::http::{Reply, Request};
use harness::pattern::{dig, matches, shown};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;
use svc_model::limit::{BODY_BYTES_MAX, SENT_CALLS_MAX};

const PATH: &str = "/ingest/calls";

on_both_backends! {
    a_call_is_stored_with_the_whole_input_that_it_had,
    calls_that_a_resumed_session_copies_are_stored_once,
    a_call_that_a_gateway_has_is_the_same_call,
    what_cannot_be_stored_is_counted_by_reason,
    what_a_reader_met_is_counted_by_agent,
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn check(wanted: &Value, found: &Json) {
    let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
    matches(&wanted, found, "$").unwrap_or_else(|reason| panic!("{reason}: {}", shown(found)));
}

fn send(server: &Server, body: &Value) -> Reply {
    server.send(&Request::post(PATH, body.to_string()).bearer(INGEST_TOKEN))
}

#[track_caller]
fn receipt(server: &Server, body: &Value) -> Json {
    let reply = send(server, body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    Json::parse(&reply.body).expect("JSON")
}

fn counts(stored: u64, duplicates: u64) -> Value {
    json!({ "stored": stored, "duplicates": duplicates, "skipped": {}, "rejected": {} })
}

/// Returns the manifest of the call with a response of this id.
fn manifest(server: &Server, session: &str, response: &str) -> Json {
    let listed = server.read_json(&format!("/v1/facts/session/{session}/inference-calls"));
    let calls = dig(&listed, "inference_calls").and_then(Json::as_array);
    let is_it = |call: &&Json| dig(call, "model_call_id").and_then(Json::as_str) == Some(response);
    let call = calls.expect("a list").iter().find(is_it);
    let id = dig(call.expect("the call"), "inference_call_id").and_then(Json::as_str);
    let id = id.expect("an id");
    server.read_json(&format!(
        "/query/evidence/manifest?session_id={session}&inference_call_id={id}&explain=true"
    ))
}

/// Returns the sides and roles of the messages of a manifest.
fn roles(manifest: &Json) -> Vec<(String, String)> {
    let messages = dig(manifest, "messages").and_then(Json::as_array);
    let word = |message: &Json, name| {
        let word = dig(message, name).and_then(Json::as_str);
        word.expect("a word").to_owned()
    };
    let messages = messages.expect("messages").iter();
    messages
        .map(|message| (word(message, "side"), word(message, "role")))
        .collect()
}

fn sides(sides: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(side, role): &(&str, &str)| ((*side).to_owned(), (*role).to_owned());
    sides.iter().map(owned).collect()
}

fn a_call_is_stored_with_the_whole_input_that_it_had(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let [first, second] = first_two_calls();
    let alone = receipt(&server, &sent_calls("t-1", std::slice::from_ref(&second)));
    check(
        &json!({ "stored": 0, "duplicates": 0, "skipped": {}, "rejected": { "after_unknown": 1 } }),
        &alone,
    );
    let both = sent_calls("t-1", &[first, second]);
    check(&counts(2, 0), &receipt(&server, &both));
    check(&counts(0, 2), &receipt(&server, &both));
    let manifest = manifest(&server, "t-1", "msg_2");
    let expected = [
        ("input", "user"),
        ("input", "assistant"),
        ("input", "user"),
        ("output", "assistant"),
    ];
    assert_eq!(roles(&manifest), sides(&expected));
    check(
        &json!({ "$subset": {
            "capture_source": "transcript", "agent": "claude-code", "cache_read_tokens": 900,
            "response_id": "msg_2",
        }}),
        dig(&manifest, "call").expect("a call"),
    );
    let listed = server.read_json("/v1/facts/session/t-1/inference-calls");
    check(
        &json!({ "$subset": {
            "input_tokens": 904, "output_tokens": 6, "gateway_provider": "unknown",
            "capture_source": "transcript", "agent": "claude-code",
        }}),
        dig(&listed, "inference_calls.1").expect("a call"),
    );
    let captured = server.read_json("/v1/capture");
    check(
        &json!({ "$subset": {
            "facts": { "inference_calls": { "stored": 2, "duplicates": 2 } },
            "rejected": { "after_unknown": 1 },
        }}),
        dig(&captured, "sources.calls").expect("a source"),
    );
}

fn calls_that_a_resumed_session_copies_are_stored_once(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let [first, second] = first_two_calls();
    receipt(
        &server,
        &sent_calls("t-1", &[first.clone(), second.clone()]),
    );
    let third = json!({
        "response_id": "msg_3",
        "ended_at": "2026-11-02T10:00:20Z",
        "input": { "after": "msg_2", "messages": [] },
        "output": [said("assistant", &json!({ "type": "text", "content": "And done." }))],
    });
    let copied = receipt(&server, &sent_calls("b", &[first, second, third]));
    check(
        &json!({ "stored": 1, "duplicates": 0, "skipped": { "copied": 2 }, "rejected": {} }),
        &copied,
    );
    let facts = server.read_json("/v1/facts");
    check(
        &json!(3),
        dig(&facts, "tables.inference_calls.total").expect("a count"),
    );
    let last = manifest(&server, "t-1", "msg_2");
    let last = dig(&last, "call.inference_call_id").and_then(Json::as_str);
    let dossier = server.read_json("/query/session/b");
    check(
        &json!([{ "session_id": "t-1", "inference_call_id": last, "occurred_at": "2026-11-02T10:00:09Z" }]),
        dig(&dossier, "continues").expect("Sessions"),
    );
    let dossier = server.read_json("/query/session/t-1");
    check(
        &json!(["b"]),
        dig(&dossier, "continued_by").expect("Sessions"),
    );
    let own = roles(&manifest(&server, "b", "msg_3"));
    let input = own.iter().filter(|(side, _)| side == "input");
    assert_eq!((input.count(), own.len()), (4, 5));
}

fn a_call_that_a_gateway_has_is_the_same_call(backend: Backend) {
    for gateway_first in [true, false] {
        let Some(server) = start(backend) else { return };
        let mut bare = Call::new("s", "lite-1").bare();
        bare["id"] = "msg_1".into();
        let bare = bare.to_string();
        let gateway = || {
            let request = Request::post("/ingest/gateway/litellm", bare.clone());
            let reply = server.send(&request.bearer(INGEST_TOKEN));
            assert_eq!(reply.status, 200, "{}", reply.text());
        };
        let [first, second] = first_two_calls();
        if gateway_first {
            gateway();
        }
        let sent = receipt(&server, &sent_calls("s", &[first, second]));
        let duplicates = u64::from(gateway_first);
        check(&counts(2 - duplicates, duplicates), &sent);
        gateway();
        let facts = server.read_json("/v1/facts");
        check(
            &json!(2),
            dig(&facts, "tables.inference_calls.total").expect("a count"),
        );
    }
}

fn what_cannot_be_stored_is_counted_by_reason(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let one = |id: &str, own: &str, answer: &str| {
        json!({
            "response_id": id, "call_id": own, "ended_at": "2026-11-02T10:00:04Z",
            "input": { "messages": [] },
            "output": [said("assistant", &json!({ "type": "text", "content": answer }))],
        })
    };
    let calls = [
        one("r", "e1", "a"),
        one("r", "e2", "b"),
        one("r", "e2", "c"),
    ];
    check(
        &json!({ "stored": 2, "duplicates": 0, "skipped": {},
            "rejected": { "inference_call_identity_conflict": 1 } }),
        &receipt(&server, &sent_calls("s", &calls)),
    );
    check(
        &counts(0, 2),
        &receipt(&server, &sent_calls("s", &calls[..2])),
    );
}

fn what_a_reader_met_is_counted_by_agent(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let captured = server.read_json("/v1/capture");
    assert!(dig(&captured, "readers").is_none());
    assert!(dig(&captured, "sources.calls").is_none());
    let mut body = sent_calls("s", &[]);
    body["reader"] = json!({ "version": "1", "lines": 12, "unknown": 3, "format_changed": 1 });
    for _ in 0..2 {
        check(&counts(0, 0), &receipt(&server, &body));
    }
    let captured = server.read_json("/v1/capture");
    check(
        &json!({ "claude-code": { "lines": 24, "unknown": 6, "format_changed": 2 } }),
        dig(&captured, "readers").expect("readers"),
    );
    check(
        &json!(2),
        dig(&captured, "sources.calls.deliveries").expect("a count"),
    );
}

/// Returns a valid request with one member of its only call replaced.
fn with(member: &str, value: Value) -> Value {
    let [mut call, _] = first_two_calls();
    call[member] = value;
    sent_calls("s", &[call])
}

#[test]
fn a_request_that_breaks_a_rule_is_refused_and_every_break_is_named() {
    let Some(server) = start(Backend::Sqlite) else {
        return;
    };
    let place = |path: &str| -> Vec<Value> {
        let steps = path.split('.');
        let steps = steps.map(|step| match step.parse::<u64>() {
            Ok(index) => index.into(),
            Err(_) => step.into(),
        });
        std::iter::once("body".into()).chain(steps).collect()
    };
    let text = |content: &str| json!({ "type": "text", "content": content });
    let input = |message: Value| json!({ "messages": [message] });
    let mut without_id = sent_calls("s", &first_two_calls()[..1]);
    without_id["calls"][0]["response_id"] = Value::Null;
    let top = |name: &str, value: Value| {
        let mut body = sent_calls("s", &[]);
        body[name] = value;
        body
    };
    let usage = |counts: Value| with("usage", counts);
    let part = |part: Value| with("output", json!([said("assistant", &part)]));
    let cases = [
        (json!({}), "source", "missing"),
        (top("more", 1.into()), "more", "extra_forbidden"),
        (top("source", 1.into()), "source", "model_attributes_type"),
        (
            top("source", json!({ "kind": "gateway", "agent": "a" })),
            "source.kind",
            "enum",
        ),
        (
            top("source", json!({ "kind": "sdk", "agent": "A" })),
            "source.agent",
            "value_error",
        ),
        (
            top("source", json!({ "kind": "sdk" })),
            "source.agent",
            "missing",
        ),
        (
            top("continues", json!({ "session_id": " s " })),
            "continues.session_id",
            "value_error",
        ),
        (
            top("continues", json!({})),
            "continues.session_id",
            "missing",
        ),
        (
            top("reader", json!({ "lines": -1 })),
            "reader.lines",
            "greater_than_equal",
        ),
        (top("calls", json!({})), "calls", "list_type"),
        (
            top("calls", json!(vec![1; SENT_CALLS_MAX + 1])),
            "calls",
            "too_long",
        ),
        (without_id, "calls.0", "value_error"),
        (
            with("ended_at", "soon".into()),
            "calls.0.ended_at",
            "datetime_parsing",
        ),
        (
            with("ended_at", Value::Null),
            "calls.0.ended_at",
            "datetime_type",
        ),
        (
            with("request_id", " ".into()),
            "calls.0.request_id",
            "value_error",
        ),
        (
            with("cost_usd_micros", json!(-1)),
            "calls.0.cost_usd_micros",
            "greater_than_equal",
        ),
        (
            with("cost_usd_micros", json!(1.5)),
            "calls.0.cost_usd_micros",
            "int_type",
        ),
        (
            with("tier", "x".repeat(65).into()),
            "calls.0.tier",
            "value_error",
        ),
        (
            with("cwd", "x".repeat(4_097).into()),
            "calls.0.cwd",
            "value_error",
        ),
        (
            with("input", json!({ "messages": null })),
            "calls.0.input.messages",
            "list_type",
        ),
        (
            with("input", json!({ "after": "", "messages": [] })),
            "calls.0.input.after",
            "value_error",
        ),
        (
            with("input", input(json!({ "role": " ", "parts": [] }))),
            "calls.0.input.messages.0.role",
            "value_error",
        ),
        (
            with(
                "input",
                input(json!({ "role": "user", "parts": [], "name": "x" })),
            ),
            "calls.0.input.messages.0.name",
            "extra_forbidden",
        ),
        (
            with("input", input(said("user", &json!({ "type": "image" })))),
            "calls.0.input.messages.0.parts.0.type",
            "enum",
        ),
        (with("output", Value::Null), "calls.0.output", "list_type"),
        (
            part(json!({ "type": "text", "content": 5 })),
            "calls.0.output.0.parts.0.content",
            "string_type",
        ),
        (
            part(json!({ "type": "text", "content": "x", "more": 1 })),
            "calls.0.output.0.parts.0.more",
            "extra_forbidden",
        ),
        (
            part(json!({ "type": "reasoning", "content": " " })),
            "calls.0.output.0.parts.0.content",
            "value_error",
        ),
        (
            part(json!({ "type": "tool_call", "id": "", "name": "x", "arguments": {} })),
            "calls.0.output.0.parts.0.id",
            "value_error",
        ),
        (
            part(json!({ "type": "tool_call", "id": "c", "name": "x", "arguments": "{}" })),
            "calls.0.output.0.parts.0.arguments",
            "dict_type",
        ),
        (
            part(json!({ "type": "tool_call_response", "id": "c" })),
            "calls.0.output.0.parts.0.result",
            "missing",
        ),
        (
            usage(json!({ "output_tokens": 1, "reasoning_tokens": 2 })),
            "calls.0.usage.reasoning_tokens",
            "value_error",
        ),
        (
            usage(json!({ "cache_write_5m_tokens": 2 })),
            "calls.0.usage.cache_write_1h_tokens",
            "value_error",
        ),
        (
            usage(
                json!({ "cache_write_tokens": 4, "cache_write_5m_tokens": 2, "cache_write_1h_tokens": 1 }),
            ),
            "calls.0.usage.cache_write_tokens",
            "value_error",
        ),
        (
            usage(json!({ "tokens": 2 })),
            "calls.0.usage.tokens",
            "extra_forbidden",
        ),
        (
            with("left_out", json!({ "images": 1 })),
            "calls.0.left_out.images",
            "extra_forbidden",
        ),
    ];
    for (body, path, kind) in cases {
        let reply = send(&server, &body);
        assert_eq!(reply.status, 422, "{path}: {}", reply.text());
        let detail = Json::parse(&reply.body).expect("JSON");
        let violations = dig(&detail, "detail")
            .and_then(Json::as_array)
            .expect("a list");
        let wanted = json!({ "$subset": { "type": kind, "loc": place(path) } });
        let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
        let is_named = violations
            .iter()
            .any(|found| matches(&wanted, found, "$").is_ok());
        assert!(is_named, "{path} {kind}: {}", reply.text());
    }
    // Two breaks, both named.
    let mut both = with("ended_at", Value::Null);
    both["calls"][0]["input"] = input(said("", &text("x")));
    let reply = send(&server, &both);
    let detail = Json::parse(&reply.body).expect("JSON");
    assert_eq!(
        dig(&detail, "detail")
            .and_then(Json::as_array)
            .map(<[_]>::len),
        Some(2)
    );
    let facts = server.read_json("/v1/facts");
    check(
        &json!(0),
        dig(&facts, "tables.inference_calls.total").expect("a count"),
    );
    let large = vec![b' '; BODY_BYTES_MAX + 1];
    let request = Request {
        method: "POST".into(),
        path: PATH.into(),
        body: Some(large),
        ..Request::default()
    };
    assert_eq!(server.send(&request.bearer(INGEST_TOKEN)).status, 413);
    let malformed = server.send(&Request::post(PATH, "{".to_owned()).bearer(INGEST_TOKEN));
    assert_eq!(
        malformed.status, 422,
        "as every route of a service's own deliveries"
    );
    let empty = send(&server, &sent_calls("s", &[]));
    assert_eq!(empty.status, 200, "{}", empty.text());
    let operator = Request::post(PATH, sent_calls("s", &first_two_calls()).to_string());
    assert_eq!(server.send(&operator.bearer(OPERATOR_TOKEN)).status, 200);
}
