//! Streams: Sessions page by page, and parts in as few requests as possible.

use svc_client::ErrorKind;
use svc_client::model::endpoint::{EvidenceReading, GrantRead};
use svc_client::model::evidence::{EvidenceReadRequest, Reference, Side};
use svc_client::model::id::{InferenceCallId, SessionId};
use svc_client::model::problem::{Decline, Problem, QueryFault};
use svc_client::model::query::{ModelName, SessionsRequest};
use svc_client::model::version::Version1;
use svc_client::testing::{Answer, FakeServer};

fn session(id: &str) -> String {
    format!(
        r#"{{"session_id":"{id}","captured_at":"2026-11-20T12:00:00Z","first_observed_at":"2026-11-20T12:00:00Z",
        "last_observed_at":"2026-11-20T12:00:00Z","user_ids":[],"models":["m"],"agent_harnesses":[],
        "repositories":[],"inference_calls":1}}"#
    )
}

fn page(sessions: &[&str], next: &str) -> Answer {
    let sessions: Vec<String> = sessions.iter().map(|id| session(id)).collect();
    let sessions = sessions.join(",");
    Answer::text(
        200,
        format!(r#"{{"sessions":[{sessions}],"next_cursor":{next}}}"#),
    )
}

#[tokio::test]
async fn sessions_follow_the_cursors_past_an_empty_page() {
    let server = FakeServer::start([
        page(&["b"], r#""one""#),
        page(&[], r#""two""#),
        page(&["a"], "null"),
    ]);
    let request = SessionsRequest {
        model: ModelName::new("m"),
        ..SessionsRequest::default()
    };
    let read = server.client().sessions(request).collect_all().await;
    let read: Vec<String> = read
        .unwrap()
        .iter()
        .map(|session| session.session_id.to_string())
        .collect();
    assert_eq!(read, ["b", "a"]);
    let asked: Vec<String> = server
        .received()
        .into_iter()
        .map(|request| request.target)
        .collect();
    let first = "/v1/sessions?model=m&limit=50";
    assert_eq!(
        asked,
        [
            first.to_owned(),
            format!("{first}&cursor=one"),
            format!("{first}&cursor=two"),
        ]
    );
}

#[tokio::test]
async fn the_sessions_of_a_grant_follow_the_cursors_too() {
    let server = FakeServer::start([page(&["b"], r#""one""#), page(&["a"], "null")]);
    let request = SessionsRequest {
        titles: true,
        ..SessionsRequest::default()
    };
    let read = server
        .client()
        .granted_sessions(request)
        .collect_all()
        .await;
    assert_eq!(read.unwrap().len(), 2);
    let asked = server.received().into_iter().map(|request| request.target);
    let first = "/query/context/sessions?limit=50";
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [
            format!("{first}&titles=true"),
            format!("{first}&cursor=one&titles=true"),
        ]
    );
}

#[tokio::test]
async fn sessions_end_with_the_fault_when_the_quarantine_log_has_moved() {
    let moved = Problem::Query(QueryFault::SessionCursorMismatch);
    let server = FakeServer::start([page(&["b"], r#""one""#), Answer::problem(422, &moved)]);
    let mut sessions = server.client().sessions(SessionsRequest::default());
    assert!(sessions.next().await.unwrap().is_ok());
    let error = sessions.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.kind(),
        &ErrorKind::Query(QueryFault::SessionCursorMismatch)
    );
    assert!(sessions.next().await.is_none(), "it has ended");
}

fn reference(call: &str, message_index: u64) -> Reference {
    Reference {
        inference_call_id: InferenceCallId::new(call).expect("an id"),
        side: Side::Input.into(),
        message_index,
        part_index: 0,
    }
}

fn parts(references: &[Reference]) -> Answer {
    let items: Vec<String> = references
        .iter()
        .map(|part| {
            format!(
                r#"{{"reference":{{"inference_call_id":"{}","side":"input","message_index":{},"part_index":0}},
                "observed_at":"2026-01-01T00:00:00Z","role":"user","finish_reason":null,
                "part":{{"type":"text","content":"x"}}}}"#,
                part.inference_call_id, part.message_index
            )
        })
        .collect();
    Answer::text(
        200,
        format!(
            r#"{{"schema_version":1,"session_id":"s","quarantine_revision":0,"items":[{}]}}"#,
            items.join(",")
        ),
    )
}

#[tokio::test]
async fn requests_for_parts_are_halved_until_the_reply_fits() {
    let all: Vec<Reference> = (0..5).map(|place| reference("c", place)).collect();
    let last = reference("d", 0);
    let too_much = Problem::Declined(Decline::EvidenceResponseLimit { limit: 1 });
    let server = FakeServer::start([
        Answer::problem(409, &too_much),
        Answer::problem(409, &too_much),
        parts(&all[..2]),
        parts(&all[2..]),
        parts(std::slice::from_ref(&last)),
    ]);
    let client = server.client();
    let session = SessionId::new("s").expect("an id");
    let wanted = all.iter().cloned().chain([last]);
    let wanted: Vec<Reference> = wanted.collect();
    let read = client.evidence().parts(&session, wanted.clone());
    let read = read.collect_all().await.unwrap();
    let found: Vec<Reference> = read.into_iter().map(|item| item.reference).collect();
    assert_eq!(found, wanted);
    let counts: Vec<usize> = server
        .received()
        .iter()
        .map(|request| {
            let body = String::from_utf8_lossy(&request.body);
            body.matches("message_index").count()
        })
        .collect();
    // Five, three and two are requested. Then follow the three that are left of the call, and the
    // part of the next call.
    assert_eq!(counts, [5, 3, 2, 3, 1]);
}

#[tokio::test]
async fn a_part_that_cannot_be_written_is_the_next_one_when_the_stream_ends() {
    let all: Vec<Reference> = (0..4).map(|place| reference("c", place)).collect();
    let unwritable = || Answer::problem(409, &Problem::Declined(Decline::NonFiniteNumber));
    // The third one is it.
    let server = FakeServer::start([unwritable(), parts(&all[..2]), unwritable(), unwritable()]);
    let session = SessionId::new("s").expect("an id");
    let mut stream = server.client().evidence().parts(&session, all.clone());
    for part in &all[..2] {
        assert_eq!(stream.next().await.unwrap().unwrap().reference, *part);
    }
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Declined(Decline::NonFiniteNumber));
    assert!(stream.next().await.is_none());
    assert_eq!(server.received().len(), 4);
}

#[tokio::test]
async fn a_stream_refuses_a_reply_that_lacks_a_part() {
    let all: Vec<Reference> = (0..3).map(|place| reference("c", place)).collect();
    let short = || parts(&all[..2]).header("x-request-id", "r-17");
    let server = FakeServer::start([short(), short(), short(), short()]);
    let client = server.client();
    let session = SessionId::new("s").expect("an id");
    let incomplete = ErrorKind::Incomplete {
        requested: 3,
        returned: 2,
    };
    for mut parts in [
        client.evidence().parts(&session, all.clone()),
        client.context().parts(&session, all.clone()),
    ] {
        let error = parts.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), &incomplete);
        assert_eq!(error.request_id(), Some("r-17"));
        assert!(parts.next().await.is_none(), "it has ended");
    }
    let read = client.evidence().read(&session, all.clone()).await;
    let error = read.unwrap_err();
    assert_eq!(error.kind(), &incomplete);
    assert_eq!(
        error.to_string(),
        "the reply accounts for 2 items, but the request has 3"
    );
    let read = client.context().read(&session, all.clone()).await;
    assert_eq!(read.unwrap_err().kind(), &incomplete);
    assert_eq!(server.received().len(), 4, "and is not requested again");
}

#[tokio::test]
async fn a_reply_that_lacks_a_part_is_refused_on_every_route() {
    let all: Vec<Reference> = (0..3).map(|place| reference("c", place)).collect();
    let short = || parts(&all[..2]).header("x-request-id", "r-17");
    let server = FakeServer::start([short(), short(), short()]);
    let client = server.client();
    let request = EvidenceReadRequest {
        schema_version: Version1,
        session_id: SessionId::new("s").expect("an id"),
        references: all.clone(),
        explain: true,
    };
    for error in [
        client.call_raw::<EvidenceReading>(&request).await.err(),
        client.call_raw::<GrantRead>(&request).await.err(),
        client.call::<GrantRead>(&request).await.err(),
    ] {
        let error = error.expect("the reply is incomplete");
        let (requested, returned) = (3, 2);
        let incomplete = ErrorKind::Incomplete {
            requested,
            returned,
        };
        assert_eq!(error.kind(), &incomplete);
        assert_eq!((error.request_id(), error.attempts()), (Some("r-17"), 1));
    }
}

#[tokio::test]
async fn a_part_too_large_for_any_reply_ends_the_stream() {
    let too_much = Problem::Declined(Decline::EvidenceResponseLimit { limit: 1 });
    let server = FakeServer::start([Answer::problem(409, &too_much)]);
    let session = SessionId::new("s").expect("an id");
    let mut parts = server
        .client()
        .evidence()
        .parts(&session, [reference("c", 0)]);
    let error = parts.next().await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Declined(_)), "{error}");
    assert!(parts.next().await.is_none());
}
