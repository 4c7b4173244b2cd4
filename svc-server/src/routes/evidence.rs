use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::problem::Problem;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::of_engine;

pub(super) async fn inventory(
    app: App,
    _: Option<Caller>,
    request: InventoryRequest,
) -> Result<Inventory, Problem> {
    app.engine.inventory(request).await.map_err(of_engine)
}

pub(super) async fn manifest(
    app: App,
    _: Option<Caller>,
    request: ManifestRequest,
) -> Result<Manifest, Problem> {
    app.engine.manifest(request).await.map_err(of_engine)
}

pub(super) async fn read(
    app: App,
    _: Option<Caller>,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Problem> {
    app.engine.evidence(request).await.map_err(of_engine)
}
