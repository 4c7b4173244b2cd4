//! Storage: facts become rows, and rows become facts. Nothing derived is stored, and nothing stored
//! is changed.
//!
//! There are two verbs. [`Store::append`] hands facts to the process's only writer, which commits
//! everything that waits in one transaction (group commit), and answers after the commit.
//! [`Store::snapshot`] opens one read transaction, from which everything in a reply comes.
//!
//! One SQL text with `$1` placeholders serves SQLite and PostgreSQL; only `connection` knows which
//! of them runs. Calls block, so they are made on a blocking thread.

mod append;
pub mod backup;
mod boundary;
mod bulk;
mod calls;
mod checkpoint;
mod ci;
mod claims;
mod clock_check;
mod cohort;
mod column;
mod compatibility;
mod connection;
mod content;
mod counts;
mod decisions;
mod deliveries;
mod dictionary;
mod dossier;
mod edit_texts;
mod edits;
mod erasure;
mod error;
mod export;
mod fact;
mod grants;
mod history;
mod id_list;
mod identity;
mod inferred;
mod jobs;
mod kind;
mod known_contents;
mod migrate;
mod model_call_id;
mod number;
mod observations;
mod organization;
mod outcomes;
mod outcomes_end;
mod owners;
mod packing;
mod pool;
mod postgres;
mod pull_requests;
mod pushes;
mod quarantine;
mod recall;
mod redelivery;
mod renames;
mod repetition;
mod report;
mod repositories;
mod retries;
mod row;
mod runtime;
mod session_claims;
mod session_pages;
mod sessions;
mod skeleton;
mod snapshot;
mod spelling;
mod sqlite;
mod statement;
#[cfg(test)]
mod suite;
mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod traces;
mod transaction;
mod uncounted;
mod url;
mod value;
mod witness;
mod writer;

pub use append::{Append, Counted, Delivery, Outcome};
pub use bulk::{BulkChange, BulkReceipt, CallFilter, CallTally};
pub use calls::{CallContents, CallRow, CallScalars, CallSide, ScanMeasure};
pub use clock_check::ClockFault;
pub use cohort::{Answer, CohortCall, CohortDecision, CohortEdit, CohortRetry, HOUR_MICROSECONDS};
#[cfg(any(test, feature = "testing"))]
pub use content::samples;
pub use content::{Encoded, Encoder};
pub use deliveries::{ObservedCommit, PullRequestHead};
pub use edit_texts::HeldText;
pub use erasure::{
    Compaction, Erased, ErasedAgain, ErasedFacts, ErasureForecast, ErasureOrder, ErasurePlan,
    ErasureRow, ErasureSubject, KeptErasures,
};
pub use error::{DriverError, Obstacle, StoreError};
pub use export::{StoredCall, StoredFact};
pub use grants::{
    ChangedGrant, GrantCandidates, GrantChange, GrantMark, GrantRow, GrantRule, GrantTarget,
    NoGrant, Reached,
};
pub use id_list::IdList;
pub use inferred::NamedCall;
pub use jobs::{
    ClaimedJob, DeferredNote, JobChoice, JobEnd, JobState, MirrorJobs, MirrorStatus,
    RefreshRequest, WaitingPush,
};
pub use migrate::SchemaState;
pub use outcomes::{CiOutcomePage, CiOutcomeRow};
pub use outcomes_end::OutcomesEnd;
pub use owners::OwnedId;
pub use quarantine::{LogEntry, NoTarget, QuarantineAction, QuarantineReceipt, WhenAbsent};
pub use report::{CohortOutcome, OutcomePlace, OutcomeWorkflow, UnsurePullRequest};
pub use session_claims::{ClaimKind, SessionClaims};
pub use session_pages::{ListedSession, SessionCondition, SessionPage};
pub use snapshot::{ErasureEnd, Revisions, Snapshot};
pub use url::DatabaseUrl;
pub use witness::Written;

use std::sync::Arc;
use std::time::Duration;

use svc_engine_fact::InferenceCall;
use svc_engine_fact::clock::Clock;
use svc_engine_fact::deadline::Deadline;
use svc_model::capture::CaptureTotals;
use svc_model::grant::{GrantAction, TokenName};
use svc_model::id::OrgId;
use svc_model::time::Instant as Received;

use self::append::PreparedDelivery;
use self::checkpoint::Checkpoint;
use self::clock_check::ClockCheck;
use self::connection::Connection;
use self::organization::Moments;
use self::pool::Pool;
use self::transaction::Transaction;
use self::uncounted::Uncounted;
use self::writer::Writer;

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
    writer: Writer,
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

    /// Appends a delivery and waits for the commit. Returns the outcome of each fact.
    ///
    /// # Errors
    ///
    /// If the delivery was not stored. Then nothing of it is acknowledged.
    pub async fn append(&self, delivery: impl Into<Delivery>) -> Result<Vec<Outcome>, StoreError> {
        let delivery: Delivery = delivery.into();
        let facts = &delivery.facts;
        let few = facts.len() <= INLINE_FACTS_MAX && facts.iter().all(Append::is_small);
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

    /// Appends a row to the quarantine log about the one fact with this id or unique id prefix, and
    /// waits for the commit. The row is written after all facts that were accepted before.
    ///
    /// # Errors
    ///
    /// If nothing was stored, or it is unknown whether it was.
    pub async fn quarantine(
        &self,
        entry: quarantine::NewEntry,
        absent: WhenAbsent,
    ) -> Result<Result<QuarantineReceipt, NoTarget>, StoreError> {
        let change = move |transaction: &mut Transaction<'_>| {
            quarantine::change(transaction, &entry, absent)
        };
        self.writer.run(change).await
    }

    /// Grants a token a target, unless it has it already, and waits for the commit.
    ///
    /// # Errors
    ///
    /// If nothing was stored, or it is unknown whether it was. The same holds for every change of
    /// grants.
    pub async fn add_grant(
        &self,
        token: TokenName,
        target: GrantTarget,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let add = move |transaction: &mut Transaction<'_>| {
            grants::add(transaction, &token, &target, &change)
        };
        self.writer.run(add).await
    }

    /// Ends the one grant with this id or unique id prefix, and waits for the commit.
    pub async fn remove_grant(
        &self,
        grant_id: String,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let remove = move |transaction: &mut Transaction<'_>| {
            grants::remove(transaction, &grant_id, &change)
        };
        self.writer.run(remove).await
    }

    /// Revokes or restores a token, and waits for the commit.
    pub async fn change_token(
        &self,
        token: TokenName,
        action: GrantAction,
        change: GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        let change_token = move |transaction: &mut Transaction<'_>| {
            grants::change_token(transaction, &token, action, &change)
        };
        self.writer.run(change_token).await
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
        self.writer.run(organization::count_alone).await
    }

    /// Does what [`Store::write_counts`] does, but fails whenever a fact would not be stored.
    ///
    /// # Errors
    ///
    /// If no fact would be stored. The counts then keep waiting.
    pub async fn write_counts_as_facts(&self) -> Result<(), StoreError> {
        self.writer.run(organization::count_as_facts).await
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
            && let Err(error) = self.writer.run_blocking(organization::count_alone)
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "store.counts_lost"
            );
        }
        self.writer.close();
    }
}

/// Returns the state of the schema.
///
/// # Errors
///
/// If the store cannot be reached, or this user cannot tell whether there is one.
pub fn schema_state(url: &DatabaseUrl) -> Result<SchemaState, StoreError> {
    if !url.is_there()? {
        return Ok(SchemaState::Absent);
    }
    migrate::state(&mut Connection::open(url)?)
}

/// Checks that the store can be written, as far as possible without writing.
///
/// # Errors
///
/// If it cannot be written, or cannot be reached.
pub fn check_writing(url: &DatabaseUrl) -> Result<(), StoreError> {
    Connection::open(url)?.check_writing()
}

/// Compares a time with the database server's, if it has a clock of its own.
///
/// # Errors
///
/// [`StoreError::Clock`] if they differ by more than a minute, or if the store cannot be reached.
pub fn check_clock(url: &DatabaseUrl, clock: &Clock) -> Result<(), StoreError> {
    let database = organization::database_now(&mut Connection::open(url)?)?;
    clock_check::compare(clock.now(), database).map_err(StoreError::Clock)
}

/// Brings the schema to head and returns its revision.
///
/// # Errors
///
/// If the store cannot be reached, its schema is of a later version, or an applied migration was
/// changed.
pub fn upgrade(url: &DatabaseUrl) -> Result<i64, StoreError> {
    let mut connection = Connection::open(url)?;
    migrate::upgrade(&mut connection)?;
    match migrate::state(&mut connection)? {
        SchemaState::AtHead(revision) => Ok(revision),
        state => Err(StoreError::Schema(state)),
    }
}

/// The facts of one organization for an operator's commands, without server, writer or cache.
#[derive(Debug)]
pub struct Ledger {
    org_id: OrgId,
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
        let deadline =
            Deadline::after(Duration::from_secs(svc_model::limit::READ_DEADLINE_SECONDS));
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
        let organizations = organization::all(snapshot.connection()?)?;
        Ok(if organizations.contains(&self.org_id) {
            Vec::new()
        } else {
            organizations
        })
    }

    /// Appends to the quarantine log.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the store cannot be reached.
    pub fn quarantine(
        &self,
        entries: &[quarantine::NewEntry],
    ) -> Result<Vec<QuarantineReceipt>, StoreError> {
        self.write(|transaction| quarantine::append(transaction, entries))
    }

    /// Appends a row to the quarantine log about the one fact with this id or unique id prefix.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`].
    pub fn quarantine_one(
        &self,
        entry: &quarantine::NewEntry,
        absent: WhenAbsent,
    ) -> Result<Result<QuarantineReceipt, NoTarget>, StoreError> {
        self.write(|transaction| quarantine::change(transaction, entry, absent))
    }

    /// Quarantines or releases the selected calls in one transaction. A call that is already in
    /// that state gets no row.
    ///
    /// # Errors
    ///
    /// If the schema is not at head, or the store cannot be reached.
    pub fn quarantine_calls(
        &self,
        filter: &CallFilter,
        change: &BulkChange,
        fresh_id: impl FnMut() -> uuid::Uuid,
    ) -> Result<BulkReceipt, StoreError> {
        self.write(|transaction| bulk::change(transaction, filter, change, fresh_id))
    }

    /// Grants a token a target, unless it has it already.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`]. The same holds for every change of grants.
    pub fn add_grant(
        &self,
        token: &TokenName,
        target: &GrantTarget,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| grants::add(transaction, token, target, change))
    }

    /// Ends the one grant with this id or unique id prefix.
    pub fn remove_grant(
        &self,
        grant_id: &str,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| grants::remove(transaction, grant_id, change))
    }

    /// Revokes or restores a token.
    pub fn change_token(
        &self,
        token: &TokenName,
        action: GrantAction,
        change: &GrantChange,
    ) -> Result<Result<ChangedGrant, NoGrant>, StoreError> {
        self.write(|transaction| grants::change_token(transaction, token, action, change))
    }

    /// Forgets a mirror that is removed on purpose, unless a refresh of it still waits. Returns
    /// whether it was forgotten.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`].
    pub fn forget_mirror(&self, lifetime: &svc_engine_fact::Lifetime) -> Result<bool, StoreError> {
        self.write(|transaction| jobs::forget(transaction, lifetime))
    }

    /// Opens a connection for writing, if the schema is at head.
    fn writing_at_head(&self) -> Result<Connection, StoreError> {
        let mut connection = self.readers.writing()?;
        match migrate::state(&mut connection)? {
            SchemaState::AtHead(_) => Ok(connection),
            state => Err(StoreError::Schema(state)),
        }
    }

    /// Runs a transaction over its own connection, if the schema is at head.
    fn write<T>(
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

pub use quarantine::NewEntry as NewQuarantineEntry;
