use super::{Access, Endpoint, Method, Parameter};
use crate::facts::{
    CompatibilityEvidence, FactsCounts, SessionFactsCounts, SessionInferenceCalls, SessionRequest,
};
use crate::problem::Problem;
use crate::request::NoParameters;

/// `GET /v1/facts`.
#[derive(Debug)]
pub enum Facts {}
impl Endpoint for Facts {
    const NAME: &'static str = "facts";
    const SUMMARY: &'static str = "Count the stored and the visible facts of each kind.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/facts";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = &[401, 403, 422, 503];
    type Request = NoParameters;
    type Reply = FactsCounts;
}

/// `GET /v1/facts/session/{session_id}`.
#[derive(Debug)]
pub enum SessionFacts {}
impl Endpoint for SessionFacts {
    const NAME: &'static str = "sessionFacts";
    const SUMMARY: &'static str = "Count the facts of each kind that name a Session.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/facts/session/{session_id}";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = &[401, 403, 422, 503];
    type Request = SessionRequest;
    type Reply = SessionFactsCounts;
    const PARAMETERS: &'static [Parameter] = SessionRequest::PARAMETERS;
}

/// `GET /v1/facts/session/{session_id}/inference-calls`.
#[derive(Debug)]
pub enum SessionCalls {}
impl Endpoint for SessionCalls {
    const NAME: &'static str = "sessionInferenceCalls";
    const SUMMARY: &'static str = "List the metadata of a Session's visible calls.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/facts/session/{session_id}/inference-calls";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
    const STATUSES: &'static [u16] = &[401, 403, 409, 422, 503];
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionRequest;
    type Reply = SessionInferenceCalls;
    const PARAMETERS: &'static [Parameter] = SessionRequest::PARAMETERS;
}

/// `GET /v1/facts/session/{session_id}/compatibility-evidence`.
#[derive(Debug)]
pub enum Compatibility {}
impl Endpoint for Compatibility {
    const NAME: &'static str = "compatibilityEvidence";
    const SUMMARY: &'static str =
        "Return what an agent harness can compare with its own records of a Session.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/facts/session/{session_id}/compatibility-evidence";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
    const STATUSES: &'static [u16] = &[401, 403, 409, 422, 503];
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionRequest;
    type Reply = CompatibilityEvidence;
    const PARAMETERS: &'static [Parameter] = SessionRequest::PARAMETERS;
}
