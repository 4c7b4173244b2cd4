//! `POST /v1/logs` as exporters use it: both encodings, plain and gzip, and answers that tell
//! exporters whether to send again.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::delivery::{LOGGED_AT, allowed_edit, log_record, logs};
use harness::http::{Framing, Reply, Request};
use harness::pattern::{dig, matches};
use harness::random::Random;
use harness::server::{Backend, Configuration, INGEST_TOKEN, RETRIEVAL_TOKEN, Server};
use serde_json::{Value, json};
use svc_engine::testing::otlp;
use svc_model::json::{Json, Number};
use svc_model::limit::BODY_BYTES_MAX;

const PROTOBUF: &str = "application/x-protobuf";

on_both_backends! {
    an_allowed_edit_becomes_a_decision,
    both_encodings_give_equal_answers,
    a_repeated_export_stores_nothing_more,
    a_protobuf_sender_is_answered_in_protobuf,
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn exact(value: &Value) -> Json {
    Json::parse(value.to_string().as_bytes()).expect("JSON")
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

/// Returns an export in JSON, without a credential.
fn in_json(body: impl Into<Vec<u8>>) -> Request {
    Request::post("/v1/logs", body)
}

/// Returns an export in protobuf, without a credential.
fn in_protobuf(body: impl Into<Vec<u8>>) -> Request {
    Request {
        method: "POST".into(),
        path: "/v1/logs".into(),
        body: Some(body.into()),
        ..Request::default()
    }
    .header("content-type", PROTOBUF)
}

fn deliver(server: &Server, request: Request) -> Reply {
    server.send(&request.bearer(INGEST_TOKEN))
}

fn stored(server: &Server, request: Request) {
    let reply = deliver(server, request);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn evidence(server: &Server, session: &str) -> Json {
    server.read_json(&format!(
        "/v1/facts/session/{session}/compatibility-evidence"
    ))
}

fn total(server: &Server, table: &str) -> i64 {
    let counts = server.read_json("/v1/facts");
    let total = dig(&counts, &format!("tables.{table}.total")).and_then(Json::as_number);
    total.and_then(Number::as_i64).expect("a count")
}

fn an_allowed_edit_becomes_a_decision(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let reply = deliver(
        &server,
        in_json(logs(&allowed_edit("s-1", "tu1")).to_string()),
    );
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let wanted = json!({
        "session_id": "s-1",
        "inference_calls": [],
        "developer_decisions": [{
            "agent_harness": "claude-code",
            "accepted": true,
            "explicit": true,
            "interaction_mode": "agent",
            "call_id": "tu1",
        }],
        "edit_observations": [],
    });
    matches(&exact(&wanted), &evidence(&server, "s-1"), "evidence").expect("the decision");
}

/// Returns exports of every kind of event, of a few Sessions, at different times.
fn exports() -> Vec<Value> {
    let mut random = Random::new(2_026);
    (0..12)
        .map(|export: u64| {
            let records: Vec<Value> = (0..8)
                .flat_map(|number: u64| {
                    let time = LOGGED_AT + (export * 8 + number) * 1_000_123;
                    records(&mut random, export * 8 + number)
                        .into_iter()
                        .map(move |mut record| {
                            record["timeUnixNano"] = json!(time.to_string());
                            record
                        })
                })
                .collect();
            logs(&records)
        })
        .collect()
}

/// Returns the records of one event, complete or with an attribute missing.
fn records(random: &mut Random, number: u64) -> Vec<Value> {
    let session = format!("s-{}", random.below(3));
    let call = format!("call-{}", number / 2);
    let mut own = json!({
        "agent": random.one_of(&["pi", "cursor", "claude-code", "vim"]),
        "session.id": session,
        "tool_use_id": call,
        "file_path": "src/\u{e9}.rs",
    });
    let add = |own: &mut Value, name: &str, value: Value| {
        own[name] = value;
    };
    let mut records = match random.below(5) {
        0 => return allowed_edit(&session, &call).into(),
        1 => {
            add(
                &mut own,
                "decision",
                json!(random.one_of(&["accept", "reject", "maybe"])),
            );
            add(&mut own, "explicit", json!(random.below(2) == 0));
            vec![log_record("svc.tool_decision", &own)]
        }
        2 => {
            add(&mut own, "applied_text", json!("fn main() {}\u{0}"));
            add(&mut own, "observed_file_text", json!(""));
            add(&mut own, "external_lines_added", json!(random.below(9)));
            vec![log_record("svc.edit_observation", &own)]
        }
        3 => {
            add(&mut own, "proposed", json!("sk-abcdefghijklmnopqrst"));
            vec![log_record("svc.rejected_edit", &own)]
        }
        _ => {
            let decision = json!({
                "event.name": "codex.tool_decision",
                "conversation.id": session,
                "decision": random.one_of(&["approved", "denied"]),
                "source": "User",
                "tool_name": "apply_patch",
                "call_id": call,
            });
            let result = json!({
                "event.name": "codex.tool_result",
                "call_id": call,
                "arguments": "*** Update File: a.rs\n*** Move to: b.rs\n",
            });
            vec![log_record("x", &decision), log_record("x", &result)]
        }
    };
    if random.below(4) == 0 {
        let attributes = records[0]["attributes"].as_array_mut().expect("a list");
        let at = random.below(attributes.len());
        attributes.remove(at);
    }
    records
}

/// The same export gives the same answers in both encodings.
fn both_encodings_give_equal_answers(backend: Backend) {
    let (Some(plain), Some(packed)) = (start(backend), start(backend)) else {
        return;
    };
    for export in exports() {
        stored(&plain, in_json(export.to_string()));
        let message = gzip(&otlp::protobuf(&exact(&export)));
        stored(
            &packed,
            in_protobuf(message).header("content-encoding", "gzip"),
        );
    }
    assert!(total(&plain, "developer_decisions") > 20);
    for table in ["edit_observations", "rejected_edits"] {
        assert!(total(&plain, table) > 3, "{table}");
    }
    let reads = ["/v1/facts".to_owned()]
        .into_iter()
        .chain((0..3).flat_map(|session| {
            ["", "/compatibility-evidence"]
                .map(|rest| format!("/v1/facts/session/s-{session}{rest}"))
        }));
    for read in reads {
        assert_eq!(
            plain.read(&read).text(),
            packed.read(&read).text(),
            "{read}"
        );
    }
    let skipped = |server: &Server| {
        let counts = server.read_json("/v1/capture");
        dig(&counts, "sources.logs.skipped")
            .expect("counts")
            .to_canonical()
    };
    assert_eq!(skipped(&plain), skipped(&packed));
}

fn a_repeated_export_stores_nothing_more(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let exports = exports();
    for export in &exports {
        stored(&server, in_json(export.to_string()));
    }
    let before = server.read("/v1/facts").body;
    for export in &exports {
        stored(&server, in_json(export.to_string()));
    }
    assert_eq!(server.read("/v1/facts").body, before);

    // Cursor's hook knows only when it received the write, which differs with every repetition.
    let mut write = log_record(
        "svc.tool_decision",
        &json!({
            "agent": "cursor",
            "session.id": "c",
            "tool_use_id": "w",
            "file_path": "a.py",
            "decision": "accept",
            "explicit": false,
            "tool_name": "Write",
        }),
    );
    for later in 0..3 {
        write["timeUnixNano"] = json!((LOGGED_AT + later * 1_000_000).to_string());
        stored(
            &server,
            in_json(logs(&[write.clone(), write.clone()]).to_string()),
        );
    }
    let evidence = evidence(&server, "c");
    let decisions = dig(&evidence, "developer_decisions").and_then(Json::as_array);
    assert_eq!(decisions.map(<[Json]>::len), Some(1));
}

/// Returns `google.rpc.Status` with a short message.
fn status(message: &str) -> Vec<u8> {
    let length = u8::try_from(message.len()).expect("a short message");
    [&[0x12, length], message.as_bytes()].concat()
}

fn a_protobuf_sender_is_answered_in_protobuf(backend: Backend) {
    let configuration = Configuration::granting_one("s");
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    let export = || otlp::protobuf(&exact(&logs(&allowed_edit("s-1", "tu1"))));
    let check = |request: Request, wanted: u16, body: Vec<u8>| {
        let reply = server.send(&request);
        assert_eq!(reply.status, wanted, "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some(PROTOBUF));
        assert_eq!(reply.body, body, "{}", reply.text());
        reply
    };
    let known = |body: Vec<u8>| in_protobuf(body).bearer(INGEST_TOKEN);
    let reply = check(known(export()), 200, Vec::new());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    check(known(Vec::new()), 200, Vec::new());
    assert_eq!(total(&server, "developer_decisions"), 1);

    let reply = check(in_protobuf(export()), 401, status("Invalid token"));
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    let retrieval = in_protobuf(export()).bearer(RETRIEVAL_TOKEN);
    check(retrieval, 403, status("Ingest authority required"));
    for broken in [
        b"{}".to_vec(),
        export()[1..].to_vec(),
        b"\x1f\x8b\x08".to_vec(),
    ] {
        check(known(broken), 400, status("Malformed protobuf body"));
    }
    let large = known(vec![0; BODY_BYTES_MAX + 1]);
    check(large, 413, status("request body too large"));
    // JSON is read according to its content type, and answered in the same form.
    let request = known(export()).header("content-type", "application/json");
    assert!(server.try_send(&request).is_ok());
    let request = in_json(logs(&allowed_edit("s-1", "tu2")).to_string()).bearer(INGEST_TOKEN);
    assert_eq!(server.send(&request).text(), "{}");
}

#[test]
fn a_body_may_be_gzip_in_several_members_and_any_framing() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let body = logs(&allowed_edit("s-1", "tu1")).to_string();
    let (head, tail) = body.as_bytes().split_at(body.len() / 2);
    let members = [gzip(head), gzip(tail)].concat();
    for (number, encoding) in ["gzip", "GZIP", "x-gzip", "identity, gzip"]
        .iter()
        .enumerate()
    {
        for framing in [Framing::Sized, Framing::Chunked] {
            let mut request = in_json(members.clone()).header("content-encoding", *encoding);
            request.framing = framing;
            stored(&server, request);
        }
        assert_eq!(total(&server, "developer_decisions"), 1, "{number}");
    }
    stored(
        &server,
        in_json(body.clone()).header("content-encoding", "identity"),
    );
}

#[test]
fn a_decompression_bomb_is_413_for_senders_and_only_counted_for_others() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    // A hundred members, each exactly as large as the cap: 2.5 GiB in 2.5 MB.
    let bomb = gzip(&vec![b' '; BODY_BYTES_MAX]).repeat(100);
    assert!(bomb.len() < BODY_BYTES_MAX / 2);
    for framing in [Framing::Sized, Framing::Chunked] {
        for request in [in_json(bomb.clone()), in_protobuf(bomb.clone())] {
            let mut request = request.header("content-encoding", "gzip");
            request.framing = framing;
            assert_eq!(server.send(&request).status, 401);
            let reply = deliver(&server, request);
            assert_eq!(reply.status, 413, "{}", reply.text());
        }
    }
    // A body that is exactly as large as the cap is read.
    let export = logs(&allowed_edit("s-1", "tu1")).to_string().into_bytes();
    let mut body = vec![b' '; BODY_BYTES_MAX - export.len()];
    body.extend_from_slice(&export);
    stored(
        &server,
        in_json(gzip(&body)).header("content-encoding", "gzip"),
    );
    assert_eq!(total(&server, "developer_decisions"), 1);
    body.push(b' ');
    let over = in_json(gzip(&body)).header("content-encoding", "gzip");
    assert_eq!(deliver(&server, over).status, 413);
}

#[test]
fn an_operator_sees_why_records_were_not_stored() {
    let server = start(Backend::Sqlite).expect("SQLite is never skipped");
    let [decision, result] = allowed_edit("s-1", "tu1");
    let shell = json!({"session.id": "s", "decision": "accept", "tool_name": "Bash"});
    let lost = json!({"agent": "pi", "secret-attribute": "secret-value"});
    let records = [
        decision,
        result,
        log_record("claude_code.tool_decision", &shell),
        log_record("svc.rejected_edit", &lost),
        log_record("svc.retry_linkage", &lost),
        json!("secret-record"),
    ];
    for _ in 0..2 {
        stored(&server, in_json(logs(&records).to_string()));
    }
    let counts = server.read_json("/v1/capture");
    let wanted = json!({"received": 12, "translated": 2, "untranslated": 8, "malformed": 2, "malformed_containers": 0});
    let found = dig(&counts, "log_records").expect("counts");
    matches(&exact(&wanted), found, "log_records").expect("the counts");
    let wanted = json!({"$subset": {
        "deliveries": 2,
        "facts": {"developer_decisions": {"stored": 1, "duplicates": 1}},
        "skipped": {"not_an_edit_tool": 2, "missing_session": 4},
    }});
    let found = dig(&counts, "sources.logs").expect("counts");
    matches(&exact(&wanted), found, "sources.logs").expect("the counts");
    let log = server.log();
    assert!(
        log.contains("otlp.records_skipped") && log.contains("svc.rejected_edit:missing_session=1"),
        "{log}"
    );
    assert!(!log.contains("secret"), "{log}");
}
