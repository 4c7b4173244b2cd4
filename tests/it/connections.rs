//! The real server with many connections, and what it logs about the requests on them.

use std::net::TcpStream;

use harness::delivery::Call;
use harness::http::Request;
use harness::pattern::dig;
use harness::server::{Backend, Configuration, INGEST_CLIENT, INGEST_TOKEN, Server};
use svc_model::json::Json;

/// More sockets than the server may open files.
const STRANGERS: usize = 400;

#[test]
fn a_low_limit_of_open_files_is_raised_and_the_store_stays_readable() {
    let configuration = Configuration {
        open_files: Some(200),
        ..Configuration::default()
    };
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    let silent: Vec<TcpStream> = (0..STRANGERS)
        .map(|_| TcpStream::connect(server.address()).expect("a connection"))
        .collect();
    for number in 0..20 {
        let call = Call::new("s", &format!("call-{number}"));
        assert_eq!(server.deliver("/ingest/gateway", call.body()).status, 200);
        assert_eq!(server.read("/v1/facts").status, 200);
    }
    assert!(!server.log().contains("accept_failed"), "{}", server.log());
    drop(silent);
}

#[test]
fn every_log_event_of_a_request_has_its_request_id() {
    let variables = [("SVC_LOG", "debug"), ("SVC_LOG_FORMAT", "json")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let configuration = Configuration {
        variables: variables.into(),
        ..Configuration::default()
    };
    let server = Server::start(Backend::Sqlite, &configuration).expect("SQLite is never skipped");
    let request = Request::post("/ingest/gateway", Call::new("s", "call").body())
        .bearer(INGEST_TOKEN)
        .header("x-request-id", "delivery-1");
    assert_eq!(server.send(&request).status, 200);
    let missing = Request::get("/nothing").header("x-request-id", "missing-1");
    assert_eq!(server.try_send(&missing).expect("an answer").status, 404);
    let log = server.log();
    let events: Vec<Json> = log
        .lines()
        .filter_map(|line| Json::parse(line.as_bytes()).ok())
        .collect();
    let find = |message: &str, id: &str| {
        let text =
            |event: &Json, path: &str| dig(event, path).and_then(Json::as_str).map(str::to_owned);
        let of = |event: &&Json| {
            text(event, "fields.message").as_deref() == Some(message)
                && text(event, "span.request_id").as_deref() == Some(id)
        };
        let event = events
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("no {message} of {id} in\n{log}"));
        ["route", "client", "authority"].map(|name| text(event, &format!("span.{name}")))
    };
    let known = |text: &str| Some(text.to_owned());
    for message in ["fact.stored", "request.answered"] {
        let found = find(message, "delivery-1");
        assert_eq!(
            found,
            [
                known("/ingest/gateway"),
                known(INGEST_CLIENT),
                known("ingest")
            ]
        );
    }
    assert_eq!(
        find("request.answered", "missing-1"),
        [known("none"), None, None]
    );
}
