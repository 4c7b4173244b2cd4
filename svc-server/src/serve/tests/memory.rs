//! Who gets the memory for bodies when it is short.

use std::thread;
use std::time::Duration;

use super::client::{Client, bearer, open, padded, post, webhook};
use super::{INGEST, Limits, SHORT, Server, WEBHOOK, patient, until};

#[test]
fn forged_bodies_use_little_memory_and_delay_nobody() {
    let server = Server::start(Limits {
        stranger_bytes_max: 1024 * 1024,
        ..patient()
    });
    let (forged, part) = webhook("another-another-another-another", 200_000);
    let mut strangers: Vec<Client> = (0..40)
        .map(|_| {
            let mut client = server.begin(&forged);
            client.send(&part[..100_000]);
            client
        })
        .collect();
    // The remaining ones hold as much as strangers may, once all that they sent is read.
    let mut before = strangers.len();
    until("forged bodies hold more than their share", || {
        thread::sleep(Duration::from_millis(250));
        let now = open(&mut strangers);
        let is_settled = now == before;
        before = now;
        is_settled && now * 100_000 <= 1024 * 1024
    });
    let (head, body) = webhook(WEBHOOK, 300_000);
    let mut signer = server.begin(head);
    signer.send(body);
    let answer = signer.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn stalled_bodies_give_their_memory_to_new_ones() {
    let server = Server::start(Limits {
        known_bytes_max: 1024 * 1024,
        body_idle_when_short_for: SHORT,
        ..patient()
    });
    let head = post("/v1/logs", &bearer(INGEST), 300_000);
    let mut stalled: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = server.begin(&head);
            client.send(&padded(300_000)[..200_000]);
            client
        })
        .collect();
    // Together they are many times as large as what may be held, but all of them arrive in the end.
    let mut senders: Vec<Client> = (0..10)
        .map(|_| {
            let mut client = server.begin(&head);
            client.send(padded(300_000));
            client
        })
        .collect();
    for sender in &mut senders {
        let answer = sender.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let open = open(&mut stalled);
    assert!(open < 20, "no stalled body was ended");
}

#[test]
fn a_body_without_memory_is_told_to_retry() {
    let server = Server::start(Limits {
        known_bytes_max: 100_000,
        memory_for: SHORT,
        ..patient()
    });
    // The oldest continues beyond what may be held, and stalls there.
    let head = post("/v1/logs", &bearer(INGEST), 300_000);
    let mut oldest = server.begin(&head);
    oldest.send(&padded(300_000)[..200_000]);
    until("the oldest is first", || {
        let mut next = server.begin(&head);
        next.send(padded(300_000));
        let answer = next.answer().expect("an answer");
        answer.status == 503 && answer.head.contains("retry-after: 1")
    });
    oldest.send(&padded(300_000)[200_000..]);
    assert_eq!(oldest.answer().expect("an answer").status, 200);
}
