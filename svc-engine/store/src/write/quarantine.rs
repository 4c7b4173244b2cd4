//! The append-only log of quarantine and release. The views `visible_*` define what it hides.

use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::limit::FACT_ID_BEGINNING_MIN;
use svc_model::time::Instant;
use uuid::Uuid;

use super::ledger::Ledger;
use super::store::Store;
use super::transaction::Transaction;
use crate::read::snapshot::Snapshot;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{self, Row, Value};
use crate::table::kind;

pub use svc_model::quarantine::QuarantineAction;

/// A row to append.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// A fresh id for the row.
    pub quarantine_id: Uuid,
    /// The kind of fact.
    pub table: FactTable,
    /// The fact. It need not exist.
    pub fact_id: String,
    /// Whether the fact is quarantined or released.
    pub action: QuarantineAction,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// The client that records it.
    pub client_id: String,
}

/// What to do with a row about a fact that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// Do not append it.
    Refuse,
    /// Append it. It takes effect once the fact is stored.
    Record,
}

/// The result of appending a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineReceipt {
    /// The full id of the fact.
    pub fact_id: String,
    /// The revision of the row.
    pub revision: u64,
    /// Whether the fact exists.
    pub target_found: bool,
    /// Whether the fact was already in this state.
    pub unchanged: bool,
}

/// Why no row was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTarget {
    /// No fact of the kind has this id or prefix of an id.
    Absent,
    /// Several facts of the kind have an id with this prefix.
    Ambiguous,
}

/// One row of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its revision.
    pub revision: u64,
    /// The kind of fact.
    pub fact_table: String,
    /// The fact.
    pub fact_id: String,
    /// `quarantine` or `release`.
    pub action: String,
    /// The reason.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Instant,
    /// The client that recorded it.
    pub client_id: String,
}

const APPEND: &str = "INSERT INTO quarantine_log
    (quarantine_id, org_id, fact_table, fact_id, action, reason, recorded_at_us, client_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING quarantine_revision";
const LATEST: &str = "SELECT action FROM quarantine_log
    WHERE org_id = $1 AND fact_table = $2 AND fact_id = $3
    ORDER BY quarantine_revision DESC LIMIT 1";
const REVISION: &str =
    "SELECT COALESCE(MAX(quarantine_revision), 0) FROM quarantine_log WHERE org_id = $1";
const LOG: &str = "SELECT quarantine_revision, fact_table, fact_id, action, reason, recorded_at_us,
    client_id FROM quarantine_log WHERE org_id = $1 AND quarantine_revision < $3
    ORDER BY quarantine_revision DESC LIMIT $2";
const LOG_LENGTH: &str = "SELECT COUNT(*) FROM quarantine_log WHERE org_id = $1";

/// Returns the statement that finds a fact by its id.
fn target(kind: FactTable) -> String {
    let table = kind::table(kind);
    let (name, id) = (table.name, table.id());
    format!("SELECT {id} FROM {name} WHERE org_id = $1 AND {id} = $2")
}

/// Returns the statement that finds facts by a prefix of their id. It returns at most two.
fn targets(kind: FactTable) -> String {
    let table = kind::table(kind);
    let (name, id) = (table.name, table.id());
    format!("SELECT {id} FROM {name} WHERE org_id = $1 AND {id} >= $2 AND {id} <= $3 LIMIT 2")
}

/// Returns the id of the one fact that a text names, by its full id or by a prefix of it.
fn resolve(
    connection: &mut Connection,
    org_id: &OrgId,
    table: FactTable,
    text: &str,
) -> Result<Result<FactId, NoTarget>, StoreError> {
    let Some((first, last)) = range_of_ids(text) else {
        return Ok(Err(NoTarget::Absent));
    };
    let keys = [org_id.as_str().into(), first.into(), last.into()];
    let mut found = connection.all(&targets(table), &keys, |row| row.fact_id(0))?;
    Ok(match found.len() {
        0 => Err(NoTarget::Absent),
        1 => found.pop().ok_or(NoTarget::Absent),
        _ => Err(NoTarget::Ambiguous),
    })
}

/// Returns the first and the last id with this prefix. A text in another form is a prefix of no id.
fn range_of_ids(beginning: &str) -> Option<(FactId, FactId)> {
    if beginning.len() < FACT_ID_BEGINNING_MIN {
        return None;
    }
    let filled = |filler: &str| {
        let id = beginning.to_ascii_lowercase() + filler.get(beginning.len()..)?;
        FactId::parse(&id)
    };
    let first = filled("00000000-0000-0000-0000-000000000000")?;
    let last = filled("ffffffff-ffff-ffff-ffff-ffffffffffff")?;
    Some((first, last))
}

/// Returns an id in the form that facts have, so that it finds a fact that is stored later.
fn as_stored(text: &str) -> String {
    FactId::parse(&text.to_ascii_lowercase()).map_or_else(|| text.to_owned(), |id| id.to_string())
}

/// Precedes a text in the log that is not the id of a fact, if an operator insists on one. The
/// result is longer than an id, so the two are never mixed up.
const NO_ID: [u8; 16] = [0; 16];

/// Returns an id in the form of the log's column.
fn logged(text: &str) -> Value<'static> {
    FactId::parse(text).map_or_else(
        || Value::OwnBlob([&NO_ID, text.as_bytes()].concat()),
        Value::from,
    )
}

/// Reads an id from a column of the log.
pub(crate) fn read_logged(row: &Row<'_>, index: usize) -> Result<String, StoreError> {
    let id = row.with_blob(index, |bytes| match bytes.strip_prefix(&NO_ID) {
        Some(text) if !text.is_empty() => String::from_utf8(text.to_vec()).ok(),
        _ => value::fact_id(bytes).map(|id| id.to_string()),
    })?;
    id.ok_or(corrupt("quarantine_log", "fact_id"))
}

/// Appends a row about the one fact with this id or unique prefix of an id.
pub(crate) fn change(
    transaction: &mut Transaction<'_>,
    entry: &NewEntry,
    absent: WhenAbsent,
) -> Result<Result<QuarantineReceipt, NoTarget>, StoreError> {
    // The lock comes before the look-up, so that the row is about the fact that was found.
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let fact_id = match resolve(connection, org_id, entry.table, &entry.fact_id)? {
        Ok(fact_id) => fact_id.to_string(),
        Err(NoTarget::Absent) if absent == WhenAbsent::Record => as_stored(&entry.fact_id),
        Err(reason) => return Ok(Err(reason)),
    };
    let entry = NewEntry {
        fact_id,
        ..entry.clone()
    };
    append_one(transaction, &entry).map(Ok)
}

/// Appends rows.
pub(crate) fn append(
    transaction: &mut Transaction<'_>,
    entries: &[NewEntry],
) -> Result<Vec<QuarantineReceipt>, StoreError> {
    let entries = entries.iter();
    entries
        .map(|entry| append_one(transaction, entry))
        .collect()
}

fn append_one(
    transaction: &mut Transaction<'_>,
    entry: &NewEntry,
) -> Result<QuarantineReceipt, StoreError> {
    // The lock comes before the revision is drawn, so that an organization's revisions are
    // committed in order.
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let fact_id = logged(&entry.fact_id);
    let fact = [
        org_id.as_str().into(),
        entry.table.as_str().into(),
        fact_id.clone(),
    ];
    let latest = connection.first(LATEST, &fact, |row| row.text(0))?;
    let target_found = connection
        .first(
            &target(entry.table),
            &[org_id.as_str().into(), fact_id.clone()],
            |_| Ok(()),
        )?
        .is_some();
    let revision = connection
        .first(
            APPEND,
            &[
                Value::Text(&entry.quarantine_id.to_string()),
                org_id.as_str().into(),
                entry.table.as_str().into(),
                fact_id,
                entry.action.as_str().into(),
                Value::Text(&entry.reason),
                Value::Integer(entry.recorded_at.microseconds()),
                Value::Text(&entry.client_id),
            ],
            |row| row.count(0),
        )?
        .ok_or(corrupt("quarantine_log", "no revision was given"))?;
    let is_quarantined = |action: &str| i64::from(action == QuarantineAction::Quarantine.as_str());
    let change =
        is_quarantined(entry.action.as_str()) - latest.map_or(0, |action| is_quarantined(&action));
    if target_found {
        transaction.add_quarantined(entry.table, change)?;
    } else {
        transaction.add_quarantined_ahead(change)?;
    }
    Ok(QuarantineReceipt {
        fact_id: entry.fact_id.clone(),
        revision,
        target_found,
        unchanged: change == 0,
    })
}

/// Returns the high-water mark of the organization's log; 0 when it is empty.
pub(crate) fn revision(connection: &mut Connection, org_id: &OrgId) -> Result<u64, StoreError> {
    Ok(connection
        .first(REVISION, &[org_id.as_str().into()], |row| row.count(0))?
        .unwrap_or_default())
}

impl Store {
    /// Appends a row to the quarantine log about the one fact with this id or unique id prefix, and
    /// waits for the commit. The row is written after all facts that were accepted before.
    ///
    /// # Errors
    ///
    /// If nothing was stored, or it is unknown whether it was.
    pub async fn quarantine(
        &self,
        entry: NewEntry,
        absent: WhenAbsent,
    ) -> Result<Result<QuarantineReceipt, NoTarget>, StoreError> {
        let change = move |transaction: &mut Transaction<'_>| change(transaction, &entry, absent);
        self.writer.run(change).await
    }
}

impl Ledger {
    /// Appends to the quarantine log.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the store cannot be reached.
    pub fn quarantine(&self, entries: &[NewEntry]) -> Result<Vec<QuarantineReceipt>, StoreError> {
        self.write(|transaction| append(transaction, entries))
    }

    /// Appends a row to the quarantine log about the one fact with this id or unique id prefix.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`].
    pub fn quarantine_one(
        &self,
        entry: &NewEntry,
        absent: WhenAbsent,
    ) -> Result<Result<QuarantineReceipt, NoTarget>, StoreError> {
        self.write(|transaction| change(transaction, entry, absent))
    }
}

impl Snapshot<'_> {
    /// Returns the latest rows of the quarantine log, before a revision if one is given, oldest
    /// first, and the total number of rows.
    pub fn quarantine_log(
        &mut self,
        rows_max: u64,
        before: Option<u64>,
    ) -> Result<(Vec<LogEntry>, u64), StoreError> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let keys = [
            self.org_id.as_str().into(),
            number(rows_max).into(),
            number(before.unwrap_or(u64::MAX)).into(),
        ];
        let mut rows = self.connection()?.all(LOG, &keys, |row| {
            Ok(LogEntry {
                revision: row.count(0)?,
                fact_table: row.text(1)?,
                fact_id: read_logged(row, 2)?,
                action: row.text(3)?,
                reason: row.text(4)?,
                recorded_at: Instant::from_microseconds(row.integer(5)?)
                    .ok_or(corrupt("quarantine_log", "its time"))?,
                client_id: row.text(6)?,
            })
        })?;
        rows.reverse();
        let length = self
            .connection()?
            .first(LOG_LENGTH, &keys[..1], |row| row.count(0))?
            .unwrap_or_default();
        Ok((rows, length))
    }
}
