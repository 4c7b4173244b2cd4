//! What a real LiteLLM proxy sends through its built-in webhook logger, in each of its formats.
//!
//! `fixtures/litellm` contains two recorded deliveries. Of the four payloads in the array, three
//! name a Session: two in the requester's metadata, and one in the suffix of the end user.

use std::fs;
use std::path::Path;

use harness::delivery::Call;
use harness::http::{Framing, Reply, Request};
use harness::pattern::{dig, matches, shown};
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;

/// The Session of three of the recorded calls.
const SESSION: &str = "f3d44f28-df57-4c22-b838-d0fd86c323b7";
/// By the kind of gateway, and by its product name.
const PATHS: [&str; 2] = ["/ingest/gateway/gateway_a", "/ingest/gateway/litellm"];

on_both_backends! {
    a_recorded_array_is_stored_and_its_repetition_is_all_duplicates,
    recorded_lines_are_stored_like_an_array,
    a_single_payload_is_stored_under_either_name_of_the_gateway,
    recorded_calls_are_read_back_exactly,
    an_invalid_payload_does_not_fail_the_rest_of_its_batch,
    a_recorded_call_is_dated_by_its_end,
    a_redelivery_that_differs_is_logged_and_changes_nothing,
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/litellm")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn array() -> Vec<u8> {
    fixture("generic_api_json_array.json")
}

fn payloads() -> Vec<Value> {
    serde_json::from_slice(&array()).expect("a list of payloads")
}

fn lines() -> Vec<u8> {
    fixture("generic_api_ndjson_correlation_off.ndjson")
}

/// Asserts that the answer to a batch has these counts.
fn counts(reply: &Reply, wanted: &Value) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
    matches(&wanted, &reply.json(), "$").unwrap_or_else(|reason| {
        panic!("{reason}: {}", reply.text());
    });
}

#[test]
fn recorded_payloads_satisfy_the_published_schema() {
    let schema = include_str!("../../schemas/GatewayPayload.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let lines = lines();
    let lines = lines.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).expect("a payload"));
    let recorded: Vec<Value> = payloads().into_iter().chain(lines).collect();
    assert_eq!(recorded.len(), 8);
    for payload in recorded {
        let errors: Vec<_> = validator
            .iter_errors(&payload)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new());
    }
}

#[test]
fn every_date_form_of_the_published_schema_is_accepted() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let schema = include_str!("../../schemas/GatewayIngestRequest.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (number, observed_at) in [
        json!("2026-01-02T05:04:05+02:00"),
        json!(1_767_323_045),
        json!(1_767_323_045.5),
        json!("1767323045000"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("00000000-0000-4000-8000-00000000000{number}");
        let envelope = json!({
            "provider": "gateway_a", "session_id": "dated",
            "payload": {"litellm_call_id": format!("dated-{number}")},
            "capture": {"id": id, "observed_at": observed_at},
        });
        assert!(validator.is_valid(&envelope), "{envelope}");
        let reply = server.deliver("/ingest/gateway", envelope.to_string());
        assert_eq!(reply.status, 200, "{envelope}: {}", reply.text());
    }
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn calls_of(server: &Server, session: &str) -> Vec<Json> {
    let path = format!("/v1/facts/session/{session}/inference-calls");
    let calls = dig(&server.read_json(&path), "inference_calls").cloned();
    calls.and_then(Json::into_array).expect("a list of calls")
}

fn a_redelivery_that_differs_is_logged_and_changes_nothing(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let first = Call::new("one", "call");
    let logged = || server.log().matches("redelivery.differs").count();
    for _ in 0..2 {
        let reply = server.deliver("/ingest/gateway", first.body());
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(logged(), 0, "{}", server.log());
    }
    let other = Call::new("two", "call").messages(vec![json!({"role": "user", "content": "x"})]);
    let reply = server.deliver("/ingest/gateway", other.body());
    assert_eq!(reply.status, 409, "{}", reply.text());
    assert_eq!(logged(), 1, "{}", server.log());
    let log = server.log();
    assert!(log.contains("session_id,content"), "{log}");
    assert!(log.contains("inference_calls"), "{log}");
    let same = Call::new("one", "call").messages(vec![json!({"role": "user", "content": "x"})]);
    let reply = server.deliver("/ingest/gateway?compare=true", same.body());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(
        dig(&reply.json(), "differs"),
        Some(&Json::from(vec!["content".into()]))
    );
    let again = server.deliver("/ingest/gateway?compare=true", first.body());
    assert_eq!(dig(&again.json(), "differs"), None);
    let path = "/query/session/two";
    assert_eq!(
        dig(&server.read_json(path), "found"),
        Some(&Json::from(false))
    );
}

fn a_recorded_array_is_stored_and_its_repetition_is_all_duplicates(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let skipped = json!({"no_session": 1});
    let first = server.deliver(PATHS[0], array());
    counts(
        &first,
        &json!({"stored": 3, "duplicates": 0, "skipped": skipped, "rejected": {}}),
    );
    let again = server.deliver(PATHS[1], array());
    counts(
        &again,
        &json!({"stored": 0, "duplicates": 3, "skipped": skipped, "rejected": {}}),
    );
    assert_eq!(calls_of(&server, SESSION).len(), 3);
}

fn a_recorded_call_is_dated_by_its_end(backend: Backend) {
    let Some(server) = start(backend) else { return };
    server.deliver(PATHS[1], array());
    let inventory = server.read_json(&format!("/query/evidence?session_id={SESSION}"));
    let calls = dig(&inventory, "calls")
        .and_then(Json::as_array)
        .expect("calls");
    let observed: Vec<&str> = calls
        .iter()
        .filter_map(|call| dig(call, "observed_at")?.as_str())
        .collect();
    let mut ends: Vec<String> = payloads()[..3]
        .iter()
        .map(|payload| {
            let time = payload["endTime"].to_string();
            let (seconds, fraction) = time.split_once('.').expect("a fraction");
            let microseconds = format!("{seconds}{fraction:0<6}")
                .parse()
                .expect("a number");
            let end = jiff::Timestamp::from_microsecond(microseconds);
            format!("{:.6}", end.expect("in range"))
        })
        .collect();
    ends.sort();
    assert_eq!(observed, ends);
}

fn recorded_lines_are_stored_like_an_array(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let skipped = json!({"no_session": 3});
    let mut request = Request::post(PATHS[1], lines()).bearer(INGEST_TOKEN);
    request.framing = Framing::Chunked;
    let first = server.send(&request);
    counts(
        &first,
        &json!({"stored": 1, "duplicates": 0, "skipped": skipped, "rejected": {}}),
    );
    // The same payloads as an array, and with carriage returns and blank lines.
    let text = String::from_utf8(lines()).expect("text");
    let array = format!("[{}]", text.trim().replace('\n', ","));
    let again = server.deliver(PATHS[0], array);
    counts(
        &again,
        &json!({"stored": 0, "duplicates": 1, "skipped": skipped, "rejected": {}}),
    );
    let again = server.deliver(
        PATHS[0],
        format!("\r\n{}\r\n\r\n", text.trim().replace('\n', "\r\n\r\n")),
    );
    counts(
        &again,
        &json!({"stored": 0, "duplicates": 1, "skipped": skipped, "rejected": {}}),
    );
    // Lines are lines in every encoding.
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    counts(
        &server.send(&Request::post(PATHS[1], wide).bearer(INGEST_TOKEN)),
        &json!({"stored": 0, "duplicates": 1, "skipped": skipped, "rejected": {}}),
    );
    assert_eq!(
        calls_of(&server, "e96634a3-fa28-4083-b354-55542e2dca01").len(),
        1
    );
}

fn a_single_payload_is_stored_under_either_name_of_the_gateway(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let payloads = payloads();
    for (index, payload) in payloads.iter().enumerate() {
        let reply = server.deliver(PATHS[index % 2], payload.to_string());
        let (stored, skipped) = if index == 3 {
            (0, json!({"no_session": 1}))
        } else {
            (1, json!({}))
        };
        counts(
            &reply,
            &json!({"stored": stored, "duplicates": 0, "skipped": skipped, "rejected": {}}),
        );
    }
    // In an envelope, it is the same call.
    let envelope = json!({"provider": "gateway_a", "payload": payloads[0]});
    let reply = server.deliver("/ingest/gateway", envelope.to_string());
    assert_eq!(
        dig(&reply.json(), "stored"),
        Some(&Json::Bool(false)),
        "{}",
        reply.text()
    );
    for other in ["gateway_b", "gateway_c", "unknown"] {
        let reply = server.deliver(&format!("/ingest/gateway/{other}"), payloads[0].to_string());
        assert_eq!(reply.status, 400, "{other}: {}", reply.text());
    }
    let reply = server.deliver("/ingest/gateway/nobody", payloads[0].to_string());
    assert_eq!(reply.status, 422, "{}", reply.text());
}

fn recorded_calls_are_read_back_exactly(backend: Backend) {
    let Some(server) = start(backend) else { return };
    assert_eq!(server.deliver(PATHS[0], array()).status, 200);
    let calls = calls_of(&server, SESSION);
    let anthropic = "anthropic/claude-sonnet-4-5";
    let answer = "Use a half-open window so pages never overlap.";
    let question = "fix the pager in src/pager.rs";
    for (name, provider, model, tokens, duration, usage, messages) in [
        (
            "23279188-c89f-40fe-8122-d8796501faad",
            json!("anthropic"),
            anthropic,
            [10, 20],
            8,
            json!({"cost_usd_micros": 330}),
            vec![("user", question), ("assistant", answer)],
        ),
        (
            "9a6435b6-6902-414b-a165-222b649c1b79",
            json!("openai"),
            "openai/gpt-5",
            [21, 4],
            // A streamed call lasts from the start to the end, not to the first token.
            17,
            json!({"cost_usd_micros": 66, "reasoning_tokens": 0}),
            vec![
                ("system", "careful"),
                ("user", question),
                ("assistant", "ok from the mock"),
            ],
        ),
        (
            "7d52c23b-fd64-47d1-a384-0a45c628e48a",
            Value::Null,
            anthropic,
            [2095, 503],
            3,
            // The proxy does not know the price: its 0 is no cost.
            json!({"cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0}),
            vec![("user", question), ("assistant", answer)],
        ),
    ] {
        let named = |call: &&Json| dig(call, "model_call_id").and_then(Json::as_str) == Some(name);
        let call = calls
            .iter()
            .find(named)
            .unwrap_or_else(|| panic!("{name} is not listed"));
        let mut wanted = json!({
            "inference_call_id": "$uuid",
            "model_call_id": name,
            "gateway_provider": "gateway_a",
            "model_provider": provider,
            "model": model,
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "duration_ms": duration,
        });
        for (member, value) in usage.as_object().into_iter().flatten() {
            wanted[member] = value.clone();
        }
        let wanted = Json::parse(wanted.to_string().as_bytes()).expect("JSON");
        matches(&wanted, call, "$").unwrap_or_else(|reason| panic!("{reason}: {}", shown(call)));
        let id = dig(call, "inference_call_id")
            .and_then(Json::as_str)
            .expect("an id");
        let messages = messages
            .into_iter()
            .map(|(role, text)| (role.to_owned(), text.to_owned()));
        assert_eq!(
            read_texts(&server, id),
            messages.collect::<Vec<_>>(),
            "{name}"
        );
    }
}

/// Reads every message of a call that consists of one text, as role and text.
fn read_texts(server: &Server, call: &str) -> Vec<(String, String)> {
    let manifest =
        format!("/query/evidence/manifest?session_id={SESSION}&inference_call_id={call}");
    let manifest = server.read_json(&manifest);
    let messages = dig(&manifest, "messages")
        .and_then(Json::as_array)
        .expect("messages");
    let references: Vec<Json> = messages
        .iter()
        .map(|message| dig(message, "parts.0.reference").expect("a part").clone())
        .collect();
    let references = String::from_utf8(Json::Array(references).to_canonical()).expect("ASCII");
    let body =
        format!(r#"{{"schema_version":1,"session_id":"{SESSION}","references":{references}}}"#);
    let read = server.ask("/query/evidence/read", body);
    assert_eq!(read.status, 200, "{}", read.text());
    let read = read.json();
    let items = dig(&read, "items").and_then(Json::as_array).expect("items");
    let text = |item, path| {
        dig(item, path)
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    items
        .iter()
        .map(|item| (text(item, "role"), text(item, "part.content")))
        .collect()
}

fn an_invalid_payload_does_not_fail_the_rest_of_its_batch(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let good = |name: &str| Call::new("batch", name).bare();
    let mut sessionless = Call::new("batch", "sessionless").bare();
    sessionless["metadata"] = json!({});
    let nul = good("nul\u{0}inside");
    let long = good(&"x".repeat(2_000));
    let surrogate = good("surrogate")
        .to_string()
        .replace(r#""surrogate""#, r#""\ud800""#);
    let batch = format!(
        "[{},5,\"text\",null,[],{nul},{long},{surrogate},{sessionless},{},{},true]",
        good("one"),
        good("two"),
        good("one"),
    );
    let wanted = json!({
        "stored": 2,
        "duplicates": 1,
        "skipped": {"no_session": 1},
        "rejected": {"not_an_object": 5, "invalid_payload": 3},
    });
    counts(&server.deliver(PATHS[0], batch), &wanted);
    let lines = format!("{}\n{{\"broken\n7\n{}\nNaN\n", good("three"), good("four"));
    let wanted = json!({
        "stored": 2,
        "duplicates": 0,
        "skipped": {},
        "rejected": {"malformed_json": 1, "not_an_object": 2},
    });
    counts(&server.deliver(PATHS[0], lines), &wanted);
    let mut names: Vec<String> = calls_of(&server, "batch")
        .iter()
        .filter_map(|call| dig(call, "model_call_id")?.as_str().map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, ["four", "one", "three", "two"]);
    counts(
        &server.deliver(PATHS[0], "[]"),
        &json!({"stored": 0, "duplicates": 0, "skipped": {}, "rejected": {}}),
    );
}
