//! The form of every answer, and answers that nobody reads.

use std::io::{Read as _, Write as _};

use svc_model::json::Json;

use super::client::bearer;
use super::{INGEST, Limits, OPERATOR, SHORT, Server, patient, until};

#[test]
fn a_connection_ends_if_the_client_does_not_read_its_answers() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        ..patient()
    });
    let mut client = server.connect();
    let request = "GET /openapi.json HTTP/1.1\r\nhost: svc\r\n\r\n";
    let requests = 2_000;
    client.send(request.repeat(requests));
    // These are far more answers than the buffers between client and server hold, so the server
    // must end the connection.
    until("it goes on for ever", || {
        client.0.get_mut().write_all(b"\r\n").is_err()
    });
    let mut received = Vec::new();
    drop(client.0.read_to_end(&mut received));
    let answers = received
        .windows(12)
        .filter(|at| at == b"HTTP/1.1 200")
        .count();
    assert!(answers < requests, "{answers}");
}

#[test]
fn every_refusal_has_a_body_in_json() {
    let server = Server::start(patient());
    let long = "x".repeat(40_000);
    let auth = bearer(INGEST);
    for (request, status, detail) in [
        ("nonsense\r\n\r\n".to_owned(), 400, "Malformed request"),
        (
            "GET /health HTTP/1.1\r\nbad header\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            "GET /health HTTP/9.9\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            format!("GET /health HTTP/1.1\r\nx: {long}\r\n\r\n"),
            431,
            "request head too large",
        ),
        (
            format!("GET /v1/me HTTP/1.1\r\n{auth}{auth}\r\n"),
            400,
            "Malformed request",
        ),
        (
            "GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(),
            400,
            "Malformed request",
        ),
        (
            format!(
                "POST /v1/logs HTTP/1.1\r\n{auth}transfer-encoding: gzip, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
            400,
            "Malformed request",
        ),
        (
            format!("POST /v1/logs HTTP/1.1\r\n{auth}transfer-encoding: gzip\r\n\r\n"),
            400,
            "Malformed request",
        ),
        ("GET /nothing HTTP/1.1\r\n\r\n".to_owned(), 404, "Not Found"),
        (
            "POST /docs HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            405,
            "Method Not Allowed",
        ),
    ] {
        // The same after a request that was answered, on the same connection.
        for before in ["", "GET /health HTTP/1.1\r\n\r\n"] {
            let mut client = server.connect();
            if !before.is_empty() {
                client.send(before);
                assert_eq!(client.answer().expect("an answer").status, 200);
            }
            client.send(&request);
            let answer = client.answer().expect("an answer");
            let shown = &request[..request.len().min(60)];
            assert_eq!(answer.status, status, "{shown}: {}", answer.body);
            assert_eq!(
                answer.body,
                format!(r#"{{"detail":"{detail}"}}"#),
                "{shown}"
            );
            assert!(
                answer.head.contains("content-type: application/json"),
                "{shown}"
            );
        }
    }
}

#[test]
fn answers_of_authenticated_paths_may_not_be_cached() {
    let server = Server::start(patient());
    let auth = bearer(INGEST);
    for (request, status, is_closed) in [
        (
            format!("GET /v1/me HTTP/1.1\r\n{auth}{auth}\r\n"),
            400,
            true,
        ),
        (format!("GET /v1/me HTTP/1.1\r\n{auth}\r\n"), 200, true),
        ("GET /v1/me HTTP/1.1\r\n\r\n".into(), 401, true),
        ("DELETE /v1/me HTTP/1.1\r\n\r\n".into(), 405, true),
        ("DELETE /ingest/forge HTTP/1.1\r\n\r\n".into(), 405, true),
        ("DELETE /health HTTP/1.1\r\n\r\n".into(), 405, false),
        ("GET /health HTTP/1.1\r\n\r\n".into(), 200, false),
    ] {
        let mut client = server.connect();
        client.send(&request);
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
        let forbids_caching = answer.head.contains("cache-control: no-store");
        assert_eq!(forbids_caching, is_closed, "{request}: {}", answer.head);
    }
}

#[test]
fn head_on_the_probe_and_pages_equals_get_without_the_body() {
    let server = Server::start(patient());
    let mut client = server.connect();
    client.send(format!("HEAD /v1/me HTTP/1.1\r\n{}\r\n", bearer(OPERATOR)));
    assert_eq!(client.read(false).expect("an answer").status, 405);
    for path in ["/health", "/docs"] {
        let request =
            |method: &str| format!("{method} {path} HTTP/1.1\r\n{}\r\n", bearer(OPERATOR));
        let got = server.answer(request("GET"));
        let mut client = server.connect();
        client.send(request("HEAD"));
        let head = client.read(false).expect("an answer");
        assert_eq!(head.status, 200, "{path}");
        assert!(
            head.head
                .contains(&format!("\r\ncontent-length: {}\r\n", got.body.len())),
            "{path}"
        );
        // The next answer follows right after the head.
        client.send(request("GET"));
        assert_eq!(client.answer().expect("an answer").body, got.body);
    }
}

#[test]
fn requests_without_a_route_are_logged_and_counted_too() {
    let server = Server::start(patient());
    let missing = server.answer("GET /nothing HTTP/1.1\r\nx-request-id: own-1\r\n\r\n");
    assert_eq!(missing.status, 404);
    assert!(
        missing.head.contains("\r\nx-request-id: own-1\r\n"),
        "{}",
        missing.head
    );
    let wrong = server.answer("PUT /v1/facts HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(wrong.status, 405);
    assert!(wrong.head.contains("\r\nallow: get\r\n"), "{}", wrong.head);
    assert!(wrong.head.contains("\r\nx-request-id: "), "{}", wrong.head);
    assert_eq!(server.answered("none", 404), Some(Json::from(1_i64)));
    assert_eq!(server.answered("/v1/facts", 405), Some(Json::from(1_i64)));
}
