use super::{Access, Endpoint, Method, Parameter};
use crate::limit;
use crate::problem::{Problem, ReportBound};
use crate::reports::{AcceptedWorkLifecycle, ModelOutcomes, ReportRequest};

const STATUSES: &[u16] = &[401, 403, 409, 422, 503];

/// `GET /v1/reports/model-outcomes`.
#[derive(Debug)]
pub enum ModelOutcomesReport {}
impl Endpoint for ModelOutcomesReport {
    const NAME: &'static str = "modelOutcomes";
    const SUMMARY: &'static str = "Report what became of each model's calls.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/reports/model-outcomes";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReportBound(ReportBound::Reply);
    type Request = ReportRequest;
    type Reply = ModelOutcomes;
    const PARAMETERS: &'static [Parameter] = ReportRequest::PARAMETERS;
}

/// `GET /v1/reports/accepted-work-lifecycle`.
#[derive(Debug)]
pub enum AcceptedWorkLifecycleReport {}
impl Endpoint for AcceptedWorkLifecycleReport {
    const NAME: &'static str = "acceptedWorkLifecycle";
    const SUMMARY: &'static str =
        "Report what became of accepted work, from the call to the merge.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/reports/accepted-work-lifecycle";
    const ACCESS: Access = Access::Operator;
    const REPLY_BYTES_MAX: usize = limit::REPORT_REPLY_BYTES_MAX;
    const STATUSES: &'static [u16] = STATUSES;
    const OVERSIZE: Problem = Problem::ReportBound(ReportBound::Reply);
    type Request = ReportRequest;
    type Reply = AcceptedWorkLifecycle;
    const PARAMETERS: &'static [Parameter] = ReportRequest::PARAMETERS;
}
