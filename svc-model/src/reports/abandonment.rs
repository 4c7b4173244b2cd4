#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counts, Provenance, SessionSkip, SessionStatus};
use crate::id::{OrgId, SessionId};
use crate::time::Instant;

/// The Sessions of an organization with accepted work, by status. A Session without an observed
/// commit may still have one, so no Session is ever called abandoned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AbandonmentReport {
    /// The organization.
    pub org_id: OrgId,
    /// The version of the rules.
    pub policy_version: String,
    /// The time of the last fact considered: of a decision, a call, or a fact that names a repository.
    /// Never after the boundary that was asked for; null without a decision.
    pub as_of: Option<Instant>,
    /// Always empty.
    pub abandoned_sessions: Vec<SessionId>,
    /// Every Session with an accepted decision, by id.
    pub accepted_session_outcomes: Vec<SessionOutcome>,
    /// What was found about Sessions with decisions. `reached_a_commit` is not a loss.
    pub skipped: Counts<SessionSkip>,
}

/// What is known about one Session with accepted work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionOutcome {
    /// The organization.
    pub org_id: OrgId,
    /// The Session.
    pub session_id: SessionId,
    /// Accepted decisions by people and by rules. At least 1.
    pub accepted_decisions: u64,
    /// Accepted decisions by people.
    pub explicit_accepted_decisions: u64,
    /// When the last decision was made, by the sender's clock.
    pub last_decision_at: Instant,
    /// The time of the last fact considered, as in the report.
    pub as_of: Instant,
    /// The status.
    pub status: SessionStatus,
    /// The rules that it was derived by.
    pub provenance: Provenance,
}
