//! Who keeps a connection when there are too many.

use super::client::{Client, bearer, open, post, webhook};
use super::{INGEST, Limits, Server, WEBHOOK, patient, until};

#[test]
fn strangers_lose_their_connections_to_a_sender_who_can_sign() {
    let server = Server::start(Limits {
        connections_max: 8,
        newcomers_min: 4,
        ..patient()
    });
    let mut known = server.connect();
    known.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    assert_eq!(known.answer().expect("an answer").status, 200);
    let mut strangers: Vec<Client> = (0..50)
        .map(|number| match number % 3 {
            0 => server.connect(),
            1 => server.begin("POST /v1/logs HTTP/1.1\r\ncontent-len"),
            _ => server.begin(post("/v1/logs", "", 1_000)),
        })
        .collect();
    let (head, body) = webhook(WEBHOOK, 300_000);
    let mut signer = server.begin(head);
    signer.send(body);
    let answer = signer.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    until("there are more connections than places", || {
        open(&mut strangers) <= 8
    });
    known.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
    let again = known.answer().expect("a known sender keeps its place");
    assert_eq!(again.status, 200);
}

#[test]
fn idle_known_senders_lose_their_connections_to_newcomers() {
    let server = Server::start(Limits {
        connections_max: 8,
        newcomers_min: 4,
        ..patient()
    });
    let mut known: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = server.connect();
            client.send(format!("GET /v1/me HTTP/1.1\r\n{}\r\n", bearer(INGEST)));
            assert_eq!(client.answer().expect("an answer").status, 200);
            client
        })
        .collect();
    assert!(known[0].has_ended(), "the longest idle gives way");
    assert!(!known[19].has_ended());
}
