use svc_model::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use svc_model::problem::Problem;
use svc_model::request::NoParameters;

use crate::dispatch::Exchange;

pub(crate) async fn facts(exchange: Exchange, _: NoParameters) -> Result<FactsCounts, Problem> {
    exchange.app.engine.facts().await.map_err(Problem::from)
}

pub(crate) async fn session(
    exchange: Exchange,
    request: SessionRequest,
) -> Result<SessionFactsCounts, Problem> {
    exchange
        .app
        .engine
        .session_facts(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn calls(
    exchange: Exchange,
    request: SessionRequest,
) -> Result<SessionInferenceCalls, Problem> {
    exchange
        .app
        .engine
        .session_inference_calls(request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn compatibility(
    exchange: Exchange,
    request: SessionRequest,
) -> Result<CompatibilityEvidence, Problem> {
    exchange
        .app
        .engine
        .compatibility_evidence(request)
        .await
        .map_err(Problem::from)
}
