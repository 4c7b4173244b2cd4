//! The log of erasures, and which facts are erased.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId, UserId};
use svc_model::time::Instant;

use super::{ErasedContent, ErasedFacts, ErasureSubject};
use crate::pack::column::Columns;
use crate::read::snapshot::Snapshot;
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::kind;

/// A row of the log: one transaction of an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureRow {
    /// Its revision.
    pub revision: u64,
    /// The id of the erasure.
    pub erasure_id: String,
    /// Which facts the erasure covers.
    pub subject: ErasureSubject,
    /// What was erased.
    pub erased: ErasedContent,
    /// The reason.
    pub reason: String,
    /// When it was erased.
    pub recorded_at: Instant,
    /// Who erased it.
    pub client_id: String,
}

/// The columns of the log, the counts of facts among them.
pub(crate) static COLUMNS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut columns = vec![
        "erasure_revision",
        "erasure_id",
        "session_id",
        "user_id",
        "older_than_us",
    ];
    columns.extend(kind::with_content().map(FactTable::as_str));
    columns.extend([
        "contents",
        "stored_bytes",
        "reason",
        "recorded_at_us",
        "client_id",
    ]);
    columns
});
const LOG: &str = "FROM erasure_log WHERE (org_id || '') = $1 AND erasure_revision < $3
    ORDER BY erasure_revision DESC LIMIT $2";
const ERASED_CALLS: &str = "SELECT e.fact_id, e.erased_at_us FROM erased_facts e
    WHERE e.org_id = $1 AND e.session_id = $2 AND e.fact_table = 'inference_calls'
        AND EXISTS (SELECT 1 FROM visible_inference_calls f WHERE f.inference_call_id = e.fact_id)";
const ERASED_OF_SESSION: &str =
    "SELECT e.fact_table FROM erased_facts e WHERE e.org_id = $1 AND e.session_id = $2";
const ERASED_OF_SESSIONS: Lookup<'_> = Lookup {
    select: "SELECT e.fact_id, e.erased_at_us FROM erased_facts e
        WHERE e.org_id = $1 AND e.fact_table = $2 AND e.session_id",
    then: "",
};

fn read(row: &Row<'_>) -> Result<ErasureRow, StoreError> {
    let mut columns = Columns::of(row, "erasure_log", &COLUMNS);
    let revision: i64 = columns.next()?;
    let erasure_id = columns.next()?;
    let session_id: Option<SessionId> = columns.next()?;
    let user_id: Option<UserId> = columns.next()?;
    let older_than: Option<Instant> = columns.next()?;
    let subject = match (session_id, user_id, older_than) {
        (Some(session_id), None, None) => ErasureSubject::Session(session_id),
        (None, Some(user_id), None) => ErasureSubject::User(user_id),
        (None, None, Some(moment)) => ErasureSubject::OlderThan(moment),
        _ => return Err(corrupt("erasure_log", "of what")),
    };
    let mut count = || columns.next::<i64>().map(i64::unsigned_abs);
    let mut facts = ErasedFacts::default();
    for kind in kind::with_content() {
        facts.count(kind, count()?);
    }
    let erased = ErasedContent {
        facts,
        contents: count()?,
        halves: 0,
        stored_bytes: count()?,
    };
    Ok(ErasureRow {
        revision: revision.unsigned_abs(),
        erasure_id,
        subject,
        erased,
        reason: columns.next()?,
        recorded_at: columns.next()?,
        client_id: columns.next()?,
    })
}

fn marked(row: &Row<'_>) -> Result<(FactId, Instant), StoreError> {
    let mut columns = Columns::of(row, "erased_facts", &["fact_id", "erased_at_us"]);
    Ok((columns.next()?, columns.next()?))
}

impl Snapshot<'_> {
    /// Returns whether content of the organization was ever erased.
    fn has_erasures(&mut self) -> Result<bool, StoreError> {
        Ok(self.revisions()?.erasure.revision > 0)
    }

    /// Returns the latest rows of the log of erasures before a revision, oldest first.
    pub fn erasure_log(
        &mut self,
        rows_max: u64,
        before: Option<u64>,
    ) -> Result<Vec<ErasureRow>, StoreError> {
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let sql = format!("SELECT {} {LOG}", COLUMNS.join(", "));
        let keys = [
            self.org_id.as_str().into(),
            number(rows_max),
            number(before.unwrap_or(u64::MAX)),
        ];
        let mut rows = self.connection()?.all(&sql, &keys, read)?;
        rows.reverse();
        Ok(rows)
    }

    /// Returns the visible calls of a Session whose content was erased, and when it was erased.
    pub fn erased_calls(
        &mut self,
        session_id: &SessionId,
    ) -> Result<BTreeMap<FactId, Instant>, StoreError> {
        if !self.has_erasures()? {
            return Ok(BTreeMap::new());
        }
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let calls = self.connection()?.all(ERASED_CALLS, &keys, marked)?;
        Ok(calls.into_iter().collect())
    }

    /// Returns how many facts of a Session had their content erased, quarantined ones included.
    pub fn erased_of_session(&mut self, session_id: &SessionId) -> Result<ErasedFacts, StoreError> {
        let mut facts = ErasedFacts::default();
        if self.has_erasures()? {
            let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
            self.connection()?.each(ERASED_OF_SESSION, &keys, |row| {
                let kind = FactTable::from_wire(&row.text(0)?);
                facts.count(kind.ok_or(corrupt("erased_facts", "fact_table"))?, 1);
                Ok(())
            })?;
        }
        Ok(facts)
    }

    /// Returns the facts of one kind in some Sessions whose content was erased, and when.
    pub fn erased_facts<'i>(
        &mut self,
        kind: FactTable,
        sessions: impl IntoIterator<Item = &'i SessionId>,
    ) -> Result<HashMap<FactId, Instant>, StoreError> {
        let mut facts = HashMap::new();
        if self.has_erasures()? {
            let shared = [self.org_id.as_str().into(), Value::Text(kind.as_str())];
            let sessions = sessions.into_iter();
            let keys: Vec<Value<'_>> = sessions.map(|session| session.as_str().into()).collect();
            let connection = self.connection()?;
            connection.lookup_many(&ERASED_OF_SESSIONS, &shared, &keys, |row| {
                facts.extend([marked(row)?]);
                Ok(())
            })?;
        }
        Ok(facts)
    }
}
