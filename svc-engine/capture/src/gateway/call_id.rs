//! The ids of a call, the same for every gateway.

use std::collections::BTreeSet;

use svc_model::evidence::{Message, Part};
use svc_model::id::{FactId, OrgId};
use svc_model::json::Json;
use svc_model::time::Instant;
use uuid::Uuid;

/// The namespace of fact ids that are derived from a capture id. Changing it would store every
/// repeated delivery again.
pub(crate) const CAPTURE_NAMESPACE: Uuid =
    Uuid::from_u128(0x68fd_420d_834b_49ea_b702_29e3_5609_70b7);

/// Returns the fact id for a delivery that has a capture id.
pub(super) fn derived_id(org_id: &OrgId, capture_id: Uuid) -> FactId {
    // Neither text contains characters that need escapes in JSON.
    let name = format!("[\"{}\",\"{}\"]", org_id.as_str(), capture_id.hyphenated());
    FactId::new(Uuid::new_v5(&CAPTURE_NAMESPACE, name.as_bytes()))
}

/// Returns the fact id for a call whose model's id another call has, which started at another time.
pub(super) fn further_id(org_id: &OrgId, model_call_id: &str, started_at: Instant) -> FactId {
    let name = Json::Array(vec![
        org_id.as_str().into(),
        model_call_id.into(),
        started_at.microseconds().into(),
    ]);
    FactId::new(Uuid::new_v5(&CAPTURE_NAMESPACE, &name.to_canonical()))
}

/// Returns the ids of the tool calls in an answer, and the id of the call itself.
pub(crate) fn aliases(output: &[Message], model_call_id: Option<&String>) -> Vec<String> {
    let called = output
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolCall { id, .. } => Some(id),
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCallResponse { .. } => None,
        });
    called
        .chain(model_call_id)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .cloned()
        .collect()
}
