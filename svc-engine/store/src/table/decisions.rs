//! Developer decisions. Their identity depends on what the agent sends.

use svc_engine_fact::DeveloperDecision;
use svc_model::facts::AgentHarness;

use super::record::{Fact, table};
use crate::pack::column::Packed;
use crate::sql::value::Value;

table! {
    DeveloperDecision in "developer_decisions",
    "decision_id" = decision_id,
    "session_id" = session_id,
    "user_id" = user_id,
    "agent_harness" = agent_harness,
    "file_path" = file_path,
    "accepted" = accepted,
    "explicit" = explicit,
    "interaction_mode" = interaction_mode,
    "commit_sha" = commit_sha,
    "call_id" = call_id,
    "edit_retention_score" = edit_retention_score,
    "observation_delay_ms" = observation_delay_ms,
    "occurred_at_us" = occurred_at,
    "captured_at_us" = captured_at,
    "raw" = raw as Packed,
    derived "identity" = identity,
}

impl Fact for DeveloperDecision {}

/// What tells a decision from the others of its Session at the same time.
fn identity(decision: &DeveloperDecision) -> Value<'static> {
    let call_id = decision.call_id.as_deref();
    // Claude Code gives each call a unique id, and reports its path later or never.
    let (file_path, delay) = match (decision.agent_harness, call_id) {
        (AgentHarness::ClaudeCode, Some(_)) => ("", None),
        _ => (&*decision.file_path, decision.observation_delay_ms),
    };
    crate::pack::identity::of(&[
        decision.agent_harness.as_str().as_bytes(),
        decision.interaction_mode.as_str().as_bytes(),
        &[u8::from(decision.accepted), u8::from(decision.explicit)],
        call_id.unwrap_or_default().as_bytes(),
        file_path.as_bytes(),
        &delay.unwrap_or(-1).to_be_bytes(),
    ])
}
