#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GrantAction, GrantObstacle, TokenName};
use crate::facts::AgentHarness;
use crate::id::{OrgId, SessionId, UserId};
use crate::open::Open;
use crate::query::LifetimeIdentity;
use crate::repository::RepositoryName;
use crate::time::Instant;

/// What a grant reaches: one Session, or every Session whose visible facts match all the other
/// members that are present and name no other user, agent or repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantScope {
    /// The one Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_harness: Option<Open<AgentHarness>>,
    /// The name of the repository when it was granted. Without `repository`, the repository is
    /// known by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepositoryName>,
    /// The repository, whatever its current name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<LifetimeIdentity>,
    /// The earliest capture time of a Session's first fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
}

/// One row of the grant log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantEntry {
    /// Its revision.
    pub grant_revision: u64,
    /// Its id. For a row that adds a grant, this is the id of the grant.
    pub grant_id: String,
    /// What it does.
    pub action: Open<GrantAction>,
    /// The name of the token.
    pub token: TokenName,
    /// What this row grants or removes; null if the row is about the token itself.
    pub scope: Option<GrantScope>,
    /// The id of the grant that this row removes; null if it removes none.
    pub removed_grant_id: Option<String>,
    /// The reason, exactly as written.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// Who made the change: the client of the token, or `shell` and the system user who ran a
    /// command on the store itself.
    pub client_id: String,
    /// Whether it is in force: a grant that was not removed, or a revocation that was not lifted.
    pub in_force: bool,
}

/// How many Sessions a grant reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReach {
    /// Sessions that it reaches now; over the limit, those found so far.
    pub sessions: u64,
    /// Whether they exceed what one discovery accepts. Each of them can still be opened by its id.
    pub over_limit: bool,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReceipt {
    /// The organization.
    pub org_id: OrgId,
    /// The row that records the change, or the earlier row if nothing changed.
    pub entry: GrantEntry,
    /// Whether nothing changed, in which case no row was appended.
    pub unchanged: bool,
    /// What a new grant reaches now; null for other changes.
    pub reach: Option<GrantReach>,
    /// Whether the answering server has a token of this name; null if no server was asked.
    pub configured: Option<bool>,
}

/// Rows of the grant log, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantList {
    /// The organization.
    pub org_id: OrgId,
    /// The high-water mark of the log; 0 if it is empty.
    pub grant_revision: u64,
    /// The rows.
    pub entries: Vec<GrantEntry>,
    /// The names of the answering server's tokens, sorted; null if no server was asked.
    pub configured_tokens: Option<Vec<TokenName>>,
    /// The `before` of the request for the preceding rows; null if there are none.
    pub next_before: Option<u64>,
}

/// Whether one grant reaches a Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantVerdict {
    /// The grant.
    pub entry: GrantEntry,
    /// Whether it reaches the Session.
    pub grants: bool,
    /// Why it does not; empty if it does.
    pub obstacles: Vec<Open<GrantObstacle>>,
}

/// Which grants of a token reach a Session, and why others do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantExplanation {
    /// The organization.
    pub org_id: OrgId,
    /// The name of the token.
    pub token: TokenName,
    /// The Session.
    pub session_id: SessionId,
    /// Whether the answering server has a token of this name; null if no server was asked.
    pub configured: Option<bool>,
    /// The row that revoked the token; null if it is not revoked.
    pub revocation: Option<GrantEntry>,
    /// Whether any fact names the Session.
    pub found: bool,
    /// Whether the token may read the Session: some grant reaches it, and the token is not revoked.
    pub granted: bool,
    /// Every grant of the token in force, oldest first.
    pub entries: Vec<GrantVerdict>,
}
