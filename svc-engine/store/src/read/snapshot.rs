//! A read transaction. Everything in a reply comes from a single one.
//!
//! Reads select from the views `visible_…`; a statement that names a table itself includes
//! quarantined facts. Absent, foreign and quarantined are the same `None`. A second connection sees
//! the same state: PostgreSQL lends the snapshot, and for SQLite it is certain because nobody
//! committed in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::threads;
use svc_model::id::OrgId;
use uuid::Uuid;

use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::migrate;
use crate::sql::pool::{Lease, Pool};
use crate::sql::value::{Row, Value};

/// A read transaction over the facts of one organization, stopped at its deadline.
#[derive(Debug)]
pub struct Snapshot<'s> {
    pub(crate) org_id: &'s OrgId,
    lease: Lease<'s>,
    deadline: Deadline,
    revisions: Option<Revisions>,
    /// A second connection that sees the same state, if there is one and nobody is using it.
    second: Arc<Mutex<Option<Lease<'s>>>>,
}

/// How far the logs had come that change answers about facts already stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    /// The high-water mark of the quarantine log; 0 when it is empty.
    pub quarantine: u64,
    /// The end of the erasure log.
    pub erasure: ErasureEnd,
}

/// The end of the erasure log. No two states of the log have the same end, even if the database was
/// set back and then continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureEnd {
    /// The revision of the last row; 0 when the log is empty.
    pub revision: u64,
    /// The id of that row's erasure.
    pub erasure_id: Option<Uuid>,
}

impl Revisions {
    /// Reads the revisions from a row of [`revisions!`].
    pub(crate) fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            quarantine: row.count(0)?,
            erasure: ErasureEnd {
                revision: row.count(1)?,
                erasure_id: row
                    .optional_text(2)?
                    .as_deref()
                    .map(erasure_id)
                    .transpose()?,
            },
        })
    }
}

fn erasure_id(text: &str) -> Result<Uuid, StoreError> {
    Uuid::parse_str(text).map_err(|_| corrupt("erasure_log", "erasure_id"))
}

/// The index of the first further column of [`revisions!`].
pub(crate) const AFTER_REVISIONS: usize = 3;

/// Selects how far the logs have come, and further columns: see [`Snapshot::read_revisions`].
macro_rules! revisions {
    ($($more:expr),*) => {
        concat!(
            "SELECT
            (SELECT COALESCE(MAX(quarantine_revision), 0) FROM quarantine_log WHERE org_id = $1),
            (SELECT COALESCE(MAX(erasure_revision), 0) FROM erasure_log WHERE (org_id || '') = $1),
            (SELECT erasure_id FROM erasure_log WHERE (org_id || '') = $1
                ORDER BY erasure_revision DESC LIMIT 1)",
            $($more),*
        )
    };
}
pub(crate) use revisions;

/// A further column: the id of the last row of the quarantine log.
macro_rules! quarantine_end {
    () => {
        ", (SELECT quarantine_id FROM quarantine_log WHERE org_id = $1
            ORDER BY quarantine_revision DESC LIMIT 1)"
    };
}
pub(crate) use quarantine_end;

const REVISIONS: &str = revisions!();

impl<'s> Snapshot<'s> {
    pub(crate) fn open(
        pool: &'s Pool,
        org_id: &'s OrgId,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            org_id,
            lease: pool.begin_read(deadline)?,
            deadline: deadline.clone(),
            revisions: None,
            second: Arc::default(),
        })
    }

    /// Opens a snapshot over two connections, if two are available: see [`both`](Self::both).
    pub(crate) fn open_twice(
        pool: &'s Pool,
        org_id: &'s OrgId,
        deadline: &Deadline,
    ) -> Result<Self, StoreError> {
        let (lease, second) = pool.begin_read_twice(deadline)?;
        Ok(Self {
            org_id,
            lease,
            deadline: deadline.clone(),
            revisions: None,
            second: Arc::new(Mutex::new(second)),
        })
    }

    /// Reads two things at once, each over its own connection to the same state, or one after the
    /// other if only one connection is available.
    pub fn both<A, B: Send>(
        &mut self,
        one: impl FnOnce(&mut Self) -> A,
        other: impl FnOnce(&mut Self) -> B + Send,
    ) -> (A, B) {
        let Some(lease) = self.second().take() else {
            return (one(self), other(self));
        };
        let mut beside = Self {
            org_id: self.org_id,
            lease,
            deadline: self.deadline.clone(),
            revisions: self.revisions,
            second: Arc::clone(&self.second),
        };
        let other = move || {
            let read = other(&mut beside);
            let Self { lease, second, .. } = beside;
            *second.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
            read
        };
        threads::both(|| one(self), other)
    }

    fn second(&self) -> MutexGuard<'_, Option<Lease<'s>>> {
        self.second.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the organization.
    pub const fn org_id(&self) -> &'s OrgId {
        self.org_id
    }

    /// Fails once the deadline has passed or the read was cancelled. Long derivations call this
    /// between steps.
    ///
    /// # Errors
    ///
    /// [`StoreError::Deadline`].
    pub fn check_deadline(&self) -> Result<(), StoreError> {
        Ok(self.deadline.check()?)
    }

    /// Returns the deadline of the read.
    pub const fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Returns the connection unless the deadline has passed, so that a read of many statements
    /// begins none after it.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        self.check_deadline()?;
        Ok(&mut self.lease)
    }

    /// Returns how far the quarantine log and the erasure log had come. The store is asked only
    /// once.
    ///
    /// # Errors
    ///
    /// If the store gives no answer before the deadline. This holds for every method here.
    pub fn revisions(&mut self) -> Result<Revisions, StoreError> {
        if let Some(revisions) = self.revisions {
            return Ok(revisions);
        }
        let keys = [self.org_id.as_str().into()];
        self.read_revisions(REVISIONS, &keys, |_| Ok(()))?;
        Ok(self.revisions.unwrap_or_default())
    }

    /// Runs a statement of [`revisions!`], and returns what its further columns say.
    pub(crate) fn read_revisions<T: Default>(
        &mut self,
        statement: &'static str,
        keys: &[Value<'_>],
        more: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = self
            .connection()?
            .first(statement, keys, |row| Ok((Revisions::of(row)?, more(row)?)))?;
        let (revisions, more) = found.unwrap_or_default();
        self.learn_revisions(revisions);
        Ok(more)
    }

    /// Keeps the revisions that a statement of [`revisions!`] read.
    pub(crate) const fn learn_revisions(&mut self, revisions: Revisions) {
        self.revisions = Some(revisions);
    }

    /// Returns the high-water mark of the quarantine log; 0 when it is empty.
    pub fn quarantine_revision(&mut self) -> Result<u64, StoreError> {
        Ok(self.revisions()?.quarantine)
    }

    /// Returns whether the schema has a table. An older schema may lack one.
    pub fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        migrate::has_table(self.connection()?, name)
    }
}
