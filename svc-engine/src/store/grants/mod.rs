//! What the named retrieval tokens may read: an append-only log, and which of its rows are in force.
//!
//! [`log`] appends and lists, [`reach`] says which Sessions a rule reaches, and [`mark`] tells whether
//! what they said earlier still holds. Each works in one transaction, so a question is answered by the
//! grants of its own snapshot.

mod log;
mod mark;
mod reach;

use svc_model::facts::AgentHarness;
use svc_model::grant::{GrantAction, GrantObstacle, TokenName};
use svc_model::id::{SessionId, UserId};
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;
use uuid::Uuid;

pub(super) use self::log::{add, change_token, remove};
pub use self::mark::{GrantCandidates, GrantMark};
pub use self::reach::Reached;

/// What a grant reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantTarget {
    /// One Session, stored or not.
    Session(SessionId),
    /// Every Session of which visible facts say this.
    Rule(GrantRule),
}

/// What visible facts must say of a Session, all of it, and nothing else of the same kind. At least
/// one member is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantRule {
    /// Its user.
    pub user_id: Option<UserId>,
    /// The agent behind its decisions and edits.
    pub agent_harness: Option<AgentHarness>,
    /// The name of the repository, which counts where there is no identity.
    pub repo: Option<RepositoryName>,
    /// The identity of the repository.
    pub repository: Option<RepositoryIdentity>,
    /// The first moment at which its first fact was captured.
    pub since: Option<Instant>,
}

/// One row of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// Its revision.
    pub revision: u64,
    /// Its id; of a row that adds, that of the grant.
    pub grant_id: String,
    /// The token.
    pub token: TokenName,
    /// What it does.
    pub action: GrantAction,
    /// The grant that it ends.
    pub removed_grant_id: Option<String>,
    /// What is granted, or was until this row.
    pub target: Option<GrantTarget>,
    /// Why.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
    /// Who did it.
    pub client_id: String,
    /// Whether it is in force.
    pub is_in_force: bool,
}

/// Who changes grants, when and why.
#[derive(Clone, Debug)]
pub struct GrantChange {
    /// A fresh id of the row.
    pub grant_id: Uuid,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
    /// Who does it.
    pub client_id: String,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedGrant {
    /// The row that says so.
    pub row: GrantRow,
    /// Whether it was so already: then the row is an earlier one.
    pub unchanged: bool,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrant {
    /// No grant has this id, or one that begins so.
    Absent,
    /// The ids of several grants begin so.
    Ambiguous,
    /// The token has as many grants as it may have.
    Full,
    /// The token was never revoked.
    NotRevoked,
}

/// The bits of the obstacles between a rule and a Session.
const OBSTACLES: [GrantObstacle; 8] = [
    GrantObstacle::NothingVisible,
    GrantObstacle::UserNotSaid,
    GrantObstacle::OtherUser,
    GrantObstacle::HarnessNotSaid,
    GrantObstacle::OtherHarness,
    GrantObstacle::RepositoryNotSaid,
    GrantObstacle::OtherRepository,
    GrantObstacle::BeforeSince,
];
