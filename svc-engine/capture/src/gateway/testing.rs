//! Shared by the tests of this module.

use svc_engine_fact::InferenceCall;
use svc_engine_fact::clock::Ids;
use svc_model::id::{OrgId, SessionId};
use svc_model::ingest::{GatewayIngestRequest, GatewayProvider};
use svc_model::json::{Json, NodeBudget};
use svc_model::time::Instant;
use uuid::Uuid;

use super::{Captured, GatewayError, PayloadNotes, capture};
use crate::redaction::Secrets;
use crate::{Receipt, Redaction};

/// The first id of a delivery.
pub(super) const FRESH_ID: Uuid = Uuid::from_u128(1);

pub(super) fn request(payload: Json) -> GatewayIngestRequest {
    GatewayIngestRequest {
        provider: GatewayProvider::GatewayA,
        session_id: None,
        user_id: None,
        payload,
        capture: None,
        compare: false,
    }
}

pub(super) fn deliver(
    request: GatewayIngestRequest,
    redaction: Redaction,
) -> Result<(Captured, PayloadNotes), GatewayError> {
    deliver_within(request, redaction, &NodeBudget::unlimited())
}

/// Captures a delivery whose messages may take this much memory.
pub(super) fn deliver_within(
    request: GatewayIngestRequest,
    redaction: Redaction,
    memory: &NodeBudget,
) -> Result<(Captured, PayloadNotes), GatewayError> {
    let receipt = Receipt {
        org_id: &OrgId::new("acme").unwrap(),
        received_at: Instant::from_microseconds(1).unwrap(),
        ids: &Ids::counting(),
        redaction,
        secrets: &Secrets::default(),
    };
    capture(request, receipt, memory)
}

/// Captures a payload under the Session `s`.
pub(crate) fn call(payload: Json) -> (InferenceCall, PayloadNotes) {
    let request = GatewayIngestRequest {
        session_id: Some(SessionId::new("s").unwrap()),
        ..request(payload)
    };
    match deliver(request, Redaction::On).unwrap() {
        (Captured::Call(call), notes) => (*call, notes),
        (skipped @ Captured::Skipped { .. }, _) => panic!("{skipped:?}"),
    }
}
