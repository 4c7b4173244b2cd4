//! The one way to write: every transaction begins and ends here.

use std::sync::Arc;
use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_model::capture::CaptureTotals;
use svc_model::facts::FactTable;
use svc_model::id::{FactId, OrgId};
use svc_model::time::Instant;

use super::clock_check::ClockCheck;
use super::organization::{Organization, count_quarantined};
use super::witness::Witness;
use crate::sql::connection::Connection;
use crate::sql::error::StoreError;
use crate::table::row::Stamp;

/// A transaction in progress, of one organization.
pub(crate) struct Transaction<'t> {
    pub(crate) connection: &'t mut Connection,
    pub(crate) org_id: &'t OrgId,
    /// The row of the organization, once it is locked.
    pub(crate) organization: Option<Organization>,
    pub(crate) moments: Moments,
    /// What must be believed before facts are captured.
    pub(crate) clock: Option<Arc<ClockCheck>>,
    /// The witness of a writer that remembers what it has stored.
    pub(crate) witness: Option<Witness>,
}

/// How the facts that a store appends are stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Moments {
    /// In the order in which they are committed.
    #[default]
    Stamped,
    /// As they were received, even if that is out of order.
    #[cfg(any(test, feature = "testing"))]
    Given,
}

/// Whether a transaction has changed the row of its organization and counted itself for its
/// witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It stored or quarantined facts, or wrote counts.
    Yes,
    /// Everything was already there.
    No,
}

impl Transaction<'_> {
    /// Locks the row of the organization until the transaction ends, and returns it.
    pub(crate) fn organization(&mut self) -> Result<&mut Organization, StoreError> {
        let locked = match self.organization.take() {
            Some(locked) => locked,
            None => Organization::lock(self.connection, self.org_id, self.witness)?,
        };
        Ok(self.organization.insert(locked))
    }

    /// Returns when the facts of this transaction are captured.
    ///
    /// # Errors
    ///
    /// [`StoreError::Clock`] if the clock of this server cannot be believed.
    pub(crate) fn stamp(&mut self) -> Result<Stamp, StoreError> {
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
    pub(crate) fn add_facts(
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
    pub(crate) fn add_sessions(&mut self, count: i64) -> Result<(), StoreError> {
        self.organization()?.changes.sessions += count;
        Ok(())
    }

    /// Adds to the number of quarantined facts of a kind, or subtracts from it.
    pub(crate) fn add_quarantined(
        &mut self,
        table: FactTable,
        count: i64,
    ) -> Result<(), StoreError> {
        self.organization()?.changes.of(table).1 += count;
        Ok(())
    }

    /// Adds to the number of quarantined facts that do not exist, or subtracts from it.
    pub(crate) fn add_quarantined_ahead(&mut self, count: i64) -> Result<(), StoreError> {
        self.organization()?.changes.quarantined_ahead += count;
        Ok(())
    }

    /// Adds what arrived. It is written together with other changes.
    pub(crate) fn add_captured(&mut self, captured: &CaptureTotals) -> Result<(), StoreError> {
        self.organization()?.changes.captured.add(captured);
        Ok(())
    }

    /// Writes what changed.
    fn write_changes(&mut self) -> Result<Changed, StoreError> {
        let Some(organization) = self.organization.take() else {
            return Ok(Changed::No);
        };
        if !organization.write(self.connection, self.org_id)? {
            return Ok(Changed::No);
        }
        if let Some(witness) = self.witness {
            witness.write(self.connection)?;
        }
        Ok(Changed::Yes)
    }
}

/// Has what arrived written even if nothing else changes.
pub(crate) fn count_alone(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    transaction.organization()?.changes.counts_alone = true;
    Ok(())
}

/// Has what arrived written as a fact would be, so that a sender learns whether one would be stored.
pub(crate) fn count_as_facts(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    transaction.stamp()?;
    count_alone(transaction)
}

/// Returns the next moment, or the last one at the end of time.
pub(crate) fn after(moment: Instant) -> Instant {
    let next = moment.microseconds().checked_add(1);
    next.and_then(Instant::from_microseconds).unwrap_or(moment)
}

/// Why a transaction may not have been written.
#[derive(Debug)]
pub(crate) enum Unwritten<T> {
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
pub(crate) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(WRITE_SECONDS))
}

/// Runs `work` in a transaction. The transaction is committed if `work` succeeds, and rolled back
/// otherwise.
pub(crate) fn write<T>(
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
pub(crate) fn within<T>(
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
