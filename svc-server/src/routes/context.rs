use std::sync::Arc;

use svc_engine::read::Reach;
use svc_model::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult,
};
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::id::SessionId;
use svc_model::problem::Problem;

use crate::app::App;
use crate::auth::Rights;
use crate::dispatch::Exchange;
use crate::settings::Grant;

/// Returns what the caller may read.
fn reach(exchange: &Exchange) -> Result<Reach, Problem> {
    // Every context route requires a token.
    let caller = exchange.caller.as_ref().ok_or(Problem::Unauthorized)?;
    match &caller.rights {
        Rights::Configured => Ok(Reach::Configured(Arc::clone(&exchange.app.sessions))),
        Rights::Granted(grants) => Ok(Reach::Granted(Arc::clone(grants))),
        Rights::Named(_) => Err(Problem::Unauthorized),
    }
}

/// Returns what the caller may read, provided that it may include the Session. If the token alone
/// decides, the caller is refused before the question takes a slot, so it does not learn whether
/// the Session exists.
async fn among(app: &App, reach: Reach, session_id: &SessionId) -> Result<Reach, Problem> {
    let is_possible = match &reach {
        Reach::All => true,
        Reach::Configured(sessions) => sessions.contains(session_id),
        Reach::Granted(grants) if grants.may_reach(session_id) => true,
        // It may have been granted since the token was checked.
        Reach::Granted(grants) => {
            let token = grants.token().clone();
            let latest = app.engine.token_grants(token).await?;
            latest.may_reach(session_id)
        }
    };
    if is_possible {
        Ok(reach)
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
    let reach = reach(&exchange)?;
    exchange
        .engine()
        .selected(reach, exchange.repeats(), request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn discover(
    exchange: Exchange,
    request: ContextDiscoveryRequest,
) -> Result<DiscoveryResult, Problem> {
    let reach = reach(&exchange)?;
    exchange
        .engine()
        .discover(reach, exchange.repeats(), request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn selected(
    exchange: Exchange,
    request: ContextSelectedRequest,
) -> Result<ContextResult, Problem> {
    let reach = reach(&exchange)?;
    let reach = among(&exchange.app, reach, &request.session_id).await?;
    exchange
        .engine()
        .selected(reach, exchange.repeats(), request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn inventory(
    exchange: Exchange,
    request: InventoryRequest,
) -> Result<Inventory, Problem> {
    let reach = reach(&exchange)?;
    let reach = among(&exchange.app, reach, &request.session_id).await?;
    let engine = exchange.engine();
    engine
        .inventory(reach, request)
        .await
        .map_err(Problem::from)
}

pub(super) async fn manifest(
    exchange: Exchange,
    request: ManifestRequest,
) -> Result<Manifest, Problem> {
    let reach = reach(&exchange)?;
    let reach = among(&exchange.app, reach, &request.session_id).await?;
    let engine = exchange.engine();
    engine.manifest(reach, request).await.map_err(Problem::from)
}

pub(super) async fn read(
    exchange: Exchange,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Problem> {
    let reach = reach(&exchange)?;
    let reach = among(&exchange.app, reach, &request.session_id).await?;
    let engine = exchange.engine();
    engine.evidence(reach, request).await.map_err(Problem::from)
}
