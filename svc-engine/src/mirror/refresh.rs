//! Refreshing mirrors: the work and its results.

mod attempt;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use svc_model::time::Instant;

use self::attempt::{Attempt, Trouble};
use super::allowance::Allowance;
use super::failure::MirrorFailure;
use super::folder::MirrorFolder;
use super::git::Git;
use super::observe::NotesBudget;
use super::remote::Remotes;
use crate::capture::notes::NotesRef;
use crate::clock::{Clock, Ids};
use crate::deadline::{Cancellation, Deadline};
use crate::fact::{Lifetime, Push};
use crate::store::{ClaimedJob, JobChoice, MirrorJobs, Store, StoreError};

/// Pushes per refresh. The next one, which follows at once, continues.
const PUSHES_MAX: usize = 50;
/// How long a job belongs to its server, which renews it during the work. The job of a dead server
/// is taken again after that time, if the servers' clocks agree to some seconds.
const LEASE: Duration = Duration::from_secs(45);
const RENEWAL: Duration = Duration::from_secs(15);
/// The pause of a job that found no disk space.
pub(super) const SPACE_PAUSE: Duration = Duration::from_mins(1);

/// How mirrors are kept.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// The folder of the mirrors.
    pub path: PathBuf,
    /// Where they may be fetched from.
    pub remotes: Remotes,
    /// The notes that are read.
    pub notes: Vec<NotesRef>,
    /// The time limit of a job.
    pub deadline: Duration,
    /// The reserve of free bytes at the folder.
    pub reserve_bytes: u64,
    /// How many new notes one refresh may read.
    pub budget: NotesBudget,
    /// Jobs that run at once.
    pub workers: usize,
    /// The delay between a push and its fetch. Notes are often pushed right after their branch,
    /// which forges do not report; notes that have arrived by then need no further push.
    pub settle: Duration,
    /// How often to check for jobs that other processes made due.
    pub look: Duration,
}

impl MirrorConfig {
    /// Returns the defaults for a folder.
    pub fn new(path: PathBuf, remotes: Remotes) -> Self {
        Self {
            path,
            remotes,
            notes: NotesRef::ALL.to_vec(),
            deadline: Duration::from_secs(svc_model::limit::MIRROR_DEADLINE_SECONDS),
            reserve_bytes: svc_model::limit::MIRROR_RESERVE_BYTES,
            budget: NotesBudget::default(),
            workers: svc_model::limit::MIRROR_WORKERS,
            settle: Duration::from_secs(svc_model::limit::MIRROR_SETTLE_SECONDS),
            look: Duration::from_secs(5),
        }
    }
}

/// The result of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The mirror is as new as its forge.
    Refreshed {
        /// New observations.
        stored: usize,
        /// Known observations.
        duplicates: usize,
        /// Malformed notes, which were ignored.
        ignored: usize,
        /// Whether the next refresh has to read more new notes.
        more: bool,
    },
    /// Its pushes may not be fetched for. It is not repeated.
    Declined(MirrorFailure, String),
    /// No visible push waits any more.
    Nothing,
    /// It failed, and is repeated at this time, if at all.
    Failed(MirrorFailure, String, Option<Instant>),
    /// It waits for disk space, or for another process that uses the mirror.
    PutBack(Option<MirrorFailure>),
}

/// Gets the pushes that a refresh has read.
type Listener = dyn Fn(&[Push]) + Send + Sync;

/// The listener for the pushes that refreshes have read.
#[derive(Clone)]
pub struct OnRefreshed(Arc<Listener>);

impl OnRefreshed {
    /// Creates a listener, which must not block.
    pub fn new(listener: impl Fn(&[Push]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }
}

impl fmt::Debug for OnRefreshed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRefreshed")
    }
}

/// Refreshes mirrors.
#[derive(Debug)]
pub struct Refresher {
    store: Arc<Store>,
    jobs: MirrorJobs,
    config: MirrorConfig,
    folder: MirrorFolder,
    git: Git,
    clock: Clock,
    ids: Ids,
    on_refreshed: Option<OnRefreshed>,
}

impl Refresher {
    /// Returns a refresher of the mirrors of a store.
    pub fn new(
        store: Arc<Store>,
        jobs: MirrorJobs,
        config: MirrorConfig,
        git: Git,
        clock: Clock,
        ids: Ids,
    ) -> Self {
        let folder = MirrorFolder::new(&config.path, store.org_id().clone());
        Self {
            store,
            jobs,
            config,
            folder,
            git,
            clock,
            ids,
            on_refreshed: None,
        }
    }

    /// Sets the listener for refreshes.
    #[must_use]
    pub fn with_listener(mut self, on_refreshed: OnRefreshed) -> Self {
        self.on_refreshed = Some(on_refreshed);
        self
    }

    /// Returns the configuration of the mirrors.
    pub fn config(&self) -> &MirrorConfig {
        &self.config
    }

    /// Claims the selected job that has waited longest, if one is due.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub fn claim(&self, choice: JobChoice) -> Result<Option<ClaimedJob>, StoreError> {
        let now = self.clock.now();
        self.jobs
            .claim(choice, now, later(now, LEASE), self.ids.fresh())
    }

    /// Returns the time until the next job becomes due.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub fn until_due(&self) -> Result<Option<Duration>, StoreError> {
        let now = self.clock.now();
        let due_at = self.jobs.next_due(now)?;
        Ok(due_at.map(|due_at| {
            Duration::from_micros(due_at.microseconds().abs_diff(now.microseconds()))
        }))
    }

    /// Claims the job of one repository now, see [`MirrorJobs::claim_now`].
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub fn claim_now(&self, lifetime: &Lifetime) -> Result<Option<ClaimedJob>, StoreError> {
        let now = self.clock.now();
        self.jobs
            .claim_now(lifetime, now, later(now, LEASE), self.ids.fresh())
    }

    /// Works on a claimed job until it is done, past its deadline, or cancelled. It blocks.
    ///
    /// # Errors
    ///
    /// If the store cannot even record the failure of the job. Then the job is taken again after
    /// its lease.
    pub fn run(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
    ) -> Result<RefreshOutcome, StoreError> {
        let (working, ended) = channel::<()>();
        thread::scope(|scope| {
            let keeper = thread::Builder::new().name("svc-mirror-lease".to_owned());
            keeper.spawn_scoped(scope, move || self.renew(job, &ended))?;
            let outcome = self.attempt(job, cancellation);
            drop(working);
            outcome
        })
    }

    /// Renews the lease of a job until the work has ended.
    fn renew(&self, job: &ClaimedJob, ended: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEWAL) {
            let renewed = self.jobs.renew(job, later(self.clock.now(), LEASE));
            // Whoever takes the job repeats the work, and nothing is stored twice.
            if !renewed.is_ok_and(|renewed| renewed) {
                tracing::warn!(mirror = %job.lifetime, "mirror_lease_not_renewed");
            }
        }
    }

    fn attempt(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
    ) -> Result<RefreshOutcome, StoreError> {
        let deadline = Deadline::after(self.config.deadline).cancelled_by(cancellation);
        let allowance =
            Allowance::until(deadline).keeping_free(&self.config.path, self.config.reserve_bytes);
        let (waiting, unread) = match self.jobs.waiting_pushes(&job.lifetime, PUSHES_MAX) {
            Ok(waiting) => (waiting, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let attempt = Attempt {
            refresher: self,
            job,
            waiting: &waiting,
            allowance: &allowance,
        };
        let made = match unread {
            None => attempt.make(),
            Some(error) => Err(error.into()),
        };
        match made {
            Ok(outcome) => Ok(outcome),
            Err(Trouble::Store(error)) => attempt.store_failed(error),
            Err(Trouble::Setback(setback)) => attempt.set_back(setback),
        }
    }
}

/// Returns the time this long after another.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microseconds(now.microseconds().saturating_add(wait)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transports;
