//! Calls from the bodies that Claude Code logs: which request a response belongs to, whatever order
//! they arrive in.

use std::thread;
use std::time::{Duration, Instant};

use harness::delivery::{log_record, logs};
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, INGEST_TOKEN, Server, Store};
use serde_json::{Value, json};

use crate::cli::{done, svc};

on_both_backends! {
    parallel_subagents_are_told_apart,
    a_restart_between_the_halves_loses_nothing,
    a_redelivery_after_the_call_is_stored_changes_nothing,
    two_servers_make_one_call_of_two_halves,
    bodies_that_cannot_be_used_cost_no_other,
    bodies_of_several_mebibytes_become_a_call,
    what_never_finds_its_other_half_is_settled_after_the_silence,
    an_erased_session_has_no_halves,
    without_bodies_no_answer_names_them,
}

/// How long a test waits for what a server does by itself.
const WAIT_MAX: Duration = Duration::from_mins(1);

fn configuration(grace: u32, silence: u32) -> Configuration {
    let variables = [
        ("SVC_PAIRING_GRACE_SECONDS", grace.to_string()),
        ("SVC_PAIRING_SILENCE_SECONDS", silence.to_string()),
    ];
    Configuration {
        variables: variables
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        ..Configuration::default()
    }
}

fn start(backend: Backend, grace: u32, silence: u32) -> Option<Server> {
    Server::start(backend, &configuration(grace, silence))
}

fn half(event: &str, session: &str, sequence: u64, body: &Value) -> Value {
    let members = json!({
        "session.id": session,
        "event.sequence": sequence,
        "query_source": "Explore",
        "model": "claude-sonnet-4-5",
        "prompt.id": "p-1",
        "body": body.to_string(),
    });
    log_record(event, &members)
}

fn request(session: &str, sequence: u64, messages: &Value) -> Value {
    let body = json!({
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": "You are an agent."}],
        "messages": messages,
        "tools": [{"name": "Bash", "description": "Runs a command."}],
    });
    half("claude_code.api_request_body", session, sequence, &body)
}

fn response(session: &str, sequence: u64, id: &str, content: &Value) -> Value {
    let body = json!({
        "id": format!("{id}_{session}"),
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 12, "cache_read_input_tokens": 30, "output_tokens": 7},
    });
    half("claude_code.api_response_body", session, sequence, &body)
}

fn said(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn called(tool: &str) -> Value {
    json!([{"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": "ls"}}])
}

/// Two subagents of one name that work at once.
fn example(session: &str) -> Vec<Value> {
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py"}]});
    let history = json!([
        user("right"),
        {"role": "assistant", "content": called("toolu_1")},
        result,
    ]);
    vec![
        request(session, 10, &json!([user("left")])),
        request(session, 11, &json!([user("right")])),
        response(session, 12, "msg_X", &called("toolu_1")),
        response(session, 13, "msg_Y", &said("text")),
        request(session, 14, &history),
        response(session, 15, "msg_Z", &said("done")),
    ]
}

fn log(server: &Server, records: &[Value]) {
    let export = Request::post("/v1/logs", logs(records).to_string());
    let reply = server.send(&export.bearer(INGEST_TOKEN));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn read(server: &Server, path: &str) -> Value {
    let reply = server.read(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

/// Waits until something holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT_MAX, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn calls(server: &Server) -> u64 {
    let counts = read(server, "/v1/facts");
    counts["tables"]["inference_calls"]["total"]
        .as_u64()
        .expect("a count")
}

fn pending(server: &Server) -> u64 {
    let capture = read(server, "/v1/capture");
    capture["pending_halves"]["count"]
        .as_u64()
        .expect("a count")
}

fn skipped(server: &Server) -> Value {
    read(server, "/v1/capture")["sources"]["logs"]["skipped"].clone()
}

/// Returns the manifests of a Session's calls.
fn manifests(server: &Server, session: &str) -> Vec<Value> {
    let inventory = read(server, &format!("/query/evidence?session_id={session}"));
    let calls = inventory["calls"].as_array().expect("calls").clone();
    let manifest = |call: &Value| {
        let id = call["inference_call_id"].as_str().expect("an id");
        let path = format!(
            "/query/evidence/manifest?session_id={session}&inference_call_id={id}&explain=true"
        );
        read(server, &path)
    };
    calls.iter().map(manifest).collect()
}

/// Returns how many messages each call was sent, the system prompt included.
fn inputs(server: &Server, session: &str) -> Vec<usize> {
    let mut inputs: Vec<usize> = manifests(server, session)
        .iter()
        .map(|manifest| {
            let messages = manifest["messages"].as_array().expect("messages");
            let of_input = messages.iter().filter(|message| message["side"] == "input");
            of_input.count()
        })
        .collect();
    inputs.sort_unstable();
    inputs
}

fn parallel_subagents_are_told_apart(backend: Backend) {
    let Some(server) = start(backend, 2, 3_600) else {
        return;
    };
    let records = example("s-2");
    let some = |places: [usize; 3]| places.map(|place| records[place].clone());
    log(&server, &some([5, 4, 3]));
    log(&server, &some([2, 0, 1]));
    eventually("a call by content", || calls(&server) > 0);
    eventually("the others after the grace", || calls(&server) == 3);
    assert_eq!(inputs(&server, "s-2"), [2, 2, 4]);
    assert_eq!(pending(&server), 0);
    assert_eq!(skipped(&server), json!({}));
    let counted = read(&server, "/v1/capture");
    let stored = &counted["sources"]["logs"]["facts"]["inference_calls"]["stored"];
    assert_eq!(*stored, 3);
    assert_eq!(counted["log_records"]["translated"], 6);
    let session = server.read_json("/query/session/s-2");
    let event = dig(&session, "timeline.0").expect("an event");
    for (member, expected) in [
        ("capture_source", "telemetry"),
        ("model", "claude-sonnet-4-5"),
        ("model_provider", "anthropic"),
        ("gateway_provider", "unknown"),
    ] {
        let found = dig(event, member).and_then(|value| value.as_str());
        assert_eq!(found, Some(expected), "{member}");
    }
    let exported = done(&svc(&server, &["export", "--content"]));
    let lines = exported
        .lines()
        .filter(|line| line.contains("\"inference_calls\""));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        let raw = &line["content"]["raw"];
        assert_eq!(raw["response"]["id"], line["response_id"]);
        assert_eq!(raw["request"]["system"][0]["text"], "You are an agent.");
        assert_eq!(line["input_tokens"], 42);
        assert!(line.get("input_unpaired").is_none());
    }
}

fn a_restart_between_the_halves_loses_nothing(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let configuration = configuration(1, 3_600);
    let records = example("s-2");
    let mut server = Server::start_on(&store, &configuration);
    log(&server, &records[..4]);
    server.kill();
    let mut server = Server::start_on(&store, &configuration);
    log(&server, &records[4..]);
    server.stop();
    let server = Server::start_on(&store, &configuration);
    eventually("three calls", || calls(&server) == 3);
    assert_eq!(inputs(&server, "s-2"), [2, 2, 4]);
}

fn a_redelivery_after_the_call_is_stored_changes_nothing(backend: Backend) {
    let Some(server) = start(backend, 0, 3_600) else {
        return;
    };
    let records = [
        request("s", 1, &json!([user("hi")])),
        response("s", 2, "msg_1", &said("ho")),
    ];
    log(&server, &records);
    eventually("a call", || calls(&server) == 1);
    log(&server, &records);
    log(&server, &records[..1]);
    // A third half shows that those before it were looked at.
    log(
        &server,
        &[
            response("t", 3, "msg_2", &said("x")),
            request("t", 2, &json!([user("y")])),
        ],
    );
    eventually("the other call", || calls(&server) == 2);
    assert_eq!(pending(&server), 0);
    assert_eq!(inputs(&server, "s"), [2]);
}

fn two_servers_make_one_call_of_two_halves(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let configuration = configuration(1, 3_600);
    let servers = [0, 1].map(|_| Server::start_on(&store, &configuration));
    let sessions: Vec<String> = (0..10).map(|session| format!("s-{session}")).collect();
    thread::scope(|scope| {
        for (place, server) in servers.iter().enumerate() {
            let sessions = &sessions;
            scope.spawn(move || {
                for session in sessions {
                    let records = example(session);
                    let own: Vec<Value> = records.into_iter().skip(place).step_by(2).collect();
                    log(server, &own);
                }
            });
        }
    });
    for server in &servers {
        eventually("three calls for each Session", || calls(server) == 30);
    }
    for session in &sessions {
        assert_eq!(inputs(&servers[1], session), [2, 2, 4], "{session}");
    }
    assert_eq!(pending(&servers[0]), 0);
    assert_eq!(skipped(&servers[0]), json!({}));
}

fn bodies_that_cannot_be_used_cost_no_other(backend: Backend) {
    let Some(server) = start(backend, 0, 3_600) else {
        return;
    };
    let bad = |members: Value| {
        let mut all = json!({"session.id": "s", "event.sequence": 9, "body": "{\"messages\":[]}"});
        for (name, value) in members.as_object().expect("members") {
            all[name] = value.clone();
        }
        log_record("claude_code.api_request_body", &all)
    };
    log(
        &server,
        &[
            bad(json!({"body_ref": "/tmp/body.json"})),
            request("s", 1, &json!([user("hi")])),
            bad(json!({"body_truncated": true})),
            bad(json!({"body": "{\"messages\":[{\"role\":\"user\",\"conte"})),
            bad(json!({"session.id": ""})),
            response("s", 2, "msg_1", &said("ho")),
        ],
    );
    eventually("a call", || calls(&server) == 1);
    let expected = json!({
        "body_not_inline": 1,
        "body_truncated": 1,
        "malformed_body": 1,
        "missing_session": 1,
    });
    assert_eq!(skipped(&server), expected);
    assert_eq!(pending(&server), 0);
}

fn bodies_of_several_mebibytes_become_a_call(backend: Backend) {
    let Some(server) = start(backend, 0, 3_600) else {
        return;
    };
    let text = |number: usize| format!("{number} {}", "lorem ipsum ".repeat(80_000));
    let mut messages: Vec<Value> = (0..5).map(|number| user(&text(number))).collect();
    let first = request("s", 1, &json!(messages));
    assert!(first.to_string().len() > 4 * 1024 * 1024);
    log(&server, &[first]);
    messages.push(json!({"role": "assistant", "content": called("toolu_1")}));
    messages.push(user(&text(6)));
    log(&server, &[response("s", 2, "msg_1", &called("toolu_1"))]);
    log(
        &server,
        &[
            request("s", 3, &json!(messages)),
            response("s", 4, "msg_2", &said("done")),
        ],
    );
    eventually("two calls", || calls(&server) == 2);
    assert_eq!(pending(&server), 0);
    let exported = done(&svc(&server, &["export", "--content"]));
    let last = exported.lines().find(|line| line.contains("msg_2_s"));
    let last: Value = serde_json::from_str(last.expect("the last call")).expect("JSON");
    let input = &last["content"]["input_messages"];
    assert_eq!(input[1]["parts"][0]["content"], text(0));
    assert_eq!(
        last["content"]["raw"]["request"]["messages"][6]["content"],
        text(6)
    );
}

fn what_never_finds_its_other_half_is_settled_after_the_silence(backend: Backend) {
    let Some(server) = start(backend, 0, 3) else {
        return;
    };
    log(&server, &example("s-2")[..4]);
    assert_eq!(calls(&server), 0);
    eventually("two calls without input", || calls(&server) == 2);
    eventually("nothing waits", || pending(&server) == 0);
    let expected = json!({"request_unpaired": 2, "attempt_without_response": 2});
    assert_eq!(skipped(&server), expected);
    for manifest in manifests(&server, "s-2") {
        assert_eq!(manifest["input_unpaired"], true);
        assert_eq!(manifest["messages"].as_array().map(Vec::len), Some(1));
    }
    let exported = done(&svc(&server, &["export"]));
    assert_eq!(exported.matches("\"input_unpaired\":true").count(), 2);
}

fn an_erased_session_has_no_halves(backend: Backend) {
    let Some(server) = start(backend, 3_600, 3_600) else {
        return;
    };
    log(&server, &example("s-2")[..4]);
    log(&server, &[request("t", 1, &json!([user("kept")]))]);
    assert_eq!(pending(&server), 5);
    let erase = [
        "erase",
        "--session",
        "s-2",
        "--apply",
        "--reason",
        "a leak",
        "--json",
    ];
    let erased: Value = serde_json::from_str(&done(&svc(&server, &erase))).expect("JSON");
    assert_eq!(erased["halves"], 4);
    assert_eq!(pending(&server), 1);
    done(&svc(&server, &["verify"]));
}

fn without_bodies_no_answer_names_them(backend: Backend) {
    let Some(server) = start(backend, 60, 3_600) else {
        return;
    };
    let capture = read(&server, "/v1/capture");
    assert!(capture.get("pending_halves").is_none(), "{capture}");
    log(&server, &[request("s", 1, &json!([]))]);
    let capture = read(&server, "/v1/capture");
    let waiting = &capture["pending_halves"];
    assert_eq!(waiting["count"], 1);
    assert!(waiting["bytes"].as_u64() > Some(100), "{waiting}");
    assert!(waiting["oldest_at"].is_string(), "{waiting}");
}
