//! A server claims a job, works, and ends it.

use std::sync::{Mutex, PoisonError};

use svc_model::id::{FactId, OrgId};
use svc_model::repository::{
    CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use svc_model::time::Instant;
use uuid::Uuid;

use super::super::column::Columns;
use super::super::connection::{Connection, Sql};
use super::super::error::corrupt;
use super::super::url::DatabaseUrl;
use super::super::value::Row;
use super::super::{SchemaState, StoreError, migrate};
use super::schedule;
use crate::fact::{Lifetime, Push};

/// Whether anything is due: asked often, so without a transaction.
const ANY_DUE: &str = "SELECT 1 FROM mirror_jobs
    WHERE org_id = $1 AND due_at_us <= $2 AND (lease_until_us IS NULL OR lease_until_us <= $2)
    LIMIT 1";
macro_rules! due {
    ($lock:literal) => {
        concat!(
            "SELECT mirror, attempts, notes FROM mirror_jobs
            WHERE org_id = $1 AND due_at_us <= $2
                AND (lease_until_us IS NULL OR lease_until_us <= $2)
                AND (CAST($3 AS BIGINT) = 1 OR last_failure_at_us IS NULL
                    OR last_failure_at_us <= last_success_at_us)
            ORDER BY due_at_us, mirror LIMIT 1",
            $lock
        )
    };
}
/// The job that has waited longest. Servers that ask at once are given different ones.
const NEXT: Sql = Sql {
    sqlite: due!(""),
    postgres: due!(" FOR UPDATE SKIP LOCKED"),
};
macro_rules! named {
    ($lock:literal) => {
        concat!(
            "SELECT mirror, attempts, notes FROM mirror_jobs
            WHERE org_id = $1 AND mirror = $3 AND due_at_us IS NOT NULL
                AND (lease_until_us IS NULL OR lease_until_us <= $2)",
            $lock
        )
    };
}
/// One job, when nobody works on it.
const NAMED: Sql = Sql {
    sqlite: named!(""),
    postgres: named!(" FOR UPDATE"),
};
const CLAIM: &str = "UPDATE mirror_jobs
    SET holder = $3, lease_until_us = $4, started_at_us = $5 WHERE org_id = $1 AND mirror = $2";
/// The next job that is not due yet.
const NEXT_DUE: &str = "SELECT due_at_us FROM mirror_jobs
    WHERE org_id = $1 AND due_at_us > $2 ORDER BY due_at_us LIMIT 1";
const RENEW: &str = "UPDATE mirror_jobs SET lease_until_us = $4
    WHERE org_id = $1 AND mirror = $2 AND holder = $3";
const PUSHES: &str = "SELECT d.push_id, d.repo, d.clone_url, d.delivered_at_us, f.repo,
        f.repository_provider, f.repository_host, f.repository_id, f.ref, f.before_sha, f.after_sha, f.forced,
        f.captured_at_us, CAST(CASE WHEN EXISTS
            (SELECT 1 FROM visible_pushes v WHERE v.push_id = f.push_id)
            THEN 1 ELSE 0 END AS BIGINT)
    FROM mirror_deliveries d
    JOIN pushes f ON f.push_id = d.push_id AND COALESCE(f.org_id, '') = d.org_id
    WHERE d.org_id = $1 AND d.mirror = $2
    ORDER BY d.delivered_at_us, d.push_id LIMIT $3";
const DEFERRED: &str = "SELECT notes_ref, commit_sha FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 ORDER BY notes_ref, commit_sha";
/// Locks the job. What is read afterwards is then what every delivery before has left.
const HELD: Sql = Sql {
    sqlite: "SELECT 1 FROM mirror_jobs WHERE org_id = $1 AND mirror = $2 AND holder = $3",
    postgres: "SELECT 1 FROM mirror_jobs WHERE org_id = $1 AND mirror = $2 AND holder = $3
        FOR UPDATE",
};
const FORGET_DELIVERY: &str = "DELETE FROM mirror_deliveries
    WHERE org_id = $1 AND mirror = $2 AND push_id = $3 AND delivered_at_us = $4";
const DEFER: &str = "INSERT INTO mirror_deferred_notes
    (org_id, mirror, notes_ref, commit_sha, deferred_at_us) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";
const FORGET_DEFERRED: &str = "DELETE FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 AND notes_ref = $3 AND commit_sha = $4";
/// The oldest give way: a commit that no branch has reached for long is none of the repository.
const TRIM_DEFERRED: &str = "DELETE FROM mirror_deferred_notes
    WHERE org_id = $1 AND mirror = $2 AND (notes_ref, commit_sha) IN (
        SELECT notes_ref, commit_sha FROM mirror_deferred_notes
        WHERE org_id = $1 AND mirror = $2
        ORDER BY deferred_at_us DESC, commit_sha LIMIT $4 OFFSET $3)";
const LATER: &str = "SELECT 1 FROM mirror_deliveries
    WHERE org_id = $1 AND mirror = $2 AND delivered_at_us > $3 LIMIT 1";
const SUCCEEDED: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL, attempts = 0, due_at_us = $3,
        last_success_at_us = $4, notes = $5
    WHERE org_id = $1 AND mirror = $2";
const RELEASE: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL, attempts = $3, due_at_us = $4
    WHERE org_id = $1 AND mirror = $2";
const REMARK: &str = "UPDATE mirror_jobs SET last_failure_at_us = $3, last_failure = $4
    WHERE org_id = $1 AND mirror = $2";
const PUT_BACK: &str = "UPDATE mirror_jobs
    SET holder = NULL, lease_until_us = NULL,
        due_at_us = CASE WHEN due_at_us > $3 THEN due_at_us ELSE $3 END
    WHERE org_id = $1 AND mirror = $2";

/// Notes of one mirror that wait for a branch to reach their commits, at most.
const DEFERRED_NOTES_MAX: i64 = 10_000;

/// The jobs of one organization, over a connection of their own. Calls block.
#[derive(Debug)]
pub struct MirrorJobs {
    url: DatabaseUrl,
    org_id: OrgId,
    connection: Mutex<Option<Connection>>,
}

/// Which jobs a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobChoice {
    /// Any.
    Any,
    /// Those whose last attempt did not fail, or that never had one.
    Sound,
}

/// A job that nobody else works on until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The repository.
    pub lifetime: Lifetime,
    /// Failures in a row before this attempt.
    pub attempts: u64,
    /// What the last success left in [`JobEnd::Succeeded`]; empty before the first.
    pub notes: String,
    holder: String,
}

/// A push that waits for its mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPush {
    /// The push as it is stored, but for its clone URL, which is the one delivered last.
    pub push: Push,
    /// Whether the push is visible.
    pub visible: bool,
    /// The name of the repository as it was delivered last.
    pub delivered_repo: RepositoryName,
    /// When it was delivered last.
    pub delivered_at: Instant,
}

/// A note whose commit no branch has reached yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeferredNote {
    /// The ref of the note.
    pub notes_ref: String,
    /// The commit that carries it.
    pub commit_sha: CommitSha,
}

/// How a job ends.
#[derive(Clone, Debug)]
pub enum JobEnd<'a> {
    /// The mirror was fetched and its notes observed.
    Succeeded {
        /// The pushes that were looked at.
        done: &'a [WaitingPush],
        /// What the next refresh needs to know.
        notes: &'a str,
        /// Deferred notes that do not wait any more.
        reached: &'a [DeferredNote],
        /// What the operator should know all the same, in one closed word.
        remark: Option<&'static str>,
        /// Whether something is left to do at once.
        more: bool,
    },
    /// These pushes may not be fetched for, whatever is tried.
    Declined {
        /// The pushes.
        done: &'a [WaitingPush],
        /// Why, in one closed word, when the operator should know.
        reason: Option<&'static str>,
    },
    /// It failed, and may succeed later.
    Failed {
        /// The pushes that were to be looked at. They stay.
        tried: &'a [WaitingPush],
        /// Why, in one closed word.
        reason: &'static str,
        /// When to try again; nothing gives up until something new is delivered.
        retry_at: Option<Instant>,
    },
    /// It was not really tried.
    PutBack {
        /// When it may be taken again.
        due_at: Instant,
        /// Why, in one closed word, when the operator should know.
        reason: Option<&'static str>,
    },
}

impl MirrorJobs {
    /// Names the jobs of an organization. The connection is made when it is first needed.
    pub fn new(url: DatabaseUrl, org_id: OrgId) -> Self {
        Self {
            url,
            org_id,
            connection: Mutex::new(None),
        }
    }

    /// Claims the job that has waited longest of those that are chosen, when one is due.
    ///
    /// # Errors
    ///
    /// When the store gives no answer; so for every method here.
    pub fn claim(
        &self,
        choice: JobChoice,
        now: Instant,
        lease_until: Instant,
        holder: Uuid,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.with(|connection, org_id| {
            let keys = [org_id.as_str().into(), now.into()];
            if connection.first(ANY_DUE, &keys, |_| Ok(()))?.is_none() {
                return Ok(None);
            }
            in_transaction(connection, |connection| {
                let next = connection.text(NEXT);
                let [org, now_us] = keys;
                let keys = [org, now_us, (choice == JobChoice::Any).into()];
                let found = connection.first(next, &keys, read_job)?;
                take(connection, org_id, found, now, lease_until, holder)
            })
        })
    }

    /// Returns when the next job becomes due that is not due yet.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn next_due(&self, now: Instant) -> Result<Option<Instant>, StoreError> {
        self.with(|connection, org_id| {
            let keys = [org_id.as_str().into(), now.into()];
            connection.first(NEXT_DUE, &keys, |row| {
                Columns::of(row, "mirror_jobs", &["due_at_us"]).next()
            })
        })
    }

    /// Makes the mirror of a repository due and claims its job, unless somebody works on it or there
    /// is no push to refresh it from.
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
        self.with(|connection, org_id| {
            in_transaction(connection, |connection| {
                if !schedule::make_due(connection, org_id, lifetime, now)? {
                    return Ok(None);
                }
                let mirror = lifetime.to_string();
                let keys = [org_id.as_str().into(), now.into(), mirror.as_str().into()];
                let named = connection.text(NAMED);
                let found = connection.first(named, &keys, read_job)?;
                take(connection, org_id, found, now, lease_until, holder)
            })
        })
    }

    /// Extends the lease of a job that is worked on. Returns false when somebody else has taken it.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn renew(&self, job: &ClaimedJob, lease_until: Instant) -> Result<bool, StoreError> {
        let mirror = job.lifetime.to_string();
        self.with(|connection, org_id| {
            let values = [
                org_id.as_str().into(),
                mirror.as_str().into(),
                job.holder.as_str().into(),
                lease_until.into(),
            ];
            Ok(connection.execute(RENEW, &values)? > 0)
        })
    }

    /// Returns the pushes that wait for a mirror, those delivered first at first.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn waiting_pushes(
        &self,
        lifetime: &Lifetime,
        pushes_max: usize,
    ) -> Result<Vec<WaitingPush>, StoreError> {
        let mirror = lifetime.to_string();
        self.with(|connection, org_id| {
            let rows_max = i64::try_from(pushes_max).unwrap_or(i64::MAX);
            let keys = [
                org_id.as_str().into(),
                mirror.as_str().into(),
                rows_max.into(),
            ];
            connection.all(PUSHES, &keys, read_push)
        })
    }

    /// Returns the notes of a mirror whose commits no branch has reached.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn deferred_notes(&self, lifetime: &Lifetime) -> Result<Vec<DeferredNote>, StoreError> {
        let mirror = lifetime.to_string();
        self.with(|connection, org_id| {
            let keys = [org_id.as_str().into(), mirror.as_str().into()];
            connection.all(DEFERRED, &keys, |row| {
                Ok(DeferredNote {
                    notes_ref: row.text(0)?,
                    commit_sha: read_commit(&row.text(1)?, "mirror_deferred_notes")?,
                })
            })
        })
    }

    /// Lets notes wait for a branch to reach their commits, a few in each transaction: other writers
    /// do not wait for all of them.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn defer(
        &self,
        lifetime: &Lifetime,
        notes: &[DeferredNote],
        now: Instant,
    ) -> Result<(), StoreError> {
        const NOTES_PER_TRANSACTION: usize = 500;
        let mirror = lifetime.to_string();
        for notes in notes.chunks(NOTES_PER_TRANSACTION) {
            self.with(|connection, org_id| {
                in_transaction(connection, |connection| {
                    defer(connection, org_id.as_str(), &mirror, notes, now)
                })
            })?;
        }
        Ok(())
    }

    /// Ends a job. Returns false when its lease had ended and somebody else has taken it; then
    /// nothing is written.
    ///
    /// # Errors
    ///
    /// See [`MirrorJobs::claim`].
    pub fn end(
        &self,
        job: &ClaimedJob,
        end: &JobEnd<'_>,
        now: Instant,
    ) -> Result<bool, StoreError> {
        self.with(|connection, org_id| {
            in_transaction(connection, |connection| {
                Ending {
                    connection,
                    org_id: org_id.as_str(),
                    mirror: &job.lifetime.to_string(),
                    now,
                }
                .write(job, end)
            })
        })
    }

    /// Runs statements on the connection, which is made anew after a failure.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection, &OrgId) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut kept = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut connection = match kept.take() {
            Some(connection) if connection.is_usable() => connection,
            _ => {
                let mut connection = Connection::open(&self.url)?;
                match migrate::state(&mut connection)? {
                    SchemaState::AtHead(_) => connection,
                    state => return Err(StoreError::Schema(state)),
                }
            }
        };
        let result = work(&mut connection, &self.org_id);
        *kept = Some(connection);
        result
    }
}

fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.begin_write()?;
    let worked = work(connection).and_then(|result| {
        connection.commit()?;
        Ok(result)
    });
    worked.inspect_err(|_| {
        if let Err(error) = connection.rollback() {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "store.rollback_failed"
            );
        }
    })
}

fn read_job(row: &Row<'_>) -> Result<(Lifetime, u64, String), StoreError> {
    let lifetime = Lifetime::parse(&row.text(0)?);
    Ok((
        lifetime.ok_or(corrupt("mirror_jobs", "its repository"))?,
        row.count(1)?,
        row.text(2)?,
    ))
}

fn take(
    connection: &mut Connection,
    org_id: &OrgId,
    found: Option<(Lifetime, u64, String)>,
    now: Instant,
    lease_until: Instant,
    holder: Uuid,
) -> Result<Option<ClaimedJob>, StoreError> {
    let Some((lifetime, attempts, notes)) = found else {
        return Ok(None);
    };
    let (mirror, holder) = (lifetime.to_string(), holder.to_string());
    let lease = [
        org_id.as_str().into(),
        mirror.as_str().into(),
        holder.as_str().into(),
        lease_until.into(),
        now.into(),
    ];
    connection.execute(CLAIM, &lease)?;
    Ok(Some(ClaimedJob {
        lifetime,
        attempts,
        notes,
        holder,
    }))
}

fn read_push(row: &Row<'_>) -> Result<WaitingPush, StoreError> {
    let wrong = |what| corrupt("pushes", what);
    let instant = |index| {
        let instant = Instant::from_microseconds(row.integer(index)?);
        instant.ok_or(wrong("a time"))
    };
    let name = RepositoryName::new(&row.text(1)?);
    Ok(WaitingPush {
        push: Push {
            push_id: FactId::parse(&row.text(0)?).ok_or(wrong("its id"))?,
            provider: RepositoryProvider::Github,
            repo: row.text(4)?,
            repository: read_identity(row, 5)?,
            clone_url: row.text(2)?,
            r#ref: row.text(8)?,
            before_sha: read_commit(&row.text(9)?, "pushes")?,
            after_sha: read_commit(&row.text(10)?, "pushes")?,
            forced: row.integer(11)? != 0,
            captured_at: instant(12)?,
        },
        visible: row.integer(13)? != 0,
        delivered_repo: name.ok_or(corrupt("mirror_deliveries", "its name"))?,
        delivered_at: instant(3)?,
    })
}

fn read_identity(row: &Row<'_>, first: usize) -> Result<Option<RepositoryIdentity>, StoreError> {
    let texts = (
        row.optional_text(first)?,
        row.optional_text(first + 1)?,
        row.optional_text(first + 2)?,
    );
    let (Some(provider), Some(host), Some(id)) = texts else {
        return Ok(None);
    };
    let identity = (
        RepositoryProvider::from_wire(&provider),
        RepositoryHost::new(&host),
        RepositoryId::new(&id),
    );
    match identity {
        (Some(repository_provider), Some(repository_host), Some(repository_id)) => {
            Ok(Some(RepositoryIdentity {
                repository_provider,
                repository_host,
                repository_id,
            }))
        }
        _ => Err(corrupt("pushes", "its repository")),
    }
}

fn read_commit(text: &str, table: &'static str) -> Result<CommitSha, StoreError> {
    CommitSha::new(text).ok_or(corrupt(table, "a commit"))
}

/// A job that is being ended, in its transaction.
struct Ending<'e> {
    connection: &'e mut Connection,
    org_id: &'e str,
    mirror: &'e str,
    now: Instant,
}

impl Ending<'_> {
    fn write(mut self, job: &ClaimedJob, end: &JobEnd<'_>) -> Result<bool, StoreError> {
        let keys = [
            self.org_id.into(),
            self.mirror.into(),
            job.holder.as_str().into(),
        ];
        let held = self.connection.text(HELD);
        if self.connection.first(held, &keys, |_| Ok(()))?.is_none() {
            return Ok(false);
        }
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
                let due_at = self.anything_later(None)?.then_some(self.now);
                self.release(0, due_at)?;
            }
            JobEnd::Failed {
                tried,
                reason,
                retry_at,
            } => {
                self.remark(Some(reason))?;
                let last = tried.iter().map(|it| it.delivered_at).max();
                // What came in the meantime may bring what was missing.
                if last.is_some() && self.anything_later(last)? {
                    self.release(0, Some(self.now))?;
                } else {
                    self.release(job.attempts + 1, *retry_at)?;
                }
            }
            JobEnd::PutBack { due_at, reason } => {
                self.remark(*reason)?;
                let values = [self.org_id.into(), self.mirror.into(), (*due_at).into()];
                self.connection.execute(PUT_BACK, &values)?;
            }
        }
        Ok(true)
    }

    /// Forgets pushes, unless they were delivered again since.
    fn forget(&mut self, done: &[WaitingPush]) -> Result<(), StoreError> {
        for waiting in done {
            let push_id = waiting.push.push_id.to_string();
            let values = [
                self.org_id.into(),
                self.mirror.into(),
                push_id.as_str().into(),
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

    /// Leaves a closed word for the operator.
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

    /// Returns whether anything was delivered after a moment, or waits at all.
    fn anything_later(&mut self, than: Option<Instant>) -> Result<bool, StoreError> {
        let than = than.map_or(i64::MIN, Instant::microseconds);
        let keys = [self.org_id.into(), self.mirror.into(), than.into()];
        Ok(self.connection.first(LATER, &keys, |_| Ok(()))?.is_some())
    }

    fn succeed(&mut self, notes: &str, more: bool) -> Result<(), StoreError> {
        let more = more || self.anything_later(None)?;
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
    let values = [
        org_id.into(),
        mirror.into(),
        DEFERRED_NOTES_MAX.into(),
        i64::MAX.into(),
    ];
    connection.execute(TRIM_DEFERRED, &values).map(drop)
}
