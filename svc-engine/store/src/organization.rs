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
use svc_model::facts::{FactCount, FactTable, FactTables};
use svc_model::id::{FactId, OrgId};
use svc_model::json;
use svc_model::time::Instant;

use super::StoreError;
use super::connection::{Connection, Lookup, Sql};
use super::error::corrupt;
use super::transaction::{Changed, Transaction};
use super::value::{Row, Value};
use super::witness::Witness;

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
/// The time of the database server, if it has a clock of its own.
const NOW: Sql = Sql {
    sqlite: "SELECT NULL",
    postgres: "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
};
const ENTER: &str = "INSERT INTO organizations (org_id, erasures)
    VALUES ($1, (SELECT COALESCE(MAX(erasures), 0) FROM organizations)) ON CONFLICT DO NOTHING";
const CAPTURED: &str = "SELECT captured_at_us FROM organizations WHERE org_id = $1";
/// There are few organizations.
const ALL: &str = "SELECT /* every row */ org_id FROM organizations ORDER BY org_id";
const COUNTED: &str = "SELECT captured FROM organizations WHERE org_id = $1";
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

/// Selects the counts of Sessions and of each kind of fact.
static COUNTS: LazyLock<String> = LazyLock::new(|| {
    let kinds = FactTable::ALL.iter();
    let columns = kinds.map(|table| format!(", {table}, {table}_quarantined"));
    let columns: String = columns.collect();
    format!("SELECT sessions{columns} FROM organizations WHERE org_id = $1")
});

/// How the capture times of a transaction are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// The time of receipt, but no earlier than this.
    NotBefore(Instant),
    /// The time of receipt.
    #[cfg(any(test, feature = "testing"))]
    AsReceived,
}

impl Stamp {
    /// Returns the capture time of a fact.
    pub(super) fn of(self, received_at: Instant) -> Instant {
        match self {
            Self::NotBefore(earliest) => received_at.max(earliest),
            #[cfg(any(test, feature = "testing"))]
            Self::AsReceived => received_at,
        }
    }
}

/// The row as it was when it was locked, and what the transaction changes.
#[derive(Debug)]
pub(super) struct Organization {
    captured_at: Instant,
    /// When the row was read, by the database's clock, if it has one.
    read_at: Option<Instant>,
    quarantined_ahead: i64,
    /// What has arrived so far, in its stored form.
    captured: String,
    changes: Changes,
}

#[derive(Debug, Default)]
struct Changes {
    captured_at: Option<Instant>,
    /// Quarantined facts that do not exist.
    quarantined_ahead: i64,
    sessions: i64,
    /// All facts and the quarantined ones, by the index of their kind.
    facts: [(i64, i64); FactTable::ALL.len()],
    /// What arrived.
    captured: CaptureTotals,
    /// Whether what arrived is written even if nothing else is.
    counts_alone: bool,
}

impl Changes {
    fn of(&mut self, table: FactTable) -> &mut (i64, i64) {
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

impl Transaction<'_> {
    /// Locks the row of the organization until the transaction ends, and returns it.
    pub(super) fn organization(&mut self) -> Result<&mut Organization, StoreError> {
        let locked = match self.organization.take() {
            Some(locked) => locked,
            None => lock(self.connection, self.org_id, self.witness)?,
        };
        Ok(self.organization.insert(locked))
    }

    /// Returns when the facts of this transaction are captured.
    ///
    /// # Errors
    ///
    /// [`StoreError::Clock`] if the clock of this server cannot be believed.
    pub(super) fn stamp(&mut self) -> Result<Stamp, StoreError> {
        let (moments, clock) = (self.moments, self.clock.clone());
        let organization = self.organization()?;
        if let Some(clock) = clock {
            let checked = clock.check(organization.read_at);
            checked.map_err(StoreError::Clock)?;
        }
        let last = organization.captured_at;
        Ok(match moments {
            Moments::Stamped => Stamp::NotBefore(after(last)),
            #[cfg(any(test, feature = "testing"))]
            Moments::Given => Stamp::AsReceived,
        })
    }

    /// Adds newly stored facts of a kind, the last of which was captured at this moment.
    pub(super) fn add_facts(
        &mut self,
        table: FactTable,
        fact_ids: &[FactId],
        captured_at: Instant,
    ) -> Result<(), StoreError> {
        if fact_ids.is_empty() {
            return Ok(());
        }
        let organization = self.organization()?;
        let ahead = organization.quarantined_ahead + organization.changes.quarantined_ahead;
        let quarantined = match ahead {
            0 => 0,
            _ => count_quarantined(self.connection, self.org_id, table, fact_ids)?,
        };
        let changes = &mut self.organization()?.changes;
        changes.captured_at = changes.captured_at.max(Some(captured_at));
        changes.quarantined_ahead -= quarantined;
        let facts = changes.of(table);
        facts.0 += i64::try_from(fact_ids.len()).unwrap_or(i64::MAX);
        facts.1 += quarantined;
        Ok(())
    }

    /// Adds newly known Sessions.
    pub(super) fn add_sessions(&mut self, count: i64) -> Result<(), StoreError> {
        self.organization()?.changes.sessions += count;
        Ok(())
    }

    /// Adds to the number of quarantined facts of a kind, or subtracts from it.
    pub(super) fn add_quarantined(
        &mut self,
        table: FactTable,
        count: i64,
    ) -> Result<(), StoreError> {
        self.organization()?.changes.of(table).1 += count;
        Ok(())
    }

    /// Adds to the number of quarantined facts that do not exist, or subtracts from it.
    pub(super) fn add_quarantined_ahead(&mut self, count: i64) -> Result<(), StoreError> {
        self.organization()?.changes.quarantined_ahead += count;
        Ok(())
    }

    /// Adds what arrived. It is written together with other changes.
    pub(super) fn add_captured(&mut self, captured: &CaptureTotals) -> Result<(), StoreError> {
        self.organization()?.changes.captured.add(captured);
        Ok(())
    }

    /// Writes what changed.
    pub(super) fn write_changes(&mut self) -> Result<Changed, StoreError> {
        let Some(organization) = self.organization.take() else {
            return Ok(Changed::No);
        };
        let changes = &organization.changes;
        if changes.is_empty() {
            return Ok(Changed::No);
        }
        let captured_at = Some(organization.captured_at).max(changes.captured_at);
        let captured = match &changes.captured {
            nothing if nothing.is_empty() => organization.captured.clone(),
            more => {
                let mut captured = totals(&organization.captured)?;
                captured.add(more);
                let bytes = json::to_vec(&captured, usize::MAX);
                let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
                text.ok_or(corrupt("organizations", "its captured"))?
            }
        };
        let mut values = vec![
            self.org_id.as_str().into(),
            captured_at.into(),
            changes.quarantined_ahead.into(),
            changes.sessions.into(),
            Value::Text(&captured),
        ];
        for (total, quarantined) in changes.facts {
            values.extend([Value::Integer(total), Value::Integer(quarantined)]);
        }
        self.connection.execute(&CHANGE, &values)?;
        if let Some(witness) = self.witness {
            witness.write(self.connection)?;
        }
        Ok(Changed::Yes)
    }
}

/// Returns every organization.
pub(super) fn all(connection: &mut Connection) -> Result<Vec<OrgId>, StoreError> {
    let names = connection.all(ALL, &[], |row| row.text(0))?;
    let names = names.iter().map(|name| OrgId::new(name));
    names
        .collect::<Result<_, _>>()
        .map_err(|_| corrupt("organizations", "org_id"))
}

/// How the facts that a store appends are stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Moments {
    /// In the order in which they are committed.
    #[default]
    Stamped,
    /// As they were received, even if that is out of order.
    #[cfg(any(test, feature = "testing"))]
    Given,
}

/// Returns the next moment, or the last one at the end of time.
fn after(moment: Instant) -> Instant {
    let next = moment.microseconds().checked_add(1);
    next.and_then(Instant::from_microseconds).unwrap_or(moment)
}

fn lock(
    connection: &mut Connection,
    org_id: &OrgId,
    witness: Option<Witness>,
) -> Result<Organization, StoreError> {
    let text = connection.text(LOCK);
    let epoch = witness.map(|witness| witness.epoch);
    let keys = [org_id.as_str().into(), epoch.into()];
    let read = |connection: &mut Connection| {
        connection.first(text, &keys, |row| {
            let captured_at = Instant::from_microseconds(row.integer(0)?);
            let organization = Organization {
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

/// Returns whether the transaction that led to a witness was committed. This locks the row of the
/// organization, so the transaction cannot still be in progress.
pub(super) fn is_committed(
    connection: &mut Connection,
    org_id: &OrgId,
    witness: Witness,
) -> Result<bool, StoreError> {
    match lock(connection, org_id, Some(witness)) {
        Ok(_) | Err(StoreError::Erased) => Ok(true),
        Err(StoreError::SetBack) => Ok(false),
        Err(error) => Err(error),
    }
}

fn count_quarantined(
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

/// Has what arrived written even if nothing else changes.
pub(super) fn count_alone(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    transaction.organization()?.changes.counts_alone = true;
    Ok(())
}

/// Has what arrived written as a fact would be, so that a sender learns whether one would be stored.
pub(super) fn count_as_facts(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    transaction.stamp()?;
    count_alone(transaction)
}

/// Returns the time of the database server, if it has a clock of its own.
pub(super) fn database_now(connection: &mut Connection) -> Result<Option<Instant>, StoreError> {
    let text = connection.text(NOW);
    let now = connection.first(text, &[], |row| row.optional_integer(0))?;
    Ok(now.flatten().and_then(Instant::from_microseconds))
}

/// Reads what arrived from its stored form.
fn totals(text: &str) -> Result<CaptureTotals, StoreError> {
    if text == "{}" {
        return Ok(CaptureTotals::default());
    }
    json::from_slice(text.as_bytes()).map_err(|_| corrupt("organizations", "its captured"))
}

/// Returns what arrived, by source, as far as it is stored.
pub(super) fn captured(
    connection: &mut Connection,
    org_id: &OrgId,
) -> Result<CaptureTotals, StoreError> {
    let text = connection.first(COUNTED, &[org_id.as_str().into()], |row| row.text(0))?;
    text.map_or_else(|| Ok(CaptureTotals::default()), |text| totals(&text))
}

/// Returns when the last fact of the organization was captured; 1970 if it has none.
pub(super) fn captured_at(
    connection: &mut Connection,
    org_id: &OrgId,
) -> Result<Instant, StoreError> {
    let read = |row: &Row<'_>| row.integer(0);
    let captured_at = connection.first(CAPTURED, &[org_id.as_str().into()], read)?;
    Instant::from_microseconds(captured_at.unwrap_or_default())
        .ok_or(corrupt("organizations", "a time"))
}

/// Returns how many Sessions are known, and how many facts there are of each kind.
pub(super) fn counts(
    connection: &mut Connection,
    org_id: &OrgId,
) -> Result<(u64, FactTables), StoreError> {
    let counts = connection.first(&COUNTS, &[org_id.as_str().into()], |row| {
        let tables = FactTables::try_from_fn(|table| {
            let column = 1 + 2 * table as usize;
            let (total, quarantined) = (row.count(column)?, row.count(column + 1)?);
            let visible = total.checked_sub(quarantined);
            Ok::<_, StoreError>(FactCount {
                total,
                visible: visible.ok_or(corrupt("organizations", "a count"))?,
            })
        })?;
        Ok((row.count(0)?, tables))
    })?;
    Ok(counts.unwrap_or_default())
}
