//! Stopping the server, and whom it waits for.

use std::net::TcpStream;
use std::time::Duration;

use super::client::{bearer, padded, post, webhook};
use super::{INGEST, Limits, SHORT, Server, WEBHOOK, patient, until};

#[test]
fn a_stop_does_not_wait_for_strangers_or_idle_connections() {
    let mut server = Server::start(patient());
    let mut idle = server.connect();
    idle.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    assert_eq!(idle.answer().expect("an answer").status, 200);
    let (forged, _) = webhook(WEBHOOK, 100_000);
    let mut strangers = [
        server.connect(),
        server.begin("GET /health HTTP/1.1\r\nhost:"),
        server.begin(format!("{}{{", post("/v1/logs", "", 100))),
        server.begin(format!("{forged}{{")),
    ];
    let took = server.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
    for client in strangers.iter_mut().chain([&mut idle]) {
        client.wait_for_the_end();
    }
}

#[test]
fn a_stop_waits_for_a_request_that_was_accepted() {
    let mut server = Server::start(patient());
    let body = padded(1_000);
    let head = post(
        "/v1/logs",
        &format!("{}expect: 100-continue\r\n", bearer(INGEST)),
        1_000,
    );
    let mut client = server.begin(head);
    let go_on = client.read(false).expect("an invitation");
    assert_eq!(
        go_on.status, 100,
        "the sender is known and its body waited for"
    );
    let running = server.running.take().unwrap();
    let stopping = server.runtime.spawn(running.stop());
    until("it still listens", || {
        TcpStream::connect(server.address).is_err()
    });
    assert!(!stopping.is_finished());
    client.send(body);
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    drop(client);
    server.runtime.block_on(stopping).unwrap();
}

#[test]
fn a_stop_gives_up_on_a_request_that_never_arrives() {
    let mut server = Server::start(Limits {
        stop_requests_for: SHORT,
        ..patient()
    });
    let head = post(
        "/v1/logs",
        &format!("{}expect: 100-continue\r\n", bearer(INGEST)),
        1_000,
    );
    let mut client = server.begin(head);
    assert_eq!(client.read(false).expect("an invitation").status, 100);
    assert!(server.stop() < Duration::from_secs(5));
    client.wait_for_the_end();
}
