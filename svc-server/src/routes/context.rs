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
use crate::dispatch::Exchange;
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
    exchange: Exchange,
    request: ContextRetrievalRequest,
) -> Result<ContextResult, Problem> {
    let Grant::Single(session_id) = &exchange.app.grant else {
        return Err(Problem::RetrievalDisabled);
    };
    let request = ContextSelectedRequest {
        schema_version: request.schema_version,
        query: request.query,
        session_id: session_id.clone(),
        max_bytes: request.max_bytes,
    };
    exchange
        .app
        .engine
        .selected(request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn discover(
    exchange: Exchange,
    request: ContextDiscoveryRequest,
) -> Result<DiscoveryResult, Problem> {
    exchange
        .app
        .engine
        .discover(Arc::clone(&exchange.app.sessions), request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn selected(
    exchange: Exchange,
    request: ContextSelectedRequest,
) -> Result<ContextResult, Problem> {
    check_member(&exchange.app, &request.session_id)?;
    exchange
        .app
        .engine
        .selected(request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn inventory(
    exchange: Exchange,
    request: InventoryRequest,
) -> Result<Inventory, Problem> {
    check_member(&exchange.app, &request.session_id)?;
    evidence::inventory(exchange, request).await
}

pub(super) async fn manifest(
    exchange: Exchange,
    request: ManifestRequest,
) -> Result<Manifest, Problem> {
    check_member(&exchange.app, &request.session_id)?;
    evidence::manifest(exchange, request).await
}

pub(super) async fn read(
    exchange: Exchange,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Problem> {
    check_member(&exchange.app, &request.session_id)?;
    evidence::read(exchange, request).await
}
