use super::{Access, Endpoint, Method};
use crate::capture::CaptureCounts;
use crate::request::NoParameters;

/// `GET /v1/capture`.
#[derive(Debug)]
pub enum Capture {}
impl Endpoint for Capture {
    const NAME: &'static str = "capture";
    const SUMMARY: &'static str = "Count what was captured, skipped and rejected, by source and reason, and this server's answers.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/capture";
    const ACCESS: Access = Access::Operator;
    const STATUSES: &'static [u16] = &[401, 403, 422, 503];
    type Request = NoParameters;
    type Reply = CaptureCounts;
}
