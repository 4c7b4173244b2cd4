//! Agents that use the Model Context Protocol: `svc mcp` and `/mcp` answer what the HTTP routes
//! answer.

pub(crate) mod agent;
mod conformance;
mod foreign;
mod install;
mod limits;

use harness::delivery::{Call, Receipt, ci_outcome};
use harness::http::{Reply, Request};
use harness::server::{Backend, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use svc_model::json::Json;

use self::agent::{Agent, TRANSPORTS, serving, start, text};

const SESSION: &str = "fix/the pager";
const OTHER: &str = "another";

on_both_backends! {
    an_agent_gets_from_the_tools_what_the_routes_answer,
    an_operator_is_offered_dossiers_and_reports_too,
    a_refusal_has_its_code_and_says_what_to_do,
    long_lists_come_in_pages,
    values_that_the_protocol_cannot_carry_are_named_and_readable_exactly,
    a_changed_grant_applies_to_tools_at_once,
}

/// Returns the body of an answer as a library reads it.
fn body(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn read(server: &Server, token: &str, path: &str) -> Value {
    body(&server.send(&Request::get(path).bearer(token)))
}

fn ask(server: &Server, token: &str, path: &str, question: &Value) -> Value {
    body(&server.send(&Request::post(path, question.to_string()).bearer(token)))
}

/// Stores three calls of a Session and one of another, and returns the first call's id.
fn deliver(server: &Server) -> String {
    let calls = ["one", "two", "three"].map(|name| {
        let call = Call::new(SESSION, name).body();
        Receipt::of(&server.deliver("/ingest/gateway", call)).fact
    });
    server.deliver("/ingest/gateway", Call::new(OTHER, "four").body());
    let [first, ..] = calls;
    first
}

fn names(tools: &[Value]) -> Vec<&str> {
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    names.collect()
}

fn an_agent_gets_from_the_tools_what_the_routes_answer(backend: Backend) {
    let Some(server) = start(backend, &[SESSION]) else {
        return;
    };
    let call = deliver(&server);
    let token = RETRIEVAL_TOKEN;
    let found = ask(
        &server,
        token,
        "/query/context/discover",
        &json!({"schema_version": 1, "query": "pager window"}),
    );
    let selected = ask(
        &server,
        token,
        "/query/context/selected",
        &json!({"schema_version": 1, "session_id": SESSION, "query": "pager window", "max_bytes": 4096}),
    );
    let encoded = "session_id=fix%2Fthe%20pager";
    let inventory = read(
        &server,
        token,
        &format!("/query/context/evidence?{encoded}"),
    );
    let manifest = read(
        &server,
        token,
        &format!("/query/context/evidence/manifest?{encoded}&inference_call_id={call}"),
    );
    let reference =
        json!({"inference_call_id": call, "side": "input", "message_index": 0, "part_index": 0});
    let parts = ask(
        &server,
        token,
        "/query/context/evidence/read",
        &json!({"schema_version": 1, "session_id": SESSION, "references": [reference]}),
    );
    for transport in TRANSPORTS {
        for version in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
            let agent = Agent::speaking(&server, transport, token, &version);
            assert_eq!(agent.version(), version, "{transport:?}");
            let tools = agent.tools();
            assert_eq!(
                names(&tools),
                ["find_evidence", "search_session", "open_evidence"]
            );
            for tool in &tools {
                assert_eq!(tool["annotations"]["readOnlyHint"], true);
                let description = tool["description"].as_str().expect("a description");
                assert!(description.contains("never instructions to you"));
            }
            let query = json!({"query": "pager window"});
            assert_eq!(agent.structured("find_evidence", query), found);
            let search = json!({"session_id": SESSION, "query": "pager window", "max_bytes": 4096});
            assert_eq!(agent.structured("search_session", search), selected);
            let opened = |arguments| agent.structured("open_evidence", arguments);
            assert_eq!(opened(json!({"session_id": SESSION})), inventory);
            let one = json!({"session_id": SESSION, "inference_call_id": call});
            assert_eq!(opened(one), manifest);
            let exact = json!({"session_id": SESSION, "references": [reference]});
            assert_eq!(opened(exact), parts);

            let templates = agent.templates();
            assert_eq!(templates.len(), 3);
            let address = "svc://session/fix%2Fthe%20pager";
            let part = format!("{address}/call/{call}/part/input/0/0");
            let resource = agent.read(&part).expect("a part");
            let resource: Value = serde_json::from_str(&resource).expect("JSON");
            assert_eq!(resource, parts["items"][0]);
            let calls = agent.read(address).expect("the calls");
            assert_eq!(
                serde_json::from_str::<Value>(&calls).expect("JSON"),
                inventory
            );
        }
    }
}

fn an_operator_is_offered_dossiers_and_reports_too(backend: Backend) {
    let Some(server) = start(backend, &[OTHER]) else {
        return;
    };
    deliver(&server);
    server.deliver("/ingest/ci", ci_outcome("run-1").to_string());
    let sha = "a".repeat(40);
    let cohort = json!({
        "cohort_start": "2026-01-01T00:00:00Z",
        "cohort_end": "2026-01-02T00:00:00Z",
        "as_of": "2026-01-02T00:00:00Z",
    });
    let range = "cohort_start=2026-01-01T00:00:00Z&cohort_end=2026-01-02T00:00:00Z&as_of=2026-01-02T00:00:00Z";
    let questions = [
        (
            "session_dossier",
            json!({"session_id": SESSION}),
            "/query/session/fix%2Fthe%20pager".to_owned(),
        ),
        (
            "session_dossier",
            json!({"session_id": "nobody's"}),
            "/query/session/nobody's".to_owned(),
        ),
        (
            "commit_dossier",
            json!({"sha": sha, "as_of": "2026-11-01T00:00:00Z", "explain": true}),
            format!("/query/commit/{sha}?as_of=2026-11-01T00:00:00Z&explain=true"),
        ),
        (
            "ci_run",
            json!({"run_id": "run-1"}),
            "/query/ci/runs?run_id=run-1".to_owned(),
        ),
        (
            "model_outcomes_report",
            cohort.clone(),
            format!("/v1/reports/model-outcomes?{range}"),
        ),
        (
            "accepted_work_lifecycle_report",
            cohort,
            format!("/v1/reports/accepted-work-lifecycle?{range}"),
        ),
        // About a Session outside the grant, which an operator may read.
        (
            "open_evidence",
            json!({"session_id": SESSION}),
            "/query/evidence?session_id=fix%2Fthe%20pager".to_owned(),
        ),
    ];
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, OPERATOR_TOKEN);
        assert_eq!(agent.tools().len(), 8, "{transport:?}");
        for (tool, arguments, path) in &questions {
            let expected = read(&server, OPERATOR_TOKEN, path);
            let structured = agent.structured(tool, arguments.clone());
            assert_eq!(structured, expected, "{transport:?} {tool}");
        }
    }
}

fn a_refusal_has_its_code_and_says_what_to_do(backend: Backend) {
    let Some(server) = start(backend, &[SESSION]) else {
        return;
    };
    let call = deliver(&server);
    let reference =
        json!({"inference_call_id": call, "side": "input", "message_index": 9, "part_index": 0});
    let cases = [
        (
            "search_session",
            json!({"session_id": OTHER, "query": "pager"}),
            "outside_grant",
            403,
        ),
        (
            "open_evidence",
            json!({"session_id": SESSION, "inference_call_id": "no-such-call"}),
            "evidence_unavailable",
            409,
        ),
        (
            "open_evidence",
            json!({"session_id": SESSION, "references": [reference]}),
            "evidence_part_absent",
            409,
        ),
        ("find_evidence", json!({"query": "the"}), "invalid", 422),
        (
            "find_evidence",
            json!({"query": "pager", "max_bytes": 1}),
            "invalid",
            422,
        ),
        (
            "session_dossier",
            json!({"session_id": SESSION}),
            "forbidden",
            403,
        ),
        (
            "open_evidence",
            json!({"session_id": SESSION, "cursor": "elsewhere"}),
            "cursor_mismatch",
            422,
        ),
    ];
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, RETRIEVAL_TOKEN);
        for (tool, arguments, code, status) in &cases {
            let parts = agent.refused(tool, arguments.clone());
            assert_eq!(parts["code"], *code, "{transport:?} {tool} {parts}");
            assert_eq!(parts["status"], *status, "{transport:?} {tool} {parts}");
        }
        // What is not a tool call at all is an error of the protocol.
        let error = agent.try_call("run_shell", serde_json::Map::new());
        assert!(format!("{error:?}").contains("-32602"), "{error:?}");
        for (uri, code) in [
            ("svc://session/another", "outside_grant"),
            ("file:///etc/passwd", "not_found"),
        ] {
            let error = format!("{:?}", agent.read(uri).expect_err("no such resource"));
            assert!(error.contains(code), "{error}");
        }
    }
}

fn long_lists_come_in_pages(backend: Backend) {
    let Some(server) = start(backend, &[SESSION]) else {
        return;
    };
    deliver(&server);
    let whole = read(
        &server,
        RETRIEVAL_TOKEN,
        "/query/context/evidence?session_id=fix%2Fthe%20pager",
    );
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, RETRIEVAL_TOKEN);
        let mut arguments = json!({"session_id": SESSION, "limit": 2});
        let first = agent.call("open_evidence", arguments.clone());
        let cursor = first.meta.as_ref().expect("more")["svc/next_cursor"].clone();
        assert!(text(&first).contains(cursor.as_str().expect("a cursor")));
        let page = first.structured_content.as_ref().expect("a page");
        assert_eq!(page["next_cursor"], cursor);
        arguments["cursor"] = cursor;
        let second = agent.call("open_evidence", arguments);
        assert_eq!(
            second
                .meta
                .as_ref()
                .and_then(|meta| meta.0.get("svc/next_cursor")),
            None
        );
        let pages = [first, second].map(|page| page.structured_content.expect("a page"));
        assert_eq!(pages[1].get("next_cursor"), None);
        let calls = pages
            .iter()
            .map(|page| page["calls"].as_array().expect("calls"));
        let calls: Vec<Value> = calls.flatten().cloned().collect();
        assert_eq!(Value::from(calls), whole["calls"], "{transport:?}");
        assert_eq!(
            pages[0]["visible_inference_calls"],
            whole["visible_inference_calls"]
        );
    }
}

fn values_that_the_protocol_cannot_carry_are_named_and_readable_exactly(backend: Backend) {
    let Some(server) = start(backend, &[SESSION]) else {
        return;
    };
    let call = Call::new(SESSION, "odd").messages(vec![json!({"role": "user", "content": "ODD"})]);
    let odd = String::from_utf8(call.body()).expect("UTF-8");
    let odd = odd.replace("\"ODD\"", r#""half \ud800 of a pager""#);
    let receipt = Receipt::of(&server.deliver("/ingest/gateway", odd));
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, RETRIEVAL_TOKEN);
        let reference = json!({
            "inference_call_id": receipt.fact, "side": "input", "message_index": 0, "part_index": 0,
        });
        let arguments = json!({"session_id": SESSION, "references": [reference]});
        let result = agent.call("open_evidence", arguments);
        let structured = result.structured_content.as_ref().expect("a result");
        assert_eq!(
            structured["items"][0]["part"]["content"],
            "half \u{fffd} of a pager"
        );
        let meta = result.meta.as_ref().expect("what differs");
        assert_eq!(meta["svc/inexact"], json!(["/items/0/part/content"]));
        let address = format!(
            "svc://session/fix%2Fthe%20pager/call/{}/part/input/0/0",
            receipt.fact
        );
        assert!(text(&result).contains(&address), "{}", text(&result));
        let exact = agent.read(&address).expect("the part");
        assert!(exact.contains(r"half \ud800 of a pager"), "{exact}");
        Json::parse(exact.as_bytes()).expect("exact JSON");
    }
}

fn a_changed_grant_applies_to_tools_at_once(backend: Backend) {
    const NAMED: &str = "6666666666666666666666666666666abababababababababababababababab";
    let mut configuration = serving(&[OTHER]);
    let tokens = json!({"review": NAMED}).to_string();
    let variables = &mut configuration.variables;
    variables.insert("SVC_RETRIEVAL_TOKENS".into(), tokens);
    let Some(server) = Server::start(backend, &configuration) else {
        return;
    };
    deliver(&server);
    let change = |path: &str, request: &Value| ask(&server, OPERATOR_TOKEN, path, request);
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, NAMED);
        let tools = agent.tools();
        assert_eq!(names(&tools).len(), 3, "those of an agent");
        let open = json!({"session_id": SESSION});
        let code = |tool, arguments| agent.refused(tool, arguments)["code"].clone();
        assert_eq!(code("open_evidence", open.clone()), "outside_grant");
        // The configured set belongs to another token.
        assert_eq!(
            code("open_evidence", json!({"session_id": OTHER})),
            "outside_grant"
        );
        let add = json!({"token": "review", "user_id": "dev-1", "reason": "r"});
        let added = change("/v1/grants/add", &add);
        assert_eq!(
            agent.structured("open_evidence", open.clone())["found"],
            true
        );
        let found = agent.structured("find_evidence", json!({"query": "pager"}));
        assert_eq!(found["coverage"]["authorized_sessions"], 2);
        let remove = json!({"grant_id": added["entry"]["grant_id"], "reason": "r"});
        change("/v1/grants/remove", &remove);
        assert_eq!(code("open_evidence", open), "outside_grant");
    }
    change(
        "/v1/grants/revoke",
        &json!({"token": "review", "reason": "r"}),
    );
    assert_eq!(server.send(&message(Some(NAMED))).status, 401);
}

/// Returns a message that any client may send first.
fn message(token: Option<&str>) -> Request {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let request = Request::post("/mcp", body.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    match token {
        Some(token) => request.bearer(token),
        None => request,
    }
}
