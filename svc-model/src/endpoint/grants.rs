#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

#[cfg(feature = "schema")]
use super::SchemaOf;
use super::{Access, Endpoint, Method, Parameter};
use crate::grant::{
    GrantExplanation, GrantExplanationRequest, GrantList, GrantReceipt, GrantRemovalRequest,
    GrantRequest, GrantsRequest, TokenChangeRequest,
};
use crate::limit;
use crate::problem::Problem;

const READ: &[u16] = &[401, 403, 409, 422, 503];
const CHANGE: &[u16] = &[400, 401, 403, 413, 422, 503];

/// `GET /v1/grants`.
#[derive(Debug)]
pub enum Grants {}
impl Endpoint for Grants {
    const NAME: &'static str = "grants";
    const SUMMARY: &'static str = "List what the named retrieval tokens may read; with `history`, every change, by whom and why.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/grants";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = READ;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = GrantsRequest;
    type Reply = GrantList;
    const PARAMETERS: &'static [Parameter] = GrantsRequest::PARAMETERS;
}

/// `GET /v1/grants/explain`.
#[derive(Debug)]
pub enum GrantExplain {}
impl Endpoint for GrantExplain {
    const NAME: &'static str = "grantExplain";
    const SUMMARY: &'static str =
        "Explain which grants of a token reach a Session, and why the others do not.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/grants/explain";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = READ;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = GrantExplanationRequest;
    type Reply = GrantExplanation;
    const PARAMETERS: &'static [Parameter] = GrantExplanationRequest::PARAMETERS;
}

/// `POST /v1/grants/add`.
#[derive(Debug)]
pub enum GrantAdd {}
impl Endpoint for GrantAdd {
    const NAME: &'static str = "grantAdd";
    const SUMMARY: &'static str = "Grant a named retrieval token a Session, or every Session that a rule reaches, at once on every server.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/v1/grants/add";
    const ACCESS: Access = Access::Operator;
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = &[400, 401, 403, 409, 413, 422, 503];
    type Request = GrantRequest;
    type Reply = GrantReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> = Some(SchemaGenerator::subschema_for::<GrantRequest>);
}

/// `POST /v1/grants/remove`.
#[derive(Debug)]
pub enum GrantRemove {}
impl Endpoint for GrantRemove {
    const NAME: &'static str = "grantRemove";
    const SUMMARY: &'static str = "Remove a grant, by appending a row to the log.";
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/v1/grants/remove";
    const ACCESS: Access = Access::Operator;
    const BODY_BYTES_MAX: usize = limit::CONTEXT_BODY_BYTES_MAX;
    const STATUSES: &'static [u16] = CHANGE;
    type Request = GrantRemovalRequest;
    type Reply = GrantReceipt;
    #[cfg(feature = "schema")]
    const REQUEST_SCHEMA: Option<SchemaOf> =
        Some(SchemaGenerator::subschema_for::<GrantRemovalRequest>);
}

/// Declares a route that changes a token as a whole.
macro_rules! token_change {
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
            type Request = TokenChangeRequest;
            type Reply = GrantReceipt;
            #[cfg(feature = "schema")]
            const REQUEST_SCHEMA: Option<SchemaOf> =
                Some(SchemaGenerator::subschema_for::<TokenChangeRequest>);
        }
    };
}

token_change! {
    /// `POST /v1/grants/revoke`.
    TokenRevoke, "tokenRevoke", "/v1/grants/revoke",
    "Revoke a named retrieval token: from now on, every server answers it with 401."
}

token_change! {
    /// `POST /v1/grants/restore`.
    TokenRestore, "tokenRestore", "/v1/grants/restore",
    "Restore a revoked token with its grants."
}
