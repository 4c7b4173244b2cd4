use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::json::Json;
use svc_model::time::Instant;

/// A refused edit, a person's correction, and the accepted edit of the same tool on the same file
/// that followed.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryLinkage {
    /// The id of the fact.
    pub retry_linkage_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The tool: `Edit` or `Write`.
    pub tool_name: String,
    /// The file, as the agent wrote its path, trimmed.
    pub file_path: String,
    /// The agent's id of the refused call.
    pub rejected_call_id: String,
    /// The agent's id of the accepted call, which is a different call.
    pub accepted_call_id: String,
    /// When the accepted call was made, by the sender's clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// The rest of the sender's payload; empty. Never returned.
    pub raw: Json,
}
