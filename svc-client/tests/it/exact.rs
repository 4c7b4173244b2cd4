//! The client returns values exactly as they were captured.

use std::error::Error as _;

use svc_client::model::endpoint::EvidenceReading;
use svc_client::model::evidence::{EvidenceReadRequest, Part, Reference, Side};
use svc_client::model::id::{InferenceCallId, SessionId};
use svc_client::model::ingest::{GatewayIngestRequest, GatewayProvider};
use svc_client::model::json::Json;
use svc_client::model::version::Version1;
use svc_client::testing::{Answer, FakeServer};

const ODD: &str = r#"{"nul":"a\u0000b","lone":"\ud800","\udfff":1.10,"digits":1234567890123456789012345678901234567890,"exponent":1E5,"zero":-0.0}"#;

fn reference() -> Reference {
    Reference {
        inference_call_id: InferenceCallId::new("call").expect("an id"),
        side: Side::Output.into(),
        message_index: 0,
        part_index: 1,
    }
}

#[tokio::test]
async fn odd_values_of_a_part_survive() {
    let body = format!(
        r#"{{"schema_version":1,"session_id":"s","quarantine_revision":0,"items":[{{"reference":{{"inference_call_id":"call","side":"output","message_index":0,"part_index":1}},"observed_at":"2026-01-01T00:00:00Z","role":"a\ud800","finish_reason":null,"part":{{"type":"tool_call","id":"t","name":"\u0000","arguments":{ODD}}}}}]}}"#
    );
    let server = FakeServer::start([Answer::text(200, body.as_str())]);
    let request = EvidenceReadRequest {
        schema_version: Version1,
        session_id: SessionId::new("s").unwrap(),
        references: vec![reference()],
        explain: false,
    };
    let reply = server
        .client()
        .call_raw::<EvidenceReading>(&request)
        .await
        .unwrap();
    assert_eq!(reply.bytes, body.as_bytes());
    let item = &reply.value.items[0];
    let Some(Part::ToolCall {
        name, arguments, ..
    }) = item.part.known()
    else {
        panic!("another part");
    };
    assert_eq!(
        Json::Object(arguments.clone()).to_canonical(),
        ODD.as_bytes()
    );
    assert!(name.has_nul());
    assert!(item.role.has_surrogate());
}

#[tokio::test]
async fn odd_values_of_a_payload_are_sent() {
    let answer = r#"{"skipped":true,"reason":"no_session"}"#;
    let server = FakeServer::start([Answer::text(200, answer)]);
    let request = GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload: Json::parse(ODD.as_bytes()).unwrap(),
        capture: None,
        compare: false,
    };
    server.client().ingest_gateway(&request).await.unwrap();
    let sent = format!(r#"{{"provider":"gateway_a","payload":{ODD}}}"#);
    assert_eq!(server.received()[0].body, sent.as_bytes());
}

#[tokio::test]
async fn a_number_that_is_not_finite_is_not_sent() {
    let server = FakeServer::start([]);
    let request = GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload: Json::parse(b"{\"a\":NaN}").unwrap(),
        capture: None,
        compare: false,
    };
    let error = server.client().ingest_gateway(&request).await.unwrap_err();
    assert_eq!(error.kind(), &svc_client::ErrorKind::Unwritable);
    let cause = error.source().map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("non-finite number"));
    assert!(error.to_string().starts_with("the request was not sent: "));
    assert_eq!(error.attempts(), 0);
    assert!(server.received().is_empty());
}
