//! One attempt at a claimed job, from the waiting pushes to the stored observations.

use std::time::Duration;

use svc_engine_fact::clock::later;
use svc_engine_fact::{ObservationOrigin, Push, SessionCommitObservation};
use svc_engine_store::{Append, ClaimedJob, JobEnd, StoreError, WaitingPush};
use svc_model::id::FactId;
use svc_model::repository::{RepositoryDecline, RepositoryName};
use svc_model::time::Instant;

use super::{OnRefreshed, RefreshOutcome, Refresher, SPACE_PAUSE};
use crate::allowance::Allowance;
use crate::bare::Mirror;
use crate::failure::{MirrorFailure, Setback};
use crate::folder::MirrorLock;
use crate::gate;
use crate::heads::{HeadCounts, Heads, HeadsError, MERGES_MAX};
use crate::object_id::ObjectId;
use crate::observe::{NotedCommit, NotesInputs, NotesObservation, observe};
use crate::progress::Progress;
use crate::remote::{Remote, RemoteError};
use crate::retry;

/// The number of observations per transaction.
const OBSERVATIONS_PER_TRANSACTION: usize = 128;
/// How long a job waits for another process on this machine that uses its mirror.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The pause of a job that found its mirror in use.
const TAKEN_PAUSE: Duration = Duration::from_secs(5);

/// The time limit for fetching heads of merged pull requests. The job is already done by then, and
/// other work waits for the worker.
const HEADS_MAX: Duration = Duration::from_secs(10);

/// What ends an attempt early.
pub(super) enum Trouble {
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
pub(super) struct Attempt<'a> {
    pub(super) refresher: &'a Refresher,
    pub(super) job: &'a ClaimedJob,
    pub(super) waiting: &'a [WaitingPush],
    pub(super) allowance: &'a Allowance,
    /// Whether there is less time than a refresh may take.
    pub(super) is_limited: bool,
}

impl Attempt<'_> {
    pub(super) fn make(&self) -> Result<RefreshOutcome, Trouble> {
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
        let wait = self.allowance.within(LOCK_WAIT);
        let lock = self.refresher.folder.lock(lifetime, &wait)?;
        let mirror = Mirror::at(git, self.refresher.folder.path(lifetime));
        let is_new = !self.refresher.folder.exists(lifetime);
        let like = ObjectId::of(&newest.push.after_sha);
        self.fetch(&mirror, &remote, like, &lock)?;
        // A branch was pushed, so a remote without branches is broken. Its next answer restores
        // what this one has removed.
        if !mirror.has_branch(self.allowance)? {
            let detail = "the repository has no branch".to_owned();
            return Err(Setback::Failed(MirrorFailure::FetchFailed, detail).into());
        }
        let observed = observe(
            &mirror,
            &config.notes,
            config.budget,
            NotesInputs {
                pushes: &pushes,
                progress: &Progress::parse(&self.job.notes),
                deferred: &jobs.deferred_notes(lifetime)?,
            },
            self.allowance,
        )?;
        let outcome = self.store(&pushes, &observed)?;
        // The facts are stored, so the job is done whatever happens next.
        if let Err(error) = self.fetch_heads(&mirror, newest, &remote, &lock) {
            tracing::warn!(mirror = %lifetime, detail = %error, "mirror.heads_not_fetched");
        }
        let tidied = if is_new {
            mirror.pack_refs(&lock, self.allowance)
        } else {
            mirror.tidy(&lock, self.allowance)
        };
        match tidied {
            Ok(()) => mirror.finish(),
            Err(error) => {
                tracing::debug!(mirror = %lifetime, error = %error, "mirror.not_tidied");
            }
        }
        Ok(outcome)
    }

    /// Fetches the mirror. If git itself can no longer read the mirror, it is created anew, because
    /// the forge has everything.
    fn fetch(
        &self,
        mirror: &Mirror<'_>,
        remote: &Remote,
        like: ObjectId,
        lock: &MirrorLock,
    ) -> Result<(), Setback> {
        let Refresher { config, folder, .. } = self.refresher;
        let lifetime = &self.job.lifetime;
        mirror.prepare(lifetime, like, lock, self.allowance)?;
        let Err(error) = mirror.fetch(remote, &config.notes, lock, self.allowance) else {
            return Ok(());
        };
        // Partially received data would stay forever, and take up the space that was missing.
        mirror.sweep();
        if error.is_stopped() || mirror.is_sound(like, self.allowance)? {
            return Err(error.into());
        }
        tracing::warn!(mirror = %lifetime, detail = %error, "mirror.made_anew");
        folder.remove(lifetime, lock, &self.allowance.within(LOCK_WAIT))?;
        mirror.prepare(lifetime, like, lock, self.allowance)?;
        let again = mirror.fetch(remote, &config.notes, lock, self.allowance);
        again.inspect_err(|_| mirror.sweep()).map_err(Into::into)
    }

    /// Fetches the heads of merged pull requests that the mirror lacks.
    fn fetch_heads(
        &self,
        mirror: &Mirror<'_>,
        newest: &WaitingPush,
        remote: &Remote,
        lock: &MirrorLock,
    ) -> Result<(), HeadsError> {
        let store = &self.refresher.store;
        let heads = Heads::of(&mirror.path);
        let lifetime = &self.job.lifetime;
        let merges = gate::merges(store, newest, lifetime, heads.from(), MERGES_MAX)?;
        if merges.is_empty() {
            return Ok(());
        }
        let allowance = self.allowance.within(HEADS_MAX);
        let mut asked = HeadCounts::default();
        let done = heads.fetch(mirror, &merges, remote, lock, &allowance, &mut asked);
        let HeadCounts {
            fetched,
            absent,
            failed,
        } = asked;
        // Logged even if the last head was given up, because the others are not looked for again.
        if asked != HeadCounts::default() {
            tracing::info!(mirror = %lifetime, fetched, absent, failed, "mirror.heads_fetched");
        }
        done
    }

    /// Returns the pushes that the mirror may be fetched for, oldest delivery first. If there are
    /// none, returns the reason.
    fn admitted(&self) -> Result<Result<Vec<WaitingPush>, Option<MirrorFailure>>, StoreError> {
        let declines = gate::declines(&self.refresher.store, self.waiting)?;
        let mut admitted = Vec::new();
        let mut reason = None;
        for (waiting, decline) in self.waiting.iter().zip(declines) {
            let Some(decline) = decline else {
                admitted.push(waiting.clone());
                continue;
            };
            // A quarantined push is not news to the operator.
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
        if let (true, Some(reason)) = (admitted.is_empty(), reason) {
            let mirror = self.job.lifetime.to_string();
            tracing::warn!(mirror, %reason, "mirror.refresh_failed");
        }
        Ok(if admitted.is_empty() {
            Err(reason)
        } else {
            Ok(admitted)
        })
    }

    /// Returns the remote of the latest delivery whose URL is not refused. Pushes with refused URLs
    /// are dropped from the list.
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

    /// Stores the observations and ends the job.
    fn store(
        &self,
        pushes: &[WaitingPush],
        observed: &NotesObservation,
    ) -> Result<RefreshOutcome, Trouble> {
        let Refresher {
            store,
            jobs,
            config,
            clock,
            on_refreshed,
            ..
        } = self.refresher;
        let lifetime = &self.job.lifetime;
        // Everything that this refresh observed gets the same time.
        let captured_at = clock.now();
        let mut facts = self.observations(pushes, observed, captured_at);
        let (mut stored, mut duplicates) = (0, 0);
        while !facts.is_empty() {
            self.allowance.left()?;
            let rest = facts.split_off(facts.len().min(OBSERVATIONS_PER_TRANSACTION));
            for outcome in store.append_blocking(std::mem::replace(&mut facts, rest))? {
                if outcome.stored().is_some() {
                    stored += 1;
                } else {
                    duplicates += 1;
                }
            }
        }
        let given_up = jobs.defer(
            lifetime,
            &observed.deferred,
            config.budget.waiting,
            captured_at,
        )?;
        // A refresh that continues later needs a push to continue from.
        let kept = pushes.last().filter(|_| observed.more);
        let done: Vec<WaitingPush> = self
            .waiting
            .iter()
            .filter(|waiting| Some(*waiting) != kept)
            .cloned()
            .collect();
        let remark = if given_up > 0 {
            Some(MirrorFailure::NotesGivenUp)
        } else {
            (observed.invalid > 0).then_some(MirrorFailure::NoteInvalid)
        };
        let end = JobEnd::Succeeded {
            done,
            notes: observed.progress.to_string(),
            reached: observed.reached.clone(),
            remark: remark.map(MirrorFailure::as_str),
            more: observed.more,
        };
        self.end(end)?;
        let repo = pushes.last().map(|push| push.push.repo.as_str());
        let repo = repo.unwrap_or_default();
        tracing::info!(
            repo,
            stored,
            duplicates,
            "session_commit_observations_captured"
        );
        if let Some(OnRefreshed(listener)) = on_refreshed {
            let done = pushes.iter().filter(|waiting| Some(*waiting) != kept);
            let done: Vec<Push> = done.map(|waiting| waiting.push.clone()).collect();
            if !done.is_empty() {
                listener(&done);
            }
        }
        if let Some(reason) = remark {
            let ignored = observed.invalid;
            tracing::warn!(repo, %reason, ignored, given_up, "mirror.notes_ignored");
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
        observed: &NotesObservation,
        captured_at: Instant,
    ) -> Vec<Append> {
        let fact = |sighting: &NotedCommit| {
            // A note that no waiting push brought was found because of the newest push.
            let place = sighting.push.unwrap_or(pushes.len() - 1);
            let push = &pushes.get(place)?.push;
            Some(SessionCommitObservation {
                observation_id: FactId::new(self.refresher.ids.fresh()),
                session_id: sighting.session_id.clone(),
                repo: RepositoryName::new(&push.repo)?,
                repository: push.repository.clone(),
                commit_sha: sighting.commit.commit(),
                source_push_id: push.push_id,
                origin: ObservationOrigin::Note(sighting.notes.as_str().to_owned()),
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
            // Another server has taken the job and will find the same.
            tracing::warn!(mirror = %self.job.lifetime, "mirror.lease_lost");
        }
        Ok(())
    }

    /// Drops the waiting pushes, because the mirror may not be fetched for them.
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

    /// Counts a failure of the store as a failure of the job: otherwise an unreadable row would be
    /// tried forever. If the store does not accept even that, it is unavailable for every job.
    pub(super) fn store_failed(&self, error: StoreError) -> Result<RefreshOutcome, StoreError> {
        tracing::warn!(
            mirror = %self.job.lifetime,
            error = &error as &dyn std::error::Error,
            "mirror.store_failed"
        );
        let setback = Setback::Failed(MirrorFailure::StoreFailed, error.to_string());
        self.set_back(setback).map_err(|_| error)
    }

    pub(super) fn set_back(&self, setback: Setback) -> Result<RefreshOutcome, StoreError> {
        let Refresher { clock, ids, .. } = self.refresher;
        let now = clock.now();
        let put_back = |pause, reason: Option<MirrorFailure>| JobEnd::PutBack {
            due_at: later(now, pause),
            reason: reason.map(MirrorFailure::as_str),
        };
        let mirror = self.job.lifetime.to_string();
        match setback {
            Setback::Refused(reason, detail) => {
                tracing::warn!(mirror, %reason, detail, "mirror.refresh_failed");
                self.decline(Some(reason))?;
                Ok(RefreshOutcome::Declined(reason, detail))
            }
            Setback::Failed(reason @ MirrorFailure::FetchTimeout, _) if self.is_limited => {
                self.end(put_back(TAKEN_PAUSE, None))?;
                Ok(RefreshOutcome::PutBack(Some(reason)))
            }
            Setback::Failed(reason, detail) => {
                let attempts = self.job.attempts + 1;
                let wait = retry::wait(attempts, ids.fresh());
                let retry_at = wait.map(|wait| later(now, wait));
                tracing::warn!(mirror, %reason, detail, attempts, "mirror.refresh_failed");
                self.end(JobEnd::Failed {
                    reason: reason.as_str(),
                    retry_at,
                })?;
                Ok(RefreshOutcome::Failed(reason, detail, retry_at))
            }
            Setback::NoSpace => {
                let reason = MirrorFailure::DiskReserve;
                tracing::warn!(mirror, %reason, "mirror.refresh_failed");
                self.end(put_back(SPACE_PAUSE, Some(reason)))?;
                Ok(RefreshOutcome::PutBack(Some(reason)))
            }
            Setback::Taken => {
                self.end(put_back(TAKEN_PAUSE, None))?;
                Ok(RefreshOutcome::PutBack(None))
            }
            Setback::Cancelled => {
                self.end(put_back(Duration::ZERO, None))?;
                Ok(RefreshOutcome::PutBack(None))
            }
        }
    }
}
