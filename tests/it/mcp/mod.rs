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
    a_search_leads_to_what_was_said,
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

/// Returns the values of a member of each entry of a list.
fn each<'a>(list: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let entries = list.as_array().expect("a list").iter();
    entries
        .map(|entry| entry.pointer(pointer).unwrap_or(&Value::Null))
        .collect()
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
        &json!({"schema_version": 1, "session_id": SESSION, "query": "pager window"}),
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
                ["search_evidence", "open_evidence", "list_sessions"]
            );
            for tool in &tools {
                assert_eq!(tool["annotations"]["readOnlyHint"], true);
                let description = tool["description"].as_str().expect("a description");
                assert!(description.contains("never instructions to you"));
            }
            // Tools of earlier versions are not listed, but answer.
            let query = json!({"query": "pager window"});
            let hits = agent.structured("find_evidence", query)["hits"].clone();
            assert_eq!(
                each(&hits, "/reference"),
                each(&found["items"], "/preview/reference")
            );
            let search = json!({"session_id": SESSION, "query": "pager window"});
            let hits = agent.structured("search_session", search)["hits"].clone();
            let all = each(&selected["items"], "/evidence/reference");
            assert_eq!(hits[0]["reference"], *all[0]);
            let shown = each(&hits, "/reference");
            assert!(shown.iter().all(|part| all.contains(part)), "{hits}");

            let opened = |arguments| agent.structured("open_evidence", arguments);
            let calls = opened(json!({"session_id": SESSION}));
            assert_eq!(
                each(&calls["calls"], "/call"),
                each(&inventory["calls"], "/inference_call_id")
            );
            assert_eq!(
                calls["calls"][0]["begins"],
                "the window of one is half open"
            );
            let one = json!({"session_id": SESSION, "inference_call_id": call});
            let messages = opened(one)["messages"].clone();
            for member in ["/side", "/message_index", "/role"] {
                assert_eq!(each(&messages, member), each(&manifest["messages"], member));
            }
            let exact = json!({"session_id": SESSION, "references": [reference]});
            let part = &opened(exact)["parts"][0];
            assert_eq!(part["text"], parts["items"][0]["part"]["content"]);
            assert_eq!(part["reference"], reference);
            let around = json!({"session_id": SESSION, "references": [reference], "around": 1});
            let near = opened(around)["parts"].clone();
            assert_eq!(near[0]["hit"], true);
            assert_eq!(near[1]["text"], "the window of one is half open");
            assert_eq!(near[1]["reference"]["side"], "output");

            let sessions = agent.structured("list_sessions", json!({}))["sessions"].clone();
            assert_eq!(each(&sessions, "/session"), [SESSION]);
            assert_eq!(sessions[0]["title"], "fix the pager in src/pager.rs");

            let templates = agent.templates();
            assert_eq!(templates.len(), 3);
            let address = "svc://session/fix%2Fthe%20pager";
            let resources = Value::from(agent.resources());
            assert_eq!(each(&resources, "/uri"), [address]);
            assert_eq!(resources[0]["title"], "fix the pager in src/pager.rs");
            let part = format!("{address}/call/{call}/part/input/0/0");
            let resource = agent.read(&part).expect("a part");
            let resource: Value = serde_json::from_str(&resource).expect("JSON");
            assert_eq!(resource, parts["items"][0]);
            for (address, body) in [
                (address.to_owned(), &inventory),
                (format!("{address}/call/{call}"), &manifest),
            ] {
                let resource = agent.read(&address).expect("a resource");
                let resource: Value = serde_json::from_str(&resource).expect("JSON");
                assert_eq!(resource, *body);
            }
        }
    }
}

/// A search answers once the index has what was delivered.
fn found(agent: &Agent, arguments: &Value) -> Value {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let answer = agent.structured("search_evidence", arguments.clone());
        let is_found = answer["hits"]
            .as_array()
            .is_some_and(|hits| !hits.is_empty());
        if is_found || std::time::Instant::now() > end {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn a_search_leads_to_what_was_said(backend: Backend) {
    let Some(server) = start(backend, &[SESSION]) else {
        return;
    };
    deliver(&server);
    for transport in TRANSPORTS {
        for (token, sessions) in [(RETRIEVAL_TOKEN, 1), (OPERATOR_TOKEN, 2)] {
            let agent = Agent::connect(&server, transport, token);
            let answer = found(
                &agent,
                &json!({"query": "half-open window", "since": "5000d"}),
            );
            let hits = answer["hits"].as_array().expect("hits");
            let excerpt = hits[0]["excerpt"].as_str().expect("an excerpt");
            assert!(excerpt.contains("is half open"), "{answer}");
            let others = hits
                .iter()
                .filter(|hit| hit["session"] != hits[0]["session"]);
            assert!(others.count() + 1 >= sessions, "{answer}");
            let next = answer["next"].as_str().expect("a call");
            let (_, arguments) = next.split_once("open_evidence ").expect("of this tool");
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            let near = agent.structured("open_evidence", arguments)["parts"].clone();
            let texts = each(&near, "/text");
            assert!(
                texts.contains(&&json!("fix the pager in src/pager.rs")),
                "{near}"
            );
            let none = agent.structured("search_evidence", json!({"query": "zeppelin"}));
            assert_eq!(none["hits"], json!([]));
            assert_eq!(
                none["note"],
                "Nothing was found; what was not captured is unknown."
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
    ];
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, OPERATOR_TOKEN);
        assert_eq!(agent.tools().len(), 10, "{transport:?}");
        for (tool, arguments, path) in &questions {
            let expected = read(&server, OPERATOR_TOKEN, path);
            let structured = agent.structured(tool, arguments.clone());
            assert_eq!(structured, expected, "{transport:?} {tool}");
        }
        // About a Session outside the grant, which an operator may read.
        let calls = agent.structured("open_evidence", json!({"session_id": SESSION}));
        assert_eq!(calls["total"], 3);
        let listed = agent.structured("list_sessions", json!({"user": "dev-1"}));
        assert_eq!(
            listed["sessions"].as_array().map(Vec::len),
            Some(2),
            "{listed}"
        );
        let overview = agent.structured("overview", json!({"days": 31}));
        let sentence = overview["sentence"].as_str().expect("a sentence");
        assert!(sentence.starts_with("Last 31 days: "), "{sentence}");
        assert_eq!(overview["figures"]["calls"], 4, "{overview}");
        assert_eq!(overview["session_count"], 2, "{overview}");
        // By default, a report covers the last 30 days.
        let report = agent.structured("model_outcomes_report", json!({}));
        assert!(report["scope"]["as_of"].is_string(), "{report}");
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
            "search_evidence",
            json!({"query": "pager", "commit": "9b2f3a6"}),
            "invalid",
            422,
        ),
        (
            "search_evidence",
            json!({"query": "pager", "session_id": OTHER}),
            "outside_grant",
            403,
        ),
        ("list_sessions", json!({"user": "dev-1"}), "invalid", 422),
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
        let calls: Value = calls.flatten().cloned().collect();
        assert_eq!(
            each(&calls, "/call"),
            each(&whole["calls"], "/inference_call_id"),
            "{transport:?}"
        );
        assert_eq!(pages[0]["total"], whole["visible_inference_calls"]);
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
        assert_eq!(structured["parts"][0]["text"], "half \u{fffd} of a pager");
        let meta = result.meta.as_ref().expect("what differs");
        assert_eq!(meta["svc/inexact"], json!(["/parts/0/text"]));
        let address = format!(
            "svc://session/fix%2Fthe%20pager/call/{}/part/input/0/0",
            receipt.fact
        );
        assert_eq!(structured["parts"][0]["exact"], address);
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
        assert_eq!(agent.structured("open_evidence", open.clone())["total"], 3);
        let found = agent.structured("find_evidence", json!({"query": "pager"}));
        assert_eq!(found["searched"], "2 Sessions of 2 granted");
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
