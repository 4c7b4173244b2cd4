//! Refreshes mirrors: the work and its results.
//!
//! A refresh reads 1,000 new notes at most, whether a branch reaches their commits or not, and the
//! next one continues after them. 50,000 notes may wait for a branch; beyond that the oldest are
//! dropped, and the status says so. A full disk is not a failure: the job waits, and what its git
//! received is removed.

mod attempt;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use svc_engine_capture::notes::NotesRef;
use svc_engine_fact::clock::{Clock, Ids, later};
use svc_engine_fact::deadline::{Cancellation, Deadline};
use svc_engine_fact::{Lifetime, Push};
use svc_engine_store::{ClaimedJob, JobChoice, JobEnd, MirrorJobs, Store, StoreError};
use svc_model::time::Instant;

use self::attempt::{Attempt, Trouble};
use super::allowance::Allowance;
use super::failure::MirrorFailure;
use super::folder::MirrorFolder;
use super::git::Git;
use super::observe::NotesBudget;
use super::remote::{Remotes, host_of};

/// The number of pushes that one refresh handles. The next refresh follows at once and continues.
const PUSHES_MAX: usize = 50;
/// How long a job belongs to its server, which renews the lease during the work. After this time,
/// another server takes over the job of a dead one, provided that their clocks agree to within some
/// seconds.
const LEASE: Duration = Duration::from_secs(45);
const RENEWAL: Duration = Duration::from_secs(15);
/// The pause of a job that found too little disk space.
pub(super) const SPACE_PAUSE: Duration = Duration::from_mins(1);

/// How mirrors are kept.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// The folder of the mirrors.
    pub path: PathBuf,
    /// Where mirrors may be fetched from.
    pub remotes: Remotes,
    /// The notes that are read.
    pub notes: Vec<NotesRef>,
    /// The time limit of a job.
    pub deadline: Duration,
    /// The number of bytes to keep free at the folder.
    pub reserve_bytes: u64,
    /// How many new notes one refresh may read.
    pub budget: NotesBudget,
    /// The number of jobs that run at once.
    pub workers: usize,
    /// The delay between a push and its fetch. Notes are often pushed right after their branch, but
    /// forges do not report them. Notes that have arrived by then need no further push.
    pub settle: Duration,
    /// How often to check for jobs that other processes made due.
    pub look: Duration,
}

impl MirrorConfig {
    /// Returns the default configuration for a folder.
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
    /// The mirror is up to date with its forge.
    Refreshed {
        /// The number of new observations.
        stored: usize,
        /// The number of observations that were already known.
        duplicates: usize,
        /// The number of malformed notes, which were ignored.
        ignored: usize,
        /// Whether more new notes are left for the next refresh.
        more: bool,
    },
    /// The mirror may not be fetched for its pushes. The refresh is not repeated.
    Declined(MirrorFailure, String),
    /// No visible push is waiting any more.
    Nothing,
    /// The refresh failed. It is repeated at this time, if at all.
    Failed(MirrorFailure, String, Option<Instant>),
    /// The job waits for disk space, for another process that uses the mirror, or, if it was given
    /// less time than a refresh may take, for a worker with more.
    PutBack(Option<MirrorFailure>),
}

/// Receives the pushes whose commits and notes a refresh has read.
type Listener = dyn Fn(&[Push]) + Send + Sync;

/// A listener for the pushes that refreshes have read.
#[derive(Clone)]
pub struct OnRefreshed(Arc<Listener>);

impl OnRefreshed {
    /// Creates a listener from a function, which must not block.
    pub fn new(listener: impl Fn(&[Push]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Returns a listener that calls another function as well, which must not block either.
    #[must_use]
    pub fn and(self, other: impl Fn(&[Push]) + Send + Sync + 'static) -> Self {
        Self::new(move |pushes| {
            (self.0)(pushes);
            other(pushes);
        })
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

    /// Sets the listener for completed refreshes.
    #[must_use]
    pub fn with_listener(mut self, on_refreshed: OnRefreshed) -> Self {
        self.on_refreshed = Some(on_refreshed);
        self
    }

    /// Returns the configuration of the mirrors.
    pub fn config(&self) -> &MirrorConfig {
        &self.config
    }

    /// Claims the job that has waited longest, among those that `choice` selects and that are due.
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

    /// Returns the host that a job would be fetched from, if its URL has one.
    pub(super) fn host(&self, job: &ClaimedJob) -> Option<String> {
        let waiting = self.jobs.waiting_pushes(&job.lifetime, PUSHES_MAX).ok()?;
        host_of(&waiting.last()?.push.clone_url)
    }

    /// Returns a claimed job, to be taken again after a pause.
    pub(super) fn put_back(
        &self,
        job: &ClaimedJob,
        pause: Duration,
    ) -> Result<RefreshOutcome, StoreError> {
        let now = self.clock.now();
        let end = JobEnd::PutBack {
            due_at: later(now, pause),
            reason: None,
        };
        self.jobs.end(job, end, now)?;
        Ok(RefreshOutcome::PutBack(None))
    }

    /// Works on a claimed job until it is done, past its deadline, or cancelled. Blocks.
    ///
    /// # Errors
    ///
    /// If the store cannot even record that the job failed. The job is then taken again after its
    /// lease.
    pub fn run(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
    ) -> Result<RefreshOutcome, StoreError> {
        self.run_within(job, cancellation, Duration::MAX)
    }

    /// Works on a claimed job as [`Self::run`] does, and puts it back when this time is up.
    pub(super) fn run_within(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> Result<RefreshOutcome, StoreError> {
        let (working, ended) = channel::<()>();
        thread::scope(|scope| {
            let keeper = thread::Builder::new().name("svc-mirror-lease".to_owned());
            keeper.spawn_scoped(scope, move || self.renew(job, &ended))?;
            let outcome = self.attempt(job, cancellation, limit);
            drop(working);
            outcome
        })
    }

    /// Renews the lease of a job until the work has ended.
    fn renew(&self, job: &ClaimedJob, ended: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEWAL) {
            let renewed = self.jobs.renew(job, later(self.clock.now(), LEASE));
            // If another server takes the job, it repeats the work, and nothing is stored twice.
            if !renewed.is_ok_and(|renewed| renewed) {
                tracing::warn!(mirror = %job.lifetime, "mirror.lease_not_renewed");
            }
        }
    }

    fn attempt(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> Result<RefreshOutcome, StoreError> {
        let is_limited = limit < self.config.deadline;
        let limit = limit.min(self.config.deadline);
        let deadline = Deadline::after(limit).cancelled_by(cancellation);
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
            is_limited,
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

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transports;
