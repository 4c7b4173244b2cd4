//! Every route has its method.

use std::collections::BTreeSet;

use svc_client::Client;
use svc_client::model::context::Query;
use svc_client::model::endpoint::{self, Access};
use svc_client::model::evidence::{Reference, Side};
use svc_client::model::facts::FactTable;
use svc_client::model::id::{ForeignId, InferenceCallId, SessionId};
use svc_client::model::ingest::{GatewayBatchRequest, GatewayIngestRequest, GatewayProvider};
use svc_client::model::json::{self, Json};
use svc_client::model::quarantine::{QuarantineLogRequest, QuarantineReason, QuarantineRequest};
use svc_client::model::query::SessionsRequest;
use svc_client::model::reports::ReportScope;
use svc_client::model::time::Instant;
use svc_client::testing::{Answer, FakeServer};

use super::investigation;

/// Calls every method once. The answers are refusals, so only the requests matter.
async fn call_all(client: &Client) {
    let session = SessionId::new("s").expect("an id");
    let call = InferenceCallId::new("c").expect("an id");
    let query = Query::new("pager").expect("a query");
    let reference = Reference {
        inference_call_id: call.clone(),
        side: Side::Input,
        message_index: 0,
        part_index: 0,
    };
    let ci = r#"{"provider":"other","run_id":"1","repo":"a/b","commit_sha":"0123456789012345678901234567890123456789","branch":"main","result":"passed"}"#;
    let delivery = GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload: Json::Object(json::Object::new()),
        capture: None,
    };
    let batch = GatewayBatchRequest {
        provider: GatewayProvider::GatewayA,
        payloads: Vec::new(),
    };
    let at = |text| Instant::parse(text).expect("an instant");
    let cohort = at("2026-11-01T00:00:00Z")..at("2026-12-01T00:00:00Z");
    let scope = ReportScope::new(cohort.clone(), cohort.end).expect("a scope");
    drop(client.health().await);
    drop(client.me().await);
    drop(client.ingest_gateway(&delivery).await);
    drop(client.ingest_gateway_batch(&batch).await);
    let ci = json::from_slice(ci.as_bytes()).expect("an outcome");
    drop(client.ingest_ci(&ci).await);
    drop(client.capture_counts().await);
    drop(client.ingest_events(&[]).await);
    let hide = QuarantineRequest {
        table: FactTable::InferenceCalls,
        fact_id: ForeignId::new("0192f6c4").expect("an id"),
        reason: QuarantineReason::new("a leak").expect("a reason"),
        force: false,
    };
    drop(client.quarantine(&hide).await);
    drop(client.release(&hide).await);
    drop(client.quarantine_log(QuarantineLogRequest::default()).await);
    drop(client.facts().await);
    drop(client.session_facts(&session).await);
    drop(client.session_inference_calls(&session).await);
    drop(client.compatibility_evidence(&session).await);
    drop(client.evidence().inventory(&session).await);
    drop(client.evidence().manifest(&session, &call).await);
    drop(client.evidence().read(&session, [reference.clone()]).await);
    drop(client.ci_outcome(&investigation::outcome()).await);
    drop(client.ci_runs(&investigation::runs()).await);
    drop(client.ci_failures_page(&investigation::failures()).await);
    drop(client.sessions_page(&SessionsRequest::default()).await);
    drop(client.session_dossier(&session).await);
    drop(client.commit(&investigation::commit()).await);
    drop(client.model_outcomes(scope).await);
    drop(client.accepted_work_lifecycle(scope).await);
    drop(client.context().retrieve(&query).await);
    drop(client.context().discover(&query, None).await);
    drop(client.context().selected(&session, &query).await);
    drop(client.context().inventory(&session).await);
    drop(client.context().manifest(&session, &call).await);
    drop(client.context().read(&session, [reference]).await);
}

#[tokio::test]
async fn every_route_has_a_method() {
    let mut routes = endpoint::all();
    // Those are the forge's: nobody else can sign for it.
    routes.retain(|route| route.access != Access::Signature);
    let server = FakeServer::start(vec![Answer::text(401, ""); routes.len()]);
    call_all(&server.client()).await;
    let called: BTreeSet<_> = server
        .received()
        .into_iter()
        .map(|request| {
            let path = request
                .target
                .split('?')
                .next()
                .unwrap_or_default()
                .to_owned();
            (request.method, path)
        })
        .collect();
    let expected: BTreeSet<_> = routes
        .iter()
        .map(|route| {
            let path = route
                .path
                .replace("{session_id}", "s")
                .replace("{sha}", investigation::SHA)
                .replace("{provider}", "gateway_a");
            (route.method.as_str().to_owned(), path)
        })
        .collect();
    assert_eq!(called, expected);
}

#[test]
fn calls_may_move_between_threads() {
    fn is_send(_: impl Send) {}
    let client = Client::builder("https://svc.example").build().unwrap();
    is_send(call_all(&client));
}
