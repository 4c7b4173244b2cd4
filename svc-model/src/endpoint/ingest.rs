#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, ContentEncoding, Endpoint, Method, Parameter, Repeat, Tally};
use crate::ingest::{
    GatewayBatchReceipt, GatewayBatchRequest, GatewayIngestRequest, IngestReceipt, IngestResult,
    VendorCIRequest,
};
use crate::open::Open;

/// `POST /ingest/gateway`.
#[derive(Debug)]
pub enum IngestGateway {}
impl Endpoint for IngestGateway {
    const NAME: &'static str = "ingestGateway";
    const SUMMARY: &'static str = "Store one model call, as its gateway describes it.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/ingest/gateway";
    const ACCESS: Access = Access::Ingest;
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[ContentEncoding::Gzip];
    const STATUSES: &'static [u16] = &[400, 401, 403, 409, 413, 415, 422, 503];
    const REPEAT: Repeat = Repeat::WhenNamed;
    type Request = GatewayIngestRequest;
    type Reply = Open<IngestReceipt>;
    const PARAMETERS: &'static [Parameter] = GatewayIngestRequest::PARAMETERS;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<GatewayIngestRequest>);
}

/// `POST /ingest/gateway/{provider}`.
#[derive(Debug)]
pub enum IngestGatewayBatch {}
impl Endpoint for IngestGatewayBatch {
    const NAME: &'static str = "ingestGatewayBatch";
    const SUMMARY: &'static str =
        "Store what a gateway's own webhook logger sends: one payload, an array, or NDJSON.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/ingest/gateway/{provider}";
    const ACCESS: Access = Access::Ingest;
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[ContentEncoding::Gzip];
    const STATUSES: &'static [u16] = &[400, 401, 403, 413, 415, 422, 503];
    const REPEAT: Repeat = Repeat::WhenNamed;
    type Request = GatewayBatchRequest;
    type Reply = GatewayBatchReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<GatewayBatchRequest>);
    const PARAMETERS: &'static [Parameter] = GatewayBatchRequest::PARAMETERS;

    fn tally(request: &GatewayBatchRequest, reply: &GatewayBatchReceipt) -> Option<Tally> {
        Some(Tally {
            // A rejected item is not a JSON object, so it is not sent.
            requested: request.payloads.iter().flatten().count(),
            returned: usize::try_from(reply.total()).unwrap_or(usize::MAX),
        })
    }
}

/// `POST /ingest/ci`.
#[derive(Debug)]
pub enum IngestCi {}
impl Endpoint for IngestCi {
    const NAME: &'static str = "ingestCi";
    const SUMMARY: &'static str = "Store the outcome of one run of any CI system.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/ingest/ci";
    const ACCESS: Access = Access::Ingest;
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[ContentEncoding::Gzip];
    const STATUSES: &'static [u16] = &[400, 401, 403, 409, 413, 415, 422, 503];
    type Request = VendorCIRequest;
    type Reply = IngestResult;
    const PARAMETERS: &'static [Parameter] = VendorCIRequest::PARAMETERS;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<VendorCIRequest>);
}
