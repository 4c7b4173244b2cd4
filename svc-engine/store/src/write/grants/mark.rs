//! What an answer about a grant depends on, in a form that takes one look-up.
//!
//! The log is append-only, and every row has its own id. So the last row identifies the whole log,
//! even if the database is restored to an earlier state and then grows again.

use svc_model::id::SessionId;

use super::reach::LookedAt;
use super::{GrantRule, reach};
use crate::read::snapshot::{AFTER_REVISIONS, Revisions, Snapshot, quarantine_end, revisions};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::statement::Statement;
use crate::sql::value::Row;

macro_rules! mark {
    ($($of_session:expr),*) => {
        revisions!(
            ", (SELECT grant_id FROM grant_log WHERE (org_id || '') = $1
                ORDER BY grant_revision DESC LIMIT 1)"
            $(, $of_session)*
        )
    };
}

macro_rules! mark_of_session {
    ($session:literal) => {
        mark!(quarantine_end!(), $session)
    };
}

const OF_LOG: &str = mark!();
const OF_SESSION: &str =
    mark_of_session!(", (SELECT mark FROM sessions WHERE session_id = $2 AND org_id = $1)");
/// One row for each Session that rules may reach, and at least one row in all.
const OF_CANDIDATES: &str =
    mark_of_session!(", c.mark, c.session_id, c.rule FROM (SELECT 1) one LEFT JOIN");

/// What decides whether a token's grants reach a Session. As long as it is the same, the answer is
/// the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantMark {
    /// The id of the last row of the log of grants, if there is one.
    pub grants: Option<String>,
    /// The id of the last row of the quarantine log.
    quarantine: Option<String>,
    /// The mark of the Session, if any fact names it.
    session: Option<i64>,
}

impl GrantMark {
    /// Reads a mark from a row of [`mark_of_session!`].
    fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            grants: row.optional_text(AFTER_REVISIONS)?,
            quarantine: row.optional_text(AFTER_REVISIONS + 1)?,
            session: row.optional_integer(AFTER_REVISIONS + 2)?,
        })
    }

    /// Returns whether any fact names the Session.
    pub const fn is_session_known(&self) -> bool {
        self.session.is_some()
    }
}

/// The Sessions that rules may reach, whether or not they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantCandidates {
    /// The id of the last row of the log of grants.
    pub grants: Option<String>,
    /// The Sessions, sorted, with what decides whether each is reached.
    pub sessions: Vec<(SessionId, GrantMark)>,
    /// Whether a rule has more rows than may be looked at.
    pub is_over: bool,
}

impl Snapshot<'_> {
    /// Returns the id of the last row of the log of grants. Also reads the
    /// [`revisions`](Self::revisions).
    pub fn grant_log_end(&mut self) -> Result<Option<String>, StoreError> {
        let keys = [self.org_id.as_str().into()];
        self.read_revisions(OF_LOG, &keys, |row| row.optional_text(AFTER_REVISIONS))
    }

    /// Returns what decides whether grants reach a Session. Also reads the revisions.
    pub fn grant_mark(&mut self, session_id: &SessionId) -> Result<GrantMark, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.read_revisions(OF_SESSION, &keys, GrantMark::of)
    }

    /// Returns the Sessions that rules may reach. Also reads the revisions.
    pub fn grant_candidates(
        &mut self,
        rules: &[&GrantRule],
    ) -> Result<GrantCandidates, StoreError> {
        let mut found = GrantCandidates::default();
        if rules.is_empty() {
            found.grants = self.grant_log_end()?;
            return Ok(found);
        }
        let mut statement = Statement::default();
        let org = statement.value(self.org_id.as_str());
        let runs = rules.iter().enumerate().map(|(number, rule)| {
            let run = reach::run(&mut statement, &org, rule, &[]);
            format!("SELECT CAST({number} AS BIGINT) AS rule, k.session_id, k.mark FROM ({run}) k")
        });
        let runs: Vec<String> = runs.collect();
        statement.text = format!("{OF_CANDIDATES} ({}) c ON 1 = 1", runs.join(" UNION ALL "));
        let mut revisions = Revisions::default();
        let mut looked_at = LookedAt::by(rules);
        self.connection()?
            .each(&statement.text, &statement.values, |row| {
                revisions = Revisions::of(row)?;
                let mark = GrantMark::of(row)?;
                found.grants.clone_from(&mark.grants);
                let Some(session_id) = row.optional_text(AFTER_REVISIONS + 3)? else {
                    return Ok(());
                };
                looked_at.count(row.integer(AFTER_REVISIONS + 4)?);
                let session_id = SessionId::new(&session_id);
                let session_id = session_id.map_err(|_| corrupt("sessions", "session_id"))?;
                found.sessions.push((session_id, mark));
                Ok(())
            })?;
        self.learn_revisions(revisions);
        // Several rules, or several names of a repository, may lead to the same Session.
        found.sessions.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        found.sessions.dedup_by(|(a, _), (b, _)| a == b);
        found.is_over = looked_at.is_over();
        Ok(found)
    }
}
