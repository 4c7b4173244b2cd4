#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, Endpoint, Method, Parameter, Repeat};
use crate::limit;
use crate::problem::Problem;
use crate::quarantine::{
    QuarantineLog, QuarantineLogRequest, QuarantineReceipt, QuarantineRequest,
};

const CHANGE: &[u16] = &[400, 401, 403, 413, 422, 503];

/// `POST /v1/quarantine`.
#[derive(Debug)]
pub enum Quarantine {}
impl Endpoint for Quarantine {
    const NAME: &'static str = "quarantine";
    const SUMMARY: &'static str =
        "Quarantine a fact: hide it from every answer. The fact itself is never changed.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/v1/quarantine";
    const ACCESS: Access = Access::Operator;
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = CHANGE;
    // Repeating the request would append another row to the log.
    const REPEAT: Repeat = Repeat::WhenNamed;
    type Request = QuarantineRequest;
    type Reply = QuarantineReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<QuarantineRequest>);
}

/// `POST /v1/release`.
#[derive(Debug)]
pub enum Release {}
impl Endpoint for Release {
    const NAME: &'static str = "release";
    const SUMMARY: &'static str = "Release a quarantined fact, so that it is visible again.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/v1/release";
    const ACCESS: Access = Access::Operator;
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = CHANGE;
    const REPEAT: Repeat = Repeat::WhenNamed;
    type Request = QuarantineRequest;
    type Reply = QuarantineReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<QuarantineRequest>);
}

/// `GET /v1/quarantine-log`.
#[derive(Debug)]
pub enum QuarantineLogPage {}
impl Endpoint for QuarantineLogPage {
    const NAME: &'static str = "quarantineLog";
    const SUMMARY: &'static str = "List what was quarantined and released, by whom and why.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/quarantine-log";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = &[401, 403, 409, 422, 503];
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = QuarantineLogRequest;
    type Reply = QuarantineLog;
    const PARAMETERS: &'static [Parameter] = QuarantineLogRequest::PARAMETERS;
}
