//! Refreshing mirrors: how, and what becomes of it.

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

/// Pushes that one refresh looks at. The rest is for the next, which follows at once.
const PUSHES_MAX: usize = 50;
/// How long a job belongs to its server, and how often that is renewed while it works: so soon is the
/// job of a server that died taken again, if the clocks of the servers agree to some seconds.
const LEASE: Duration = Duration::from_secs(45);
const RENEWAL: Duration = Duration::from_secs(15);
/// When a job is taken again that found no space.
pub(super) const SPACE_PAUSE: Duration = Duration::from_mins(1);

/// How mirrors are kept.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// The folder of the mirrors.
    pub path: PathBuf,
    /// From where they may be fetched.
    pub remotes: Remotes,
    /// The notes that are read.
    pub notes: Vec<NotesRef>,
    /// How long a job may take from its start.
    pub deadline: Duration,
    /// Bytes that are kept free at the folder.
    pub reserve_bytes: u64,
    /// What one refresh may read of new notes.
    pub budget: NotesBudget,
    /// Jobs that run at once.
    pub workers: usize,
    /// How long after its push a repository is fetched. Notes are often pushed right after their
    /// branch, and no forge tells of that; those that are there by then need no further push.
    pub settle: Duration,
    /// How often is looked for jobs that other processes have made due.
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

/// What became of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// The mirror is as new as its forge.
    Refreshed {
        /// Observations that are new.
        stored: usize,
        /// Observations that were known.
        duplicates: usize,
        /// Notes that were ignored because they are malformed.
        ignored: usize,
        /// Whether new notes are left for the next refresh.
        more: bool,
    },
    /// Its pushes may not be fetched for. Nothing is tried again.
    Declined(MirrorFailure, String),
    /// No push that is visible waits any more.
    Nothing,
    /// It failed, and is tried again then, if at all.
    Failed(MirrorFailure, String, Option<Instant>),
    /// It waits: for space, or for somebody else who works on the mirror.
    PutBack(Option<MirrorFailure>),
}

/// Takes the pushes that a refresh has read.
type Tell = dyn Fn(&[Push]) + Send + Sync;

/// What is told which pushes a refresh has read.
#[derive(Clone)]
pub struct OnRefreshed(Arc<Tell>);

impl OnRefreshed {
    /// Tells this. It must not block.
    pub fn new(tell: impl Fn(&[Push]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
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

    /// Sets what is told of every refresh.
    #[must_use]
    pub fn telling(mut self, on_refreshed: OnRefreshed) -> Self {
        self.on_refreshed = Some(on_refreshed);
        self
    }

    /// Returns how mirrors are kept.
    pub fn config(&self) -> &MirrorConfig {
        &self.config
    }

    /// Claims the job that has waited longest of those that are chosen, when one is due.
    ///
    /// # Errors
    ///
    /// When the store gives no answer.
    pub fn claim(&self, choice: JobChoice) -> Result<Option<ClaimedJob>, StoreError> {
        let now = self.clock.now();
        self.jobs
            .claim(choice, now, later(now, LEASE), self.ids.fresh())
    }

    /// Returns how long it is until the next job becomes due that is not due yet.
    ///
    /// # Errors
    ///
    /// When the store gives no answer.
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
    /// When the store gives no answer.
    pub fn claim_now(&self, lifetime: &Lifetime) -> Result<Option<ClaimedJob>, StoreError> {
        let now = self.clock.now();
        self.jobs
            .claim_now(lifetime, now, later(now, LEASE), self.ids.fresh())
    }

    /// Works on a claimed job until it is done, its deadline has passed, or it is cancelled. It
    /// blocks.
    ///
    /// # Errors
    ///
    /// When the store does not even take that the job failed. The job is then taken again when its
    /// lease has ended.
    pub fn run(
        &self,
        job: &ClaimedJob,
        cancellation: &Cancellation,
    ) -> Result<RefreshOutcome, StoreError> {
        let (working, ended) = channel::<()>();
        thread::scope(|scope| {
            let keeper = thread::Builder::new().name("svc-mirror-lease".to_owned());
            keeper.spawn_scoped(scope, move || self.keep(job, &ended))?;
            let outcome = self.attempt(job, cancellation);
            drop(working);
            outcome
        })
    }

    /// Renews the lease of a job until the work on it has ended.
    fn keep(&self, job: &ClaimedJob, ended: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEWAL) {
            let renewed = self.jobs.renew(job, later(self.clock.now(), LEASE));
            // Whoever takes it does the same again, and nothing is stored twice.
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

/// Returns the moment so long after another.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microseconds(now.microseconds().saturating_add(wait)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transports;
