use svc_engine_fact::DeveloperDecision;
use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::SessionId;
use svc_model::json::Json;
use svc_model::time::Instant;

use super::kept::KeptRecords;
use crate::Receipt;

/// A decision without its records, and which records to add.
pub(super) type DecisionDraft = (DeveloperDecision, KeptRecords);

/// Returns a decision with the common members, for the caller to complete: an edit that an agent
/// proposed and a rule refused.
pub(super) fn blank(
    agent_harness: AgentHarness,
    session_id: SessionId,
    occurred_at: Instant,
    receipt: Receipt<'_>,
) -> DeveloperDecision {
    DeveloperDecision {
        decision_id: receipt.fresh_id(),
        session_id,
        user_id: None,
        agent_harness,
        file_path: String::new(),
        accepted: false,
        explicit: false,
        interaction_mode: InteractionMode::Agent,
        commit_sha: None,
        call_id: None,
        edit_retention_score: None,
        observation_delay_ms: None,
        occurred_at,
        captured_at: receipt.received_at,
        raw: Json::Null,
    }
}
