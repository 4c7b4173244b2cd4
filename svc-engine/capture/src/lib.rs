//! Requests become facts: synchronous functions over values, with no clock, I/O, randomness or
//! logging.
//!
//! What they need from outside (the organization, the time of receipt, fresh ids, and what to
//! redact) is in the [`Receipt`].
//!
//! Content that is left out, such as images and files, is counted with its call.

mod call_pair;
pub mod calls;
pub mod ci;
pub mod forge;
pub mod gateway;
mod model_call;
pub mod notes;
pub mod otlp;
pub mod redaction;
pub mod repository_url;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod value;

pub use self::call_pair::{PairedCall, paired_call};

use svc_engine_fact::clock::Ids;
use svc_model::id::{FactId, OrgId};
use svc_model::time::Instant;

use self::redaction::{Redactor, Secrets};

/// What capture needs to know about a delivery besides its content.
#[derive(Clone, Copy, Debug)]
pub struct Receipt<'a> {
    /// The organization of the deployment.
    pub org_id: &'a OrgId,
    /// The time of receipt.
    pub received_at: Instant,
    /// Generates ids for facts whose id is not derived.
    pub ids: &'a Ids,
    /// Whether credentials are redacted before storage.
    pub redaction: Redaction,
    /// The secrets of the service itself, which are redacted too.
    pub secrets: &'a Secrets,
}

impl Receipt<'_> {
    /// Returns a fresh id for a fact whose id is not derived.
    pub fn fresh_id(&self) -> FactId {
        FactId::new(self.ids.fresh())
    }

    /// Returns a redactor for the delivery, or `None` if credentials are kept.
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
    /// They are redacted.
    On,
    /// They are kept (`SVC_REDACTION=off`).
    Off,
}
