#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, ContentEncoding, Endpoint, Method};
use crate::ingest::{LogsReceipt, LogsRequest};

/// `POST /v1/logs`.
#[derive(Debug)]
pub enum Logs {}
impl Endpoint for Logs {
    const NAME: &'static str = "logs";
    const SUMMARY: &'static str =
        "Store the decisions and edits that coding agents log over OTLP, in JSON or protobuf.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/v1/logs";
    const ACCESS: Access = Access::Ingest;
    const STATUSES: &'static [u16] = &[400, 401, 403, 413, 415, 422, 503];
    const CONTENT_ENCODINGS: &'static [ContentEncoding] = &[ContentEncoding::Gzip];
    type Request = LogsRequest;
    type Reply = LogsReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> = Some(SchemaGenerator::subschema_for::<LogsRequest>);
}
