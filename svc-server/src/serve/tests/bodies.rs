//! Bodies that break off, stall or arrive slowly.

use std::net::Shutdown;
use std::time::Instant;

use super::client::{bearer, call, padded, post, webhook};
use super::{INGEST, Limits, SHORT, Server, WEBHOOK, patient};

#[test]
fn a_truncated_body_stores_nothing() {
    let server = Server::start(patient());
    let path = "/ingest/gateway/gateway_a";
    let batch = format!("{}\n{}\n", call("one"), call("two"));
    let before = server.facts();
    let head = post(path, &bearer(INGEST), batch.len());
    let chunked = format!(
        "POST {path} HTTP/1.1\r\n{}transfer-encoding: chunked\r\n\r\n{:x}\r\n{batch}\r\n",
        bearer(INGEST),
        batch.len()
    );
    // After the first payload, at the end of a chunk, and within the next chunk's size and bytes.
    let half = call("one").len() + 1;
    for (sent, ending) in [
        (format!("{head}{}", &batch[..half]), ""),
        (chunked.clone(), ""),
        (chunked.clone(), "5"),
        (chunked.clone(), "5\r\n{}"),
        (chunked.clone(), "nonsense\r\n"),
        (chunked.clone(), "0\r\n"),
    ] {
        let mut client = server.begin(format!("{sent}{ending}"));
        client.0.get_mut().shutdown(Shutdown::Write).unwrap();
        if let Some(answer) = client.answer() {
            assert_eq!(answer.status, 400, "{ending:?}: {}", answer.body);
            assert_eq!(answer.body, r#"{"detail":"request body is incomplete"}"#);
        }
        client.wait_for_the_end();
        assert_eq!(server.facts(), before, "{ending:?}");
    }
    let whole = server.answer(format!("{chunked}0\r\n\r\n"));
    assert_eq!(whole.status, 200, "{}", whole.body);
    assert_ne!(server.facts(), before, "the whole batch is stored");
}

#[test]
fn a_truncated_body_reveals_nothing_to_a_stranger() {
    let server = Server::start(patient());
    let (head, body) = webhook("another-another-another-another", 1_000);
    for request in [
        format!("{}{{", post("/v1/logs", "", 100)),
        format!("{}{{", post("/v1/logs", &bearer("wrong"), 100)),
        format!("{head}{}", &String::from_utf8(body).unwrap()[..500]),
    ] {
        let mut client = server.begin(&request);
        client.0.get_mut().shutdown(Shutdown::Write).unwrap();
        if let Some(answer) = client.answer() {
            assert_eq!(answer.status, 401, "{request}: {}", answer.body);
        }
    }
}

#[test]
fn a_stranger_has_little_time() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        ..patient()
    });
    let mut silent = server.connect();
    let mut half = server.begin("GET /health HTTP/1.1\r\nhost:");
    let mut body = server.begin(format!("{}{{", post("/v1/logs", &bearer("wrong"), 100)));
    let (head, _) = webhook(WEBHOOK, 1_000);
    let mut signer = server.begin(format!("{head}{{"));
    silent.wait_for_the_end();
    half.wait_for_the_end();
    for client in [&mut body, &mut signer] {
        assert_eq!(client.answer().expect("an answer").status, 401);
        client.wait_for_the_end();
    }
}

#[test]
fn a_stranger_gains_time_by_sending_up_to_a_limit() {
    let server = Server::start(Limits {
        stranger_for: SHORT,
        stranger_bytes_per_second: 1,
        stranger_body_for: SHORT * 5,
        ..patient()
    });
    let started = Instant::now();
    let (head, _) = webhook(WEBHOOK, 10_000);
    let mut signer = server.begin(head);
    signer.send(padded(1_000));
    assert_eq!(signer.answer().expect("an answer").status, 401);
    assert!(
        started.elapsed() >= SHORT * 5,
        "it has gained more time than the first"
    );
}

#[test]
fn a_stalled_body_of_a_known_sender_is_408() {
    let server = Server::start(Limits {
        body_idle_for: SHORT,
        ..patient()
    });
    let mut client = server.begin(format!("{}{{", post("/v1/logs", &bearer(INGEST), 100)));
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 408);
    assert_eq!(answer.body, r#"{"detail":"request body took too long"}"#);
    let server = Server::start(Limits {
        body_for: SHORT,
        ..patient()
    });
    let mut client = server.begin(post("/v1/logs", &bearer(INGEST), 10_000));
    while !client.has_ended_or_answered() {
        client.send(" ");
        std::thread::sleep(SHORT / 10);
    }
    assert_eq!(client.answer().expect("an answer").status, 408);
}
