//! What the row of an organization says: when its last fact was captured, and its counts.

use svc_engine_fact::deadline::Deadline;
use svc_model::capture::CaptureTotals;
use svc_model::facts::{FactCount, FactTable, FactTables};
use svc_model::id::OrgId;
use svc_model::json;
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::sql::check::opened;
use crate::sql::clock_fault::APART_MICROSECONDS_MAX;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::url::DatabaseUrl;
use crate::sql::value::Row;

const CAPTURED: &str = "SELECT captured_at_us FROM organizations WHERE org_id = $1";

/// There are few organizations.
const ALL: &str = "SELECT /* every row */ org_id FROM organizations ORDER BY org_id";

const COUNTED: &str = "SELECT captured FROM organizations WHERE org_id = $1";

/// Selects the counts of Sessions and of some kinds of fact.
fn counts_text(kinds: &[FactTable]) -> String {
    let columns = kinds.iter();
    let columns = columns.map(|table| format!(", {table}, {table}_quarantined"));
    let columns: String = columns.collect();
    format!("SELECT sessions{columns} FROM organizations WHERE org_id = $1")
}

/// Returns every organization.
pub(crate) fn all(connection: &mut Connection) -> Result<Vec<OrgId>, StoreError> {
    let names = connection.all(ALL, &[], |row| row.text(0))?;
    let names = names.iter().map(|name| OrgId::new(name));
    names
        .collect::<Result<_, _>>()
        .map_err(|_| corrupt("organizations", "org_id"))
}

/// Returns what arrived, by source, as far as it is stored.
pub(crate) fn captured(
    connection: &mut Connection,
    org_id: &OrgId,
) -> Result<CaptureTotals, StoreError> {
    let text = connection.first(COUNTED, &[org_id.as_str().into()], |row| row.text(0))?;
    text.map_or_else(|| Ok(CaptureTotals::default()), |text| totals(&text))
}

/// Returns when the last fact of the organization was captured; 1970 if it has none.
pub(crate) fn captured_at(
    connection: &mut Connection,
    org_id: &OrgId,
) -> Result<Instant, StoreError> {
    let read = |row: &Row<'_>| row.integer(0);
    let captured_at = connection.first(CAPTURED, &[org_id.as_str().into()], read)?;
    Instant::from_microseconds(captured_at.unwrap_or_default())
        .ok_or(corrupt("organizations", "a time"))
}

/// Returns how many Sessions are known, and how many facts there are of each of these kinds. The
/// counts of other kinds are 0.
pub(crate) fn counts(
    connection: &mut Connection,
    org_id: &OrgId,
    kinds: &[FactTable],
) -> Result<(u64, FactTables), StoreError> {
    let counts = connection.first(&counts_text(kinds), &[org_id.as_str().into()], |row| {
        let tables = FactTables::try_from_fn(|table| {
            let Some(place) = kinds.iter().position(|kind| *kind == table) else {
                return Ok(FactCount::default());
            };
            let column = 1 + 2 * place;
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

/// Reads what arrived from its stored form.
pub(crate) fn totals(text: &str) -> Result<CaptureTotals, StoreError> {
    if text == "{}" {
        return Ok(CaptureTotals::default());
    }
    json::from_slice(text.as_bytes()).map_err(|_| corrupt("organizations", "its captured"))
}

/// Returns the organizations of a database, whose schema must be at head.
pub(crate) fn organizations(
    url: &DatabaseUrl,
    deadline: &Deadline,
) -> Result<Vec<OrgId>, StoreError> {
    let mut connection = opened(url)?;
    connection.begin_read(deadline)?;
    all(&mut connection)
}

impl Snapshot<'_> {
    /// Returns when the last fact was captured, if that is more than a minute after `now`. A server
    /// whose clock was ahead takes its organization with it: until that moment, facts are captured
    /// a microsecond after one another, and ranges of capture time that end now leave them out.
    pub fn captured_ahead_of(&mut self, now: Instant) -> Result<Option<Instant>, StoreError> {
        let org_id = self.org_id;
        let last = captured_at(self.connection()?, org_id)?;
        let ahead = last.microseconds().saturating_sub(now.microseconds());
        Ok((ahead > APART_MICROSECONDS_MAX).then_some(last))
    }

    /// Returns the bound of a question that was asked for. A question up to now is about everything
    /// that is stored. So while the last fact was captured ahead of `now`, a bound that is not a
    /// minute before `now` means the minute of that fact, which does not move with every fact.
    pub fn bound(&mut self, asked: Instant, now: Instant) -> Result<Instant, StoreError> {
        const MINUTE: i64 = APART_MICROSECONDS_MAX;
        if asked.microseconds() < now.microseconds() - MINUTE {
            return Ok(asked);
        }
        let last = self.captured_ahead_of(now)?;
        let end = last.and_then(|last| {
            let minutes = last.microseconds() / MINUTE;
            Instant::from_microseconds((minutes + 1) * MINUTE)
        });
        Ok(end.map_or(asked, |end| end.max(asked)))
    }

    /// Returns the moment up to which a question is answered: the requested one, but no later than
    /// the last stored fact. Nothing stored later was captured by then, so only quarantine and
    /// erasure change the answer up to that moment.
    pub fn boundary(&mut self, as_of: Option<Instant>) -> Result<Instant, StoreError> {
        let org_id = self.org_id;
        let last = captured_at(self.connection()?, org_id)?;
        Ok(as_of.map_or(last, |as_of| as_of.min(last)))
    }

    /// Returns what arrived, by source, as far as it is counted in the store.
    pub fn capture_totals(&mut self) -> Result<CaptureTotals, StoreError> {
        let org_id = self.org_id;
        captured(self.connection()?, org_id)
    }

    /// Returns how many Sessions are known.
    pub fn session_count(&mut self) -> Result<u64, StoreError> {
        let org_id = self.org_id;
        Ok(counts(self.connection()?, org_id, &[])?.0)
    }

    /// Returns the counts of every kind of fact.
    pub fn fact_counts(&mut self) -> Result<FactTables, StoreError> {
        self.fact_counts_of(FactTable::ALL)
    }

    /// Returns the counts of some kinds of fact, and 0 for the others. So an older schema can be
    /// counted, which lacks some.
    pub fn fact_counts_of(&mut self, kinds: &[FactTable]) -> Result<FactTables, StoreError> {
        let org_id = self.org_id;
        Ok(counts(self.connection()?, org_id, kinds)?.1)
    }
}
