//! Work after a refresh or a merge, for which nobody waits.
//!
//! After a refresh, the calls that its pushes are attributed to are derived once, for the log
//! alone. When a pull request is merged whose head its mirror lacks, that mirror is made due.
//!
//! One thread does both, with a connection of its own and no read slot, so neither a refresh nor a
//! request waits for it. Nothing derived here is kept, and a failure costs one log line.
//!
//! At most ten seconds a refresh, and at most sixteen refreshes waiting; the rest is logged as
//! `attributions.not_derived`, with the reason.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use svc_engine_derive::attribution::Attributions;
use svc_engine_fact::clock::{Clock, later};
use svc_engine_fact::deadline::{Cancellation, Deadline};
use svc_engine_fact::{Lifetime, PullRequestMerge, Push};
use svc_engine_mirror::{MirrorReading, OnRefreshed};
use svc_engine_store::{ErasureEnd, MirrorJobs, Store};
use svc_model::query::AttributionSource;
use svc_model::repository::RepositoryName;

use crate::error::Error;
use crate::read::{ReportMemory, ReportSources, attributions_of_pushes};

/// Tasks that may wait. Any more are left out.
const WAITING_MAX: usize = 16;
/// How long a task may take.
const TASK_MAX: Duration = Duration::from_secs(10);

/// A task of the thread.
enum Task {
    /// A refresh has read these pushes.
    Refreshed(Vec<Push>),
    /// This pull request was merged.
    Merged(Box<PullRequestMerge>),
    /// The service stops.
    Stop,
}

/// What the thread reads besides the store.
pub(crate) trait Sources: Send + 'static {
    /// Returns the mirrors, if any are kept.
    fn mirrors(&self) -> Option<&MirrorReading>;

    /// Returns the memory of reports for a state of the erasure log.
    fn memory(&self, erasure: ErasureEnd) -> Arc<ReportMemory>;
}

/// The thread. Dropping it ends it.
pub(crate) struct Background {
    queue: SyncSender<Task>,
    cancellation: Cancellation,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Background")
    }
}

impl Background {
    /// Starts the thread, and returns the handle that refreshes report to.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub(crate) fn start(
        store: &Arc<Store>,
        sources: impl Sources,
        clock: Clock,
        settle: Duration,
    ) -> std::io::Result<(Self, OnRefreshed)> {
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let cancellation = Cancellation::default();
        let worker = Worker {
            jobs: MirrorJobs::new(Arc::clone(store)),
            store: Arc::clone(store),
            sources,
            clock,
            settle,
            cancellation: cancellation.clone(),
        };
        let thread = thread::Builder::new()
            .name("svc-background".to_owned())
            .spawn(move || worker.run(&waiting))?;
        let sender = queue.clone();
        let on_refreshed = OnRefreshed::new(move |pushes| {
            let task = Task::Refreshed(pushes.to_vec());
            if let Err(TrySendError::Full(_)) = sender.try_send(task) {
                not_derived(pushes, "too much waits for it");
            }
        });
        let background = Self {
            queue,
            cancellation,
            thread: Mutex::new(Some(thread)),
        };
        Ok((background, on_refreshed))
    }

    /// Checks later whether the head of a merged pull request is missing. A merge left out here is
    /// found by the next refresh.
    pub(crate) fn merged(&self, merge: PullRequestMerge) {
        drop(self.queue.try_send(Task::Merged(Box::new(merge))));
    }

    /// Ends the thread and its current task.
    pub(crate) fn stop(&self) {
        self.cancellation.cancel();
        // The thread checks the switch after every task, so a full queue wakes it too.
        drop(self.queue.try_send(Task::Stop));
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("background.panicked");
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker<S> {
    store: Arc<Store>,
    jobs: MirrorJobs,
    sources: S,
    clock: Clock,
    settle: Duration,
    cancellation: Cancellation,
}

impl<S: Sources> Worker<S> {
    fn run(self, waiting: &Receiver<Task>) {
        crate::priority::give_way();
        while let Ok(task) = waiting.recv() {
            if self.cancellation.is_cancelled() {
                return;
            }
            let done = catch_unwind(AssertUnwindSafe(|| match &task {
                Task::Refreshed(pushes) => self.derive(pushes),
                Task::Merged(merge) => self.look_for_head(merge),
                Task::Stop => {}
            }));
            if done.is_err() {
                tracing::error!("background.task_panicked");
            }
        }
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(TASK_MAX).cancelled_by(&self.cancellation.child())
    }

    fn derive(&self, pushes: &[Push]) {
        let derive = || {
            let mut snapshot = self.store.snapshot(&self.deadline())?;
            let memory = self.sources.memory(snapshot.revisions()?.erasure);
            let sources = ReportSources {
                mirrors: self.sources.mirrors(),
                memory: &memory,
            };
            attributions_of_pushes(&mut snapshot, sources, pushes)
        };
        match derive() {
            Ok(attributions) => derived(pushes, &attributions),
            Err(_) if self.cancellation.is_cancelled() => {}
            Err(error) => not_derived(pushes, &error.to_string()),
        }
    }

    /// Makes the mirror due that lacks the head of a merged pull request. A repository that was
    /// never fetched is left alone: its first push fetches everything.
    fn look_for_head(&self, merge: &PullRequestMerge) {
        let pull_request = &merge.pull_request;
        let Some(name) = RepositoryName::new(&pull_request.repo) else {
            return;
        };
        let lifetime = Lifetime::of(pull_request.repository.as_ref(), &name);
        let look = || -> Result<bool, Error> {
            let Some(mirrors) = self.sources.mirrors() else {
                return Ok(false);
            };
            let Some(mut mirror) = mirrors.open(&lifetime, &self.deadline())? else {
                return Ok(false);
            };
            if mirror.commit(&pull_request.head_sha)?.is_some() {
                return Ok(false);
            }
            let now = self.clock.now();
            let due_at = later(now, self.settle);
            Ok(self.jobs.make_due(&lifetime, now, due_at)?)
        };
        match look() {
            Ok(false) => {}
            Ok(true) => tracing::debug!(mirror = %lifetime, "mirror.head_missing"),
            Err(_) if self.cancellation.is_cancelled() => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(mirror = %lifetime, error, "mirror.head_not_looked_for");
            }
        }
    }
}

/// Logs the result: commits that a call may have led to, their files with an Attribution by its
/// source, and files without one, by reason.
fn derived(pushes: &[Push], attributions: &Attributions) {
    let of = |source| {
        let files = attributions.rows.iter().filter(|row| row.source == source);
        files.count()
    };
    let skipped: Vec<String> = attributions
        .skipped
        .iter()
        .map(|(skip, count)| format!("{skip}={count}"))
        .collect();
    tracing::info!(
        repo = repo(pushes),
        pushes = pushes.len(),
        commits = attributions.commits.len(),
        git_notes = of(AttributionSource::GitNotes),
        jaccard = of(AttributionSource::Jaccard),
        skipped = skipped.join(" "),
        "attributions_derived"
    );
}

fn not_derived(pushes: &[Push], reason: &str) {
    tracing::warn!(
        repo = repo(pushes),
        pushes = pushes.len(),
        reason,
        "attributions.not_derived"
    );
}

fn repo(pushes: &[Push]) -> &str {
    pushes.last().map_or("", |push| push.repo.as_str())
}
