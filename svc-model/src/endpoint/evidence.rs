#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, Endpoint, Method, Parameter, Tally};
use crate::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use crate::limit;

/// `GET /query/evidence`.
#[derive(Debug)]
pub enum EvidenceInventory {}
impl Endpoint for EvidenceInventory {
    const NAME: &'static str = "evidenceInventory";
    const SUMMARY: &'static str = "List the visible calls of a Session.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/evidence";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = &[401, 403, 409, 422, 503];
    type Request = InventoryRequest;
    type Reply = Inventory;
    const PARAMETERS: &'static [Parameter] = InventoryRequest::PARAMETERS;
}

/// `GET /query/evidence/manifest`.
#[derive(Debug)]
pub enum EvidenceManifest {}
impl Endpoint for EvidenceManifest {
    const NAME: &'static str = "evidenceManifest";
    const SUMMARY: &'static str = "List the messages and parts of a call, without their content.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/evidence/manifest";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = &[401, 403, 409, 422, 503];
    type Request = ManifestRequest;
    type Reply = Manifest;
    const PARAMETERS: &'static [Parameter] = ManifestRequest::PARAMETERS;
}

/// `POST /query/evidence/read`.
#[derive(Debug)]
pub enum EvidenceReading {}
impl Endpoint for EvidenceReading {
    const NAME: &'static str = "evidenceRead";
    const SUMMARY: &'static str = "Read exact parts, complete and in the order of the request.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/query/evidence/read";
    const ACCESS: Access = Access::Operator;
    const BODY_BYTES_MAX: usize = limit::EVIDENCE_READ_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = &[400, 401, 403, 409, 413, 422, 503];
    type Request = EvidenceReadRequest;
    type Reply = EvidenceRead;
    const PARAMETERS: &'static [Parameter] = EvidenceReadRequest::PARAMETERS;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<EvidenceReadRequest>);

    fn tally(request: &EvidenceReadRequest, reply: &EvidenceRead) -> Option<Tally> {
        Some(Tally {
            requested: request.references.len(),
            returned: reply.items.len(),
        })
    }
}
