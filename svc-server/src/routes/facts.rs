use svc_model::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use svc_model::problem::Problem;
use svc_model::request::NoParameters;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::of_engine;

pub(super) async fn facts(
    app: App,
    _: Option<Caller>,
    _: NoParameters,
) -> Result<FactsCounts, Problem> {
    app.engine.facts().await.map_err(of_engine)
}

pub(super) async fn session(
    app: App,
    _: Option<Caller>,
    request: SessionRequest,
) -> Result<SessionFactsCounts, Problem> {
    app.engine.session_facts(request).await.map_err(of_engine)
}

pub(super) async fn calls(
    app: App,
    _: Option<Caller>,
    request: SessionRequest,
) -> Result<SessionInferenceCalls, Problem> {
    app.engine
        .session_inference_calls(request)
        .await
        .map_err(of_engine)
}

pub(super) async fn compatibility(
    app: App,
    _: Option<Caller>,
    request: SessionRequest,
) -> Result<CompatibilityEvidence, Problem> {
    app.engine
        .compatibility_evidence(request)
        .await
        .map_err(of_engine)
}
