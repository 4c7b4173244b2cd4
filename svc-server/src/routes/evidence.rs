use svc_engine::read::Reach;
use svc_model::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use svc_model::problem::Problem;

use crate::dispatch::Exchange;

pub(crate) async fn inventory(
    exchange: Exchange,
    request: InventoryRequest,
) -> Result<Inventory, Problem> {
    exchange
        .engine()
        .inventory(Reach::All, request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn manifest(
    exchange: Exchange,
    request: ManifestRequest,
) -> Result<Manifest, Problem> {
    exchange
        .engine()
        .manifest(Reach::All, request)
        .await
        .map_err(Problem::from)
}

pub(crate) async fn read(
    exchange: Exchange,
    request: EvidenceReadRequest,
) -> Result<EvidenceRead, Problem> {
    exchange
        .engine()
        .evidence(Reach::All, request)
        .await
        .map_err(Problem::from)
}
