//! What an answer about a grant depends on, in a form that costs one look-up.
//!
//! The log is append-only, and every row of it has an id of its own. So its last row stands for all of
//! it, also after the database was set back to an earlier state and has grown again.

use svc_model::id::SessionId;

use crate::store::snapshot::revisions;
use crate::store::{Snapshot, StoreError};

macro_rules! mark {
    ($($of_session:literal)?) => {
        revisions!(
            ", (SELECT grant_id FROM grant_log WHERE (org_id || '') = $1
                ORDER BY grant_revision DESC LIMIT 1)"
            $(, $of_session)?
        )
    };
}

const OF_LOG: &str = mark!();
const OF_SESSION: &str = mark!(
    ", (SELECT quarantine_id FROM quarantine_log WHERE org_id = $1
        ORDER BY quarantine_revision DESC LIMIT 1),
    (SELECT mark FROM sessions WHERE session_id = $2 AND org_id = $1)"
);

/// What decides whether the grants of a token reach a Session. As long as it is the same, so is the
/// answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantMark {
    /// The id of the last row of the log of grants; nothing when it is empty.
    pub grants: Option<String>,
    /// The id of the last row of the quarantine log.
    quarantine: Option<String>,
    /// The mark of the Session; nothing if no fact names it.
    session: Option<i64>,
}

impl GrantMark {
    /// Returns whether any fact names the Session.
    pub const fn is_session_known(&self) -> bool {
        self.session.is_some()
    }
}

impl Snapshot<'_> {
    /// Returns the id of the last row of the log of grants. The [`revisions`](Self::revisions) are
    /// learned with it.
    pub fn grant_log_end(&mut self) -> Result<Option<String>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.read_revisions(OF_LOG, &keys, |row| row.optional_text(2))
    }

    /// Returns what decides whether grants reach a Session, in the same way.
    pub fn grant_mark(&mut self, session_id: &SessionId) -> Result<GrantMark, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.read_revisions(OF_SESSION, &keys, |row| {
            Ok(GrantMark {
                grants: row.optional_text(2)?,
                quarantine: row.optional_text(3)?,
                session: row.optional_integer(4)?,
            })
        })
    }
}
