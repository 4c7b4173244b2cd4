//! The one way to write: a transaction, begun and ended here, whoever asks for it.

use std::time::Duration;

use svc_model::id::OrgId;

use super::StoreError;
use super::connection::Connection;
use super::organization::{Moments, Organization};
use super::witness::Witness;
use crate::deadline::Deadline;

/// A transaction that is being written, of one organization.
pub(super) struct Transaction<'t> {
    pub(super) connection: &'t mut Connection,
    pub(super) org_id: &'t OrgId,
    /// The row of the organization, once it is locked.
    pub(super) organization: Option<Organization>,
    pub(super) moments: Moments,
    /// Of a writer that remembers what it has stored.
    pub(super) witness: Option<Witness>,
}

/// Whether a transaction has changed the row of its organization, and counted itself for its witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// It stored facts, or quarantined some.
    Yes,
    /// It found everything there.
    No,
}

/// Why it is not known that a transaction was written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// Nothing was committed.
    Nothing(StoreError),
    /// The commit was sent, and no answer came: it may have been carried out or not.
    Unknown(StoreError),
}

impl From<Unwritten> for StoreError {
    fn from(unwritten: Unwritten) -> Self {
        match unwritten {
            Unwritten::Nothing(error) | Unwritten::Unknown(error) => error,
        }
    }
}

/// How long a write may take, the wait for its turn and every attempt included. A sender may wait for
/// the write before its own and for two connections that are not made, and has its answer before it
/// gives up; a server that stops has its writer back.
const WRITE_SECONDS: u64 = 15;

/// Returns until when a write that begins now may take.
pub(super) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(WRITE_SECONDS))
}

/// Runs `work` in a transaction, which is committed when `work` succeeds and rolled back otherwise.
pub(super) fn write<T>(
    connection: &mut Connection,
    org_id: &OrgId,
    moments: Moments,
    deadline: &Deadline,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
) -> Result<(T, Changed), Unwritten> {
    connection
        .begin_write(deadline)
        .map_err(Unwritten::Nothing)?;
    let mut transaction = Transaction {
        connection: &mut *connection,
        org_id,
        organization: None,
        moments,
        witness: None,
    };
    let worked = work(&mut transaction).and_then(|result| {
        let changed = transaction.write_changes()?;
        Ok((result, changed))
    });
    let written = match worked {
        Ok(result) => connection
            .commit()
            .map(|()| result)
            .map_err(Unwritten::Unknown),
        Err(error) => Err(Unwritten::Nothing(error)),
    };
    if written.is_err()
        && let Err(error) = connection.rollback()
    {
        // The connection is gone, and the transaction with it.
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "store.rollback_failed"
        );
    }
    written
}
