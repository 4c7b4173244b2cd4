use super::{Access, Endpoint, Method};
use crate::identity::{Health, IdentityProbe};
use crate::request::NoParameters;

/// `GET /health`.
#[derive(Debug)]
pub enum HealthProbe {}
impl Endpoint for HealthProbe {
    const NAME: &'static str = "health";
    const SUMMARY: &'static str = "Check whether the service is running.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/health";
    const ACCESS: Access = Access::Open;
    const STATUSES: &'static [u16] = &[422, 503];
    type Request = NoParameters;
    type Reply = Health;
}

/// `GET /v1/me`.
#[derive(Debug)]
pub enum Me {}
impl Endpoint for Me {
    const NAME: &'static str = "me";
    const SUMMARY: &'static str = "Show the client and authority of the presented token.";
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/v1/me";
    const ACCESS: Access = Access::Any;
    // A named retrieval token is looked up in the store.
    const STATUSES: &'static [u16] = &[401, 422, 503];
    type Request = NoParameters;
    type Reply = IdentityProbe;
}
