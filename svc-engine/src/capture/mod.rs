//! Requests become facts: synchronous functions over values, without clock, I/O, chance or logging.
//!
//! What they need of the world (the organization, the moment of receipt, fresh ids, whether
//! credentials and which secrets are redacted) comes in as a [`Receipt`].

pub mod ci;
pub mod forge;
pub mod gateway;
mod messages;
pub mod notes;
pub mod otlp;
pub mod redaction;
mod value;

use svc_model::id::{FactId, OrgId};
use svc_model::time::Instant;

use self::redaction::{Redactor, Secrets};
use crate::clock::Ids;

/// What capture is told about a delivery beside its content.
#[derive(Clone, Copy, Debug)]
pub struct Receipt<'a> {
    /// The organization of the deployment.
    pub org_id: &'a OrgId,
    /// The moment of receipt.
    pub received_at: Instant,
    /// Gives fresh ids, for facts that have no derived one.
    pub ids: &'a Ids,
    /// Whether credentials are redacted before storage.
    pub redaction: Redaction,
    /// The secrets of the service itself, which are redacted as well.
    pub secrets: &'a Secrets,
}

impl Receipt<'_> {
    /// Returns a fresh id, for a fact that has no derived one.
    pub fn fresh_id(&self) -> FactId {
        FactId::new(self.ids.fresh())
    }

    /// Returns what redacts the delivery; nothing when credentials are kept.
    fn redactor(&self) -> Option<Redactor> {
        match self.redaction {
            Redaction::On => Some(Redactor::new(self.secrets)),
            Redaction::Off => None,
        }
    }
}

/// Whether credentials are redacted before storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// They are.
    On,
    /// They are kept (`SVC_REDACTION=off`).
    Off,
}
