//! What surrounds the tools: who may use them, from where, how many at once, and what is logged.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use harness::http::Request;
use harness::server::{
    Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, RETRIEVAL_TOKEN, Server, UNKNOWN_TOKEN,
};
use serde_json::{Value, json};

use super::agent::{Agent, TRANSPORTS, Transport, enable, serving, start};
use super::{SESSION, deliver, message};

#[test]
fn the_endpoint_is_absent_unless_it_is_enabled() {
    let server = Server::start(Backend::Sqlite, &Configuration::granting(&[SESSION]));
    let server = server.expect("SQLite is never skipped");
    assert_eq!(server.send(&message(Some(RETRIEVAL_TOKEN))).status, 404);
}

#[test]
fn a_token_that_may_not_read_may_not_use_the_tools() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    for (token, status) in [
        (None, 401),
        (Some(UNKNOWN_TOKEN), 401),
        (Some(INGEST_TOKEN), 403),
        (Some(RETRIEVAL_TOKEN), 200),
        (Some(OPERATOR_TOKEN), 200),
    ] {
        let reply = server.send(&message(token));
        assert_eq!(reply.status, status, "{}", reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    // Over standard input it is reported in band, because there is no other place.
    let agent = Agent::connect(&server, Transport::Stdio, INGEST_TOKEN);
    assert!(agent.tools().is_empty());
    let parts = agent.refused("find_evidence", json!({"query": "pager"}));
    assert_eq!(parts["code"], "forbidden");
    let agent = Agent::connect(&server, Transport::Stdio, UNKNOWN_TOKEN);
    let parts = agent.refused("open_evidence", json!({"session_id": SESSION}));
    assert_eq!(parts["code"], "unauthorized");
}

#[test]
fn requests_from_foreign_web_pages_are_refused() {
    let mut configuration = Configuration::granting(&[SESSION]);
    enable(&mut configuration);
    let variables = &mut configuration.variables;
    variables.insert(
        "SVC_MCP_ORIGINS".into(),
        r#"["https://agents.example:443"]"#.into(),
    );
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    let sent = |target: &str, given: &[(&str, &str)]| {
        let message = message(Some(RETRIEVAL_TOKEN));
        let body = message.body.expect("a body");
        let address = server.base_url().replace("http://", "");
        let mut head = format!("POST {target} HTTP/1.1\r\nconnection: close\r\n");
        let length = ("content-length".to_owned(), body.len().to_string());
        let mut headers = message.headers;
        headers.push(length);
        headers.extend(
            given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        if given.iter().all(|(name, _)| *name != "host") {
            headers.push(("host".to_owned(), address.clone()));
        }
        for (name, value) in headers {
            head.extend([&name, ": ", &value, "\r\n"]);
        }
        head.push_str("\r\n");
        let mut connection = TcpStream::connect(address).expect("a connection");
        connection.write_all(head.as_bytes()).expect("a head");
        connection.write_all(&body).expect("a body");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        status.unwrap_or(0_u16)
    };
    let given_all = |given: &[(&str, &str)]| sent("/mcp", given);
    let given = |name: &str, value: &str| given_all(&[(name, value)]);
    assert_eq!(given("host", "evil.example"), 403);
    assert_eq!(given("host", "localhost:1234"), 200);
    assert_eq!(given("host", "a@127.0.0.1"), 403);
    assert_eq!(given("host", "127.0.0.1:abc"), 403);
    // The host of an absolute target counts, and not that of the header.
    assert_eq!(sent("http://evil.example/mcp", &[]), 403);
    let absolute = format!("{}/mcp", server.base_url());
    assert_eq!(sent(&absolute, &[("host", "evil.example")]), 200);
    assert_eq!(given("origin", "https://evil.example"), 403);
    assert_eq!(given("origin", "null"), 403);
    assert_eq!(given("origin", "http://localhost:3000"), 403);
    assert_eq!(given("origin", "https://agents.example"), 200);
    // A page of the service itself comes from here, and names exactly this port.
    let own = server.base_url();
    assert_eq!(given("origin", &own), 200);
    assert_eq!(
        given("origin", &own.replace("http://", "http://other.")),
        403
    );
    let foreign = [("host", "evil.example"), ("origin", "http://evil.example")];
    assert_eq!(given_all(&foreign), 403);
}

#[test]
fn an_mcp_message_has_a_size_limit_one_content_type_and_one_method() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let mut large = message(Some(RETRIEVAL_TOKEN));
    large.body = Some(vec![b' '; 256 * 1024 + 1]);
    assert_eq!(server.send(&large).status, 413);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let several = format!("[{ping},{ping}]");
    let unclosed = "[".repeat(100_000);
    let deep = format!("{unclosed}{}", "]".repeat(100_000));
    for (body, code) in [
        ("", -32_700),
        ("{", -32_700),
        (&*unclosed, -32_700),
        (&*deep, -32_600),
        ("[]", -32_600),
        (&*several, -32_600),
        ("7", -32_600),
        (r#"{"jsonrpc":"2.0"}"#, -32_600),
    ] {
        let mut request = message(Some(RETRIEVAL_TOKEN));
        request.body = Some(body.into());
        let reply = server.send(&request);
        let shown = &body[..body.len().min(40)];
        assert_eq!(reply.status, 400, "{shown}: {}", reply.text());
        let error: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(error["error"]["code"], code, "{shown}: {error}");
        assert_eq!(error["id"], Value::Null);
    }
    for (name, value, status) in [
        ("content-type", "text/plain", 415),
        ("accept", "*/*", 200),
        ("accept", "application/*, text/*", 200),
        ("accept", "text/html", 200),
        ("mcp-protocol-version", "1999-01-01", 400),
    ] {
        let mut request = message(Some(RETRIEVAL_TOKEN));
        request.headers.retain(|(other, _)| other != name);
        let reply = server.send(&request.header(name, value));
        assert_eq!(reply.status, status, "{name}: {}", reply.text());
    }
    let mut request = message(Some(RETRIEVAL_TOKEN));
    request.headers.retain(|(name, _)| name != "accept");
    let reply = server.send(&request);
    assert_eq!(reply.status, 200, "any media type");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    for method in ["GET", "DELETE", "PUT"] {
        let request = Request {
            method: method.into(),
            path: "/mcp".into(),
            ..Request::default()
        };
        let reply = server.send(&request.bearer(RETRIEVAL_TOKEN));
        assert_eq!(reply.status, 405);
        assert_eq!(reply.header("allow"), Some("POST"));
    }
}

#[test]
fn every_line_of_standard_input_is_answered() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let mut program = server.shell();
    program.env("SVC_TOKEN", RETRIEVAL_TOKEN).arg("mcp");
    program.stdin(std::process::Stdio::piped());
    program.stdout(std::process::Stdio::piped());
    let mut program = program.spawn().expect("svc starts");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    // The last line ends with the input.
    let last = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let lines = format!("{hello}\n{ready}\n{{\n[]\n5\n{{\"id\":7}}\n{last}");
    let mut input = program.stdin.take().expect("its input");
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let answers = output.stdout.split(|byte| *byte == b'\n');
    let answers: Vec<Value> = answers
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    let codes: Vec<_> = answers
        .iter()
        .filter(|answer| answer.get("id") == Some(&Value::Null))
        .map(|answer| answer["error"]["code"].as_i64().expect("a code"))
        .collect();
    assert_eq!(codes, [-32_700, -32_600, -32_600, -32_600], "{answers:?}");
    let listed = answers.iter().find(|answer| answer["id"] == 2);
    let listed = listed.expect("the last line is answered");
    assert!(listed["result"]["tools"].is_array(), "{listed}");
}

#[test]
fn an_agent_is_told_that_the_service_is_down() {
    let mut server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let agent = Agent::connect(&server, Transport::Stdio, RETRIEVAL_TOKEN);
    server.kill();
    let parts = agent.refused("find_evidence", json!({"query": "pager"}));
    assert_eq!(parts["code"], "unreachable");
}

#[test]
fn an_operator_keeps_all_tools_while_the_service_is_down() {
    let mut server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let [operator, retrieval] = [OPERATOR_TOKEN, RETRIEVAL_TOKEN]
        .map(|token| Agent::connect(&server, Transport::Stdio, token));
    server.kill();
    // A client may keep this list forever.
    for agent in [&operator, &retrieval] {
        assert_eq!(agent.tools().len(), 10);
    }
}

#[test]
fn an_operator_searches_everything_without_any_setting() {
    let mut configuration = Configuration::default();
    enable(&mut configuration);
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    for transport in TRANSPORTS {
        let agent = Agent::connect(&server, transport, OPERATOR_TOKEN);
        assert_eq!(agent.tools().len(), 10);
        let answer = agent.structured("search_evidence", json!({"query": "pager"}));
        assert_eq!(answer["hits"], json!([]));
        // Earlier tools search the Sessions of the settings, of which there are none.
        let parts = agent.refused("find_evidence", json!({"query": "pager"}));
        assert_eq!(parts["code"], "retrieval_disabled");
        assert_eq!(parts["status"], 404);
        let hint = parts["hint"].as_str().expect("a hint");
        assert!(hint.contains("search_evidence"), "{hint}");
    }
}

#[test]
fn agents_that_ask_at_once_wait_for_the_only_slot() {
    let mut configuration = serving(&[SESSION]);
    configuration
        .variables
        .insert("SVC_READ_SLOTS".into(), "1".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    deliver(&server);
    let agents: Vec<Agent> = (0..16)
        .map(|_| Agent::connect(&server, Transport::Http, RETRIEVAL_TOKEN))
        .collect();
    let together = std::sync::Barrier::new(agents.len());
    let arguments = json!({"session_id": SESSION, "query": "window pager"});
    std::thread::scope(|scope| {
        for agent in &agents {
            let (together, arguments) = (&together, arguments.clone());
            scope.spawn(move || {
                together.wait();
                agent.structured("search_session", arguments);
            });
        }
    });
}

#[test]
fn the_log_contains_neither_content_nor_tokens_at_any_level() {
    let mut configuration = Configuration::granting(&[SESSION]);
    enable(&mut configuration);
    let variables = &mut configuration.variables;
    variables.insert("SVC_LOG".into(), "trace".into());
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    deliver(&server);
    let agent = Agent::connect(&server, Transport::Http, RETRIEVAL_TOKEN);
    let search = json!({"session_id": SESSION, "query": "pager window"});
    let found = agent.structured("search_session", search);
    assert!(found.to_string().contains("fix the pager in src"));
    let log = server.log();
    assert!(log.contains("/mcp"), "{log}");
    for kept_out in ["fix the pager in src", "pager window", RETRIEVAL_TOKEN] {
        assert!(!log.contains(kept_out), "{kept_out} appears in the log");
    }
}

#[test]
fn names_chosen_by_a_caller_appear_in_no_error_and_no_log_line() {
    let server = start(Backend::Sqlite, &[SESSION]).expect("SQLite is never skipped");
    let named = "planted-name".repeat(10_000);
    let uri = format!("svc://session/{}", &named[..100]);
    for (method, params, limit) in [
        (&*named, json!({}), 1_000),
        ("prompts/get", json!({"name": named}), 1_000),
        ("tools/call", json!({"name": named}), 1_000),
        ("resources/subscribe", json!({"uri": uri}), 1_000),
        // The address is the caller's own, and is returned to it.
        ("resources/read", json!({"uri": uri}), 2_000),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = message(Some(RETRIEVAL_TOKEN));
        request.body = Some(body.to_string().into());
        let reply = server.send(&request);
        let error: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert!(error["error"]["code"].is_i64(), "{error}");
        assert!(reply.body.len() < limit, "{error}");
    }
    let log = server.log();
    assert!(!log.contains("planted-name"), "{log}");
    for (method, params, code) in [
        ("tools/call", json!({"name": 5}), -32_602),
        ("resources/read", json!({}), -32_602),
        ("tools/run", json!({}), -32_601),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = message(Some(RETRIEVAL_TOKEN));
        request.body = Some(body.to_string().into());
        let error: Value = serde_json::from_slice(&server.send(&request).body).expect("JSON");
        assert_eq!(error["error"]["code"], code, "{method} {error}");
    }
}
