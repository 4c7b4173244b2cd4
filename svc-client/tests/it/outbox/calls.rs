//! Calls of a Session, which build on each other.

use std::fs;
use std::path::Path;

use svc_client::model::id::SessionId;
use svc_client::model::ingest::{AgentName, CallsRequest, SentCall};
use svc_client::model::time::Instant;
use svc_client::outbox::Ending;
use svc_client::testing::{Answer, FakeServer};
use svc_client::{ErrorKind, Outbox};

use super::{client, files_ending, open, outbox};

const LACKING: &str =
    r#"{"stored":0,"duplicates":0,"skipped":{},"rejected":{"after_unknown":1,"new_word":1}}"#;

fn calls(session: &str, id: &str) -> CallsRequest {
    let ended = Instant::parse("2026-01-02T03:04:07Z").unwrap();
    let call = SentCall::builder().id(id).ended(ended).build().unwrap();
    CallsRequest::builder()
        .session(SessionId::new(session).unwrap())
        .agent(AgentName::new("bot").unwrap())
        .call(call)
        .build()
        .unwrap()
}

async fn put(outbox: &Outbox, all: &[(&str, &str)]) {
    for (session, id) in all {
        outbox.put(calls(session, id)).await.unwrap();
    }
}

/// Returns the ids of the calls that a server received, in order.
fn received(server: &FakeServer) -> Vec<String> {
    let ids = server.received().into_iter().map(|request| {
        assert_eq!(request.target, "/ingest/calls");
        let body = String::from_utf8(request.body).unwrap();
        let (_, rest) = body.split_once(r#""call_id":""#).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    });
    ids.collect()
}

#[tokio::test]
async fn calls_of_one_session_do_not_overtake_each_other() {
    let (_folder, outbox) = outbox();
    put(&outbox, &[("s", "1"), ("t", "2"), ("s", "3"), ("t", "4")]).await;
    let server = FakeServer::start([
        Answer::text(500, ""),
        Answer::stored(),
        Answer::stored(),
        Answer::stored(),
        Answer::stored(),
    ]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (2, 0));
    assert!(matches!(drained.ending, Ending::Later(_)));
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert!(matches!(drained.ending, Ending::Done));
    assert_eq!(received(&server), ["1", "2", "4", "1", "3"]);
}

#[tokio::test]
async fn calls_wait_for_those_that_they_continue() {
    let (_folder, outbox) = outbox();
    put(&outbox, &[("s", "1"), ("s", "2"), ("t", "3")]).await;
    let server = FakeServer::start([Answer::text(200, LACKING), Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 0));
    let Ending::Later(error) = drained.ending else {
        panic!("they wait");
    };
    assert_eq!(*error.kind(), ErrorKind::EarlierCallsMissing);
    assert_eq!(received(&server), ["1", "3"]);
    assert_eq!(outbox.status().unwrap().waiting, 2);
}

/// Changes when a delivery was put.
fn grow_old(folder: &Path) {
    for name in files_ending(folder, ".delivery") {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(r#""put_at":""#).unwrap();
        let (time, rest) = rest.split_once('"').unwrap();
        let old = format!("{}{}", "2001", &time[4..]);
        fs::write(&path, format!(r#"{before}"put_at":"{old}"{rest}"#)).unwrap();
    }
}

#[tokio::test]
async fn calls_do_not_wait_for_ever() {
    let (folder, outbox) = outbox();
    put(&outbox, &[("s", "1"), ("s", "2")]).await;
    grow_old(outbox.folder());
    let outbox = open(&folder.path().join("outbox"));
    let server = FakeServer::start([Answer::text(200, LACKING), Answer::stored()]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!((drained.acknowledged, drained.refused), (1, 1));
    let refused = outbox.refused().unwrap();
    let reason = refused[0].reason.as_ref().unwrap();
    assert_eq!((&*reason.code, reason.status), ("after_unknown", None));
}

#[tokio::test]
async fn calls_that_are_rejected_for_good_do_not_wait() {
    let (_folder, outbox) = outbox();
    put(&outbox, &[("s", "1")]).await;
    let rejected = LACKING.replace("after_unknown", "after_erased");
    let server = FakeServer::start([Answer::text(200, rejected)]);
    let drained = outbox.drain(&client(&server)).await.unwrap();
    assert_eq!(drained.acknowledged, 1);
}
