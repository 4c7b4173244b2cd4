//! What requests cost in memory: bodies that are made to cost a lot, alone and several at once, on
//! a server that has little.

use std::fs;
use std::io::Write as _;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::http::Request;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use svc_model::limit::{BODY_BYTES_MAX, LOG_RECORDS_MAX};

const MIB: usize = 1024 * 1024;

/// The server's address space.
const ADDRESS_SPACE_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// What the largest request may take, and what several may take together, besides the server
/// itself.
const ONE_REQUEST_BYTES: usize = 300 * MIB;
const ALL_REQUESTS_BYTES: usize = 1024 * MIB;
/// What large bodies may leave once they are answered, including what the store caches of its
/// database.
const LEFT_BYTES: usize = 250 * MIB;
/// How often several large bodies arrive at once.
const ROUNDS: usize = 3;
/// The bodies that are sent at once: those that cost the most.
const AT_ONCE: [&str; 8] = [
    "a content list",
    "tool calls",
    "a result of lists",
    "a document inside of a text",
    "a text that is escaped",
    "decisions",
    "a map in protobuf",
    "a list in protobuf",
];

on_both_backends! {
    no_body_needs_more_memory_than_a_request_may_use,
    many_concurrent_bodies_need_no_more_memory_than_the_service_may_use,
    repeated_large_bodies_leave_no_memory_behind,
}

/// Starts a server with little address space. A process that asks for more aborts.
fn start(backend: Backend) -> Option<Server> {
    let server = Server::start(backend, &Configuration::default())?;
    let id = i32::try_from(server.process_id()).expect("a process id");
    let limit = Rlimit {
        current: Some(ADDRESS_SPACE_BYTES),
        maximum: Some(ADDRESS_SPACE_BYTES),
    };
    prlimit(Pid::from_raw(id), Resource::As, limit).expect("the limit is set");
    Some(server)
}

/// Returns the server's memory in bytes: `VmRSS` is the current and `VmHWM` the maximum value.
fn resident(server: &Server, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id()));
    let status = status.expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.strip_prefix(':')?.trim().strip_suffix(" kB"));
    let kilobytes: Option<usize> = kilobytes.and_then(|kilobytes| kilobytes.parse().ok());
    kilobytes.expect("a number") * 1024
}

/// Returns the server's memory, and resets the maximum to it. Freed memory that the allocator keeps
/// is included.
fn mark(server: &Server) -> usize {
    let path = format!("/proc/{}/clear_refs", server.process_id());
    fs::write(path, "5").expect("the mark is reset");
    resident(server, "VmRSS")
}

/// Returns the maximum memory of the server since the mark.
fn peak(server: &Server) -> usize {
    resident(server, "VmHWM")
}

/// Returns a text with as many copies of `item` as a body has room for, between two others.
fn filled(before: &str, item: &str, after: &str) -> Vec<u8> {
    let room = BODY_BYTES_MAX - before.len() - after.len();
    let count = room / item.len();
    let items = item.repeat(count);
    let items = items.strip_suffix(',').unwrap_or(&items);
    [before, items, after].concat().into_bytes()
}

fn json(path: &str, body: Vec<u8>) -> Request {
    Request::post(path, body).bearer(INGEST_TOKEN)
}

fn gzip(request: Request) -> Request {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let body = request.body.as_deref().unwrap_or_default();
    encoder.write_all(body).expect("memory");
    Request {
        body: Some(encoder.finish().expect("memory")),
        ..request
    }
    .header("content-encoding", "gzip")
}

/// Returns a message of one field that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = Vec::new();
    let mut rest = bytes.len();
    while rest > 127 {
        length.push(u8::try_from(rest & 127).expect("seven bits") | 128);
        rest >>= 7;
    }
    length.push(u8::try_from(rest).expect("seven bits"));
    [&[number << 3 | 2], length.as_slice(), bytes].concat()
}

/// Returns an export in protobuf of scopes with these records.
fn protobuf(records: &[u8]) -> Request {
    Request {
        method: "POST".into(),
        path: "/v1/logs".into(),
        body: Some(field(1, &field(2, records))),
        ..Request::default()
    }
    .header("content-type", "application/x-protobuf")
    .bearer(INGEST_TOKEN)
}

/// Returns one attribute of one record, as often as a body has room for.
fn record_of(attribute: &[u8]) -> Vec<u8> {
    let attribute = field(6, attribute);
    field(
        2,
        &attribute.repeat((BODY_BYTES_MAX - 64) / attribute.len()),
    )
}

/// Returns bodies that become much larger than they are, with what they are made of.
fn hostile() -> Vec<(String, Request)> {
    let mut bodies = Vec::new();
    let mut add = |name: &str, request: Request| bodies.push((name.to_owned(), request));
    let call = |before: &str, item: &str, after: &str| {
        let before = format!(
            r#"{{"provider":"gateway_a","session_id":"s","payload":{{"litellm_call_id":"{}","messages":[{before}"#,
            item.len() + before.len()
        );
        json(
            "/ingest/gateway",
            filled(&before, item, &format!("{after}]}}}}")),
        )
    };
    for item in [
        "[],",
        "{},",
        "0,",
        "\"\",",
        "[0],",
        r#"{"":0},"#,
        "[[[[]]]],",
        r#"{"role":"u"},"#,
    ] {
        add(item, call("", item, ""));
    }
    let deep = format!("{}{},", "[".repeat(500), "]".repeat(500));
    add("nested arrays", call("", &deep, ""));
    add(
        "a content list",
        call(r#"{"role":"user","content":["#, "\"\",", "]}"),
    );
    let block = r#"{"type":"text","text":""},"#;
    add(
        "content blocks",
        call(r#"{"role":"user","content":["#, block, "]}"),
    );
    let used = r#"{"type":"tool_use","id":"t"},"#;
    add(
        "tool calls",
        call(r#"{"role":"assistant","content":["#, used, "]}"),
    );
    let summary = r#"{"text":"x"},"#;
    add(
        "summaries",
        call(r#"{"type":"reasoning","summary":["#, summary, "]}"),
    );
    let result = r#"{"role":"tool","tool_call_id":"t","content":"#;
    add(
        "a result of lists",
        call(&format!("{result}["), "[],", "]}"),
    );
    add(
        "a document inside of a text",
        call(&format!("{result}\"["), "[],", "0]\"}"),
    );
    let small = format!(
        r#"{{"role":"tool","tool_call_id":"t","content":"[{}0]"}},"#,
        "[],".repeat(1_000)
    );
    add("documents inside of texts", call("", &small, ""));
    add(
        "a plain text",
        call(r#"{"role":"user","content":""#, "plain text ", "\"}"),
    );
    add(
        "a text that is escaped",
        call(r#"{"role":"user","content":""#, "\u{7f}", "\"}"),
    );
    add("a number", call("1.", "1", ""));
    let unknown: Vec<String> = (0..2_000_000).map(|n| format!(r#""{n}":0"#)).collect();
    add(
        "unknown members",
        json(
            "/ingest/gateway",
            format!("{{{}}}", unknown.join(",")).into_bytes(),
        ),
    );
    add(
        "duplicate members",
        json("/ingest/ci", filled("{", r#""a":0,"#, "}")),
    );
    add(
        "payloads",
        json("/ingest/gateway/litellm", filled("[", "{},", "]")),
    );
    add(
        "lines",
        json("/ingest/gateway/litellm", filled("", "{}\n", "")),
    );

    let scope = |before: &str, item: &str, after: &str| {
        let before = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{before}"#);
        json(
            "/v1/logs",
            filled(&before, item, &format!("{after}]}}]}}]}}")),
        )
    };
    add("empty records", scope("", "{},", ""));
    add("records of nothing", gzip(scope("", "0,", "")));
    add("attributes", gzip(scope(r#"{"attributes":["#, "{},", "]}")));
    let decided = r#"{"timeUnixNano":"1783454255424000000","body":{"stringValue":"svc.tool_decision"},
        "attributes":[{"key":"agent","value":{"stringValue":"pi"}},{"key":"session.id","value":{"stringValue":"s"}},
        {"key":"tool_use_id","value":{"stringValue":"t"}},{"key":"decision","value":{"stringValue":"accept"}},
        {"key":"explicit","value":{"boolValue":true}}]},"#;
    add("decisions", scope("", decided, ""));

    let empty = field(2, b"");
    add(
        "empty records in protobuf",
        gzip(protobuf(&empty.repeat(BODY_BYTES_MAX / 2 - 16))),
    );
    add(
        "the most records in protobuf",
        protobuf(&empty.repeat(LOG_RECORDS_MAX)),
    );
    add(
        "empty attributes in protobuf",
        gzip(protobuf(&record_of(b""))),
    );
    let entries = field(2, &field(6, &field(1, b"").repeat(BODY_BYTES_MAX / 2 - 32)));
    add(
        "a map in protobuf",
        gzip(protobuf(&field(2, &field(6, &entries)))),
    );
    let values = field(2, &field(5, &field(1, b"").repeat(BODY_BYTES_MAX / 2 - 32)));
    add(
        "a list in protobuf",
        gzip(protobuf(&field(2, &field(6, &values)))),
    );
    let nested = (0..40).fold(Vec::new(), |inside, _| field(5, &field(1, &inside)));
    add(
        "nested lists in protobuf",
        gzip(protobuf(&record_of(&field(2, &nested)))),
    );
    add("a bomb", gzip(json("/v1/logs", vec![b' '; 200 * MIB])));
    bodies
}

fn no_body_needs_more_memory_than_a_request_may_use(backend: Backend) {
    let Some(mut server) = start(backend) else {
        return;
    };
    let mut dear = Vec::new();
    for (name, request) in hostile() {
        let before = mark(&server);
        let reply = server.send(&request);
        let refused = matches!(reply.status, 400 | 413 | 422);
        assert!(
            reply.status == 200 || refused,
            "{name}: {} {}",
            reply.status,
            reply.text()
        );
        assert!(reply.body.len() < MIB, "{name}: a short answer");
        assert!(server.is_running(), "{name}");
        let taken = peak(&server).saturating_sub(before);
        if taken > ONE_REQUEST_BYTES {
            dear.push(format!("{name}: {} MiB, {}", taken / MIB, reply.status));
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
    assert_eq!(server.send(&Request::get("/health")).status, 200);
}

fn many_concurrent_bodies_need_no_more_memory_than_the_service_may_use(backend: Backend) {
    let Some(mut server) = start(backend) else {
        return;
    };
    let mut bodies = hostile();
    bodies.retain(|(name, _)| AT_ONCE.contains(&name.as_str()));
    assert_eq!(bodies.len(), AT_ONCE.len());
    thread::scope(|scope| {
        for (name, request) in &bodies {
            let server = &server;
            scope.spawn(move || {
                // A slow machine may leave a sender without an answer for too long, but the cost is
                // the same.
                let Ok(reply) = server.try_send(request) else {
                    return;
                };
                let expected = matches!(reply.status, 200 | 413 | 503);
                assert!(expected, "{name}: {} {}", reply.status, reply.text());
            });
        }
    });
    let taken = peak(&server);
    assert!(taken < ALL_REQUESTS_BYTES, "{} MiB", taken / MIB);
    assert!(server.is_running());
    assert_eq!(server.send(&Request::get("/health")).status, 200);
}

fn repeated_large_bodies_leave_no_memory_behind(backend: Backend) {
    let Some(server) = start(backend) else {
        return;
    };
    let text = "é".repeat((BODY_BYTES_MAX - 1_024) / 2);
    let send = |round: usize, number: usize| {
        let body = format!(
            r#"{{"litellm_call_id":"{round}-{number}","metadata":{{"session_id":"s{number}"}},
            "messages":[{{"role":"user","content":"{text}"}}]}}"#
        );
        server.try_send(&json("/ingest/gateway/litellm", body.into_bytes()))
    };
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            for number in 0..AT_ONCE.len() {
                scope.spawn(move || {
                    // A slow machine may leave a sender without an answer for too long.
                    if let Ok(reply) = send(round, number) {
                        assert!(matches!(reply.status, 200 | 503), "{}", reply.text());
                    }
                });
            }
        });
        let taken = peak(&server);
        assert!(taken < ALL_REQUESTS_BYTES, "{round}: {} MiB", taken / MIB);
    }
    let left = resident(&server, "VmRSS");
    assert!(left < LEFT_BYTES, "{} MiB", left / MIB);
}
