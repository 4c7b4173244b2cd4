//! Every route has a method of the client.

use std::collections::BTreeSet;

use svc_client::model::context::Query;
use svc_client::model::endpoint::{self, Access};
use svc_client::model::evidence::{Reference, Side};
use svc_client::model::facts::FactTable;
use svc_client::model::grant::{
    GrantExplanationRequest, GrantRemovalRequest, GrantRequest, GrantsRequest, TokenChangeRequest,
    TokenName,
};
use svc_client::model::id::{ForeignId, InferenceCallId, SessionId};
use svc_client::model::ingest::{
    AgentName, CallsRequest, GatewayBatchRequest, GatewayIngestRequest, GatewayProvider,
    TracesRequest,
};
use svc_client::model::json::{self, Json};
use svc_client::model::overview::OverviewRequest;
use svc_client::model::quarantine::{QuarantineLogRequest, QuarantineReason, QuarantineRequest};
use svc_client::model::query::{ModelName, SessionsRequest};
use svc_client::model::reports::ReportScope;
use svc_client::model::search::{SearchQuery, SearchRequest};
use svc_client::model::spend::{ModelPriceRequest, PriceFileRequest};
use svc_client::model::time::Instant;
use svc_client::testing::{Answer, FakeServer};
use svc_client::{Client, Error};

use super::investigation;

/// Calls every method once, and returns the errors in the order of the calls.
pub(super) async fn call_all(client: &Client) -> Vec<Option<Error>> {
    let mut errors = Vec::new();
    let session = SessionId::new("s").expect("an id");
    let call = InferenceCallId::new("c").expect("an id");
    let query = Query::new("pager").expect("a query");
    let reference = Reference {
        inference_call_id: call.clone(),
        side: Side::Input.into(),
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
        compare: false,
    };
    let batch = GatewayBatchRequest {
        provider: GatewayProvider::GatewayA,
        payloads: Vec::new(),
    };
    let at = |text| Instant::parse(text).expect("an instant");
    let cohort = at("2026-11-01T00:00:00Z")..at("2026-12-01T00:00:00Z");
    let scope = ReportScope::new(cohort.clone(), cohort.end).expect("a scope");
    errors.push(client.health().await.err());
    errors.push(client.me().await.err());
    errors.push(client.ingest_gateway(&delivery).await.err());
    errors.push(client.ingest_gateway_batch(&batch).await.err());
    let ci = json::from_slice(ci.as_bytes()).expect("an outcome");
    errors.push(client.ingest_ci(&ci).await.err());
    let calls = CallsRequest::builder()
        .session(session.clone())
        .agent(AgentName::new("pager-bot").expect("a name"));
    let calls = calls.build().expect("a request");
    errors.push(client.ingest_calls(&calls).await.err());
    errors.push(client.capture_counts().await.err());
    errors.push(client.ingest_events(&[]).await.err());
    let traces = TracesRequest::Json(json::Object::new());
    errors.push(client.ingest_traces(&traces).await.err());
    let hide = QuarantineRequest {
        table: FactTable::InferenceCalls,
        fact_id: ForeignId::new("0192f6c4").expect("an id"),
        reason: QuarantineReason::new("a leak").expect("a reason"),
        force: false,
    };
    errors.push(client.quarantine(&hide).await.err());
    errors.push(client.release(&hide).await.err());
    errors.push(
        client
            .quarantine_log(QuarantineLogRequest::default())
            .await
            .err(),
    );
    let token = TokenName::new("review").expect("a name");
    let reason = QuarantineReason::new("a review").expect("a reason");
    let grant = GrantRequest {
        token: token.clone(),
        session_id: Some(session.clone()),
        user_id: None,
        agent_harness: None,
        repo: None,
        repository: None,
        since: None,
        reason: reason.clone(),
    };
    errors.push(client.grants(&GrantsRequest::default()).await.err());
    let explain = GrantExplanationRequest {
        token: token.clone(),
        session_id: session.clone(),
    };
    errors.push(client.explain_grant(&explain).await.err());
    errors.push(client.add_grant(&grant).await.err());
    let remove = GrantRemovalRequest {
        grant_id: ForeignId::new("0192f6c4").expect("an id"),
        reason: reason.clone(),
    };
    errors.push(client.remove_grant(&remove).await.err());
    let change = TokenChangeRequest { token, reason };
    errors.push(client.revoke_token(&change).await.err());
    errors.push(client.restore_token(&change).await.err());
    errors.push(client.facts().await.err());
    errors.push(client.session_facts(&session).await.err());
    errors.push(client.session_inference_calls(&session).await.err());
    errors.push(client.compatibility_evidence(&session).await.err());
    errors.push(client.evidence().inventory(&session).await.err());
    errors.push(client.evidence().manifest(&session, &call).await.err());
    errors.push(
        client
            .evidence()
            .read(&session, [reference.clone()])
            .await
            .err(),
    );
    errors.push(client.ci_outcome(&investigation::outcome()).await.err());
    errors.push(client.ci_runs(&investigation::runs()).await.err());
    errors.push(
        client
            .ci_failures_page(&investigation::failures())
            .await
            .err(),
    );
    errors.push(
        client
            .sessions_page(&SessionsRequest::default())
            .await
            .err(),
    );
    errors.push(
        client
            .granted_sessions_page(&SessionsRequest::default())
            .await
            .err(),
    );
    let search = SearchRequest::new(SearchQuery::new("pager").expect("a query"));
    errors.push(client.search(&search).await.err());
    let file = PriceFileRequest::new(r#"{"m":{"input_cost_per_token":0}}"#);
    errors.push(client.load_prices(&file).await.err());
    errors.push(client.price_tables().await.err());
    let price = ModelPriceRequest::new(ModelName::new("m").expect("a model"));
    errors.push(client.model_price(&price).await.err());
    errors.push(client.session_dossier(&session).await.err());
    errors.push(client.commit(&investigation::commit()).await.err());
    errors.push(client.overview(&OverviewRequest::default()).await.err());
    errors.push(client.model_outcomes(scope).await.err());
    errors.push(client.accepted_work_lifecycle(scope).await.err());
    let spend = svc_client::model::spend::SpendRequest::new(scope);
    errors.push(client.spend_report(&spend).await.err());
    errors.push(client.context().retrieve(&query).await.err());
    errors.push(client.context().discover(&query, None).await.err());
    errors.push(client.context().selected(&session, &query).await.err());
    errors.push(client.context().inventory(&session).await.err());
    errors.push(client.context().manifest(&session, &call).await.err());
    errors.push(client.context().read(&session, [reference]).await.err());
    errors
}

#[tokio::test]
async fn every_route_has_a_method() {
    let mut routes = endpoint::all();
    // These routes are for the forge, which signs its requests.
    routes.retain(|route| route.access != Access::Signature);
    let server = FakeServer::start(vec![Answer::text(401, ""); routes.len()]);
    // The answers are refusals; only the requests matter here.
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
