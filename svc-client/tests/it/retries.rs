//! Which requests are sent again, how often, and which are not.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use svc_client::model::facts::FactTable;
use svc_client::model::grant::{TokenChangeRequest, TokenName};
use svc_client::model::id::ForeignId;
use svc_client::model::ingest::{
    Capture, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider, RejectedPayload,
};
use svc_client::model::json::Json;
use svc_client::model::problem::Problem;
use svc_client::model::quarantine::{QuarantineReason, QuarantineRequest};
use svc_client::model::time::Instant as Moment;
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, ErrorKind, RetryPolicy};
use uuid::Uuid;

const HEALTH: &str = r#"{"status":"ok","version":"0.1.0"}"#;
const RECEIPT: &str = r#"{"skipped":true,"reason":"no_session"}"#;
const COUNTS: &str = r#"{"stored":1,"duplicates":0,"skipped":{},"rejected":{}}"#;

fn unavailable() -> Answer {
    Answer::problem(503, &Problem::StoreUnavailable)
}

fn delivery(payload: &str, capture: Option<Capture>) -> GatewayIngestRequest {
    GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload: Json::parse(payload.as_bytes()).expect("JSON"),
        capture,
        compare: false,
    }
}

fn quarantine() -> QuarantineRequest {
    QuarantineRequest {
        table: FactTable::InferenceCalls,
        fact_id: ForeignId::new("0192f6c4").expect("an id"),
        reason: QuarantineReason::new("a leak").expect("a reason"),
        force: false,
    }
}

fn capture() -> Option<Capture> {
    let observed_at = Moment::from_microseconds(0)?;
    Some(Capture {
        id: Uuid::from_u128(7),
        observed_at,
    })
}

#[tokio::test]
async fn a_read_is_repeated_until_it_succeeds() {
    for failure in [
        unavailable(),
        Answer::problem(503, &Problem::CapacityExceeded),
        Answer::problem(503, &Problem::DeadlineExceeded),
        Answer::text(502, "<html>"),
        Answer::text(429, ""),
        Answer::closed(),
        Answer::broken("{"),
    ] {
        let server = FakeServer::start([failure.clone(), failure, Answer::text(200, HEALTH)]);
        assert!(server.client().health().await.is_ok());
        assert_eq!(server.received().len(), 3);
    }
}

#[tokio::test]
async fn retries_end() {
    let server = FakeServer::start(vec![unavailable(); 9]);
    let error = server.client().health().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.attempts()),
        (&ErrorKind::StoreUnavailable, 4)
    );
    assert_eq!(
        error.to_string(),
        "the fact store cannot be reached after 4 attempts"
    );
    assert_eq!(server.received().len(), 4);
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    for (status, body) in [
        (400, ""),
        (401, ""),
        (403, ""),
        (404, ""),
        (409, ""),
        (413, ""),
        (422, ""),
        (500, ""),
        (200, "x"),
    ] {
        let server = FakeServer::start([Answer::text(status, body), Answer::text(200, HEALTH)]);
        let error = server.client().health().await.unwrap_err();
        assert!(!error.is_retryable(), "{status}");
        assert_eq!(server.received().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_delivery_with_its_own_id_is_retried() {
    for request in [
        delivery("{}", capture()),
        delivery(r#"{"litellm_call_id":"c-1"}"#, None),
    ] {
        let server =
            FakeServer::start([Answer::closed(), unavailable(), Answer::text(200, RECEIPT)]);
        assert!(server.client().ingest_gateway(&request).await.is_ok());
        let received = server.received();
        assert_eq!(received.len(), 3);
        assert!(
            received
                .iter()
                .all(|request| request.body == received[0].body)
        );
    }
}

#[tokio::test]
async fn any_request_that_arrived_incomplete_is_retried() {
    let cut_off = || Answer::problem(400, &Problem::BodyIncomplete);
    let server = FakeServer::start([cut_off(), cut_off(), Answer::text(200, RECEIPT)]);
    let unnamed = delivery("{}", None);
    let receipt = server.client().ingest_gateway(&unnamed).await;
    assert!(receipt.is_ok(), "{receipt:?}");
    assert_eq!(server.received().len(), 3);

    let server = FakeServer::start(vec![cut_off(); 4]);
    let error = server.client().quarantine(&quarantine()).await.unwrap_err();
    assert_eq!(
        (error.kind().code(), error.attempts()),
        ("body_incomplete", 4)
    );
    assert_eq!(error.status(), Some(400));
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_delivery_without_an_id_is_not_retried() {
    for payload in [
        "{}",
        r#"{"litellm_call_id":" "}"#,
        r#"{"litellm_call_id":1}"#,
        r#"{"id":"chatcmpl"}"#,
    ] {
        let server = FakeServer::start([unavailable(), Answer::text(200, RECEIPT)]);
        let error = server
            .client()
            .ingest_gateway(&delivery(payload, None))
            .await
            .unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(server.received().len(), 1, "{payload}");
    }
}

#[tokio::test]
async fn a_batch_is_retried_if_every_payload_has_an_id() {
    let named = |id: &str| Json::parse(format!(r#"{{"litellm_call_id":"{id}"}}"#).as_bytes());
    let named = |id: &str| Ok(named(id).unwrap().into_object().unwrap());
    let unnamed = || Ok(Json::parse(b"{}").unwrap().into_object().unwrap());
    for (payloads, requests) in [
        (
            vec![named("a"), Err(RejectedPayload::NotAnObject), named("b")],
            2,
        ),
        (vec![named("a"), unnamed()], 1),
    ] {
        let server = FakeServer::start([unavailable(), Answer::text(200, COUNTS)]);
        let request = GatewayBatchRequest {
            provider: GatewayProvider::GatewayA,
            payloads,
        };
        drop(server.client().ingest_gateway_batch(&request).await);
        assert_eq!(server.received().len(), requests);
    }
}

#[tokio::test]
async fn a_receipt_whose_counts_differ_from_the_request_is_an_error() {
    let payload = || Ok(Json::parse(b"{}").unwrap().into_object().unwrap());
    let unsendable = || Err(RejectedPayload::NotAnObject);
    let counts =
        r#"{"stored":1,"duplicates":1,"skipped":{"no_session":1},"rejected":{"a_newer_reason":1}}"#;
    for (receipt, sent, whole) in [
        (counts, 4, true),
        (counts, 5, false),
        (counts, 3, false),
        (COUNTS, 1, true),
        (COUNTS, 2, false),
    ] {
        let server = FakeServer::start([Answer::text(200, receipt), Answer::text(200, receipt)]);
        let mut payloads = vec![unsendable()];
        payloads.extend((0..sent).map(|_| payload()));
        let request = GatewayBatchRequest {
            provider: GatewayProvider::GatewayA,
            payloads,
        };
        let receipt = server.client().ingest_gateway_batch(&request).await;
        let code = receipt.as_ref().err().map(|error| error.kind().code());
        assert_eq!(
            code,
            (!whole).then_some("incomplete"),
            "{sent}: {receipt:?}"
        );
        assert_eq!(server.received().len(), 1, "and is not sent again");
    }
}

#[tokio::test]
async fn a_scripted_receipt_counts_what_was_sent() {
    let payload = || Ok(Json::parse(b"{}").unwrap().into_object().unwrap());
    for sent in [0, 1, 3] {
        let server = FakeServer::start([Answer::stored()]);
        let request = GatewayBatchRequest {
            provider: GatewayProvider::GatewayA,
            payloads: (0..sent).map(|_| payload()).collect(),
        };
        let receipt = server.client().ingest_gateway_batch(&request).await;
        assert_eq!(receipt.unwrap().stored, sent);
    }
}

#[tokio::test]
async fn a_caller_may_declare_that_a_body_has_its_own_ids() {
    for (vouched, requests) in [(false, 1), (true, 2)] {
        let server = FakeServer::start([unavailable(), Answer::text(200, COUNTS)]);
        let client = server.client();
        let client = if vouched {
            client.with_named_deliveries()
        } else {
            client
        };
        drop(
            client
                .ingest_gateway_body(GatewayProvider::GatewayA, "{}")
                .await,
        );
        assert_eq!(server.received().len(), requests);
    }
}

#[tokio::test]
async fn a_quarantine_change_is_never_retried() {
    let request = quarantine();
    let server = FakeServer::start(vec![unavailable(); 4]);
    let client = server.client().with_named_deliveries();
    let hidden = client.quarantine(&request).await.unwrap_err();
    let shown = client.release(&request).await.unwrap_err();
    assert!(hidden.is_retryable() && shown.is_retryable());
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_change_of_grants_is_retried() {
    let server = FakeServer::start(vec![unavailable(); 8]);
    let request = TokenChangeRequest {
        token: TokenName::new("review").unwrap(),
        reason: QuarantineReason::new("a review").unwrap(),
    };
    let error = server.client().revoke_token(&request).await.unwrap_err();
    assert_eq!(error.attempts(), 4);
}

#[tokio::test]
async fn any_request_is_retried_if_the_service_was_not_reached() {
    // A port that was free a moment ago refuses connections.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let moment = Duration::from_millis(1);
    let client = Client::builder(format!("http://{address}"))
        .retry(RetryPolicy::default().pauses(moment, moment))
        .build()
        .unwrap();
    let error = client
        .ingest_gateway(&delivery("{}", None))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (&ErrorKind::Connect, 4));
    assert!(error.is_unavailable());
    let error = client.quarantine(&quarantine()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (&ErrorKind::Connect, 4));
}

#[tokio::test]
async fn a_retry_waits_as_long_as_the_service_asks() {
    let server = FakeServer::start([
        unavailable().header("retry-after", "1"),
        Answer::text(200, HEALTH),
    ]);
    let start = Instant::now();
    server.client().health().await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_retry_that_would_exceed_the_timeout_is_not_attempted() {
    let server = FakeServer::start([unavailable().header("retry-after", "60")]);
    let start = Instant::now();
    let error = server.client().health().await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(error.attempts(), 1);
    assert_eq!(error.retry_after(), Some(Duration::from_mins(1)));
}

#[tokio::test]
async fn a_call_ends_at_its_timeout() {
    let server = FakeServer::start([Answer::silent()]);
    let client = server.client().with_timeout(Duration::from_millis(50));
    let start = Instant::now();
    let error = client.health().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (&ErrorKind::TimedOut, 1));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_policy_without_retries_is_respected() {
    let server = FakeServer::start([unavailable(), Answer::text(200, HEALTH)]);
    let client = Client::builder(server.url())
        .retry(RetryPolicy::none())
        .build()
        .unwrap();
    assert_eq!(client.health().await.unwrap_err().attempts(), 1);
}

#[tokio::test]
async fn a_clone_with_another_policy_does_not_change_the_original() {
    let server = FakeServer::start([unavailable(), unavailable(), Answer::text(200, HEALTH)]);
    let client = server.client();
    let once = client.with_retry(RetryPolicy::none());
    assert_eq!(once.health().await.unwrap_err().attempts(), 1);
    client.health().await.unwrap();
}
