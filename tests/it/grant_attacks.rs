//! Grants under attack: revoked while in use, with odd names, and for tokens that come and go.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use harness::delivery::Call;
use harness::http::{Reply, Request};
use harness::server::{Backend, Configuration, OPERATOR_TOKEN, Server, Store};
use serde_json::{Value, json};

on_both_backends!(
    after_a_revocation_earlier_answers_lead_nowhere,
    no_request_begun_after_a_revocation_reads_evidence,
    an_invalid_token_name_is_refused_and_nothing_is_recorded,
    a_token_removed_and_configured_again_keeps_the_grants_of_its_name,
);

const REVIEW: &str = "4444444444444444444444444444444eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
const TRIAGE: &str = "5555555555555555555555555555555fffffffffffffffffffffffffffffffff";
/// The number of concurrent clients, and how often the token is revoked meanwhile.
const ASKERS: usize = 4;
const REVOCATIONS: usize = 5;

fn naming(tokens: &Value) -> Configuration {
    let mut configuration = Configuration::default();
    let variables = &mut configuration.variables;
    variables.insert("SVC_RETRIEVAL_TOKENS".into(), tokens.to_string());
    variables.insert("SVC_ENABLE_MCP".into(), "true".into());
    configuration
}

fn start(backend: Backend) -> Option<Server> {
    let server = Server::start(backend, &naming(&json!({"review": REVIEW})))?;
    for name in ["one", "two", "three"] {
        let stored = server.deliver("/ingest/gateway", Call::new("s", name).body());
        assert_eq!(stored.status, 200, "{}", stored.text());
    }
    Some(server)
}

fn body(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn change(server: &Server, path: &str, request: &Value) -> Value {
    body(&server.ask(path, request.to_string()))
}

fn grant(server: &Server) -> String {
    let request = json!({"token": "review", "session_id": "s", "reason": "a review"});
    let receipt = change(server, "/v1/grants/add", &request);
    receipt["entry"]["grant_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

/// Returns a message to a tool, or one that reads a resource.
fn message(method: &str, parameters: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    Request::post("/mcp", body.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .bearer(REVIEW)
}

fn tool(name: &str, arguments: &Value) -> Request {
    message("tools/call", &json!({"name": name, "arguments": arguments}))
}

fn get(path: &str) -> Request {
    Request::get(path).bearer(REVIEW)
}

fn post(path: &str, question: &Value) -> Request {
    Request::post(path, question.to_string()).bearer(REVIEW)
}

/// Returns every way in which the token may read, with everything that it was given so far: ids,
/// references, the cursor of a page, the address of a resource.
fn questions(server: &Server) -> Vec<Request> {
    let inventory = body(&server.send(&get("/query/context/evidence?session_id=s")));
    let call = inventory["calls"][0]["inference_call_id"].clone();
    let manifest = format!(
        "/query/context/evidence/manifest?session_id=s&inference_call_id={}",
        call.as_str().expect("an id")
    );
    let reference =
        body(&server.send(&get(&manifest)))["messages"][0]["parts"][0]["reference"].clone();
    let page = tool("open_evidence", &json!({"session_id": "s", "limit": 2}));
    let page = body(&server.send(&page));
    let cursor = page["result"]["_meta"]["svc/next_cursor"].clone();
    assert!(cursor.is_string(), "{page}");
    let part = format!(
        "svc://session/s/call/{}/part/input/0/0",
        call.as_str().expect("an id")
    );
    let query = json!({"schema_version": 1, "query": "pager"});
    let selected = json!({"schema_version": 1, "query": "pager", "session_id": "s"});
    let read = json!({"schema_version": 1, "session_id": "s", "references": [reference]});
    vec![
        get("/query/context/evidence?session_id=s"),
        get(&manifest),
        post("/query/context/discover", &query),
        post("/query/context/selected", &selected),
        post("/query/context/evidence/read", &read),
        tool("find_evidence", &json!({"query": "pager"})),
        tool(
            "search_session",
            &json!({"session_id": "s", "query": "pager"}),
        ),
        tool(
            "open_evidence",
            &json!({"session_id": "s", "limit": 2, "cursor": cursor}),
        ),
        tool(
            "open_evidence",
            &json!({"session_id": "s", "references": [reference]}),
        ),
        message("resources/read", &json!({"uri": part})),
        tool("list_sessions", &json!({})),
        message("resources/list", &json!({})),
    ]
}

/// Text that is in the Session and nowhere else.
const SESSION_TEXT: &str = "src/pager.rs";

fn after_a_revocation_earlier_answers_lead_nowhere(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let id = grant(&server);
    let questions = questions(&server);
    let answers = || -> Vec<(u16, String)> {
        let ask = |request| {
            let reply = server.send(request);
            (reply.status, reply.text())
        };
        questions.iter().map(ask).collect()
    };
    let before = answers();
    for (question, (status, text)) in questions.iter().zip(&before) {
        assert_eq!(*status, 200, "{} {text}", question.path);
        assert!(!text.contains("isError\":true"), "{text}");
    }
    assert!(before.iter().any(|(_, text)| text.contains(SESSION_TEXT)));

    let remove = json!({"grant_id": id, "reason": "done"});
    change(&server, "/v1/grants/remove", &remove);
    for (question, (status, text)) in questions.iter().zip(answers()) {
        let (path, content) = (&question.path, question.body.as_deref().unwrap_or_default());
        let question = String::from_utf8_lossy(content);
        // It learns that it may read nothing.
        let nothing = match &**path {
            "/query/context/discover" => Some("\"authorized_sessions\":0"),
            _ if question.contains("find_evidence") => Some("0 Sessions of 0 granted"),
            _ if question.contains("list_sessions") => Some("\"sessions\":[]"),
            _ if question.contains("resources/list") => Some("\"resources\":[]"),
            _ => None,
        };
        match (&**path, nothing.is_some()) {
            (_, true) => {
                assert_eq!(status, 200, "{text}");
                assert!(text.contains(nothing.unwrap_or_default()), "{text}");
            }
            ("/mcp", false) => assert!(text.contains("outside_grant"), "{question} {text}"),
            (_, false) => assert_eq!(status, 403, "{path} {text}"),
        }
        assert!(!text.contains(SESSION_TEXT), "{path} {text}");
    }
    grant(&server);
    let again: Vec<u16> = answers().iter().map(|(status, _)| *status).collect();
    assert_eq!(
        again, [200; 12],
        "once granted again, earlier answers can be used again"
    );
    let revoke = json!({"token": "review", "reason": "lost"});
    change(&server, "/v1/grants/revoke", &revoke);
    for (question, (status, text)) in questions.iter().zip(answers()) {
        assert_eq!(status, 401, "{} {text}", question.path);
    }
}

/// A request that began before the revocation was acknowledged is answered completely or not at
/// all. One that began later is never answered.
fn no_request_begun_after_a_revocation_reads_evidence(backend: Backend) {
    let Some(server) = start(backend) else { return };
    grant(&server);
    let questions = questions(&server);
    let whole: Vec<String> = questions
        .iter()
        .map(|question| server.send(question).text())
        .collect();
    let token = json!({"token": "review", "reason": "a storm"});
    for _ in 0..REVOCATIONS {
        let (ended, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (acknowledged, asked) = thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS)
                .map(|asker| {
                    let (server, questions) = (&server, &questions);
                    let (ended, answered) = (&ended, &answered);
                    scope.spawn(move || {
                        let mut asked = Vec::new();
                        let mut number = asker;
                        loop {
                            // Each asks once more after the end, however slow the machine is.
                            let is_last = ended.load(Ordering::Relaxed);
                            number = (number + 1) % questions.len();
                            let began = Instant::now();
                            let reply = server.send(&questions[number]);
                            asked.push((began, number, reply.status, reply.text()));
                            answered.fetch_add(1, Ordering::Relaxed);
                            if is_last {
                                return asked;
                            }
                        }
                    })
                })
                .collect();
            server.read_json("/v1/facts");
            while answered.load(Ordering::Relaxed) < ASKERS {
                thread::yield_now();
            }
            change(&server, "/v1/grants/revoke", &token);
            let acknowledged = Instant::now();
            // Each of them asks once more.
            for question in &questions {
                assert_eq!(server.send(question).status, 401);
            }
            ended.store(true, Ordering::Relaxed);
            let asked = askers
                .into_iter()
                .flat_map(|asker| asker.join().expect("an asker"));
            (acknowledged, asked.collect::<Vec<_>>())
        });
        let mut later = 0;
        for (began, number, status, text) in asked {
            match status {
                200 => {
                    assert!(began < acknowledged, "{number} {text}");
                    // There are few search slots, and tools report that in band, as they report
                    // what happened after the token was checked.
                    let codes = ["busy", "unauthorized"].map(|code| format!("\"code\":\"{code}\""));
                    let is_refused = codes.iter().any(|code| text.contains(code));
                    assert!(is_refused || text == whole[number], "{text}");
                }
                503 => assert!(text.contains("capacity"), "{text}"),
                _ => {
                    assert_eq!(status, 401, "{number} {text}");
                    later += usize::from(began > acknowledged);
                }
            }
        }
        assert!(later >= ASKERS, "they kept asking after it");
        change(&server, "/v1/grants/restore", &token);
    }
}

fn an_invalid_token_name_is_refused_and_nothing_is_recorded(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let long = "a".repeat(65);
    let names = [
        "",
        " ",
        ".",
        "-a",
        "a b",
        "a/b",
        "a\u{0}b",
        "a\u{7}",
        "a\n",
        "\u{e9}t\u{e9}",
        "\u{202e}review",
        "review\u{200b}",
        "REVIEW ",
        "operator",
        "retrieval",
        "legacy",
        &long,
    ];
    for name in names {
        for (path, more) in [
            ("/v1/grants/add", json!({"session_id": "s"})),
            ("/v1/grants/revoke", json!({})),
            ("/v1/grants/restore", json!({})),
        ] {
            let mut request = json!({"token": name, "reason": "x"});
            request
                .as_object_mut()
                .expect("members")
                .extend(more.as_object().expect("members").clone());
            let reply = server.ask(path, request.to_string());
            assert_eq!(reply.status, 422, "{name:?} {path} {}", reply.text());
        }
        let written: Vec<String> = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let written = written.concat();
        for path in [
            "/v1/grants?token=",
            "/v1/grants/explain?session_id=s&token=",
        ] {
            let reply = server.read(&format!("{path}{written}"));
            assert_eq!(reply.status, 422, "{name:?} {path} {}", reply.text());
        }
    }
    let huge = "a".repeat(1024 * 1024);
    let request = json!({"token": huge, "session_id": "s", "reason": "x"});
    let reply = server.ask("/v1/grants/add", request.to_string());
    assert_eq!(reply.status, 413, "{}", reply.text());
    let request = json!({"token": "review", "session_id": "\u{0}", "reason": "x"});
    let reply = server.ask("/v1/grants/add", request.to_string());
    assert!([200, 422].contains(&reply.status), "{}", reply.text());
    // What does not exist cannot be removed, whatever its name.
    for id in [
        "00000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "%",
        "'; --",
        "\u{e9}",
        &long,
    ] {
        let request = json!({"grant_id": id, "reason": "x"});
        let reply = server.ask("/v1/grants/remove", request.to_string());
        assert_eq!(reply.status, 422, "{id} {}", reply.text());
    }
    // A name that only looks like another is a different name.
    let request = json!({"token": "Review", "session_id": "s", "reason": "x"});
    assert_eq!(
        change(&server, "/v1/grants/add", &request)["configured"],
        false
    );
    let reply = server.send(&get("/query/context/evidence?session_id=s"));
    assert_eq!(reply.status, 403);
}

fn a_token_removed_and_configured_again_keeps_the_grants_of_its_name(backend: Backend) {
    let Some(store) = Store::create(backend) else {
        return;
    };
    let serving = |tokens: Value| Server::start_on(&store, &naming(&tokens));
    let reads = |server: &Server, token: &str| {
        let request = Request::get("/query/context/evidence?session_id=s").bearer(token);
        server.send(&request).status
    };
    let mut server = serving(json!({"review": REVIEW, "triage": TRIAGE}));
    server.deliver("/ingest/gateway", Call::new("s", "one").body());
    grant(&server);
    assert_eq!([reads(&server, REVIEW), reads(&server, TRIAGE)], [200, 403]);
    server.stop();

    // The token is gone. What is granted to its name belongs to nobody, and can be listed and
    // changed.
    let mut server = serving(json!({"triage": TRIAGE}));
    assert_eq!([reads(&server, REVIEW), reads(&server, TRIAGE)], [401, 403]);
    let list = body(&server.send(&Request::get("/v1/grants").bearer(OPERATOR_TOKEN)));
    assert_eq!(list["entries"][0]["token"], "review");
    assert_eq!(list["configured_tokens"], json!(["triage"]));
    let revoke = json!({"token": "review", "reason": "it is gone"});
    let receipt = change(&server, "/v1/grants/revoke", &revoke);
    assert_eq!(receipt["configured"], false);
    server.stop();

    // The token returns under its old name and under another. A name keeps its grants and its
    // revocation.
    let mut server = serving(json!({"review": TRIAGE, "renamed": REVIEW}));
    assert_eq!([reads(&server, REVIEW), reads(&server, TRIAGE)], [403, 401]);
    change(&server, "/v1/grants/restore", &revoke);
    assert_eq!([reads(&server, REVIEW), reads(&server, TRIAGE)], [403, 200]);
    server.stop();
}
