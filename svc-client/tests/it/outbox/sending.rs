//! What each answer means for a delivery, and for the deliveries behind it.

use std::error::Error as _;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use svc_client::model::problem::Problem;
use svc_client::outbox::{Ending, Reason};
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, ErrorKind, Outbox, OutboxError, RetryPolicy};
use tokio::sync::oneshot;

use super::{call, client, event, numbers, open, outbox, run};

const SKIPPED: &str = r#"{"skipped":true,"reason":"no_session"}"#;

async fn put(outbox: &Outbox, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        outbox.put(call(number)).await.unwrap();
    }
}

#[tokio::test]
async fn a_receipt_of_any_kind_acknowledges() {
    let (_folder, outbox) = outbox();
    let redelivered = r#"{"fact_id":"531f97ae-8872-41e7-8b99-d5840ab3cd2f","stored":false}"#;
    for receipt in [redelivered, SKIPPED] {
        put(&outbox, [1]).await;
        let server = FakeServer::start([Answer::text(200, receipt)]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert_eq!(drained.acknowledged, 1);
        assert!(matches!(drained.ending, Ending::Done));
        assert_eq!(outbox.status().unwrap().waiting, 0);
    }
}

#[tokio::test]
async fn a_delivery_that_may_succeed_later_stays_in_the_queue() {
    let (_folder, outbox) = outbox();
    put(&outbox, [1]).await;
    let mut bodies = Vec::new();
    for answer in [
        Answer::problem(400, &Problem::BodyIncomplete),
        Answer::text(408, ""),
        Answer::text(429, ""),
        Answer::text(500, ""),
        Answer::text(502, "<html>"),
        Answer::text(503, ""),
        Answer::closed(),
        Answer::broken("{"),
        Answer::text(200, ""),
        Answer::text(200, "<html>"),
        Answer::text(200, "[]"),
        Answer::text(200, "{}"),
        Answer::text(200, r#"{"fact_id":"1","stored":true}"#),
        Answer::text(
            200,
            r#"{"fact_id":"531f97ae-8872-41e7-8b99-d5840ab3cd2f","stored":"true"}"#,
        ),
        Answer::text(200, r#"{"fact_id":"531f97ae-8872-41e7-8b99-d5840ab3cd2f"}"#),
        Answer::text(200, r#"{"skipped":false,"reason":"no_session"}"#),
        Answer::text(204, ""),
    ] {
        let server = FakeServer::start([answer.clone()]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Later(_)), "{answer:?}");
        let status = outbox.status().unwrap();
        assert_eq!((status.waiting, status.refused), (1, 0), "{answer:?}");
        bodies.extend(server.received().into_iter().map(|request| request.body));
    }
    assert_eq!(bodies.len(), 17);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let server = FakeServer::start([Answer::stored()]);
    assert_eq!(
        outbox.drain(&client(&server)).await.unwrap().acknowledged,
        1
    );
    assert_eq!(server.received()[0].body, bodies[0]);
}

#[tokio::test]
async fn a_success_without_an_export_receipt_acknowledges_no_export() {
    let (_folder, outbox) = outbox();
    outbox.put(&event(1)).await.unwrap();
    let page = Answer::text(200, r#"{"login":"required"}"#);
    for answer in [page, Answer::text(200, "[]"), Answer::text(200, "")] {
        let server = FakeServer::start([answer]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Later(_)));
    }
    let server = FakeServer::start([Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 1);
}

#[tokio::test]
async fn a_permanently_refused_delivery_is_set_aside_and_can_be_put_back() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=5).await;
    let invalid =
        r#"{"detail":[{"type":"missing","loc":["body","payload"],"msg":"field required"}]}"#;
    let conflict = r#"{"detail":{"code":"inference_call_identity_conflict","message":"m"}}"#;
    let server = FakeServer::start([
        Answer::text(400, ""),
        Answer::text(409, conflict),
        Answer::text(413, ""),
        Answer::text(422, invalid),
        Answer::stored(),
    ]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 4));
    assert!(matches!(drained.ending, Ending::Done));
    let status = outbox.status().unwrap();
    assert_eq!((status.waiting, status.refused), (0, 4));
    let refused = outbox.refused().unwrap();
    let reason = |index: usize| -> &Reason { refused[index].reason.as_ref().unwrap() };
    let words: Vec<_> = (0..4)
        .map(|index| (&*reason(index).code, reason(index).status.unwrap()))
        .collect();
    assert_eq!(
        words,
        [
            ("malformed", 400),
            ("inference_call_identity_conflict", 409),
            ("too_large", 413),
            ("invalid", 422)
        ]
    );
    assert_eq!(
        reason(3).message,
        "the request is not valid: body.payload field required"
    );
    let kept = std::fs::read(&refused[1].path).unwrap();
    assert!(kept.ends_with(&server.received()[1].body));

    assert_eq!(outbox.restore_refused().unwrap(), 4);
    assert_eq!(outbox.refused().unwrap(), []);
    let server = FakeServer::start(vec![Answer::stored(); 4]);
    outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(numbers(&server), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_queue_that_needs_a_person_stops_and_resumes_when_fixed() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=2).await;
    for (status, code) in [
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (302, "redirected"),
        (405, "unrecognised"),
    ] {
        let server = FakeServer::start([Answer::text(status, "")]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Stopped(_)), "{status}");
        assert_eq!(server.received().len(), 1);
        // Every handle shows it, as one in another process would.
        let seen = open(outbox.folder()).status().unwrap();
        assert_eq!((seen.waiting, seen.refused), (2, 0));
        let stopped = seen.stopped.unwrap();
        assert_eq!((&*stopped.code, stopped.status), (code, Some(status)));
    }
    let server = FakeServer::start([Answer::stored(), Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 2);
    assert_eq!(outbox.status().unwrap().stopped, None);
}

#[tokio::test]
async fn a_delivery_that_the_service_fails_on_does_not_block_later_ones() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=4).await;
    let fails = || Answer::text(503, "");
    let server = FakeServer::start([fails(), fails(), Answer::stored(), Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 2);
    assert!(matches!(drained.ending, Ending::Later(_)));
    assert_eq!(numbers(&server), [1, 2, 3, 4]);
    assert_eq!(outbox.status().unwrap().waiting, 2);
}

#[tokio::test]
async fn an_unreachable_service_is_not_tried_for_every_delivery() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=9).await;
    for (answer, requests) in [
        (Answer::text(503, ""), 3),
        (Answer::closed(), 3),
        (Answer::text(429, ""), 1),
        (Answer::text(503, "").header("retry-after", "7"), 1),
    ] {
        let server = FakeServer::start(vec![answer.clone(); 9]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Later(_)));
        assert_eq!(server.received().len(), requests, "{answer:?}");
    }
    let drained = outbox.drain(&unreachable()).await.unwrap();
    let Ending::Later(error) = drained.ending else {
        panic!("{drained:?}");
    };
    assert_eq!(error.kind(), &ErrorKind::Connect);
    assert_eq!(outbox.status().unwrap().waiting, 9);
}

/// Returns a client for a port that was free a moment ago.
fn unreachable() -> Client {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    Client::builder(format!("http://{address}"))
        .retry(RetryPolicy::none())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_cancelled_attempt_leaves_its_delivery_in_the_queue() {
    let (_folder, outbox) = outbox();
    put(&outbox, [1]).await;
    let server = FakeServer::start([Answer::silent(), Answer::stored()]);
    let client = client(&server);
    let moment = Duration::from_millis(50);
    let cancelled = tokio::time::timeout(moment, outbox.drain(&client)).await;
    assert!(cancelled.is_err());
    let drained = outbox.drain(&client).await.unwrap();
    assert_eq!(drained.acknowledged, 1);
}

/// A sender in the background, as a program would run it.
struct Background {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), OutboxError>>,
}

impl Background {
    fn start(outbox: &Outbox, client: Client) -> Self {
        let (stop, stopped) = oneshot::channel();
        let moment = Duration::from_millis(1);
        let outbox = outbox.clone().pauses(moment, moment);
        let stopped = async move { drop(stopped.await) };
        let task = tokio::spawn(async move { outbox.run(&client, stopped).await });
        Self { stop, task }
    }

    async fn stop(self) -> Result<(), OutboxError> {
        drop(self.stop);
        self.task.await.unwrap()
    }
}

async fn until_empty(outbox: &Outbox) {
    let start = Instant::now();
    while outbox.status().unwrap().waiting > 0 {
        assert!(start.elapsed() < Duration::from_secs(30), "it still waits");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_background_sender_continues_after_an_outage() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=2).await;
    let mut script = vec![Answer::text(503, ""); 7];
    script.extend([Answer::closed(), Answer::text(200, "<html>")]);
    script.extend(vec![Answer::stored(); 13]);
    let server = FakeServer::start(script);
    let background = Background::start(&outbox, client(&server));
    until_empty(&outbox).await;
    // The sender is idle now, and would look again after a second. Each put wakes it at once.
    let start = Instant::now();
    for number in 3..=12 {
        outbox.put(run(number)).await.unwrap();
        until_empty(&outbox).await;
    }
    assert!(start.elapsed() < Duration::from_secs(6), "it was woken");
    assert!(matches!(
        outbox.drain(&client(&server)).await,
        Err(OutboxError::Busy)
    ));
    background.stop().await.unwrap();
    put(&outbox, [13]).await;
    assert_eq!(
        outbox.drain(&client(&server)).await.unwrap().acknowledged,
        1
    );
    let mut last = numbers(&server).split_off(9);
    last.sort_unstable();
    assert_eq!(last, (1..=13).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_background_sender_sends_and_takes_over_deliveries_of_others() {
    let (_folder, outbox) = outbox();
    let other = open(outbox.folder());
    let server = FakeServer::start(vec![Answer::stored(); 3]);
    let first = Background::start(&outbox, client(&server));
    put(&outbox, [1]).await;
    until_empty(&outbox).await;
    let second = Background::start(&other, client(&server));
    put(&open(outbox.folder()), [2]).await;
    until_empty(&outbox).await;
    first.stop().await.unwrap();
    put(&other, [3]).await;
    until_empty(&outbox).await;
    second.stop().await.unwrap();
    assert_eq!(numbers(&server), [1, 2, 3]);
}

#[tokio::test]
async fn a_background_sender_ends_when_a_person_must_act() {
    let (_folder, outbox) = outbox();
    put(&outbox, 1..=2).await;
    let server = FakeServer::start([Answer::stored(), Answer::text(401, "")]);
    let background = Background::start(&outbox, client(&server));
    let error = background.task.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "sending is paused: this needs attention");
    let source = error.source().map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("the token is missing or unknown"));
    assert_eq!(outbox.status().unwrap().waiting, 1);
}

#[tokio::test]
async fn a_background_sender_can_be_stopped_during_an_attempt() {
    let (_folder, outbox) = outbox();
    put(&outbox, [1]).await;
    let server = FakeServer::start([Answer::silent()]);
    let background = Background::start(&outbox, client(&server));
    while server.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let start = Instant::now();
    background.stop().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(outbox.status().unwrap().waiting, 1);
}

#[tokio::test]
async fn the_receipt_of_a_newer_service_is_accepted() {
    for receipt in [
        r#"{"skipped":true,"reason":"a_newer_reason"}"#,
        r#"{"accepted":{"queue":"later"}}"#,
    ] {
        let (_folder, outbox) = outbox();
        outbox.put(call(1)).await.unwrap();
        outbox.put(call(2)).await.unwrap();
        let answer = Answer::text(200, receipt).header("x-request-id", "4f1c");
        let server = FakeServer::start([answer, Answer::stored()]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Done), "{receipt}");
        assert_eq!(
            (drained.acknowledged, outbox.status().unwrap().waiting),
            (2, 0)
        );
    }
}

#[tokio::test]
async fn a_success_from_a_proxy_is_not_a_receipt() {
    for (body, request_id) in [
        (r#"{"login":"required"}"#, None),
        ("<html>", Some("4f1c")),
        ("[]", Some("4f1c")),
    ] {
        let (_folder, outbox) = outbox();
        outbox.put(call(1)).await.unwrap();
        let answer = Answer::text(200, body);
        let answer = match request_id {
            Some(id) => answer.header("x-request-id", id),
            None => answer,
        };
        let server = FakeServer::start([answer]);
        let drained = outbox.drain(&client(&server)).await.unwrap();
        assert!(matches!(drained.ending, Ending::Later(_)), "{body}");
        assert_eq!(outbox.status().unwrap().waiting, 1);
    }
}
