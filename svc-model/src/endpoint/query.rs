use super::{Access, Endpoint, Method, Parameter};
use crate::limit;
use crate::problem::Problem;
use crate::query::{
    CiFailures, CiFailuresRequest, CiOutcomeAnswer, CiOutcomeRequest, CiRuns, CiRunsRequest,
    CommitEvidence, CommitRequest, SessionAnswer, SessionDossierRequest, SessionList,
    SessionsRequest,
};

const STATUSES: &[u16] = &[401, 403, 409, 422, 503];

/// `GET /query/ci/outcome`.
#[derive(Debug)]
pub enum CiOutcomeQuery {}
impl Endpoint for CiOutcomeQuery {
    const NAME: &'static str = "ciOutcome";
    const SUMMARY: &'static str = "Look up the outcome of one run, with a link to its commit.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/outcome";
    const ACCESS: Access = Access::Operator;
    // The interface promises it for this route.
    const IGNORES_OTHER_QUERY: bool = true;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiOutcomeRequest;
    type Reply = CiOutcomeAnswer;
    const PARAMETERS: &'static [Parameter] = CiOutcomeRequest::PARAMETERS;
}

/// `GET /query/ci/runs`.
#[derive(Debug)]
pub enum CiRunsQuery {}
impl Endpoint for CiRunsQuery {
    const NAME: &'static str = "ciRuns";
    const SUMMARY: &'static str =
        "Find the runs that an id or a URL names, and the Sessions delivered with their commit.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/runs";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiRunsRequest;
    type Reply = CiRuns;
    const PARAMETERS: &'static [Parameter] = CiRunsRequest::PARAMETERS;
}

/// `GET /query/ci/failures`.
#[derive(Debug)]
pub enum CiFailuresQuery {}
impl Endpoint for CiFailuresQuery {
    const NAME: &'static str = "ciFailures";
    const SUMMARY: &'static str =
        "List a repository's outcomes with one result, latest first, in pages.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/ci/failures";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CiFailuresRequest;
    type Reply = CiFailures;
    const PARAMETERS: &'static [Parameter] = CiFailuresRequest::PARAMETERS;
}

/// `GET /v1/sessions`.
#[derive(Debug)]
pub enum SessionsQuery {}
impl Endpoint for SessionsQuery {
    const NAME: &'static str = "sessions";
    const SUMMARY: &'static str =
        "List Sessions by time, user, model, agent or repository, latest first, in pages.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/sessions";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionsRequest;
    type Reply = SessionList;
    const PARAMETERS: &'static [Parameter] = SessionsRequest::PARAMETERS;
}

/// `GET /query/session/{session_id}`.
#[derive(Debug)]
pub enum SessionQuery {}
impl Endpoint for SessionQuery {
    const NAME: &'static str = "sessionDossier";
    const SUMMARY: &'static str = "Show everything that was captured of a Session, as metadata.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/session/{session_id}";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = SessionDossierRequest;
    type Reply = SessionAnswer;
    const PARAMETERS: &'static [Parameter] = SessionDossierRequest::PARAMETERS;
}

/// `GET /query/commit/{sha}`.
#[derive(Debug)]
pub enum CommitQuery {}
impl Endpoint for CommitQuery {
    const NAME: &'static str = "commitEvidence";
    const SUMMARY: &'static str =
        "Show the Sessions, calls and CI outcomes of a commit, by repository.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/query/commit/{sha}";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::QUERY_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReplyTooLarge;
    type Request = CommitRequest;
    type Reply = CommitEvidence;
    const PARAMETERS: &'static [Parameter] = CommitRequest::PARAMETERS;
}
