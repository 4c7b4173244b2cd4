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

/// Declares a route that appends a row about one fact to the quarantine log.
macro_rules! quarantine_change {
    ($(#[$doc:meta])+ $type:ident, $name:literal, $path:literal, $summary:literal) => {
        $(#[$doc])+
        #[derive(Debug)]
        pub enum $type {}
        impl Endpoint for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const METHOD: Method = Method::Post;
            const PATH: &'static str = $path;
            const ACCESS: Access = Access::Operator;
            const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
            const STATUSES: &'static [u16] = CHANGE;
            // Repeating the request would append another row to the log.
            const REPEAT: Repeat = Repeat::Never;
            type Request = QuarantineRequest;
            type Reply = QuarantineReceipt;
            #[cfg(feature = "schema")]
            const REQUEST_SCHEMA: Option<SchemaOf> =
                Some(SchemaGenerator::subschema_for::<QuarantineRequest>);
        }
    };
}

quarantine_change! {
    /// `POST /v1/quarantine`.
    Quarantine, "quarantine", "/v1/quarantine",
    "Quarantine a fact: hide it from every answer. The fact itself is never changed."
}

quarantine_change! {
    /// `POST /v1/release`.
    Release, "release", "/v1/release",
    "Release a quarantined fact, so that it is visible again."
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
