//! One refresh: a claimed job, from the pushes that wait to the observations that are stored.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use svc_model::id::FactId;
use svc_model::repository::{RepositoryDecline, RepositoryName};
use svc_model::time::Instant;

use super::allowance::{Allowance, CallOff};
use super::bare::Mirror;
use super::failure::{MirrorFailure, Setback};
use super::folder::MirrorFolder;
use super::gate;
use super::git::Git;
use super::object_id::ObjectId;
use super::observe::{Known, NotesBudget, Observed, observe};
use super::progress::Progress;
use super::remote::{Remote, RemoteError, Remotes};
use super::retry;
use crate::capture::notes::NotesRef;
use crate::clock::{Clock, Ids};
use crate::fact::{Lifetime, SessionCommitObservation};
use crate::store::{
    Append, ClaimedJob, JobChoice, JobEnd, MirrorJobs, Outcome, Store, StoreError, WaitingPush,
};

/// Pushes that one refresh looks at. The rest is for the next, which follows at once.
const PUSHES_MAX: usize = 50;
/// Observations of one transaction.
const OBSERVATIONS_PER_TRANSACTION: usize = 128;
/// How long a job belongs to its server, and how often that is renewed while it works: so soon is the
/// job of a server that died taken again, if the clocks of the servers agree to some seconds.
const LEASE: Duration = Duration::from_secs(45);
const RENEWAL: Duration = Duration::from_secs(15);
/// How long a job waits for another process of this machine that works on its mirror.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// When a job is taken again that found its mirror in use.
const TAKEN_PAUSE: Duration = Duration::from_secs(5);
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
        }
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

    /// Works on a claimed job until it is done, its deadline has passed, or it is called off. It
    /// blocks.
    ///
    /// # Errors
    ///
    /// When the store gives no answer. The job is then taken again when its lease has ended.
    pub fn run(&self, job: &ClaimedJob, call_off: &CallOff) -> Result<RefreshOutcome, StoreError> {
        let (working, ended) = channel::<()>();
        thread::scope(|scope| {
            let keeper = thread::Builder::new().name("svc-mirror-lease".to_owned());
            keeper.spawn_scoped(scope, move || self.keep(job, &ended))?;
            let outcome = self.attempt(job, call_off);
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

    fn attempt(&self, job: &ClaimedJob, call_off: &CallOff) -> Result<RefreshOutcome, StoreError> {
        let allowance = Allowance::of(self.config.deadline, call_off.clone())
            .keeping_free(&self.config.path, self.config.reserve_bytes);
        let waiting = self.jobs.waiting_pushes(&job.lifetime, PUSHES_MAX)?;
        let attempt = Attempt {
            refresher: self,
            job,
            waiting: &waiting,
            allowance: &allowance,
        };
        match attempt.make() {
            Ok(outcome) => Ok(outcome),
            Err(Trouble::Store(error)) => Err(error),
            Err(Trouble::Setback(setback)) => attempt.set_back(setback),
        }
    }
}

pub(super) fn later(now: Instant, wait: Duration) -> Instant {
    let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microseconds(now.microseconds().saturating_add(wait)).unwrap_or(now)
}

/// What ends an attempt early.
enum Trouble {
    Store(StoreError),
    Setback(Setback),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E: Into<Setback>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Setback(error.into())
    }
}

/// One attempt at a job.
struct Attempt<'a> {
    refresher: &'a Refresher,
    job: &'a ClaimedJob,
    waiting: &'a [WaitingPush],
    allowance: &'a Allowance,
}

impl Attempt<'_> {
    fn make(&self) -> Result<RefreshOutcome, Trouble> {
        let Refresher {
            jobs, config, git, ..
        } = self.refresher;
        let lifetime = &self.job.lifetime;
        let admitted = match self.admitted()? {
            Ok(admitted) => admitted,
            Err(reason) => return Ok(self.decline(reason)?),
        };
        self.allowance.left()?;
        let (remote, pushes) = self.remote(admitted)?;
        let Some(newest) = pushes.last() else {
            return Ok(self.decline(None)?);
        };
        let wait = self.allowance.at_most(LOCK_WAIT);
        let lock = self.refresher.folder.lock(lifetime, &wait)?;
        let mirror = Mirror::at(git, self.refresher.folder.path(lifetime));
        let is_new = !self.refresher.folder.exists(lifetime);
        let like = ObjectId::of(&newest.push.after_sha);
        mirror.prepare(lifetime, like, self.allowance)?;
        mirror.fetch(&remote, &config.notes, &lock, self.allowance)?;
        // Somebody pushed to a branch. A server that shows none is out of order, and its next answer
        // brings back what this one has taken.
        if !mirror.has_branch(self.allowance)? {
            let detail = "the repository has no branch".to_owned();
            return Err(Setback::Failed(MirrorFailure::FetchFailed, detail).into());
        }
        let observed = observe(
            &mirror,
            &config.notes,
            config.budget,
            Known {
                pushes: &pushes,
                progress: &Progress::parse(&self.job.notes),
                deferred: &jobs.deferred_notes(lifetime)?,
            },
            self.allowance,
        )?;
        let outcome = self.store(&pushes, &observed)?;
        // The facts are stored; what follows makes the next refresh faster.
        let tidied = if is_new {
            mirror.pack_refs(self.allowance)
        } else {
            mirror.tidy(self.allowance)
        };
        if let Err(error) = tidied {
            tracing::debug!(mirror = %lifetime, detail = error.complaint(), "mirror_not_tidied");
        }
        Ok(outcome)
    }

    /// Returns the pushes that the mirror may be fetched for, the oldest delivery first; why not,
    /// when there is none.
    fn admitted(&self) -> Result<Result<Vec<WaitingPush>, Option<MirrorFailure>>, StoreError> {
        let Refresher { store, clock, .. } = self.refresher;
        let declines = gate::declines(store, self.waiting, clock.now())?;
        let mut admitted = Vec::new();
        let mut reason = None;
        for (waiting, decline) in self.waiting.iter().zip(declines) {
            let Some(decline) = decline else {
                admitted.push(waiting.clone());
                continue;
            };
            // That a push is quarantined is no news to the operator.
            if decline != RepositoryDecline::SourceAbsent {
                reason = Some(MirrorFailure::NameAmbiguous);
            }
            tracing::warn!(
                repo = waiting.delivered_repo.as_str(),
                reason = decline.as_str(),
                count = 1,
                "repository_identity_declined"
            );
        }
        Ok(if admitted.is_empty() {
            Err(reason)
        } else {
            Ok(admitted)
        })
    }

    /// Returns from where to fetch: what was delivered last, unless that is refused. A push whose
    /// URL is refused is not looked at.
    fn remote(&self, mut pushes: Vec<WaitingPush>) -> Result<(Remote, Vec<WaitingPush>), Setback> {
        let remotes = &self.refresher.config.remotes;
        let mut refusal = None;
        while let Some(newest) = pushes.last() {
            match remotes.check(&newest.push.clone_url, self.allowance) {
                Ok(remote) => return Ok((remote, pushes)),
                Err(RemoteError::Refused(why)) => {
                    refusal = Some(why);
                    pushes.pop();
                }
                Err(error) => return Err(error.into()),
            }
        }
        let detail = refusal.map(|why| why.to_string()).unwrap_or_default();
        Err(Setback::Refused(MirrorFailure::CloneUrlRefused, detail))
    }

    /// Stores what the notes say and ends the job.
    fn store(
        &self,
        pushes: &[WaitingPush],
        observed: &Observed,
    ) -> Result<RefreshOutcome, Trouble> {
        let Refresher {
            store, jobs, clock, ..
        } = self.refresher;
        let lifetime = &self.job.lifetime;
        // One moment for everything that this refresh saw.
        let captured_at = clock.now();
        let mut facts = self.observations(pushes, observed, captured_at);
        let (mut stored, mut duplicates) = (0, 0);
        while !facts.is_empty() {
            self.allowance.left()?;
            let rest = facts.split_off(facts.len().min(OBSERVATIONS_PER_TRANSACTION));
            for outcome in store.append_blocking(std::mem::replace(&mut facts, rest))? {
                match outcome {
                    Outcome::Stored(_) => stored += 1,
                    Outcome::Redelivered(_) | Outcome::Known | Outcome::Conflict(_) => {
                        duplicates += 1;
                    }
                }
            }
        }
        jobs.defer(lifetime, &observed.deferred, captured_at)?;
        // A refresh that goes on needs a push to go on from.
        let kept = pushes.last().filter(|_| observed.more);
        let done: Vec<WaitingPush> = self
            .waiting
            .iter()
            .filter(|waiting| Some(*waiting) != kept)
            .cloned()
            .collect();
        let remark = (observed.invalid > 0).then_some(MirrorFailure::NoteInvalid);
        let end = JobEnd::Succeeded {
            done,
            notes: observed.progress.to_string(),
            reached: observed.reached.clone(),
            remark: remark.map(MirrorFailure::as_str),
            more: observed.more,
        };
        self.end(end)?;
        let repo = pushes.last().map(|it| it.push.repo.as_str());
        let repo = repo.unwrap_or_default();
        tracing::info!(
            repo,
            stored,
            duplicates,
            "session_commit_observations_captured"
        );
        if let Some(reason) = remark {
            let ignored = observed.invalid;
            tracing::warn!(repo, %reason, ignored, "mirror_notes_ignored");
        }
        Ok(RefreshOutcome::Refreshed {
            stored,
            duplicates,
            ignored: observed.invalid,
            more: observed.more,
        })
    }

    fn observations(
        &self,
        pushes: &[WaitingPush],
        observed: &Observed,
        captured_at: Instant,
    ) -> Vec<Append> {
        let fact = |sighting: &super::observe::Sighting| {
            // A note that no waiting push brought was found because of the newest.
            let place = sighting.push.unwrap_or(pushes.len() - 1);
            let push = &pushes.get(place)?.push;
            Some(SessionCommitObservation {
                observation_id: FactId::new(self.refresher.ids.fresh()),
                session_id: sighting.session_id.clone(),
                repo: RepositoryName::new(&push.repo)?,
                repository: push.repository.clone(),
                commit_sha: sighting.commit.commit(),
                source_push_id: push.push_id,
                notes_ref: sighting.notes.as_str().to_owned(),
                captured_at,
            })
        };
        let facts = observed.sightings.iter().filter_map(fact);
        facts
            .map(|fact| Append::SessionCommitObservation(Box::new(fact)))
            .collect()
    }

    fn end(&self, end: JobEnd) -> Result<(), StoreError> {
        let Refresher { jobs, clock, .. } = self.refresher;
        if !jobs.end(self.job, end, clock.now())? {
            // Another server has taken it, and will find the same.
            tracing::warn!(mirror = %self.job.lifetime, "mirror_lease_lost");
        }
        Ok(())
    }

    /// Forgets the waiting pushes, which may not be fetched for.
    fn decline(&self, reason: Option<MirrorFailure>) -> Result<RefreshOutcome, StoreError> {
        let end = JobEnd::Declined {
            done: self.waiting.to_vec(),
            reason: reason.map(MirrorFailure::as_str),
        };
        self.end(end)?;
        Ok(match reason {
            Some(reason) => RefreshOutcome::Declined(reason, String::new()),
            None => RefreshOutcome::Nothing,
        })
    }

    fn set_back(&self, setback: Setback) -> Result<RefreshOutcome, StoreError> {
        let Refresher { clock, ids, .. } = self.refresher;
        let now = clock.now();
        let put_back = |pause, reason: Option<MirrorFailure>| JobEnd::PutBack {
            due_at: later(now, pause),
            reason: reason.map(MirrorFailure::as_str),
        };
        let mirror = self.job.lifetime.to_string();
        match setback {
            Setback::Refused(reason, detail) => {
                tracing::warn!(mirror, %reason, detail, "mirror_refresh_failed");
                self.decline(Some(reason))?;
                Ok(RefreshOutcome::Declined(reason, detail))
            }
            Setback::Failed(reason, detail) => {
                let attempts = self.job.attempts + 1;
                let wait = retry::wait(attempts, ids.fresh());
                let retry_at = wait.map(|wait| later(now, wait));
                tracing::warn!(mirror, %reason, detail, attempts, "mirror_refresh_failed");
                self.end(JobEnd::Failed {
                    tried: self.waiting.to_vec(),
                    reason: reason.as_str(),
                    retry_at,
                })?;
                Ok(RefreshOutcome::Failed(reason, detail, retry_at))
            }
            Setback::NoSpace => {
                let reason = MirrorFailure::DiskReserve;
                tracing::warn!(mirror, %reason, "mirror_refresh_failed");
                self.end(put_back(SPACE_PAUSE, Some(reason)))?;
                Ok(RefreshOutcome::PutBack(Some(reason)))
            }
            Setback::Taken => {
                self.end(put_back(TAKEN_PAUSE, None))?;
                Ok(RefreshOutcome::PutBack(None))
            }
            Setback::CalledOff => {
                self.end(put_back(Duration::ZERO, None))?;
                Ok(RefreshOutcome::PutBack(None))
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transports;
