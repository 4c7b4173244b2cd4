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

/// What a grant reaches: one Session, or every Session whose visible facts meet all the other members
/// that are there and say nothing else of it.
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
    /// The name of the repository when it was granted. Without `repository` it is a repository that is
    /// known by its name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepositoryName>,
    /// The repository, whatever its name is by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<LifetimeIdentity>,
    /// The first moment at which the first fact of a Session was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
}

/// One row of the log of grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantEntry {
    /// Its revision.
    pub grant_revision: u64,
    /// Its id. That of a row that adds is the id of the grant.
    pub grant_id: String,
    /// What it does.
    pub action: Open<GrantAction>,
    /// The name of the token.
    pub token: TokenName,
    /// What is granted, or was until this row; null where the row is about the token itself.
    pub scope: Option<GrantScope>,
    /// The id of the grant that this row ends; null where it ends none.
    pub removed_grant_id: Option<String>,
    /// Why, exactly as it was written.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// Who did it: the client of the token, or `shell` and the user of the system who ran a command
    /// on the store itself.
    pub client_id: String,
    /// Whether it is in force: a grant that was not removed, or a revocation that was not taken back.
    pub in_force: bool,
}

/// How many Sessions a grant reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReach {
    /// Sessions that it reaches now; of one that is over the limit, those that were found.
    pub sessions: u64,
    /// Whether they are more than one discovery takes. Each of them can be opened by its id.
    pub over_limit: bool,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReceipt {
    /// The organization.
    pub org_id: OrgId,
    /// The row that says so: a new one, or the earlier one when nothing changed.
    pub entry: GrantEntry,
    /// Whether it was so already. Then no row was appended.
    pub unchanged: bool,
    /// What a new grant reaches now; null for other changes.
    pub reach: Option<GrantReach>,
    /// Whether the server that answers has a token of this name; null where no server was asked.
    pub configured: Option<bool>,
}

/// Rows of the log of grants, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantList {
    /// The organization.
    pub org_id: OrgId,
    /// The high-water mark of the log; 0 when it is empty.
    pub grant_revision: u64,
    /// These rows.
    pub entries: Vec<GrantEntry>,
    /// The names of the tokens that the server that answers has, sorted; null where no server was
    /// asked.
    pub configured_tokens: Option<Vec<TokenName>>,
    /// What to ask for the rows before these; null when there are none.
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
    /// Why it does not; empty when it does.
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
    /// Whether the server that answers has a token of this name; null where no server was asked.
    pub configured: Option<bool>,
    /// The row by which the token is refused everywhere; null when it is not.
    pub revocation: Option<GrantEntry>,
    /// Whether any fact names the Session.
    pub found: bool,
    /// Whether the token may read the Session: some grant reaches it, and the token is not revoked.
    pub granted: bool,
    /// Every grant of the token in force, oldest first.
    pub entries: Vec<GrantVerdict>,
}
