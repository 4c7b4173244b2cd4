//! The one way to write: every transaction begins and ends here.

use std::sync::Arc;
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_model::id::OrgId;

use super::StoreError;
use super::clock_check::ClockCheck;
use super::connection::Connection;
use super::organization::{Moments, Organization};
use super::witness::Witness;

/// A transaction in progress, of one organization.
pub(super) struct Transaction<'t> {
    pub(super) connection: &'t mut Connection,
    pub(super) org_id: &'t OrgId,
    /// The row of the organization, once it is locked.
    pub(super) organization: Option<Organization>,
    pub(super) moments: Moments,
    /// What must be believed before facts are captured.
    pub(super) clock: Option<Arc<ClockCheck>>,
    /// The witness of a writer that remembers what it has stored.
    pub(super) witness: Option<Witness>,
}

/// Whether a transaction has changed the row of its organization and counted itself for its
/// witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// It stored or quarantined facts, or wrote counts.
    Yes,
    /// Everything was already there.
    No,
}

/// Why a transaction may not have been written.
#[derive(Debug)]
pub(super) enum Unwritten<T> {
    /// Nothing was committed.
    Nothing(StoreError),
    /// The commit failed, or no answer came. It may have been carried out, with this result.
    Unknown(StoreError, T),
}

impl<T> From<Unwritten<T>> for StoreError {
    fn from(unwritten: Unwritten<T>) -> Self {
        match unwritten {
            Unwritten::Nothing(error) | Unwritten::Unknown(error, _) => error,
        }
    }
}

/// How long a write may take, including the wait for its turn and every attempt. A sender may have
/// to wait for the write before its own and for two failed connection attempts, and still gets its
/// answer before it gives up. A server that stops gets its writer back in time.
const WRITE_SECONDS: u64 = 15;

/// Returns the deadline of a write that begins now.
pub(super) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(WRITE_SECONDS))
}

/// Runs `work` in a transaction. The transaction is committed if `work` succeeds, and rolled back
/// otherwise.
pub(super) fn write<T>(
    connection: &mut Connection,
    org_id: &OrgId,
    moments: Moments,
    deadline: &Deadline,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
) -> Result<(T, Changed), Unwritten<(T, Changed)>> {
    connection
        .begin_write(deadline)
        .map_err(Unwritten::Nothing)?;
    let written = match within(connection, org_id, moments, work) {
        Ok(result) => match connection.commit() {
            Ok(()) => Ok(result),
            Err(error) => Err(Unwritten::Unknown(error, result)),
        },
        Err(error) => Err(Unwritten::Nothing(error)),
    };
    if written.is_err()
        && let Err(error) = connection.rollback()
    {
        // The connection is lost, and the transaction with it.
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "store.rollback_failed"
        );
    }
    written
}

/// Runs `work` as a part of the transaction that the connection is in.
pub(super) fn within<T>(
    connection: &mut Connection,
    org_id: &OrgId,
    moments: Moments,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
) -> Result<(T, Changed), StoreError> {
    let mut transaction = Transaction {
        connection,
        org_id,
        organization: None,
        moments,
        clock: None,
        witness: None,
    };
    let result = work(&mut transaction)?;
    let changed = transaction.write_changes()?;
    Ok((result, changed))
}
