//! What the named retrieval tokens may read: an append-only log, and which of its rows are in
//! force.
//!
//! [`log`] appends and lists rows, [`reach`] finds the Sessions that a rule reaches, and [`mark`]
//! tells whether an earlier answer still holds. Each works in one transaction, so a question is
//! answered by the grants of its own snapshot.

mod log;
mod mark;
mod reach;

use svc_model::facts::AgentHarness;
use svc_model::grant::{GrantAction, GrantObstacle, TokenName};
use svc_model::id::{SessionId, UserId};
use svc_model::problem::QueryFault;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;
use uuid::Uuid;

pub use self::mark::{GrantCandidates, GrantMark};
pub use self::reach::ReachedSessions;

/// What a grant reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantTarget {
    /// One Session, stored or not.
    Session(SessionId),
    /// Every Session that matches a rule.
    Rule(GrantRule),
}

/// What visible facts must say about a Session to match. They must say all of it, and nothing else
/// of the same kind. At least one member is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantRule {
    /// Its user.
    pub user_id: Option<UserId>,
    /// The agent of its decisions and edits.
    pub agent_harness: Option<AgentHarness>,
    /// The name of the repository. It is used only if there is no identity.
    pub repo: Option<RepositoryName>,
    /// The identity of the repository.
    pub repository: Option<RepositoryIdentity>,
    /// The earliest moment at which its first fact may have been captured.
    pub since: Option<Instant>,
}

/// One row of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// Its revision.
    pub revision: u64,
    /// The id of the row. If the row adds a grant, this is also the grant's id.
    pub grant_id: String,
    /// The token.
    pub token: TokenName,
    /// What the row does.
    pub action: GrantAction,
    /// The grant that the row ends.
    pub removed_grant_id: Option<String>,
    /// What is granted, or what was granted until this row.
    pub target: Option<GrantTarget>,
    /// The reason.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// Who changed it.
    pub client_id: String,
    /// Whether the row is in force.
    pub is_in_force: bool,
}

/// Who changes grants, when and why.
#[derive(Clone, Debug)]
pub struct GrantChange {
    /// A fresh id for the row.
    pub grant_id: Uuid,
    /// The reason, exactly as the operator wrote it.
    pub reason: String,
    /// When it is recorded.
    pub recorded_at: Instant,
    /// Who makes the change.
    pub client_id: String,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedGrant {
    /// The row that records it.
    pub row: GrantRow,
    /// Whether nothing had to change. Then the row is an earlier one.
    pub unchanged: bool,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrant {
    /// No grant has this id or an id that begins with it.
    Absent,
    /// The ids of several grants begin with it.
    Ambiguous,
    /// The token already has the maximum number of grants.
    Full,
    /// The token was never revoked.
    NotRevoked,
}

impl From<NoGrant> for QueryFault {
    fn from(reason: NoGrant) -> Self {
        match reason {
            NoGrant::Absent => Self::GrantAbsent,
            NoGrant::Ambiguous => Self::GrantAmbiguous,
            NoGrant::Full => Self::GrantsFull,
            NoGrant::NotRevoked => Self::TokenNotRevoked,
        }
    }
}

/// The obstacles between a rule and a Session, in the order of their bits.
const OBSTACLES: [GrantObstacle; 8] = [
    GrantObstacle::NothingVisible,
    GrantObstacle::UserNotNamed,
    GrantObstacle::OtherUser,
    GrantObstacle::HarnessNotNamed,
    GrantObstacle::OtherHarness,
    GrantObstacle::RepositoryNotNamed,
    GrantObstacle::OtherRepository,
    GrantObstacle::BeforeSince,
];
