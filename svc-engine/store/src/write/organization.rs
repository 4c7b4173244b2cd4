//! The row of an organization: the capture time of its last fact, and its counts of facts.
//!
//! Every transaction that writes facts, the quarantine log or jobs locks the row first, and holds
//! the lock until it is committed. So these transactions of an organization are committed one after
//! another, whichever server writes them. Three things follow:
//!
//! - A fact is captured when it was received, or a microsecond after the last fact committed before
//!   it, whichever is later. So nothing committed later has an earlier capture time, and an answer
//!   up to a time no later than the last one is final.
//! - Whoever sees a revision of the quarantine log sees all earlier ones.
//! - The counts are exact, even if a quarantine arrived before its fact.

use std::sync::LazyLock;

use svc_model::capture::CaptureTotals;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::json;
use svc_model::time::Instant;

use super::witness::Witness;
use crate::read::organizations;
use crate::sql::connection::{Connection, Lookup, Sql};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Value;

macro_rules! lock {
    ($now:literal, $lock:literal) => {
        concat!(
            "SELECT captured_at_us, quarantined_ahead, (SELECT commits FROM writers WHERE epoch = $2),
            captured, erasures, ",
            $now,
            " FROM organizations WHERE org_id = $1",
            $lock
        )
    };
}
const LOCK: Sql = Sql {
    sqlite: lock!("NULL", ""),
    postgres: lock!(
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        " FOR UPDATE"
    ),
};
const ENTER: &str = "INSERT INTO organizations (org_id, erasures)
    VALUES ($1, (SELECT COALESCE(MAX(erasures), 0) FROM organizations)) ON CONFLICT DO NOTHING";
/// Finds which of these facts of a kind are quarantined.
const QUARANTINED: Lookup<'_> = Lookup {
    select: "SELECT q.fact_id FROM quarantine_log q WHERE q.org_id = $1 AND q.fact_table = $2
        AND q.action = 'quarantine' AND NOT EXISTS (SELECT 1 FROM quarantine_log later
            WHERE later.org_id = q.org_id AND later.fact_table = q.fact_table
                AND later.fact_id = q.fact_id
                AND later.quarantine_revision > q.quarantine_revision)
        AND q.fact_id",
    then: "",
};

/// Adds the changes of a transaction. The columns of the counts are named after the kinds of fact.
static CHANGE: LazyLock<String> = LazyLock::new(|| {
    use std::fmt::Write as _;
    let mut text = "UPDATE organizations SET captured_at_us = $2, \
        quarantined_ahead = quarantined_ahead + $3, sessions = sessions + $4, captured = $5"
        .to_owned();
    for (place, table) in FactTable::ALL.iter().enumerate() {
        let (total, quarantined) = (6 + 2 * place, 7 + 2 * place);
        write!(
            text,
            ", {table} = {table} + ${total}, {table}_quarantined = {table}_quarantined + ${quarantined}"
        )
        .expect("writing to a string cannot fail");
    }
    text + " WHERE org_id = $1"
});

/// The row as it was when it was locked, and what the transaction changes.
#[derive(Debug)]
pub(crate) struct Organization {
    pub(crate) captured_at: Instant,
    /// When the row was read, by the database's clock, if it has one.
    pub(crate) read_at: Option<Instant>,
    pub(crate) quarantined_ahead: i64,
    /// What has arrived so far, in its stored form.
    captured: String,
    pub(crate) changes: Changes,
}

/// What a transaction adds to the row.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) captured_at: Option<Instant>,
    /// Quarantined facts that do not exist.
    pub(crate) quarantined_ahead: i64,
    pub(crate) sessions: i64,
    /// All facts and the quarantined ones, by the index of their kind.
    pub(crate) facts: [(i64, i64); FactTable::ALL.len()],
    /// What arrived.
    pub(crate) captured: CaptureTotals,
    /// Whether what arrived is written even if nothing else is.
    pub(crate) counts_alone: bool,
}

impl Changes {
    /// Returns the changes of the counts of a kind: all facts, and the quarantined ones.
    pub(crate) fn of(&mut self, table: FactTable) -> &mut (i64, i64) {
        // The kinds are listed in the order of their declaration.
        &mut self.facts[table as usize]
    }

    fn is_empty(&self) -> bool {
        (self.captured.is_empty() || !self.counts_alone)
            && self.quarantined_ahead == 0
            && self.sessions == 0
            && self.facts.iter().all(|change| *change == (0, 0))
    }
}

impl Organization {
    /// Locks the row until the transaction of the connection ends, and enters an organization that
    /// has none.
    ///
    /// # Errors
    ///
    /// [`StoreError::SetBack`] or [`StoreError::Erased`] if the witness does not agree.
    pub(crate) fn lock(
        connection: &mut Connection,
        org_id: &OrgId,
        witness: Option<Witness>,
    ) -> Result<Self, StoreError> {
        let text = connection.text(LOCK);
        let epoch = witness.map(|witness| witness.epoch);
        let keys = [org_id.as_str().into(), epoch.into()];
        let read = |connection: &mut Connection| {
            connection.first(text, &keys, |row| {
                let captured_at = Instant::from_microseconds(row.integer(0)?);
                let organization = Self {
                    captured_at: captured_at.ok_or(corrupt("organizations", "a time"))?,
                    read_at: row
                        .optional_integer(5)?
                        .and_then(Instant::from_microseconds),
                    quarantined_ahead: row.integer(1)?,
                    captured: row.text(3)?,
                    changes: Changes::default(),
                };
                Ok((organization, row.optional_integer(2)?, row.integer(4)?))
            })
        };
        let mut locked = read(connection)?;
        if locked.is_none() {
            connection.execute(ENTER, &keys[..1])?;
            locked = read(connection)?;
        }
        let (organization, commits, erasures) =
            locked.ok_or(corrupt("organizations", "the row is absent"))?;
        if witness.is_some_and(|witness| witness.commits != commits) {
            return Err(StoreError::SetBack);
        }
        if witness.is_some_and(|witness| witness.erasures != erasures) {
            return Err(StoreError::Erased);
        }
        Ok(organization)
    }

    /// Writes what the transaction changes. Returns whether it changes anything.
    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
    ) -> Result<bool, StoreError> {
        let changes = &self.changes;
        if changes.is_empty() {
            return Ok(false);
        }
        let captured_at = Some(self.captured_at).max(changes.captured_at);
        let captured = match &changes.captured {
            nothing if nothing.is_empty() => self.captured.clone(),
            more => {
                let mut captured = organizations::totals(&self.captured)?;
                captured.add(more);
                let bytes = json::to_vec(&captured, usize::MAX);
                let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
                text.ok_or(corrupt("organizations", "its captured"))?
            }
        };
        let mut values = vec![
            org_id.as_str().into(),
            captured_at.into(),
            changes.quarantined_ahead.into(),
            changes.sessions.into(),
            Value::Text(&captured),
        ];
        for (total, quarantined) in changes.facts {
            values.extend([Value::Integer(total), Value::Integer(quarantined)]);
        }
        connection.execute(&CHANGE, &values)?;
        Ok(true)
    }
}

/// Returns whether the transaction that led to a witness was committed. This locks the row of the
/// organization, so the transaction cannot still be in progress.
pub(crate) fn is_committed(
    connection: &mut Connection,
    org_id: &OrgId,
    witness: Witness,
) -> Result<bool, StoreError> {
    match Organization::lock(connection, org_id, Some(witness)) {
        Ok(_) | Err(StoreError::Erased) => Ok(true),
        Err(StoreError::SetBack) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns how many of these facts of a kind are quarantined.
pub(crate) fn count_quarantined(
    connection: &mut Connection,
    org_id: &OrgId,
    table: FactTable,
    fact_ids: &[FactId],
) -> Result<i64, StoreError> {
    let ids: Vec<Value<'_>> = fact_ids.iter().copied().map(Value::from).collect();
    let shared = [org_id.as_str().into(), table.as_str().into()];
    let mut count = 0;
    connection.lookup(&QUARANTINED, &shared, &ids, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}
