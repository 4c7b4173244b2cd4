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

/// What a grant reaches: one Session, or by a rule every Session whose visible facts match all
/// members of the rule and name no other user, agent or repository. A member that is not part of
/// the grant is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantScope {
    /// The Session, if the grant is for one Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The only user that facts of the Session may name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The only agent that decisions and edits of the Session may come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_harness: Option<Open<AgentHarness>>,
    /// The name that the repository had when the grant was made. Without `repository`, it is known
    /// by this name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepositoryName>,
    /// The only repository at whose commits the Session may have been observed, whatever its
    /// current name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<LifetimeIdentity>,
    /// The earliest capture time of the first fact of the Session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
}

/// One row of the grant log. A row is never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantEntry {
    /// The revision of the row. A later row has a greater one.
    pub grant_revision: u64,
    /// The id of the row. For a row that adds a grant, this is the id of the grant.
    pub grant_id: String,
    /// What the row records.
    pub action: Open<GrantAction>,
    /// The name of the token.
    pub token: TokenName,
    /// What the grant reaches that this row adds or removes; null if the row is about the token as
    /// a whole.
    pub scope: Option<GrantScope>,
    /// The id of the grant that this row removes; null for other rows.
    pub removed_grant_id: Option<String>,
    /// The reason of the change, exactly as written.
    pub reason: String,
    /// When the service recorded the row.
    pub recorded_at: Instant,
    /// Who made the change: the client of the token, or `shell` and the name of the system user who
    /// ran a command on the store itself.
    pub client_id: String,
    /// Whether the row is in force: a grant that was not removed, or a revocation that was not
    /// lifted.
    pub in_force: bool,
}

/// How many Sessions a grant reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReach {
    /// The number of Sessions that it reaches now. If `over_limit` is true, only those among the
    /// latest 1,000 that it would have to examine.
    pub sessions: u64,
    /// Whether it would have to examine more Sessions than one discovery does. Each Session that it
    /// reaches can still be opened by its id.
    pub over_limit: bool,
}

/// The recorded change of a grant or a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantReceipt {
    /// The organization.
    pub org_id: OrgId,
    /// The row that records the change; the earlier row if nothing changed.
    pub entry: GrantEntry,
    /// Whether nothing changed. Then no row was appended.
    pub unchanged: bool,
    /// What a new grant reaches now; null for other changes.
    pub reach: Option<GrantReach>,
    /// Whether the answering server has a token of this name in its settings; null if no server
    /// answered.
    pub configured: Option<bool>,
}

/// Rows of the grant log, oldest first: those in force, or on request all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantList {
    /// The organization.
    pub org_id: OrgId,
    /// The revision of the last row of the log; 0 if the log is empty.
    pub grant_revision: u64,
    /// The rows.
    pub entries: Vec<GrantEntry>,
    /// The names of the retrieval tokens in the settings of the answering server, sorted; null if
    /// no server answered.
    pub configured_tokens: Option<Vec<TokenName>>,
    /// The `before` of the request for the rows before these; null if there are none.
    pub next_before: Option<u64>,
}

/// Whether one grant reaches a Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct GrantVerdict {
    /// The row that added the grant.
    pub entry: GrantEntry,
    /// Whether it reaches the Session.
    pub grants: bool,
    /// Why it does not reach the Session. Empty if it does.
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
    /// The id of the Session.
    pub session_id: SessionId,
    /// Whether the answering server has a token of this name in its settings; null if no server
    /// answered.
    pub configured: Option<bool>,
    /// The row that revoked the token; null if it is not revoked.
    pub revocation: Option<GrantEntry>,
    /// Whether any fact names the Session, quarantined facts included.
    pub found: bool,
    /// Whether the token may read the Session: at least one grant reaches it, and the token is not
    /// revoked.
    pub granted: bool,
    /// Every grant of the token that is in force, oldest first.
    pub entries: Vec<GrantVerdict>,
}
