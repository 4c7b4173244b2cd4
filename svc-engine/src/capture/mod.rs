//! Requests become facts: synchronous functions over values, without clock, I/O, chance or logging.
//!
//! What they need of the world (the organization, the moment of receipt, a fresh id, whether
//! credentials are redacted) comes in as a [`Receipt`].

pub mod ci;
pub mod forge;
pub mod gateway;
pub mod notes;
pub mod redaction;

use svc_model::id::OrgId;
use svc_model::time::Instant;
use uuid::Uuid;

/// What capture is told about a delivery beside its content.
#[derive(Clone, Copy, Debug)]
pub struct Receipt<'a> {
    /// The organization of the deployment.
    pub org_id: &'a OrgId,
    /// The moment of receipt.
    pub received_at: Instant,
    /// A fresh id, for a fact that has no derived one.
    pub fresh_id: Uuid,
    /// Whether credentials are redacted before storage.
    pub redaction: Redaction,
}

/// Whether credentials are redacted before storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// They are.
    On,
    /// They are kept (`SVC_REDACTION=off`).
    Off,
}
