//! What the index of searches follows, and what an answer is checked against.
//!
//! The index knows calls and Sessions by their numbers, which are shorter than ids and in the order
//! in which the calls were stored.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use svc_engine_fact::Lifetime;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, InferenceCallId, SessionId};
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;
use uuid::Uuid;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::pack::id_list::IdList;
use crate::sql::connection::Lookup;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{self, Row, Value};
use crate::table::kind;

const COLUMNS: &str = "f.call_number, f.inference_call_id, f.session_number, f.observed_at_us,
    f.captured_at_us, f.model, f.agent_harness, f.input_contents, f.output_contents";
const ID_AT: &str = "SELECT f.inference_call_id FROM inference_calls f WHERE f.call_number = $1";
const OBSERVED_SESSIONS: &str = "SELECT f.session_number FROM inference_calls f
    WHERE (f.org_id || '') = $1 AND f.observed_at_us >= $2 AND f.observed_at_us < $3 LIMIT $4";
const QUARANTINE_AFTER: &str =
    "SELECT q.quarantine_revision, q.quarantine_id, q.fact_table, q.fact_id
    FROM quarantine_log q WHERE q.org_id = $1 AND q.quarantine_revision > $2
    ORDER BY q.quarantine_revision LIMIT $3";
const QUARANTINE_ID: &str = "SELECT q.quarantine_id FROM quarantine_log q
    WHERE q.org_id = $1 AND q.quarantine_revision = $2";
const ERASED_AFTER: &str = "SELECT s.session_number
    FROM erased_facts e JOIN sessions s ON s.session_id = e.session_id AND s.org_id = e.org_id
    WHERE (e.org_id || '') = $1 AND e.erasure_revision > $2";
const SESSIONS: Lookup<'_> = Lookup {
    select: "SELECT s.session_number, s.session_id, s.first_observed_at_us, s.last_observed_at_us
        FROM sessions s WHERE s.org_id = $1 AND s.session_number",
    then: "",
};
const NUMBERS: Lookup<'_> = Lookup {
    select: "SELECT s.session_id, s.session_number FROM sessions s
        WHERE s.org_id = $1 AND s.session_id",
    then: "",
};

const OBSERVED: &str = "SELECT f.observation_id, f.org_id, f.session_id, f.repo,
    f.repository_provider, f.repository_host, f.repository_id, f.commit_sha
    FROM visible_session_commit_observations f";

/// A visible call, as the index of searches knows it.
#[derive(Clone, Debug)]
pub struct NumberedCall {
    /// Its number.
    pub call_number: i64,
    /// Its id.
    pub inference_call_id: InferenceCallId,
    /// The number of its Session.
    pub session_number: i64,
    /// When it was observed.
    pub observed_at: Instant,
    /// When it was captured.
    pub captured_at: Instant,
    /// The model.
    pub model: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The contents of its input messages, in order.
    pub input: IdList,
    /// The contents of its output messages, in order.
    pub output: IdList,
}

/// Visible calls in the order in which they were stored.
#[derive(Clone, Debug, Default)]
pub struct NextCalls {
    /// The calls.
    pub calls: Vec<NumberedCall>,
    /// The number and the id of the last call that was read.
    pub last: Option<(i64, FactId)>,
    /// The number of calls that were read, those of other organizations included.
    pub rows: u64,
}

/// A Session with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedSession {
    /// The number.
    pub session_number: i64,
    /// The Session.
    pub session_id: SessionId,
    /// The earliest moment in a stored fact.
    pub first_observed_at: Instant,
    /// The latest moment in a stored fact.
    pub last_observed_at: Instant,
}

/// A row of the quarantine log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineChange {
    /// Its revision.
    pub revision: u64,
    /// Its id.
    pub quarantine_id: Uuid,
    /// The kind of the fact; `None` if this version does not know it.
    pub table: Option<FactTable>,
    /// The fact; `None` for a text that is the id of none, which an operator insisted on.
    pub fact_id: Option<FactId>,
}

/// A file that a fact names for a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The Session.
    pub session_id: SessionId,
    /// The path.
    pub path: String,
}

/// A commit at which a Session was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCommit {
    /// The Session.
    pub session_id: SessionId,
    /// Its repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit: CommitSha,
}

/// What some facts of a kind say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactPage<T> {
    /// What the facts of this organization say.
    pub items: Vec<T>,
    /// The last fact that was read.
    pub last: Option<FactId>,
    /// The number of facts that were read, those of other organizations included.
    pub rows: u64,
}

fn call(row: &Row<'_>) -> Result<NumberedCall, StoreError> {
    let instant = |index| {
        Instant::from_microseconds(row.integer(index)?).ok_or(corrupt("inference_calls", "a time"))
    };
    Ok(NumberedCall {
        call_number: row.integer(0)?,
        inference_call_id: row.fact_id(1)?.into(),
        session_number: row.integer(2)?,
        observed_at: instant(3)?,
        captured_at: instant(4)?,
        model: row.optional_text(5)?,
        agent: row.optional_text(6)?,
        input: row.with_blob(7, IdList::read)??,
        output: row.with_blob(8, IdList::read)??,
    })
}

/// The kinds of fact that name a file of a Session.
pub fn tables_with_files() -> impl Iterator<Item = FactTable> {
    let tables = FactTable::ALL.iter().copied();
    tables.filter(|table| {
        let table = kind::table(*table);
        table.is_of_session() && table.has("file_path")
    })
}

fn id_column(table: FactTable) -> &'static str {
    kind::table(table).id()
}

/// Selects the visible facts of a kind that name a file, of all organizations.
fn files(table: FactTable) -> String {
    let id = id_column(table);
    format!("SELECT f.{id}, f.org_id, f.session_id, f.file_path FROM visible_{table} f")
}

impl Snapshot<'_> {
    /// Returns the next visible calls after a number, in the order of their numbers. Calls are
    /// numbered as they are stored.
    pub fn calls_after(&mut self, number: i64, rows_max: u64) -> Result<NextCalls, StoreError> {
        // Without a condition about the organization, the order is that of the only index.
        let text = format!(
            "SELECT {COLUMNS}, f.org_id FROM visible_inference_calls f WHERE f.call_number > $1 \
            ORDER BY f.call_number LIMIT $2"
        );
        let org_id = self.org_id;
        let mut found = NextCalls::default();
        let rows = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let keys = [number.into(), rows.into()];
        self.connection()?.each(&text, &keys, |row| {
            found.rows += 1;
            found.last = Some((row.integer(0)?, row.fact_id(1)?));
            if row.text(9)? == org_id.as_str() {
                found.calls.push(call(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the id of the call with a number, visible or not, of any organization.
    pub fn call_id_at(&mut self, number: i64) -> Result<Option<FactId>, StoreError> {
        let keys = [number.into()];
        self.connection()?.first(ID_AT, &keys, |row| row.fact_id(0))
    }

    /// Returns the visible calls with these numbers.
    pub fn calls_at(&mut self, numbers: &[i64]) -> Result<Vec<NumberedCall>, StoreError> {
        let select = format!(
            "SELECT {COLUMNS} FROM visible_inference_calls f WHERE f.org_id = $1 AND f.call_number"
        );
        let lookup = Lookup {
            select: &select,
            then: "",
        };
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = numbers.iter().copied().map(Value::Integer).collect();
        let mut calls = Vec::with_capacity(keys.len());
        self.connection()?
            .lookup_many(&lookup, &shared, &keys, |row| {
                calls.push(call(row)?);
                Ok(())
            })?;
        // A look-up may be given the same key twice.
        calls.sort_unstable_by_key(|call: &NumberedCall| call.call_number);
        calls.dedup_by_key(|call| call.call_number);
        Ok(calls)
    }

    /// Calls `each` with the visible calls of a Session, by observation time, then id, until it
    /// breaks. Only calls in the range are read.
    pub fn calls_of_session(
        &mut self,
        session_number: i64,
        since: Option<Instant>,
        until: Option<Instant>,
        mut each: impl FnMut(NumberedCall) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        /// Rows that are read at once.
        const ROWS: i64 = 128;
        let text = format!(
            "SELECT {COLUMNS} FROM visible_inference_calls f WHERE f.session_number = $1 \
            AND f.org_id = $2 AND f.observed_at_us >= $3 AND f.observed_at_us < $4 \
            AND (f.observed_at_us > $3 OR f.inference_call_id > $5) \
            ORDER BY f.observed_at_us, f.inference_call_id LIMIT $6"
        );
        let until = until.map_or(i64::MAX, Instant::microseconds);
        let mut from = since.map_or(i64::MIN, Instant::microseconds);
        let mut after: Vec<u8> = Vec::new();
        loop {
            let keys = [
                session_number.into(),
                self.org_id.as_str().into(),
                from.into(),
                until.into(),
                after.as_slice().into(),
                ROWS.into(),
            ];
            let calls = self
                .connection()?
                .all(&text, &keys, |row| Ok((call(row)?, row.blob(1)?)))?;
            let is_last = i64::try_from(calls.len()).is_ok_and(|read| read < ROWS);
            for (call, id) in calls {
                from = call.observed_at.microseconds();
                after = id;
                if each(call).is_break() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns the numbers of the Sessions with calls, visible or not, that were observed in a range;
    /// nothing if more calls than these were.
    pub fn sessions_observed(
        &mut self,
        since: Option<Instant>,
        until: Option<Instant>,
        calls_max: u64,
    ) -> Result<Option<HashSet<i64>>, StoreError> {
        let calls = i64::try_from(calls_max).unwrap_or(i64::MAX - 1);
        let keys = [
            self.org_id.as_str().into(),
            since.map_or(i64::MIN, Instant::microseconds).into(),
            until.map_or(i64::MAX, Instant::microseconds).into(),
            (calls + 1).into(),
        ];
        let mut rows = 0;
        let mut found = HashSet::new();
        self.connection()?.each(OBSERVED_SESSIONS, &keys, |row| {
            rows += 1;
            found.insert(row.integer(0)?);
            Ok(())
        })?;
        Ok((rows <= calls).then_some(found))
    }

    /// Returns the next rows of the quarantine log after a revision, in order.
    pub fn quarantine_after(
        &mut self,
        revision: u64,
        rows: u64,
    ) -> Result<Vec<QuarantineChange>, StoreError> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let keys = [
            self.org_id.as_str().into(),
            number(revision).into(),
            number(rows).into(),
        ];
        self.connection()?.all(QUARANTINE_AFTER, &keys, |row| {
            Ok(QuarantineChange {
                revision: row.count(0)?,
                quarantine_id: quarantine_id(&row.text(1)?)?,
                table: FactTable::from_wire(&row.text(2)?),
                fact_id: row.with_blob(3, value::fact_id)?,
            })
        })
    }

    /// Returns the id of the row of the quarantine log with a revision.
    pub fn quarantine_id_at(&mut self, revision: u64) -> Result<Option<Uuid>, StoreError> {
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        let keys = [self.org_id.as_str().into(), revision.into()];
        let id = self
            .connection()?
            .first(QUARANTINE_ID, &keys, |row| row.text(0))?;
        id.map(|id| quarantine_id(&id)).transpose()
    }

    /// Returns the numbers of the Sessions of which something was erased after a revision.
    pub fn erased_sessions_after(&mut self, revision: u64) -> Result<Vec<i64>, StoreError> {
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        let keys = [self.org_id.as_str().into(), revision.into()];
        let mut numbers = self
            .connection()?
            .all(ERASED_AFTER, &keys, |row| row.integer(0))?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Returns the numbers of the Sessions of facts of a kind, visible or not, each once.
    pub fn sessions_of_facts(
        &mut self,
        table: FactTable,
        ids: &[FactId],
    ) -> Result<Vec<i64>, StoreError> {
        let id = id_column(table);
        let select = if table == FactTable::InferenceCalls {
            format!("SELECT f.session_number FROM {table} f WHERE f.org_id = $1 AND f.{id}")
        } else {
            format!(
                "SELECT s.session_number FROM {table} f \
                JOIN sessions s ON s.session_id = f.session_id AND s.org_id = f.org_id \
                WHERE f.org_id = $1 AND f.{id}"
            )
        };
        let lookup = Lookup {
            select: &select,
            then: "",
        };
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = ids.iter().copied().map(Value::from).collect();
        let mut numbers = Vec::new();
        self.connection()?.lookup(&lookup, &shared, &keys, |row| {
            numbers.push(row.integer(0)?);
            Ok(())
        })?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Returns the files that the next visible facts of a kind name, in the order of their ids,
    /// which begin with the moment of capture.
    pub fn files_after(
        &mut self,
        table: FactTable,
        id: FactId,
        rows_max: u64,
    ) -> Result<FactPage<NamedFile>, StoreError> {
        let column = id_column(table);
        // Without a condition about the organization, the order is that of the only index.
        let text = format!(
            "{} WHERE f.{column} > $1 ORDER BY f.{column} LIMIT $2",
            files(table)
        );
        let rows = i64::try_from(rows_max).unwrap_or(i64::MAX);
        self.named_files(&text, &[id.into(), rows.into()])
    }

    /// Returns the files that visible facts of a Session name.
    pub fn files_of_session(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<NamedFile>, StoreError> {
        let mut found = Vec::new();
        for table in tables_with_files() {
            let text = format!("{} WHERE f.org_id = $1 AND f.session_id = $2", files(table));
            let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
            found.extend(self.named_files(&text, &keys)?.items);
        }
        Ok(found)
    }

    fn named_files(
        &mut self,
        text: &str,
        keys: &[Value<'_>],
    ) -> Result<FactPage<NamedFile>, StoreError> {
        self.fact_page(text, keys, |session_id, columns| {
            let path = columns.next()?;
            Ok(Some(NamedFile { session_id, path }))
        })
    }

    /// Returns the commits of the next visible observations, in the order of their ids.
    pub fn observed_commits_after(
        &mut self,
        id: FactId,
        rows_max: u64,
    ) -> Result<FactPage<ObservedCommit>, StoreError> {
        let text =
            format!("{OBSERVED} WHERE f.observation_id > $1 ORDER BY f.observation_id LIMIT $2");
        let rows = i64::try_from(rows_max).unwrap_or(i64::MAX);
        self.observed_commits(&text, &[id.into(), rows.into()])
    }

    /// Returns the commits at which visible observations saw a Session.
    pub fn observed_commits_of_session(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<ObservedCommit>, StoreError> {
        let text = format!("{OBSERVED} WHERE f.org_id = $1 AND f.session_id = $2");
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        Ok(self.observed_commits(&text, &keys)?.items)
    }

    fn observed_commits(
        &mut self,
        text: &str,
        keys: &[Value<'_>],
    ) -> Result<FactPage<ObservedCommit>, StoreError> {
        self.fact_page(text, keys, |session_id, columns| {
            let repo: String = columns.next()?;
            let identity: Option<RepositoryIdentity> = columns.next()?;
            let commit = columns.next()?;
            let repository = match (identity, RepositoryName::new(&repo)) {
                (Some(identity), _) => Lifetime::Identified(identity),
                (None, Some(name)) => Lifetime::Named(name),
                (None, None) => return Ok(None),
            };
            Ok(Some(ObservedCommit {
                session_id,
                repository,
                commit,
            }))
        })
    }

    /// Reads facts whose first columns are the id, the organization and the Session.
    fn fact_page<T>(
        &mut self,
        text: &str,
        keys: &[Value<'_>],
        read: impl Fn(SessionId, &mut Columns<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<FactPage<T>, StoreError> {
        let org_id = self.org_id;
        let mut page = FactPage {
            items: Vec::new(),
            last: None,
            rows: 0,
        };
        self.connection()?.each(text, keys, |row| {
            let mut columns = Columns::of(row, "a fact of a Session", &[]);
            page.last = Some(columns.next()?);
            page.rows += 1;
            let of_org: String = columns.next()?;
            if of_org == org_id.as_str() {
                let session_id = columns.next()?;
                page.items.extend(read(session_id, &mut columns)?);
            }
            Ok(())
        })?;
        Ok(page)
    }

    /// Returns the Sessions with these numbers.
    pub fn sessions_numbered(
        &mut self,
        numbers: &[i64],
    ) -> Result<HashMap<i64, NumberedSession>, StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = numbers.iter().copied().map(Value::Integer).collect();
        let mut found = HashMap::with_capacity(keys.len());
        self.connection()?
            .lookup_many(&SESSIONS, &shared, &keys, |row| {
                let mut columns = Columns::of(row, "sessions", &[]);
                let session = NumberedSession {
                    session_number: columns.next()?,
                    session_id: columns.next()?,
                    first_observed_at: columns.next()?,
                    last_observed_at: columns.next()?,
                };
                found.insert(session.session_number, session);
                Ok(())
            })?;
        Ok(found)
    }

    /// Returns the numbers of Sessions, except unknown ones.
    pub fn session_numbers(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<HashMap<SessionId, i64>, StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = sessions.iter().map(|id| id.as_str().into()).collect();
        let mut found = HashMap::with_capacity(keys.len());
        self.connection()?
            .lookup_many(&NUMBERS, &shared, &keys, |row| {
                let mut columns = Columns::of(row, "sessions", &[]);
                found.insert(columns.next()?, columns.next()?);
                Ok(())
            })?;
        Ok(found)
    }
}

fn quarantine_id(text: &str) -> Result<Uuid, StoreError> {
    Uuid::parse_str(text).map_err(|_| corrupt("quarantine_log", "quarantine_id"))
}
