//! Ends a job.

use std::sync::Arc;

use svc_engine_fact::Lifetime;
use svc_model::time::Instant;

use super::schedule::WAITING;
use super::{ClaimedJob, DeferredNote, MirrorJobs, WaitingPush};
use crate::sql::connection::{Connection, Sql};
use crate::sql::error::StoreError;
use crate::write::ledger::Ledger;
use crate::write::transaction::Transaction;

/// Locks the job, so that later reads see every earlier delivery. `attempts` is 0 if anything was
/// delivered since the job was claimed.
const HELD: Sql = Sql {
    sqlite: "SELECT attempts FROM mirror_jobs WHERE org_id = $1 AND mirror = $2 AND holder = $3",
    postgres: "SELECT attempts FROM mirror_jobs
        WHERE org_id = $1 AND mirror = $2 AND holder = $3 FOR UPDATE",
};
const FORGET_DELIVERY: &str = "DELETE FROM mirror_deliveries
    WHERE org_id = $1 AND mirror = $2 AND push_id = $3 AND delivered_at_us = $4";
const DEFER: &str = "INSERT INTO mirror_deferred_notes
    (org_id, mirror, notes_ref, commit_sha, deferred_at_us) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";
const FORGET_DEFERRED: &str = "DELETE FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 AND notes_ref = $3 AND commit_sha = $4";
/// Deletes a job if it is not due. A delivery in the meantime keeps it.
const FORGET: &str = "DELETE FROM mirror_jobs
    WHERE org_id = $1 AND mirror = $2 AND due_at_us IS NULL";
const FORGET_ALL_DEFERRED: &str =
    "DELETE FROM mirror_deferred_notes WHERE org_id = $1 AND mirror = $2";
/// The oldest are removed. A commit that no branch has reached for long does not belong to the
/// repository.
const TRIM_DEFERRED: &str = "DELETE FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 AND (notes_ref, commit_sha) IN (
        SELECT notes_ref, commit_sha FROM mirror_deferred_notes
        WHERE org_id = $1 AND mirror = $2
        ORDER BY deferred_at_us DESC, commit_sha LIMIT $4 OFFSET $3)";
/// Clocks differ, so times are adjusted: a success is not before an earlier failure, and a failure
/// is after an earlier success.
const SUCCEEDED: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL, attempts = 0, due_at_us = $3,
        last_success_at_us = CASE WHEN last_failure_at_us > $4 THEN last_failure_at_us ELSE $4 END,
        notes = $5
    WHERE org_id = $1 AND mirror = $2";
const RELEASE: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL, attempts = $3, due_at_us = $4
    WHERE org_id = $1 AND mirror = $2";
const REMARK: &str = "UPDATE mirror_jobs
    SET last_failure = $4, last_failure_at_us =
        CASE WHEN last_success_at_us >= $3 THEN last_success_at_us + 1 ELSE $3 END
    WHERE org_id = $1 AND mirror = $2";
const PUT_BACK: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL,
        attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END,
        due_at_us = CASE WHEN due_at_us > $3 THEN due_at_us ELSE $3 END
    WHERE org_id = $1 AND mirror = $2";

/// How a job ends.
#[derive(Clone, Debug)]
pub enum JobEnd {
    /// The mirror was fetched and its notes observed.
    Succeeded {
        /// The pushes that it looked at.
        done: Vec<WaitingPush>,
        /// The state that the next refresh needs.
        notes: String,
        /// Deferred notes that no longer wait.
        reached: Vec<DeferredNote>,
        /// A closed reason that the operator should know despite the success.
        remark: Option<&'static str>,
        /// Whether more work is left to do at once.
        more: bool,
    },
    /// The mirror may not be fetched for these pushes, however often it is tried.
    Declined {
        /// The pushes.
        done: Vec<WaitingPush>,
        /// The closed reason, if the operator should know it.
        reason: Option<&'static str>,
    },
    /// The attempt failed but a later one may succeed. The pushes stay.
    Failed {
        /// The closed reason.
        reason: &'static str,
        /// When to try again. Without it, nothing is tried until something new is delivered.
        retry_at: Option<Instant>,
    },
    /// The job was not really attempted.
    PutBack {
        /// When it may be claimed again.
        due_at: Instant,
        /// The closed reason, if the operator should know it.
        reason: Option<&'static str>,
    },
}

impl MirrorJobs {
    /// Stores notes that wait for a branch to reach their commits. Each transaction stores a few,
    /// so that other writers do not wait for all. Returns how many waiting notes were deleted
    /// because there were more than `waiting_max`.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn defer(
        &self,
        lifetime: &Lifetime,
        notes: &[DeferredNote],
        waiting_max: usize,
        now: Instant,
    ) -> Result<u64, StoreError> {
        const NOTES_PER_TRANSACTION: usize = 500;
        if notes.is_empty() {
            return Ok(0);
        }
        let mirror: Arc<str> = lifetime.to_string().into();
        for notes in notes.chunks(NOTES_PER_TRANSACTION) {
            let (mirror, notes) = (Arc::clone(&mirror), notes.to_vec());
            self.0.writer.run_blocking(move |transaction| {
                let org_id = transaction.org_id.as_str();
                defer(transaction.connection, org_id, &mirror, &notes, now)
            })?;
        }
        let waiting_max = i64::try_from(waiting_max).unwrap_or(i64::MAX);
        self.0.writer.run_blocking(move |transaction| {
            let values = [
                transaction.org_id.as_str().into(),
                (*mirror).into(),
                waiting_max.into(),
                i64::MAX.into(),
            ];
            transaction.connection.execute(TRIM_DEFERRED, &values)
        })
    }

    /// Ends a job. Returns false and writes nothing if the lease had ended and another server has
    /// taken the job.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn end(&self, job: &ClaimedJob, end: JobEnd, now: Instant) -> Result<bool, StoreError> {
        let (job, mirror) = (job.clone(), job.lifetime.to_string());
        self.0.writer.run_blocking(move |transaction| {
            Ending {
                org_id: transaction.org_id.as_str(),
                connection: transaction.connection,
                mirror: &mirror,
                now,
            }
            .write(&job, &end)
        })
    }
}

/// Deletes the job of a mirror that is removed on purpose, so that the store does not list a mirror
/// that is gone. Returns whether a job was deleted.
pub(crate) fn forget(
    transaction: &mut Transaction<'_>,
    lifetime: &Lifetime,
) -> Result<bool, StoreError> {
    let mirror = lifetime.to_string();
    let keys = [transaction.org_id.as_str().into(), mirror.as_str().into()];
    if transaction.connection.execute(FORGET, &keys)? == 0 {
        return Ok(false);
    }
    // If the mirror is fetched again, its notes are read again.
    transaction.connection.execute(FORGET_ALL_DEFERRED, &keys)?;
    Ok(true)
}

/// The transaction that ends a job.
struct Ending<'e> {
    connection: &'e mut Connection,
    org_id: &'e str,
    mirror: &'e str,
    now: Instant,
}

impl Ending<'_> {
    fn write(mut self, job: &ClaimedJob, end: &JobEnd) -> Result<bool, StoreError> {
        let keys = [
            self.org_id.into(),
            self.mirror.into(),
            job.holder.as_str().into(),
        ];
        let held = self.connection.text(HELD);
        let Some(attempts) = self.connection.first(held, &keys, |row| row.count(0))? else {
            return Ok(false);
        };
        match end {
            JobEnd::Succeeded {
                done,
                notes,
                reached,
                remark,
                more,
            } => {
                self.forget(done)?;
                self.forget_deferred(reached)?;
                self.remark(*remark)?;
                self.succeed(notes, *more)?;
            }
            JobEnd::Declined { done, reason } => {
                self.forget(done)?;
                self.remark(*reason)?;
                let due_at = self.anything_waits()?.then_some(self.now);
                self.release(0, due_at)?;
            }
            JobEnd::Failed { reason, retry_at } => {
                self.remark(Some(reason))?;
                // The new delivery may bring what was missing.
                let is_news = attempts == 0;
                let due_at = if is_news { Some(self.now) } else { *retry_at };
                self.release(attempts, due_at)?;
            }
            JobEnd::PutBack { due_at, reason } => {
                self.remark(*reason)?;
                let values = [self.org_id.into(), self.mirror.into(), (*due_at).into()];
                self.connection.execute(PUT_BACK, &values)?;
            }
        }
        Ok(true)
    }

    /// Deletes the deliveries of pushes, unless they were delivered again.
    fn forget(&mut self, done: &[WaitingPush]) -> Result<(), StoreError> {
        for waiting in done {
            let values = [
                self.org_id.into(),
                self.mirror.into(),
                waiting.push.push_id.into(),
                waiting.delivered_at.into(),
            ];
            self.connection.execute(FORGET_DELIVERY, &values)?;
        }
        Ok(())
    }

    fn forget_deferred(&mut self, notes: &[DeferredNote]) -> Result<(), StoreError> {
        for note in notes {
            let values = [
                self.org_id.into(),
                self.mirror.into(),
                note.notes_ref.as_str().into(),
                note.commit_sha.as_str().into(),
            ];
            self.connection.execute(FORGET_DEFERRED, &values)?;
        }
        Ok(())
    }

    /// Records a closed reason for the operator.
    fn remark(&mut self, remark: Option<&str>) -> Result<(), StoreError> {
        if let Some(remark) = remark {
            let values = [
                self.org_id.into(),
                self.mirror.into(),
                self.now.into(),
                remark.into(),
            ];
            self.connection.execute(REMARK, &values)?;
        }
        Ok(())
    }

    /// Returns whether any push is waiting.
    fn anything_waits(&mut self) -> Result<bool, StoreError> {
        let keys = [self.org_id.into(), self.mirror.into()];
        Ok(self.connection.first(WAITING, &keys, |_| Ok(()))?.is_some())
    }

    fn succeed(&mut self, notes: &str, more: bool) -> Result<(), StoreError> {
        let more = more || self.anything_waits()?;
        let values = [
            self.org_id.into(),
            self.mirror.into(),
            more.then_some(self.now).into(),
            self.now.into(),
            notes.into(),
        ];
        self.connection.execute(SUCCEEDED, &values).map(drop)
    }

    fn release(&mut self, attempts: u64, due_at: Option<Instant>) -> Result<(), StoreError> {
        let values = [
            self.org_id.into(),
            self.mirror.into(),
            i64::try_from(attempts).unwrap_or(i64::MAX).into(),
            due_at.into(),
        ];
        self.connection.execute(RELEASE, &values).map(drop)
    }
}

fn defer(
    connection: &mut Connection,
    org_id: &str,
    mirror: &str,
    notes: &[DeferredNote],
    now: Instant,
) -> Result<(), StoreError> {
    for note in notes {
        let values = [
            org_id.into(),
            mirror.into(),
            note.notes_ref.as_str().into(),
            note.commit_sha.as_str().into(),
            now.into(),
        ];
        connection.execute(DEFER, &values)?;
    }
    Ok(())
}

impl Ledger {
    /// Forgets a mirror that is removed on purpose, unless a refresh of it still waits. Returns
    /// whether it was forgotten.
    ///
    /// # Errors
    ///
    /// See [`Ledger::quarantine`].
    pub fn forget_mirror(&self, lifetime: &Lifetime) -> Result<bool, StoreError> {
        self.write(|transaction| forget(transaction, lifetime))
    }
}
