//! Claims a job and keeps the claim.

use std::sync::Arc;
use std::time::Duration;

use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Deadline;
use svc_model::limit::READ_DEADLINE_SECONDS;
use svc_model::time::Instant;
use uuid::Uuid;

use super::schedule;
use crate::pack::column::Columns;
use crate::read::snapshot::Snapshot;
use crate::sql::connection::Sql;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::Row;
use crate::write::store::Store;
use crate::write::transaction::Transaction;

/// The closed reason for a job that cannot be read.
const UNREADABLE: &str = "store_failed";

/// Whether any job is due. This is asked often, so it is read outside a transaction.
const ANY_DUE: &str = "SELECT 1 FROM mirror_jobs
    WHERE org_id = $1 AND due_at_us <= $2 AND (lease_until_us IS NULL OR lease_until_us <= $2)
    LIMIT 1";
/// The number of failures in a row. A claim counts its own attempt as a failure until it ends.
macro_rules! failures {
    () => {
        "CASE WHEN holder IS NULL OR attempts = 0 THEN attempts ELSE attempts - 1 END"
    };
}
pub(crate) use failures;
macro_rules! due {
    ($lock:literal) => {
        concat!(
            "SELECT mirror, ",
            failures!(),
            ", notes FROM mirror_jobs
            WHERE org_id = $1 AND due_at_us <= $2
                AND (lease_until_us IS NULL OR lease_until_us <= $2)
                AND (CAST($3 AS BIGINT) = 1 OR last_failure_at_us IS NULL
                    OR last_failure_at_us <= last_success_at_us)
            ORDER BY due_at_us, mirror LIMIT 1",
            $lock
        )
    };
}
/// The job that has been due longest. Servers that ask at once get different jobs.
const NEXT: Sql = Sql {
    sqlite: due!(""),
    postgres: due!(" FOR UPDATE SKIP LOCKED"),
};
macro_rules! named {
    ($lock:literal) => {
        concat!(
            "SELECT mirror, ",
            failures!(),
            ", notes FROM mirror_jobs
            WHERE org_id = $1 AND mirror = $3 AND due_at_us IS NOT NULL
                AND (lease_until_us IS NULL OR lease_until_us <= $2)",
            $lock
        )
    };
}
/// The job of one mirror, if nobody is working on it.
const NAMED: Sql = Sql {
    sqlite: named!(""),
    postgres: named!(" FOR UPDATE"),
};
const CLAIM: &str = "UPDATE mirror_jobs
    SET holder = $3, lease_until_us = $4, started_at_us = $5, attempts = $6
    WHERE org_id = $1 AND mirror = $2";
/// When the next job that is not due yet becomes due.
const NEXT_DUE: &str = "SELECT due_at_us FROM mirror_jobs
    WHERE org_id = $1 AND due_at_us > $2 ORDER BY due_at_us LIMIT 1";
const RENEW: &str = "UPDATE mirror_jobs SET lease_until_us = $4
    WHERE org_id = $1 AND mirror = $2 AND holder = $3";
/// A job that cannot be read cannot be done, and must not block all other jobs forever.
const SET_ASIDE: &str = "UPDATE mirror_jobs
    SET due_at_us = NULL, holder = NULL, lease_until_us = NULL, last_failure_at_us = $3,
        last_failure = $4,
        attempts = CASE WHEN attempts > 0 THEN attempts ELSE 1 END
    WHERE org_id = $1 AND mirror = $2";

/// The jobs of a store. Reads use snapshots; changes go through the store's writer. Calls block.
#[derive(Clone, Debug)]
pub struct MirrorJobs(pub(crate) Arc<Store>);

/// Which jobs a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobChoice {
    /// Any job.
    Any,
    /// Jobs whose last attempt did not fail, or that were never attempted.
    Sound,
}

/// A job that nobody else works on until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The repository.
    pub lifetime: Lifetime,
    /// The number of failures in a row before this attempt.
    pub attempts: u64,
    /// The last success's [`JobEnd::Succeeded`](super::JobEnd::Succeeded) `notes`, or empty before
    /// the first.
    pub notes: String,
    pub(crate) holder: String,
}

impl MirrorJobs {
    /// Creates access to the jobs of a store.
    pub fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// Claims the job that has been due longest, of those that `choice` allows, if one is due.
    ///
    /// # Errors
    ///
    /// If the store does not answer. This holds for every method here.
    pub fn claim(
        &self,
        choice: JobChoice,
        now: Instant,
        lease_until: Instant,
        holder: Uuid,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let any_due = self.read(|snapshot| {
            let keys = [snapshot.org_id.as_str().into(), now.into()];
            snapshot.connection()?.first(ANY_DUE, &keys, |_| Ok(()))
        })?;
        if any_due.is_none() {
            return Ok(None);
        }
        self.0.writer.run_blocking(move |transaction| {
            let next = transaction.connection.text(NEXT);
            let any = choice == JobChoice::Any;
            let keys = [transaction.org_id.as_str().into(), now.into(), any.into()];
            while let Some((mirror, job)) = transaction.connection.first(next, &keys, read_job)? {
                match job {
                    Ok(found) => return take(transaction, found, now, lease_until, holder),
                    Err(error) => set_aside(transaction, &mirror, now, &error)?,
                }
            }
            Ok(None)
        })
    }

    /// Returns when the next job that is not due yet becomes due.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn next_due(&self, now: Instant) -> Result<Option<Instant>, StoreError> {
        self.read(|snapshot| {
            let keys = [snapshot.org_id.as_str().into(), now.into()];
            snapshot.connection()?.first(NEXT_DUE, &keys, |row| {
                Columns::of(row, "mirror_jobs", &["due_at_us"]).next()
            })
        })
    }

    /// Makes the mirror of a repository due at a moment, unless it is due earlier. Returns whether
    /// there is a push to refresh it from.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn make_due(
        &self,
        lifetime: &Lifetime,
        now: Instant,
        due_at: Instant,
    ) -> Result<bool, StoreError> {
        let lifetime = lifetime.clone();
        self.0
            .writer
            .run_blocking(move |connection| schedule::make_due(connection, &lifetime, now, due_at))
    }

    /// Makes the mirror of a repository due and claims its job, unless another server is working on
    /// it or there is no push to refresh it from.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn claim_now(
        &self,
        lifetime: &Lifetime,
        now: Instant,
        lease_until: Instant,
        holder: Uuid,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let lifetime = lifetime.clone();
        self.0.writer.run_blocking(move |transaction| {
            if !schedule::make_due(transaction, &lifetime, now, now)? {
                return Ok(None);
            }
            let mirror = lifetime.to_string();
            let keys = [
                transaction.org_id.as_str().into(),
                now.into(),
                mirror.as_str().into(),
            ];
            let named = transaction.connection.text(NAMED);
            match transaction.connection.first(named, &keys, read_job)? {
                Some((_, job)) => take(transaction, job?, now, lease_until, holder),
                None => Ok(None),
            }
        })
    }

    /// Extends the lease of a claimed job. Returns false if another server has taken the job.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn renew(&self, job: &ClaimedJob, lease_until: Instant) -> Result<bool, StoreError> {
        let (mirror, holder) = (job.lifetime.to_string(), job.holder.clone());
        self.0.writer.run_blocking(move |transaction| {
            let values = [
                transaction.org_id.as_str().into(),
                mirror.as_str().into(),
                holder.as_str().into(),
                lease_until.into(),
            ];
            Ok(transaction.connection.execute(RENEW, &values)? > 0)
        })
    }

    /// Reads from a new snapshot.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let deadline = Deadline::after(Duration::from_secs(READ_DEADLINE_SECONDS));
        read(&mut self.0.snapshot(&deadline)?)
    }
}

/// A due job: its repository, the number of failures in a row, and its notes.
type DueJob = (Lifetime, u64, String);

/// Reads the key of a job, and the rest if it can be read.
fn read_job(row: &Row<'_>) -> Result<(String, Result<DueJob, StoreError>), StoreError> {
    let mirror = row.text(0)?;
    let lifetime = Lifetime::parse(&mirror);
    let job = || {
        Ok((
            lifetime.ok_or(corrupt("mirror_jobs", "its repository"))?,
            row.count(1)?,
            row.text(2)?,
        ))
    };
    Ok((mirror, job()))
}

/// Gives up a job that cannot be read.
fn set_aside(
    transaction: &mut Transaction<'_>,
    mirror: &str,
    now: Instant,
    error: &StoreError,
) -> Result<(), StoreError> {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "mirror.job_set_aside"
    );
    let values = [
        transaction.org_id.as_str().into(),
        mirror.into(),
        now.into(),
        UNREADABLE.into(),
    ];
    transaction.connection.execute(SET_ASIDE, &values).map(drop)
}

fn take(
    transaction: &mut Transaction<'_>,
    (lifetime, attempts, notes): DueJob,
    now: Instant,
    lease_until: Instant,
    holder: Uuid,
) -> Result<Option<ClaimedJob>, StoreError> {
    let (mirror, holder) = (lifetime.to_string(), holder.to_string());
    let lease = [
        transaction.org_id.as_str().into(),
        mirror.as_str().into(),
        holder.as_str().into(),
        lease_until.into(),
        now.into(),
        i64::try_from(attempts + 1).unwrap_or(i64::MAX).into(),
    ];
    transaction.connection.execute(CLAIM, &lease)?;
    Ok(Some(ClaimedJob {
        lifetime,
        attempts,
        notes,
        holder,
    }))
}
