//! How a client treats answers that do not come from the service.

use std::error::Error as _;

use svc_client::model::endpoint::{Compatibility, Endpoint as _, HealthProbe};
use svc_client::model::id::SessionId;
use svc_client::model::problem::{Decline, Problem};
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, ErrorKind};

const HEALTH: &str = r#"{"status":"ok","version":"9.9.9"}"#;

fn small(server: &FakeServer) -> Client {
    Client::builder(server.url())
        .reply_bytes_max(HEALTH.len())
        .build()
        .expect("a client")
}

#[tokio::test]
async fn a_reply_within_the_cap_is_read() {
    let server = FakeServer::start([Answer::text(200, HEALTH)]);
    assert_eq!(small(&server).health().await.unwrap().version, "9.9.9");
}

#[tokio::test]
async fn a_reply_over_the_cap_is_refused_by_its_length_and_while_it_streams() {
    let long = format!("{HEALTH} ");
    let server = FakeServer::start([Answer::text(200, long), Answer::endless()]);
    let client = small(&server);
    for _ in 0..2 {
        let error = client.health().await.unwrap_err();
        assert_eq!(
            error.kind(),
            &ErrorKind::ReplyTooLarge {
                bytes_max: HEALTH.len()
            }
        );
        assert_eq!((error.status(), error.is_retryable()), (None, false));
    }
}

#[tokio::test]
async fn no_reply_is_read_beyond_the_cap_of_its_route() {
    let whole = "x".repeat(HealthProbe::REPLY_BYTES_MAX - HEALTH.len());
    let longest = HEALTH.replace("9.9.9", &format!("9.9.9{whole}"));
    assert_eq!(longest.len(), HealthProbe::REPLY_BYTES_MAX);
    let longer = format!("{longest} ");
    let answers = [longest, longer].map(|body| Answer::text(200, body));
    let server = FakeServer::start(answers.into_iter().chain([Answer::endless()]));
    let client = Client::builder(server.url()).build().unwrap();
    assert!(client.health().await.is_ok());
    for _ in 0..2 {
        let error = client.health().await.unwrap_err();
        let bytes_max = HealthProbe::REPLY_BYTES_MAX;
        assert_eq!(error.kind(), &ErrorKind::ReplyTooLarge { bytes_max });
    }
}

#[tokio::test]
async fn a_reply_with_too_many_values_is_unreadable() {
    let lists = "[],".repeat(Compatibility::REPLY_BYTES_MAX / 3 - 10);
    let server = FakeServer::start([Answer::text(200, format!("{{\"x\":[{lists}0]}}"))]);
    let session = SessionId::new("s").unwrap();
    let error = server.client().compatibility_evidence(&session).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreadable);
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("over their budget of memory"), "{cause}");
}

#[tokio::test]
async fn a_reply_in_another_encoding_is_unreadable() {
    let units = HEALTH.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let broken = b"{\"status\":\"ok\",\"version\":\"\xed\xa0\x80\"}".to_vec();
    for body in [units, broken] {
        let body: Vec<u8> = body;
        let server = FakeServer::start([Answer::text(200, body)]);
        let error = server.client().health().await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Unreadable);
    }
}

#[tokio::test]
async fn an_endless_refusal_still_has_its_status() {
    let server = FakeServer::start([Answer::endless().status(401)]);
    let error = server.client().me().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unauthorized);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeServer::start([Answer::text(200, HEALTH)]);
    for status in [301, 302, 303, 307, 308] {
        let answer = Answer::text(status, "").header("location", &elsewhere.url());
        let server = FakeServer::start([answer]);
        let error = server.client().health().await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Redirected { status });
        assert_eq!(server.received().len(), 1);
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_success_without_a_valid_reply_is_unreadable() {
    for body in [
        "",
        "<html>",
        "null",
        "{}",
        r#"{"status":"ok"}"#,
        r#"{"status":7,"version":""}"#,
    ] {
        let server = FakeServer::start([Answer::text(200, body)]);
        let error = server.client().health().await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Unreadable, "{body}");
        assert!(error.source().is_some());
    }
}

#[tokio::test]
async fn unknown_members_of_a_newer_service_are_ignored() {
    let body = r#"{"status":"ok","version":"9.9.9","uptime":[1]}"#;
    let server = FakeServer::start([Answer::text(200, body)]);
    assert!(server.client().health().await.is_ok());
}

#[tokio::test]
async fn an_error_carries_the_details_from_the_service() {
    let problem = Problem::Declined(Decline::EvidencePartAbsent { reference_index: 3 });
    let answer = Answer::problem(409, &problem).header("x-request-id", "r-17");
    let server = FakeServer::start([answer]);
    let error = server.client().facts().await.unwrap_err();
    assert_eq!(error.request_id(), Some("r-17"));
    assert_eq!(
        error.kind(),
        &ErrorKind::Declined(Decline::EvidencePartAbsent { reference_index: 3 })
    );
    assert_eq!(
        error.to_string(),
        "reference 3 is not a part of its call (evidence_part_absent)"
    );
    assert!(error.is_conflict());
}
