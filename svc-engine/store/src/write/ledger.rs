//! The store as an operator's commands use it.

use std::time::Duration;

use svc_engine_fact::deadline::Deadline;
use svc_model::id::OrgId;
use svc_model::limit::READ_DEADLINE_SECONDS;

use super::transaction::{self, Moments, Transaction};
use crate::read::organizations;
use crate::read::snapshot::Snapshot;
use crate::sql::check::schema_state;
use crate::sql::connection::Connection;
use crate::sql::error::{SchemaState, StoreError};
use crate::sql::migrate;
use crate::sql::pool::Pool;
use crate::sql::url::DatabaseUrl;

/// The facts of one organization for an operator's commands, without server, writer or cache.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) org_id: OrgId,
    readers: Pool,
}

impl Ledger {
    /// Opens the ledger of an existing store.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    pub fn open(url: &DatabaseUrl, org_id: OrgId) -> Result<Self, StoreError> {
        match schema_state(url)? {
            SchemaState::Absent => return Err(StoreError::Schema(SchemaState::Absent)),
            SchemaState::Behind(_) | SchemaState::AtHead(_) | SchemaState::Ahead(_) => {}
        }
        Ok(Self {
            org_id,
            readers: Pool::new(url.clone(), 2),
        })
    }

    /// Opens a snapshot.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        let deadline = Deadline::after(Duration::from_secs(READ_DEADLINE_SECONDS));
        self.snapshot_until(&deadline)
    }

    /// Opens a snapshot for a read with this deadline.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    pub fn snapshot_until(&self, deadline: &Deadline) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::open(&self.readers, &self.org_id, deadline)
    }

    /// Opens a snapshot that reads over two connections if two are free: see [`Snapshot::both`].
    ///
    /// # Errors
    ///
    /// If the store cannot be reached.
    pub fn snapshot_of_two(&self, deadline: &Deadline) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::open_twice(&self.readers, &self.org_id, deadline)
    }

    /// Returns the store's organizations if this ledger's is not among them, because nothing was
    /// ever stored for it. Otherwise returns none.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached, or its schema is not at head.
    pub fn organizations_instead(&self) -> Result<Vec<OrgId>, StoreError> {
        let mut snapshot = self.snapshot()?;
        let organizations = organizations::all(snapshot.connection()?)?;
        Ok(if organizations.contains(&self.org_id) {
            Vec::new()
        } else {
            organizations
        })
    }

    /// Opens a connection for writing, if the schema is at head.
    pub(crate) fn writing_at_head(&self) -> Result<Connection, StoreError> {
        let mut connection = self.readers.writing()?;
        match migrate::state(&mut connection)? {
            SchemaState::AtHead(_) => Ok(connection),
            state => Err(StoreError::Schema(state)),
        }
    }

    /// Runs a transaction over its own connection, if the schema is at head.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.writing_at_head()?;
        let moments = Moments::default();
        let written = transaction::write(
            &mut connection,
            &self.org_id,
            moments,
            &transaction::deadline(),
            work,
        );
        let written = written.map_err(StoreError::from);
        let (result, _) = written.map_err(|error| connection.explained(error))?;
        Ok(result)
    }
}
