//! The connection to a service: below a path, behind a proxy, and with a private certificate
//! authority.

use std::error::Error as _;

use svc_client::testing::{Answer, FakeServer};
use svc_client::{BaseUrlError, BuildError, Client};

const HEALTH: &str = r#"{"status":"ok","version":"0.1.0"}"#;

#[tokio::test]
async fn a_service_may_be_served_under_a_path() {
    let server = FakeServer::start([]);
    for end in ["", "/"] {
        server.answer([Answer::text(200, HEALTH)]);
        let url = format!("{}/tools/svc{end}", server.url());
        let client = Client::builder(url).build().unwrap();
        assert_eq!(client.url(), format!("{}/tools/svc", server.url()));
        client.health().await.unwrap();
    }
    for request in server.received() {
        assert_eq!(request.target, "/tools/svc/health");
    }
}

#[tokio::test]
async fn a_proxy_is_asked_for_everything_beyond_this_machine() {
    let proxy = FakeServer::start([Answer::text(200, HEALTH)]);
    let through = |url: &str| {
        let builder = Client::builder(url).allow_plain_http().proxy(proxy.url());
        builder.build().unwrap()
    };
    through("http://svc.invalid").health().await.unwrap();
    assert_eq!(proxy.received()[0].target, "http://svc.invalid/health");

    let near = FakeServer::start([Answer::text(200, HEALTH)]);
    through(&near.url()).health().await.unwrap();
    assert_eq!((proxy.received().len(), near.received().len()), (1, 1));
}

#[test]
fn an_invalid_certificate_or_proxy_is_refused_when_the_client_is_built() {
    let client = || Client::builder("https://svc.example");
    for pem in ["", "a certificate", "-----BEGIN CERTIFICATE-----\nx"] {
        let error = client().root_certificates(pem).build().unwrap_err();
        assert!(matches!(error, BuildError::Certificate), "{pem}: {error:?}");
    }
    let error = client().proxy("http://").build().unwrap_err();
    assert!(matches!(error, BuildError::Proxy), "{error:?}");
    assert!(error.source().is_none());
}

#[test]
fn a_client_can_be_built_with_several_root_certificates() {
    let both = include_str!("authority.pem").repeat(2);
    let client = Client::builder("https://svc.internal").root_certificates(both);
    assert!(client.build().is_ok());
}

#[test]
fn plain_http_is_refused_unless_it_is_allowed() {
    let error = Client::builder("http://svc.example").build().unwrap_err();
    assert!(matches!(error, BuildError::Url(BaseUrlError::PlainHttp)));
    let client = Client::builder("http://svc.example").allow_plain_http();
    assert!(client.build().is_ok());
}

#[tokio::test]
async fn every_success_has_its_request_id() {
    let named = |id: &str| Answer::text(200, HEALTH).header("x-request-id", id);
    let server = FakeServer::start([named("1"), Answer::text(401, ""), named("2"), named("3")]);
    let untraced = server.client();
    let (client, trace) = untraced.traced();
    assert_eq!(trace.last(), None);
    client.health().await.unwrap();
    let first = trace.last().unwrap();
    assert_eq!((first.endpoint, first.attempts), ("health", 1));
    assert_eq!(first.request_id.as_deref(), Some("1"));
    client.health().await.unwrap_err();
    assert_eq!(trace.last(), Some(first), "a refusal has its own error");
    client.clone().health().await.unwrap();
    assert_eq!(trace.last().unwrap().request_id.as_deref(), Some("2"));
    untraced.health().await.unwrap();
    assert_eq!(trace.last().unwrap().request_id.as_deref(), Some("2"));
}
