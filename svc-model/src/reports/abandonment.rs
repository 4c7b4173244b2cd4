#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counts, Provenance, SessionSkip, SessionStatus};
use crate::id::{OrgId, SessionId};
use crate::time::Instant;

/// The Sessions of an organization with accepted work, by status. That no commit of a Session was
/// seen does not mean that there was none, so no Session is ever called abandoned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct AbandonmentReport {
    /// The organization.
    pub org_id: OrgId,
    /// The version of the rules.
    pub policy_version: String,
    /// The newest moment among the facts; null without a decision.
    pub as_of: Option<Instant>,
    /// Always empty.
    pub abandoned_sessions: Vec<SessionId>,
    /// Every Session with an accepted decision, by id.
    pub accepted_session_outcomes: Vec<SessionOutcome>,
    /// What was found of Sessions with decisions. `reached_a_commit` is no loss.
    pub skipped: Counts<SessionSkip>,
}

/// What is known of one Session with accepted work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionOutcome {
    /// The organization.
    pub org_id: OrgId,
    /// The Session.
    pub session_id: SessionId,
    /// Accepted decisions, of people and of rules. At least 1.
    pub accepted_decisions: u64,
    /// Those of people.
    pub explicit_accepted_decisions: u64,
    /// When the last decision was made, by the sender's clock.
    pub last_decision_at: Instant,
    /// The moment up to which facts count.
    pub as_of: Instant,
    /// What is known.
    pub status: SessionStatus,
    /// By which rules it was derived.
    pub provenance: Provenance,
}
