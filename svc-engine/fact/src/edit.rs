use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::json::{Json, Text};
use svc_model::time::Instant;

/// What became of the file of an applied edit by the end of its Session.
#[derive(Clone, Debug, PartialEq)]
pub struct EditObservation {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The agent's id of the tool call.
    pub call_id: String,
    /// The path of the file, as the agent wrote it.
    pub file_path: String,
    /// What the edit inserted, and what its file contained later.
    pub texts: EditTexts,
    /// Lines added by something other than the agent; absent if not measured.
    pub external_lines_added: Option<i64>,
    /// Lines removed by something other than the agent; absent if not measured.
    pub external_lines_removed: Option<i64>,
    /// When it was observed, by the sender's clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// The rest of the sender's payload, redacted. Never returned.
    pub raw: Json,
}

/// The texts of an applied edit, redacted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditTexts {
    /// The text that the edit inserted.
    pub applied: Text,
    /// The later content of the file; empty if the file was gone.
    pub observed_file: Text,
}

/// The text of an edit that a person refused.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedEdit {
    /// The id of the fact.
    pub rejection_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The agent's id of the tool call.
    pub call_id: String,
    /// The path of the file, as the agent wrote it.
    pub file_path: String,
    /// The text that was proposed, redacted.
    pub proposed: Text,
    /// When it was refused, by the sender's clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// The rest of the sender's payload, redacted. Never returned.
    pub raw: Json,
}
