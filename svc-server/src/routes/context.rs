use std::sync::Arc;

use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult,
};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::id::SessionId;
use svc_model::problem::Problem;

use super::evidence;
use crate::app::App;
use crate::auth::Caller;
use crate::problem::of_engine;
use crate::settings::Grant;

/// Checks that a Session is in the grant, before storage is touched: whether it exists is not
/// disclosed.
fn check_member(app: &App, session_id: &SessionId) -> Result<(), Problem> {
    if app.sessions.contains(session_id) {
        Ok(())
    } else {
        Err(Problem::OutsideGrant)
    }
}

pub(super) async fn retrieve(
    app: App,
    _: Option<Caller>,
    request: ContextRetrievalRequest,
) -> Result<ContextResult, Problem> {
    let Grant::Single(session_id) = &app.grant else {
        return Err(Problem::RetrievalDisabled);
    };
    let request = ContextSelectedRequest {
        schema_version: request.schema_version,
        query: request.query,
        session_id: session_id.clone(),
        max_bytes: request.max_bytes,
    };
    app.engine.selected(request).await.map_err(of_engine)
}

pub(super) async fn discover(
    app: App,
    _: Option<Caller>,
    request: ContextDiscoveryRequest,
) -> Result<DiscoveryResult, Problem> {
    app.engine
        .discover(Arc::clone(&app.sessions), request)
        .await
        .map_err(of_engine)
}

pub(super) async fn selected(
    app: App,
    _: Option<Caller>,
    request: ContextSelectedRequest,
) -> Result<ContextResult, Problem> {
    check_member(&app, &request.session_id)?;
    app.engine.selected(request).await.map_err(of_engine)
}

pub(super) async fn inventory(
    app: App,
    caller: Option<Caller>,
    request: InventoryRequest,
) -> Result<Inventory, Problem> {
    check_member(&app, &request.session_id)?;
    evidence::inventory(app, caller, request).await
}

pub(super) async fn manifest(
    app: App,
    caller: Option<Caller>,
    request: ManifestRequest,
) -> Result<Manifest, Problem> {
    check_member(&app, &request.session_id)?;
    evidence::manifest(app, caller, request).await
}

pub(super) async fn read(
    app: App,
    caller: Option<Caller>,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Problem> {
    check_member(&app, &request.session_id)?;
    evidence::read(app, caller, request).await
}
