//! What the stored facts of a transaction leave in other tables.

use svc_model::time::Instant;

use super::appending::Appending;
use super::claims::Claims;
use super::session_claims;
use super::sessions::{Sighting, Touched};
use crate::pack::content_key;
use crate::sql::error::StoreError;
use crate::table::record::Table;
use crate::table::row::NewRow;

/// What the stored facts of a transaction leave in other tables: their Sessions, and the names of
/// repositories that they prove. A redelivery leaves nothing.
#[derive(Debug, Default)]
pub(crate) struct Traces<'a> {
    pub(crate) sessions: Touched<'a>,
    pub(crate) claims: Claims<'a>,
}

impl<'a> Traces<'a> {
    /// Adds what a stored row leaves, according to its columns.
    pub(crate) fn row(&mut self, table: &Table, row: &'a NewRow) {
        let captured_at = row.integer(table, "captured_at_us");
        let captured_at = captured_at.and_then(Instant::from_microseconds);
        if let (Some(session_id), Some(at)) = (row.text(table, "session_id"), captured_at) {
            self.sessions.add(&Sighting {
                session_id,
                user_id: row.text(table, "user_id"),
                observed_at: at,
                model: row.text(table, "model"),
                agent_harness: row.text(table, "agent_harness"),
                repo: row.text(table, "repo"),
            });
        }
        self.claims.row(table, row);
    }

    /// Writes the traces. `captured_at` is when the last of the facts was captured.
    pub(crate) fn write(
        &self,
        appending: &mut Appending<'_, '_>,
        captured_at: Instant,
    ) -> Result<(), StoreError> {
        let transaction = &mut *appending.transaction;
        let org_id = transaction.org_id;
        let touched = self.sessions.write(
            transaction.connection,
            org_id,
            captured_at,
            &mut appending.session_numbers,
            appending.epoch,
        )?;
        if !touched.new.is_empty() {
            transaction.add_sessions(i64::try_from(touched.new.len()).unwrap_or(i64::MAX))?;
        }
        appending.afterwards.session_claims = session_claims::write(
            transaction.connection,
            org_id,
            &touched.claims,
            appending.known_session_claims,
        )?;
        let sessions = self.sessions.sessions().map(content_key::session_key);
        appending.afterwards.touched_sessions = sessions.collect();
        appending.afterwards.session_step = touched.step;
        let new = touched.new.into_iter().map(str::to_owned);
        appending.afterwards.new_sessions = new.collect();
        appending.afterwards.claims = self.claims.write(
            transaction.connection,
            transaction.org_id,
            appending.known_claims,
        )?;
        Ok(())
    }
}
