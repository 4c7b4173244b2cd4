//! The store of a running service: one writer, a pool of readers, and what the writer remembers.

use std::sync::Arc;

use svc_engine_fact::clock::Clock;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::{ContinuedInput, InferenceCall};
use svc_model::capture::CaptureTotals;
use svc_model::id::OrgId;
use svc_model::time::Instant as Received;

use super::append::{Append, Delivery, PreparedDelivery};
use super::clock_check::ClockCheck;
use super::content::{Encoded, Encoder};
use super::outcome::Outcome;
use super::transaction::{self, Moments};
use super::uncounted::Uncounted;
use super::writer::Writer;
use crate::read::snapshot::Snapshot;
use crate::sql::checkpoint::Checkpoint;
use crate::sql::connection::Connection;
use crate::sql::error::{Obstacle, SchemaState, StoreError};
use crate::sql::migrate;
use crate::sql::pool::Pool;
use crate::sql::url::DatabaseUrl;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The database.
    pub url: DatabaseUrl,
    /// The organization of the facts.
    pub org_id: OrgId,
    /// Whether to upgrade an absent or older schema.
    pub migrate: bool,
    /// How many reads may have a snapshot open at once.
    pub readers: usize,
}

/// A delivery of more facts is prepared on a thread that may block, so that it delays no other
/// request.
const INLINE_FACTS_MAX: usize = 16;

/// The facts of one organization.
#[derive(Debug)]
pub struct Store {
    url: DatabaseUrl,
    org_id: OrgId,
    readers: Pool,
    pub(crate) writer: Writer,
    encoder: Encoder,
    uncounted: Arc<Uncounted>,
    clock: Option<Arc<ClockCheck>>,
    _checkpoint: Option<Checkpoint>,
}

impl Store {
    /// Opens the store: connects, upgrades the schema if configured, and starts the writer.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached, or its schema is not at head.
    pub fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        Self::open_by(config, &Clock::system())
    }

    /// Opens the store. Facts are captured while this clock, by which they are received, can be
    /// believed.
    ///
    /// # Errors
    ///
    /// See [`Store::open`].
    pub fn open_by(config: &StoreConfig, clock: &Clock) -> Result<Self, StoreError> {
        Self::open_with(config, Moments::default(), Some(clock))
    }

    /// Opens a store that keeps facts' capture times as given, even if they are out of order.
    ///
    /// # Errors
    ///
    /// See [`Store::open`].
    #[cfg(any(test, feature = "testing"))]
    pub fn open_with_given_moments(config: &StoreConfig) -> Result<Self, StoreError> {
        Self::open_with(config, Moments::Given, None)
    }

    fn open_with(
        config: &StoreConfig,
        moments: Moments,
        clock: Option<&Clock>,
    ) -> Result<Self, StoreError> {
        let clock = clock.map(|clock| Arc::new(ClockCheck::new(clock.clone())));
        let mut connection = Connection::open(&config.url)?;
        connection.check_session()?;
        // PostgreSQL may become writable at any time. A connection that opened a file for reading
        // never does.
        let obstacle = match (connection.check_writing(), &config.url) {
            (
                Err(error @ (StoreError::ReadOnly(_) | StoreError::Standby)),
                DatabaseUrl::Postgres(_),
            ) => error.obstacle(),
            (checked, _) => {
                checked?;
                None
            }
        };
        if config.migrate {
            let upgraded = migrate::upgrade(&mut connection);
            upgraded.map_err(|error| connection.explained(error))?;
        }
        match migrate::state(&mut connection)? {
            SchemaState::AtHead(_) => {}
            state => return Err(StoreError::Schema(state)),
        }
        if let Some(obstacle) = obstacle {
            tracing::warn!(mend = obstacle.mend(), "store.only_read");
        }
        let encoder = Encoder::default();
        let checkpoint = match (&config.url, connection.turn()) {
            (DatabaseUrl::Sqlite(path), Some(turn)) => Some(Checkpoint::start(path, turn)?),
            _ => None,
        };
        let uncounted = Arc::new(Uncounted::default());
        let writer = Writer::start(
            connection,
            config.org_id.clone(),
            (moments, clock.clone()),
            encoder.clone(),
            Arc::clone(&uncounted),
            obstacle,
        )?;
        Ok(Self {
            url: config.url.clone(),
            org_id: config.org_id.clone(),
            readers: Pool::new(config.url.clone(), config.readers),
            writer,
            encoder,
            uncounted,
            clock,
            _checkpoint: checkpoint,
        })
    }

    /// Prepares a call for storage: encodes its messages and its raw payload. This is the costly
    /// part of an append and runs on the caller's thread.
    pub fn encode(&self, call: InferenceCall, received_at: Received) -> Encoded {
        self.encoder.encode(call, received_at)
    }

    /// Prepares a call whose input begins with all that another call sent and received.
    pub fn encode_continued(
        &self,
        call: InferenceCall,
        continued: Option<ContinuedInput>,
        received_at: Received,
    ) -> Encoded {
        self.encoder.encode_continued(call, continued, received_at)
    }

    /// Appends a delivery and waits for the commit. Returns the outcome of each fact.
    ///
    /// # Errors
    ///
    /// If the delivery was not stored. Then nothing of it is acknowledged.
    pub async fn append(&self, delivery: impl Into<Delivery>) -> Result<Vec<Outcome>, StoreError> {
        let delivery: Delivery = delivery.into();
        let facts = &delivery.facts;
        let few = facts.len() <= INLINE_FACTS_MAX
            && facts.iter().all(Append::is_small)
            && delivery.halves.is_empty();
        let org_id = self.org_id.clone();
        let prepare = move || -> PreparedDelivery { delivery.prepare(&org_id) };
        let prepared = if few {
            prepare()
        } else {
            let prepared = tokio::task::spawn_blocking(prepare).await;
            prepared.map_err(|_| StoreError::NotStored)?
        };
        self.writer.append(prepared).await
    }

    /// Appends a delivery and waits for the commit, on a thread that may block.
    ///
    /// # Errors
    ///
    /// If the delivery was not stored. Then nothing of it is acknowledged.
    pub fn append_blocking(
        &self,
        delivery: impl Into<Delivery>,
    ) -> Result<Vec<Outcome>, StoreError> {
        let prepared = delivery.into().prepare(&self.org_id);
        self.writer.append_blocking(prepared)
    }

    /// Opens a snapshot that is stopped at the deadline.
    ///
    /// # Errors
    ///
    /// If the store cannot be reached before the deadline.
    pub fn snapshot(&self, deadline: &Deadline) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::open(&self.readers, &self.org_id, deadline)
    }

    /// Opens a snapshot that is stopped at the deadline and reads over two connections if two are
    /// free: see [`Snapshot::both`].
    ///
    /// # Errors
    ///
    /// If the store cannot be reached before the deadline.
    pub fn snapshot_of_two(&self, deadline: &Deadline) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::open_twice(&self.readers, &self.org_id, deadline)
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Returns the organization.
    pub fn org_id(&self) -> &OrgId {
        &self.org_id
    }

    /// Returns whether the writer is running. Without it, nothing is stored until the process
    /// restarts.
    pub fn is_writing(&self) -> bool {
        self.writer.is_running()
    }

    /// Returns why the last write was not stored, if only the database's operator can change that.
    pub fn obstacle(&self) -> Option<Obstacle> {
        self.writer.obstacle()
    }

    /// Counts deliveries that stored nothing. The counts are written with the next stored facts, or
    /// by [`Store::write_counts`].
    pub fn count(&self, totals: &CaptureTotals) {
        self.uncounted.add(totals);
    }

    /// Returns whether there are counts that are not in the store yet.
    pub fn has_uncounted(&self) -> bool {
        !self.uncounted.is_empty()
    }

    /// Returns the counts that are not in the store yet, except those that the writer is writing.
    pub fn uncounted(&self) -> CaptureTotals {
        self.uncounted.totals()
    }

    /// Writes the counts that are not in the store yet.
    ///
    /// # Errors
    ///
    /// If they were not written. They then keep waiting.
    pub async fn write_counts(&self) -> Result<(), StoreError> {
        if self.uncounted.is_empty() {
            return Ok(());
        }
        self.writer.run(transaction::count_alone).await
    }

    /// Does what [`Store::write_counts`] does, but fails whenever a fact would not be stored.
    ///
    /// # Errors
    ///
    /// If no fact would be stored. The counts then keep waiting.
    pub async fn write_counts_as_facts(&self) -> Result<(), StoreError> {
        self.writer.run(transaction::count_as_facts).await
    }

    /// Looks at the clock, so that it is known when it was set even if nothing arrives.
    pub fn look_at_clock(&self) {
        if let Some(clock) = &self.clock {
            clock.look();
        }
    }

    /// Forgets which contents are stored, so the next deliveries look them up again.
    pub fn forget_contents(&self) {
        self.encoder.known().forget();
    }

    /// Stores what was accepted, counts included, and stops the writer.
    pub fn close(&self) {
        if !self.uncounted.is_empty()
            && let Err(error) = self.writer.run_blocking(transaction::count_alone)
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "store.counts_lost"
            );
        }
        self.writer.close();
    }
}
