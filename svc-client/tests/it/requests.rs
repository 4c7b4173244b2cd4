//! What requests look like on the wire.

use svc_client::model::endpoint::{Compatibility, EvidenceInventory};
use svc_client::model::evidence::InventoryRequest;
use svc_client::model::facts::SessionRequest;
use svc_client::model::id::SessionId;
use svc_client::model::ingest::{GatewayProvider, LogsRequest, PROTOBUF, TracesRequest};
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, ErrorKind};

fn session(text: &str) -> SessionId {
    SessionId::new(text).expect("an id")
}

#[tokio::test]
async fn parameters_are_encoded() {
    let server = FakeServer::start([Answer::text(401, ""), Answer::text(401, "")]);
    let client = server.client();
    let name = "a/b?c#d %\u{e9}\u{1f600}+&=";
    drop(
        client
            .call::<Compatibility>(&SessionRequest {
                session_id: session(name),
            })
            .await,
    );
    drop(
        client
            .call::<EvidenceInventory>(&InventoryRequest {
                session_id: session(name),
            })
            .await,
    );
    let targets: Vec<_> = server
        .received()
        .into_iter()
        .map(|request| request.target)
        .collect();
    assert_eq!(
        targets,
        [
            "/v1/facts/session/a%2Fb%3Fc%23d%20%25%C3%A9%F0%9F%98%80%2B%26%3D/compatibility-evidence",
            "/query/evidence?session_id=a%2Fb%3Fc%23d+%25%C3%A9%F0%9F%98%80%2B%26%3D",
        ]
    );
}

#[tokio::test]
async fn a_name_that_no_path_can_hold_is_refused_before_sending() {
    let server = FakeServer::start([]);
    for name in [".", ".."] {
        let error = server
            .client()
            .session_facts(&session(name))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Unaddressable, "{name}");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn every_request_names_its_client_and_accepted_encodings() {
    let server = FakeServer::start([Answer::text(401, "")]);
    let client = Client::builder(server.url())
        .token("0123456789abcdef0123456789abcdef")
        .user_agent_suffix("svc-cli/0.1.0 (linux)")
        .build()
        .unwrap();
    drop(client.me().await);
    let request = &server.received()[0];
    let agent = format!(
        "svc-client/{} svc-cli/0.1.0 (linux)",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(request.header("user-agent"), Some(agent.as_str()));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(
        request.header("authorization"),
        Some("Bearer 0123456789abcdef0123456789abcdef")
    );
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/v1/me")
    );
    assert_eq!(request.header("content-type"), None);
}

#[tokio::test]
async fn an_open_route_gets_no_token() {
    let server = FakeServer::start([Answer::text(401, "")]);
    drop(server.client().health().await);
    assert_eq!(server.received()[0].header("authorization"), None);
}

#[tokio::test]
async fn the_body_of_a_logger_is_sent_unchanged() {
    let receipt =
        r#"{"stored":1,"duplicates":2,"skipped":{"no_session":3},"rejected":{"malformed_json":4}}"#;
    let server = FakeServer::start([Answer::text(200, receipt)]);
    let body = "{\"a\": 1}\nnonsense\n";
    let counts = server
        .client()
        .ingest_gateway_body(GatewayProvider::GatewayA, body)
        .await
        .unwrap();
    assert_eq!((counts.stored, counts.duplicates), (1, 2));
    let request = &server.received()[0];
    assert_eq!(request.target, "/ingest/gateway/gateway_a");
    assert_eq!(request.body, body.as_bytes());
    assert_eq!(request.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_body_over_the_cap_of_its_route_is_not_sent() {
    let server = FakeServer::start([]);
    let body = vec![b' '; 25 * 1024 * 1024 + 1];
    let client = server.client();
    let error = client
        .ingest_gateway_body(GatewayProvider::GatewayA, body)
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (&ErrorKind::TooLarge, 0));
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn an_export_is_sent_and_answered_in_the_same_encoding() {
    let in_protobuf = Answer::text(200, "").header("content-type", PROTOBUF);
    let answers = [Answer::stored(), in_protobuf.clone(), in_protobuf];
    let server = FakeServer::start(answers);
    let client = server.client();
    let json = LogsRequest::from(&[][..]);
    client.ingest_logs(&json).await.unwrap();
    let protobuf = LogsRequest::Protobuf(vec![10, 0]);
    client.ingest_logs(&protobuf).await.unwrap();
    let traces = TracesRequest::Protobuf(vec![10, 0]);
    client.ingest_traces(&traces).await.unwrap();
    let received = server.received();
    let sent: Vec<_> = received
        .iter()
        .map(|request| {
            let types = request
                .headers
                .iter()
                .filter(|(name, _)| name == "content-type");
            let types: Vec<_> = types.map(|(_, value)| value.as_str()).collect();
            (types, &*request.body)
        })
        .collect();
    assert_eq!(
        sent,
        [
            (vec!["application/json"], &br#"{"resourceLogs":[]}"#[..]),
            (vec![PROTOBUF], &[10, 0]),
            (vec![PROTOBUF], &[10, 0]),
        ]
    );
    assert_eq!(received[2].target, "/v1/traces");
}

#[tokio::test]
async fn only_an_export_may_be_answered_in_protobuf() {
    let in_protobuf = Answer::text(200, r#"{"status":"ok","version":"1"}"#);
    let server = FakeServer::start([in_protobuf.header("content-type", PROTOBUF)]);
    let error = server.client().health().await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreadable);
}
