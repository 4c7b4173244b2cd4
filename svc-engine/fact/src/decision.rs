use svc_model::facts::{AgentHarness, InteractionMode};
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::json::Json;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

/// What a developer, or a rule of theirs, decided about a proposed edit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeveloperDecision {
    /// The id of the fact.
    pub decision_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The user; stored, never returned.
    pub user_id: Option<UserId>,
    /// The agent.
    pub agent_harness: AgentHarness,
    /// The file, as the agent wrote its path; empty if it is not known.
    pub file_path: String,
    /// Whether the edit was accepted.
    pub accepted: bool,
    /// Whether a person decided, rather than a rule.
    pub explicit: bool,
    /// Where the edit was proposed.
    pub interaction_mode: InteractionMode,
    /// The commit that the file was at.
    pub commit_sha: Option<CommitSha>,
    /// The agent's id of the tool call.
    pub call_id: Option<String>,
    /// The share of the edit that was still there when checked later, from 0 to 1.
    pub edit_retention_score: Option<f64>,
    /// Milliseconds between the edit and that check; only with a score.
    pub observation_delay_ms: Option<i64>,
    /// When the decision was made, by the sender's clock.
    pub occurred_at: Instant,
    /// When the service received it.
    pub captured_at: Instant,
    /// What the sender sent, redacted. Never returned.
    pub raw: Json,
}
