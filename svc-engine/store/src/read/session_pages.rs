//! The list of Sessions, page by page, in the order in which their first facts were captured, the
//! latest first.
//!
//! A page reads a bounded run of rows along one index: that of the Sessions, or that of the first
//! condition. For each row, the statement decides whether visible facts prove the Session and every
//! condition. So a condition that few rows meet takes more pages, not longer ones.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::Lifetime;
use svc_model::id::SessionId;
use svc_model::limit::SESSION_CALLS_COUNTED_MAX;
use svc_model::time::Instant;

use super::observations;
use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::statement::Statement;
use crate::sql::value::Value;
use crate::table::session_claims::ClaimKind;
use crate::table::sessions::exists;

/// A condition that a visible fact of a Session must meet.
#[derive(Clone, Copy, Debug)]
pub enum SessionCondition<'a> {
    /// The fact has exactly this value.
    Claim(ClaimKind, &'a str),
    /// The fact links the Session to a commit of a repository, under one of its names.
    Repository {
        /// The repository.
        repository: &'a Lifetime,
        /// Every name under which facts may know it.
        names: &'a [&'a str],
    },
}

/// Which Sessions are wanted. The latest come first.
#[derive(Clone, Copy, Debug)]
pub struct SessionPage<'a> {
    /// The first fact of a Session was captured at this moment or later. Without it, at any time.
    pub captured_from: Option<Instant>,
    /// The Sessions come before this place in the order, which is by moment and then by number. A
    /// place without a Session is before every Session of that moment. Without a place, there is
    /// no such bound.
    pub before: Option<(Instant, Option<&'a SessionId>)>,
    /// What visible facts must say of each Session. Rows are read along the first condition.
    pub conditions: &'a [SessionCondition<'a>],
    /// The only Sessions that are looked at, if they are known. Then rows are read by their ids.
    pub among: Option<&'a [SessionId]>,
    /// The maximum number of rows.
    pub rows_max: u64,
}

/// A Session in the list, wanted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// The Session.
    pub session_id: SessionId,
    /// Its number. Sessions of one transaction have one moment, and numbers that differ.
    pub session_number: i64,
    /// When its first fact was captured.
    pub captured_at: Instant,
    /// The earliest moment in a stored fact.
    pub first_observed_at: Instant,
    /// The latest moment in a stored fact.
    pub last_observed_at: Instant,
    /// Whether visible facts prove it and every condition.
    pub is_wanted: bool,
}

const COLUMNS: [&str; 6] = [
    "session_id",
    "session_number",
    "captured_at_us",
    "first_observed_at_us",
    "last_observed_at_us",
    "whether it is wanted",
];

/// Along what the rows of a page are read.
#[derive(Clone, Copy, Debug)]
enum Along<'v> {
    /// The list of all Sessions.
    All,
    /// One value of the first condition.
    Value(&'v str),
    /// Some Sessions.
    Sessions(&'v [SessionId]),
}

/// Sessions that are read by their ids in one statement.
const SESSIONS_AT_ONCE: usize = 256;

/// Returns the statement of a page.
fn statement<'v>(org_id: &'v str, page: &SessionPage<'v>, along: Along<'v>) -> Statement<'v> {
    let mut statement = Statement::default();
    let org = statement.value(org_id);
    let from = statement.value(page.captured_from.map_or(i64::MIN, Instant::microseconds));
    let (before, id) = page.before.unzip();
    let before = statement.value(before.map_or(i64::MAX, Instant::microseconds));
    let number = match id.flatten() {
        None => statement.value(i64::MIN),
        // A database that was set back may have lost the Session. Then all of the moment follow.
        Some(id) => {
            let (id, all) = (statement.value(id.as_str()), statement.value(i64::MAX));
            format!(
                "COALESCE((SELECT n.session_number FROM sessions n \
                WHERE n.session_id = {id} AND n.org_id = {org}), {all})"
            )
        }
    };
    let rows = statement.value(i64::try_from(page.rows_max).unwrap_or(i64::MAX));
    // The table whose index is read.
    let (row, along) = match (page.conditions.first(), along) {
        (_, Along::Sessions(sessions)) => {
            let ids = sessions.iter().map(|id| statement.value(id.as_str()));
            let ids = ids.collect::<Vec<_>>().join(", ");
            let along = format!("sessions s WHERE s.org_id = {org} AND s.session_id IN ({ids})");
            ("s", along)
        }
        (Some(condition), Along::Value(value)) => {
            let kind = statement.value(condition.kind().letter());
            let value = statement.value(value);
            let along = format!(
                "session_claims c JOIN sessions s ON s.session_number = c.session_number \
                WHERE c.value = {value} AND c.kind = {kind} AND c.org_id = {org}"
            );
            ("c", along)
        }
        _ => ("s", format!("sessions s WHERE (s.org_id || '') = {org}")),
    };
    let mut proofs: Vec<String> = Vec::new();
    for condition in page.conditions {
        proofs.push(match condition {
            SessionCondition::Claim(kind, value) => {
                let value = statement.value(*value);
                kind.proof("s.org_id", "s.session_id", &value)
            }
            SessionCondition::Repository { repository, .. } => {
                let is_of = observations::is_of(&mut statement, repository);
                observations::some("s", &is_of)
            }
        });
    }
    if proofs.is_empty() {
        proofs.push(exists("s"));
    }
    statement.text = format!(
        "SELECT s.session_id, s.session_number, s.captured_at_us, s.first_observed_at_us, \
        s.last_observed_at_us, \
        CASE WHEN {} THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END FROM {along} \
        AND {row}.captured_at_us >= {from} \
        AND ({row}.captured_at_us, {row}.session_number) < ({before}, {number}) \
        ORDER BY {row}.captured_at_us DESC, {row}.session_number DESC LIMIT {rows}",
        proofs.join(" AND "),
    );
    statement
}

impl<'a> SessionCondition<'a> {
    const fn kind(&self) -> ClaimKind {
        match self {
            Self::Claim(kind, _) => *kind,
            Self::Repository { .. } => ClaimKind::Repository,
        }
    }

    /// Returns the values along which rows are read.
    fn values(&self) -> Vec<&'a str> {
        match self {
            Self::Claim(_, value) => vec![*value],
            Self::Repository { names, .. } => names.to_vec(),
        }
    }
}

/// Selects how many visible calls Sessions have, up to the limit of the count.
static CALLS: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    format!(
        "SELECT s.session_id, (SELECT COUNT(*) FROM (SELECT 1 FROM visible_inference_calls f \
        WHERE f.session_number = s.session_number \
        LIMIT {SESSION_CALLS_COUNTED_MAX}) counted) FROM sessions s \
        WHERE s.org_id = $1 AND s.session_id"
    )
});

impl Snapshot<'_> {
    /// Returns the next rows of the list, latest first, then by descending number.
    pub fn session_page(
        &mut self,
        page: &SessionPage<'_>,
    ) -> Result<Vec<ListedSession>, StoreError> {
        let org_id = self.org_id.as_str();
        let along: Vec<Along<'_>> = match (page.among, page.conditions.first()) {
            (Some(sessions), _) => {
                let some = sessions.chunks(SESSIONS_AT_ONCE);
                some.map(Along::Sessions).collect()
            }
            (None, Some(first)) => first.values().into_iter().map(Along::Value).collect(),
            (None, None) => vec![Along::All],
        };
        let mut rows = Vec::new();
        for along in along {
            let statement = statement(org_id, page, along);
            let read = self
                .connection()?
                .all(&statement.text, &statement.values, |row| {
                    let mut columns = Columns::of(row, "sessions", &COLUMNS);
                    Ok(ListedSession {
                        session_id: columns.next()?,
                        session_number: columns.next()?,
                        captured_at: columns.next()?,
                        first_observed_at: columns.next()?,
                        last_observed_at: columns.next()?,
                        is_wanted: columns.next()?,
                    })
                })?;
            rows.extend(read);
        }
        rows.sort_unstable_by(|a, b| {
            (b.captured_at, b.session_number).cmp(&(a.captured_at, a.session_number))
        });
        // One Session may be known under several names of its repository.
        rows.dedup_by(|a, b| a.session_number == b.session_number);
        rows.truncate(usize::try_from(page.rows_max).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Returns how many visible calls each Session has, up to [`SESSION_CALLS_COUNTED_MAX`].
    pub fn session_call_counts(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<BTreeMap<SessionId, u64>, StoreError> {
        let shared = [self.org_id.as_str().into()];
        let distinct: BTreeSet<&SessionId> = sessions.iter().collect();
        let keys: Vec<Value<'_>> = distinct.iter().map(|text| text.as_str().into()).collect();
        let lookup = Lookup {
            select: &CALLS,
            then: "",
        };
        let mut counts = BTreeMap::new();
        self.connection()?.lookup(&lookup, &shared, &keys, |row| {
            let session_id = SessionId::new(&row.text(0)?);
            let session_id = session_id.map_err(|_| corrupt("sessions", "session_id"))?;
            counts.insert(session_id, row.count(1)?);
            Ok(())
        })?;
        Ok(counts)
    }
}
