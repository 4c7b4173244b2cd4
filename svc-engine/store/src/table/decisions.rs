//! Developer decisions. Their identity depends on what the agent sends.

use svc_engine_fact::DeveloperDecision;
use svc_model::facts::AgentHarness;
use svc_model::open::Open;
use svc_model::query::TimelineEvent;

use super::event::{Event, file_path};
use super::record::{Fact, table};
use crate::pack::column::{Columns, PackedColumn};
use crate::sql::error::StoreError;
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
    "raw" = raw as PackedColumn,
    derived "identity" = identity,
}

impl Fact for DeveloperDecision {
    const CONTENT: &'static [&'static str] = &["raw"];
    const EVENT: Option<&'static Event> = Some(&Event {
        columns: &[
            "decision_id",
            "occurred_at_us",
            "agent_harness",
            "accepted",
            "explicit",
            "interaction_mode",
            "file_path",
            "call_id",
            "commit_sha",
        ],
        read: event,
    });
}

fn event(columns: &mut Columns<'_>) -> Result<TimelineEvent, StoreError> {
    let (fact_id, occurred_at, agent_harness) = (columns.next()?, columns.next()?, columns.next()?);
    let (accepted, explicit, interaction_mode) =
        (columns.next()?, columns.next()?, columns.next()?);
    let file_path = file_path(columns)?;
    Ok(TimelineEvent::DeveloperDecision {
        fact_id,
        occurred_at,
        agent_harness: Open::Known(agent_harness),
        accepted,
        explicit,
        interaction_mode: Open::Known(interaction_mode),
        has_file_path: file_path.is_some(),
        file_path,
        call_id: columns.next()?,
        commit_sha: columns.next()?,
    })
}

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
