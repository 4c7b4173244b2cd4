#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, Endpoint, Grant, Method, Parameter, Tally};
use crate::context::{
    ContextDiscoveryRequest, ContextResult, ContextRetrievalRequest, ContextSelectedRequest,
    DiscoveryResult,
};
use crate::evidence::{
    EvidenceRead, EvidenceReadRequest, Inventory, InventoryRequest, Manifest, ManifestRequest,
};
use crate::limit;

const GET: &[u16] = &[401, 403, 404, 409, 422, 503];
const POST: &[u16] = &[400, 401, 403, 404, 409, 413, 422, 503];

/// `POST /query/context`.
#[derive(Debug)]
pub enum ContextRetrieval {}
impl Endpoint for ContextRetrieval {
    const NAME: &'static str = "context";
    const SUMMARY: &'static str =
        "Find the parts of the one configured Session that match a query.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/query/context";
    const ACCESS: Access = Access::Context(Grant::Single);
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = POST;
    type Request = ContextRetrievalRequest;
    type Reply = ContextResult;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<ContextRetrievalRequest>);
}

/// `POST /query/context/discover`.
#[derive(Debug)]
pub enum Discovery {}
impl Endpoint for Discovery {
    const NAME: &'static str = "contextDiscover";
    const SUMMARY: &'static str =
        "Find the Sessions of the grant that match a query or made a commit.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/query/context/discover";
    const ACCESS: Access = Access::Context(Grant::Configured);
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = POST;
    type Request = ContextDiscoveryRequest;
    type Reply = DiscoveryResult;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<ContextDiscoveryRequest>);
}

/// `POST /query/context/selected`.
#[derive(Debug)]
pub enum Selected {}
impl Endpoint for Selected {
    const NAME: &'static str = "contextSelected";
    const SUMMARY: &'static str = "Find the parts of one Session of the grant that match a query.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/query/context/selected";
    const ACCESS: Access = Access::Context(Grant::Configured);
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = POST;
    type Request = ContextSelectedRequest;
    type Reply = ContextResult;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<ContextSelectedRequest>);
}

/// `GET /query/context/evidence`.
#[derive(Debug)]
pub enum GrantInventory {}
impl Endpoint for GrantInventory {
    const NAME: &'static str = "contextInventory";
    const SUMMARY: &'static str = "List the visible calls of a Session of the grant.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/context/evidence";
    const ACCESS: Access = Access::Context(Grant::Configured);
    const STATUSES: &'static [u16] = GET;
    type Request = InventoryRequest;
    type Reply = Inventory;
    const PARAMETERS: &'static [Parameter] = InventoryRequest::PARAMETERS;
}

/// `GET /query/context/evidence/manifest`.
#[derive(Debug)]
pub enum GrantManifest {}
impl Endpoint for GrantManifest {
    const NAME: &'static str = "contextManifest";
    const SUMMARY: &'static str = "List the messages and parts of a call of the grant.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/context/evidence/manifest";
    const ACCESS: Access = Access::Context(Grant::Configured);
    const STATUSES: &'static [u16] = GET;
    type Request = ManifestRequest;
    type Reply = Manifest;
    const PARAMETERS: &'static [Parameter] = ManifestRequest::PARAMETERS;
}

/// `POST /query/context/evidence/read`.
#[derive(Debug)]
pub enum GrantRead {}
impl Endpoint for GrantRead {
    const NAME: &'static str = "contextRead";
    const SUMMARY: &'static str = "Read exact parts of a Session of the grant, reasoning included.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/query/context/evidence/read";
    const ACCESS: Access = Access::Context(Grant::Configured);
    const BODY_BYTES_MAX: usize = limit::EVIDENCE_READ_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = POST;
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
