//! What the stored facts of a transaction leave beside their rows.

use svc_model::time::Instant;

use super::StoreError;
use super::append::Appending;
use super::claims::Claims;
use super::row::NewRow;
use super::sessions::Touched;
use super::table::Table;

/// What the stored facts of a transaction leave beside their rows: their Sessions, and the names of
/// repositories that they prove. A redelivery leaves nothing.
#[derive(Debug, Default)]
pub(super) struct Traces<'a> {
    pub(super) sessions: Touched<'a>,
    claims: Claims<'a>,
}

impl<'a> Traces<'a> {
    /// Adds what a stored row leaves, which its columns tell.
    pub(super) fn row(&mut self, table: &Table, row: &'a NewRow) {
        let captured_at = row.integer(table, "captured_at_us");
        let captured_at = captured_at.and_then(Instant::from_microseconds);
        if let (Some(session_id), Some(at)) = (row.text(table, "session_id"), captured_at) {
            self.sessions
                .add(session_id, row.text(table, "user_id"), at);
        }
        self.claims.row(table, row);
    }

    /// Writes it.
    pub(super) fn write(&self, appending: &mut Appending<'_, '_>) -> Result<(), StoreError> {
        let transaction = &mut *appending.transaction;
        let sessions = self
            .sessions
            .write(transaction.connection, transaction.org_id)?;
        if sessions > 0 {
            transaction.add_sessions(sessions)?;
        }
        appending.afterwards.claims = self.claims.write(
            transaction.connection,
            transaction.org_id,
            appending.known_claims,
        )?;
        Ok(())
    }
}
