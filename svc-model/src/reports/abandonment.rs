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
    /// The version of the rules that the statuses were derived by.
    pub policy_version: String,
    /// The time of the latest fact that was considered: a decision, a call, or a fact that names a
    /// repository. It is never after the requested boundary. Null without a decision.
    pub as_of: Option<Instant>,
    /// Always empty.
    pub abandoned_sessions: Vec<SessionId>,
    /// One entry for each Session with an accepted decision, by a person or not, ordered by Session
    /// id.
    pub accepted_session_outcomes: Vec<SessionOutcome>,
    /// What was found about Sessions with decisions, and observations that were not counted.
    /// `reached_a_commit` is not a loss.
    pub skipped: Counts<SessionSkip>,
}

/// What is known about one Session with accepted work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct SessionOutcome {
    /// The organization.
    pub org_id: OrgId,
    /// The id of the Session.
    pub session_id: SessionId,
    /// The number of accepted decisions, by people and by rules; at least 1.
    pub accepted_decisions: u64,
    /// The number of accepted decisions by people.
    pub explicit_accepted_decisions: u64,
    /// When the last decision was made, whether accepted or rejected, by the sender's clock.
    pub last_decision_at: Instant,
    /// The time of the latest fact that was considered, as in the report.
    pub as_of: Instant,
    /// Whether a commit of the Session was observed.
    pub status: SessionStatus,
    /// The rules that the status was derived by.
    pub provenance: Provenance,
}
