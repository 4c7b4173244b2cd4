//! The events of a Session as metadata. Their content and users are not even read.

use svc_model::id::SessionId;
use svc_model::query::TimelineEvent;
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::error::StoreError;
use crate::sql::value::Row;
use crate::table::event::Event;
use crate::table::record::Table;
use crate::table::{kind, sessions};

const SPAN: &str = "SELECT first_observed_at_us, last_observed_at_us FROM sessions
    WHERE org_id = $1 AND session_id = $2";

/// Returns the statement that selects the visible facts of a Session as events.
fn events(table: &Table, event: &Event) -> String {
    format!(
        "SELECT f.{} FROM visible_{} f WHERE {}",
        event.columns.join(", f."),
        table.name,
        sessions::of_session(table.name, "$1", "$2")
    )
}

impl Snapshot<'_> {
    /// Returns the first and the last time of a Session; nothing if no fact names it.
    pub fn session_span(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Option<(Instant, Instant)>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        self.connection()?.first(SPAN, &keys, |row| {
            let mut columns = columns(row, "sessions");
            Ok((columns.next()?, columns.next()?))
        })
    }

    /// Returns the visible events of a Session, in any order. The caller has checked their number.
    pub fn session_events(
        &mut self,
        session_id: &SessionId,
    ) -> Result<Vec<TimelineEvent>, StoreError> {
        let keys = [self.org_id.as_str().into(), session_id.as_str().into()];
        let mut found = Vec::new();
        for (table, event) in kind::tables().filter_map(|table| Some((table, table.event?))) {
            self.connection()?
                .each(&events(table, event), &keys, |row| {
                    found.push((event.read)(&mut columns(row, table.name))?);
                    Ok(())
                })?;
        }
        Ok(found)
    }
}

/// Starts reading an event.
fn columns<'r>(row: &'r Row<'r>, table: &'static str) -> Columns<'r> {
    // An error names only the table; the value shows which column it was.
    Columns::of(row, table, &[])
}
