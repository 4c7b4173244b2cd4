//! How many facts a Session has, and how many are visible. An organization's counts are in its row
//! ([`crate::write::organization`]).

use svc_model::facts::{FactCount, FactTable, SessionFactTables};
use svc_model::id::SessionId;

use super::snapshot::Snapshot;
use crate::sql::error::StoreError;
use crate::sql::value::Row;
use crate::table::{kind, sessions};

/// Returns the statement that counts a Session's facts: for each kind, all and the visible ones.
fn of_session_text(kinds: &[FactTable]) -> String {
    let counts = kinds.iter().map(|kind| {
        let name = kind::table(*kind).name;
        let condition = sessions::of_session(name, "$1", "$2");
        format!(
            "(SELECT COUNT(*) FROM {name} f WHERE {condition}), \
            (SELECT COUNT(*) FROM visible_{name} f WHERE {condition})"
        )
    });
    format!("SELECT {}", counts.collect::<Vec<_>>().join(", "))
}

/// Reads the counts of the kind at this place of the statement.
fn count(row: &Row<'_>, place: usize) -> Result<FactCount, StoreError> {
    Ok(FactCount {
        total: row.count(2 * place)?,
        visible: row.count(2 * place + 1)?,
    })
}

impl Snapshot<'_> {
    /// Returns the counts of the facts of a Session.
    pub fn session_fact_counts(
        &mut self,
        session_id: &SessionId,
    ) -> Result<SessionFactTables, StoreError> {
        let text = of_session_text(SessionFactTables::KINDS);
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let counts = self.connection()?.first(&text, &keys, |row| {
            let mut places = 0..SessionFactTables::KINDS.len();
            SessionFactTables::try_from_fn(|_| count(row, places.next().unwrap_or_default()))
        })?;
        Ok(counts.unwrap_or_default())
    }

    /// Returns the counts of some kinds of fact of a Session, in their order. Each kind must name a
    /// Session.
    pub fn session_fact_counts_of<const KINDS: usize>(
        &mut self,
        session_id: &SessionId,
        kinds: [FactTable; KINDS],
    ) -> Result<[FactCount; KINDS], StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let counts = self
            .connection()?
            .first(&of_session_text(&kinds), &keys, |row| {
                let mut counts = [FactCount::default(); KINDS];
                for (place, found) in counts.iter_mut().enumerate() {
                    *found = count(row, place)?;
                }
                Ok(counts)
            })?;
        Ok(counts.unwrap_or([FactCount::default(); KINDS]))
    }

    /// Returns the counts of one kind of fact of a Session.
    pub fn session_fact_count(
        &mut self,
        session_id: &SessionId,
        table: FactTable,
    ) -> Result<FactCount, StoreError> {
        let [count] = self.session_fact_counts_of(session_id, [table])?;
        Ok(count)
    }
}
