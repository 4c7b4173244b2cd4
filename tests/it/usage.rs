//! Usage receipts: what clients report of the use of models, beside the calls that a gateway sends.

use harness::delivery::{Call, log_record, logs};
use harness::http::Request;
use harness::pattern::{dig, matches, shown};
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_model::json::Json;

on_both_backends! {
    a_receipt_is_counted_shown_exported_and_hidden,
    a_receipt_of_a_call_from_a_gateway_stands_with_the_call,
    without_receipts_no_answer_names_them,
    a_list_of_sessions_says_what_they_cost,
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

/// What Claude Code logs for a request to a model.
fn request(session: &str, sequence: u64, request_id: &str) -> Value {
    let members = json!({
        "session.id": session,
        "event.sequence": sequence,
        "model": "claude-sonnet-4-5",
        "input_tokens": "12",
        "output_tokens": 780,
        "cache_read_tokens": 41200,
        "cache_creation_tokens": 3104,
        "cost_usd_micros": 35736,
        "duration_ms": 9120,
        "request_id": request_id,
        "speed": "normal",
        "query_source": "repl_main_thread",
    });
    log_record("claude_code.api_request", &members)
}

fn log(server: &Server, records: &[Value]) {
    let export = Request::post("/v1/logs", logs(records).to_string());
    let reply = server.send(&export.bearer(INGEST_TOKEN));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn dossier(server: &Server, session: &str) -> Json {
    server.read_json(&format!("/query/session/{session}"))
}

fn a_receipt_is_counted_shown_exported_and_hidden(backend: Backend) {
    let Some(server) = start(backend) else { return };
    log(&server, &[request("s-1", 41, "req_1")]);
    log(&server, &[request("s-1", 90, "req_1")]);
    let counts = server.read_json("/v1/facts");
    let count = |counts: &Json| dig(counts, "tables.usage_receipts").cloned();
    let one = |visible: u64| Some(exact(&json!({ "total": 1, "visible": visible })));
    assert_eq!(count(&counts), one(1));
    assert_eq!(
        dig(&counts, "tables.inference_calls.total"),
        Some(&Json::from(0_u64))
    );
    assert_eq!(count(&server.read_json("/v1/facts/session/s-1")), one(1));

    let shown = dossier(&server, "s-1");
    let [coverage, usage] = ["coverage.usage_receipts", "usage"].map(|path| dig(&shown, path));
    check(
        &json!({ "total": 1, "visible": 1, "quarantined": 0 }),
        coverage.expect("a count"),
    );
    check(
        &json!({ "receipts": 1, "joined": 0, "unjoined": 1, "cost_usd_micros": 35736 }),
        usage.expect("the sums"),
    );
    let event = json!({
        "event_type": "usage_receipt",
        "fact_id": "$uuid",
        "occurred_at": "2026-07-07T19:57:35.424000Z",
        "source": "claude_code",
        "model": "claude-sonnet-4-5",
        "query_source": "repl_main_thread",
        "input_tokens_uncached": 12,
        "cache_read_tokens": 41200,
        "cache_write_tokens": 3104,
        "output_tokens": 780,
        "cost_usd_micros": 35736,
        "duration_ms": 9120,
    });
    let timeline = dig(&shown, "timeline").expect("events");
    check(&json!([event]), timeline);

    let exported = server.shell().arg("export").output().expect("it runs");
    let exported = String::from_utf8(exported.stdout).expect("text");
    let line = exported
        .lines()
        .find(|line| line.contains("usage_receipts"));
    let line = Json::parse(line.expect("a receipt").as_bytes()).expect("JSON");
    for (member, value) in [
        ("request_id", json!("req_1")),
        ("user_id", json!("dev-1")),
        ("sequence", json!(41)),
        ("cache_write_5m_tokens", Value::Null),
        ("tier", Value::Null),
    ] {
        assert_eq!(dig(&line, member), Some(&exact(&value)), "{member}");
    }

    let id = dig(timeline, "0.fact_id")
        .and_then(Json::as_str)
        .expect("an id");
    let hide = json!({ "table": "usage_receipts", "fact_id": id, "reason": "a leak" });
    let hide = Request::post("/v1/quarantine", hide.to_string()).bearer(OPERATOR_TOKEN);
    let reply = server.send(&hide);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(count(&server.read_json("/v1/facts")), one(0));
    let shown = dossier(&server, "s-1");
    assert_eq!(dig(&shown, "usage"), None);
    check(&json!([]), dig(&shown, "timeline").expect("events"));
}

fn a_receipt_of_a_call_from_a_gateway_stands_with_the_call(backend: Backend) {
    let Some(server) = start(backend) else { return };
    // Behind a proxy, the client has no id of the request.
    log(
        &server,
        &[log_record(
            "codex.sse_event",
            &json!({
                "conversation.id": "s-2",
                "event.kind": "response.completed",
                "model": "gpt-5",
                "input_token_count": "1500",
                "cached_token_count": "1024",
                "output_token_count": "64",
            }),
        )],
    );
    let mut payload = Call::new("s-2", "one")
        .captured(
            "00000000-0000-4000-8000-000000000001",
            "2026-07-07T19:58:00Z",
        )
        .model("openai/GPT-5")
        .envelope();
    payload["payload"]["usage"] = json!({
        "prompt_tokens": 1500,
        "completion_tokens": 64,
        "prompt_tokens_details": { "cached_tokens": 1024 },
    });
    payload["payload"]["response_cost"] = json!(0.001_234_5);
    let reply = server.deliver("/ingest/gateway", payload.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let shown = dossier(&server, "s-2");
    check(
        &json!({ "receipts": 1, "joined": 1, "unjoined": 0 }),
        dig(&shown, "usage").expect("the sums"),
    );
    let events = dig(&shown, "timeline").and_then(Json::as_array);
    assert_eq!(events.map(<[Json]>::len), Some(1));
    for (member, value) in [
        ("joined_by", json!("counts")),
        ("cost_usd_micros", json!(1235)),
        ("cache_read_tokens", json!(1024)),
        ("input_tokens", json!(1500)),
    ] {
        let found = dig(&shown, &format!("timeline.0.{member}"));
        assert_eq!(found, Some(&exact(&value)), "{member}");
    }
    assert!(dig(&shown, "timeline.0.usage_receipt_ids.0").is_some());
    let printed = server.shell().args(["session", "s-2"]).output();
    let printed = String::from_utf8(printed.expect("it runs").stdout).expect("text");
    assert!(
        printed.contains("$0.0012 at list price") && printed.contains("1 of calls above"),
        "{printed}"
    );

    // A call in quarantine takes its receipt with it, so nothing is left to spend.
    let id = dig(&shown, "timeline.0.fact_id").and_then(Json::as_str);
    let hide = json!({ "table": "inference_calls", "fact_id": id, "reason": "a leak" });
    let hide = Request::post("/v1/quarantine", hide.to_string()).bearer(OPERATOR_TOKEN);
    assert_eq!(server.send(&hide).status, 200);
    let other = Call::new("s-2", "two").envelope();
    let reply = server.deliver("/ingest/gateway", other.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let list = server.read_json("/v1/sessions?spend=true");
    for (member, value) in [("calls", 1), ("receipts_only", 0), ("cost_usd_micros", 0)] {
        let found = dig(&list, &format!("sessions.0.spend.{member}"));
        assert_eq!(found, Some(&exact(&json!(value))), "{member}");
    }
}

fn without_receipts_no_answer_names_them(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let call = Call::new("s-3", "one").envelope();
    let reply = server.deliver("/ingest/gateway", call.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    for path in ["/v1/facts", "/v1/facts/session/s-3", "/query/session/s-3"] {
        let answer = server.read_json(path);
        let text = shown(&answer);
        assert!(!text.contains("usage"), "{path}: {text}");
    }
}

fn a_list_of_sessions_says_what_they_cost(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let call = |session: &str, id: &str, cost: Option<f64>| {
        let mut call = Call::new(session, id).envelope();
        call["payload"]["response_cost"] = json!(cost);
        let reply = server.deliver("/ingest/gateway", call.to_string());
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    call("s-4", "one", Some(0.5));
    call("s-4", "two", None);
    log(
        &server,
        &[request("s-4", 1, "req_1"), request("s-5", 2, "req_2")],
    );
    let plain = server.read_json("/v1/sessions");
    assert!(!shown(&plain).contains("spend"), "{}", shown(&plain));
    let list = server.read_json("/v1/sessions?spend=true");
    let spend = |place: usize| dig(&list, &format!("sessions.{place}.spend")).cloned();
    let figure = |calls: u64, receipts: u64, items: u64, cost: i64, unpriced: u64| {
        json!({
            "calls": calls,
            "receipts_only": receipts,
            "captured": { "items": items, "cost_usd_micros": cost },
            "derived": { "items": 0, "cost_usd_micros": 0 },
            "unpriced_items": unpriced,
            "cost_usd_micros": cost,
            "items_without_counts": "$any",
        })
    };
    check(&figure(0, 1, 1, 35_736, 0), &spend(0).expect("a figure"));
    check(&figure(2, 1, 2, 535_736, 1), &spend(1).expect("a figure"));
    let printed = server.shell().args(["sessions", "--spend"]).output();
    let printed = String::from_utf8(printed.expect("it runs").stdout).expect("text");
    assert!(
        printed.contains("not priced") && printed.contains("$0.5357"),
        "{printed}"
    );
    let hide = ["quarantine-inference-calls", "--reason", "x", "--json"];
    for (source, changed) in [("gateway", 2), ("span", 0)] {
        let mut shell = server.shell();
        let counted = shell.args(hide).args(["--capture-source", source]).output();
        let counted = String::from_utf8(counted.expect("it runs").stdout).expect("text");
        assert!(
            counted.contains(&format!("\"changed\":{changed},")),
            "{counted}"
        );
    }
}
