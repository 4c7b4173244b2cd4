//! The append-only log of quarantine and release. What it makes visible, the views `visible_*` say.

use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use svc_model::time::Instant;
use uuid::Uuid;

use super::StoreError;
use super::connection::Connection;
use super::error::corrupt;
use super::kind;
use super::transaction::Transaction;
use super::value::Value;

/// What a row of the log does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineAction {
    /// The fact is taken out of every answer.
    Quarantine,
    /// The fact is shown again.
    Release,
}

impl QuarantineAction {
    /// Returns the word for the action.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quarantine => "quarantine",
            Self::Release => "release",
        }
    }
}

/// One row that is to be appended.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// A fresh id of the row.
    pub quarantine_id: Uuid,
    /// The kind of fact.
    pub table: FactTable,
    /// The fact. It need not exist.
    pub fact_id: String,
    /// What is done.
    pub action: QuarantineAction,
    /// Why, exactly as the operator wrote it.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
}

/// What became of one appended row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineReceipt {
    /// The revision of the row.
    pub revision: u64,
    /// Whether the fact exists.
    pub target_found: bool,
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
    /// Why.
    pub reason: String,
    /// When.
    pub recorded_at: Instant,
}

const APPEND: &str = "INSERT INTO quarantine_log
    (quarantine_id, org_id, fact_table, fact_id, action, reason, recorded_at_us)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING quarantine_revision";
const LATEST: &str = "SELECT action FROM quarantine_log
    WHERE org_id = $1 AND fact_table = $2 AND fact_id = $3
    ORDER BY quarantine_revision DESC LIMIT 1";
const REVISION: &str =
    "SELECT COALESCE(MAX(quarantine_revision), 0) FROM quarantine_log WHERE org_id = $1";
const LOG: &str = "SELECT quarantine_revision, fact_table, fact_id, action, reason, recorded_at_us
    FROM quarantine_log WHERE org_id = $1 ORDER BY quarantine_revision DESC LIMIT $2";
const LOG_LENGTH: &str = "SELECT COUNT(*) FROM quarantine_log WHERE org_id = $1";

/// Returns the statement that finds a fact by its id.
fn target(kind: FactTable) -> String {
    let table = kind::table(kind);
    let (name, id) = (table.name, table.id());
    format!("SELECT 1 FROM {name} WHERE org_id = $1 AND {id} = $2")
}

/// Appends rows.
pub(super) fn append(
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
    // Locked before a revision is drawn: the revisions of an organization are committed in their order.
    transaction.organization()?;
    let (connection, org_id) = (&mut *transaction.connection, transaction.org_id);
    let fact = [
        org_id.as_str().into(),
        entry.table.as_str().into(),
        Value::Text(&entry.fact_id),
    ];
    let latest = connection.first(LATEST, &fact, |row| row.text(0))?;
    let target_found = connection
        .first(
            &target(entry.table),
            &[org_id.as_str().into(), Value::Text(&entry.fact_id)],
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
                Value::Text(&entry.fact_id),
                entry.action.as_str().into(),
                Value::Text(&entry.reason),
                Value::Integer(entry.recorded_at.microseconds()),
            ],
            |row| row.count(0),
        )?
        .ok_or(corrupt("quarantine_log", "no revision was given"))?;
    let is_quarantined = |action: &str| i64::from(action == QuarantineAction::Quarantine.as_str());
    let change = is_quarantined(entry.action.as_str()) - latest.map_or(0, |it| is_quarantined(&it));
    if target_found {
        transaction.add_quarantined(entry.table, change)?;
    } else {
        transaction.add_quarantined_ahead(change)?;
    }
    Ok(QuarantineReceipt {
        revision,
        target_found,
    })
}

/// Returns the high-water mark of the organization's log; 0 when it is empty.
pub(super) fn revision(connection: &mut Connection, org_id: &OrgId) -> Result<u64, StoreError> {
    Ok(connection
        .first(REVISION, &[org_id.as_str().into()], |row| row.count(0))?
        .unwrap_or_default())
}

/// Returns the latest rows of the log, oldest first, and how many there are in all.
pub(super) fn log(
    connection: &mut Connection,
    org_id: &OrgId,
    rows_max: u64,
) -> Result<(Vec<LogEntry>, u64), StoreError> {
    let limit = i64::try_from(rows_max).unwrap_or(i64::MAX);
    let mut rows = connection.all(LOG, &[org_id.as_str().into(), limit.into()], |row| {
        Ok(LogEntry {
            revision: row.count(0)?,
            fact_table: row.text(1)?,
            fact_id: row.text(2)?,
            action: row.text(3)?,
            reason: row.text(4)?,
            recorded_at: Instant::from_microseconds(row.integer(5)?)
                .ok_or(corrupt("quarantine_log", "its time"))?,
        })
    })?;
    rows.reverse();
    let length = connection
        .first(LOG_LENGTH, &[org_id.as_str().into()], |row| row.count(0))?
        .unwrap_or_default();
    Ok((rows, length))
}
