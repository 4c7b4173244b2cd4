//! The workers of a server. Each claims a due job, refreshes its mirror, and takes the next job.
//!
//! One worker takes only repositories whose last refresh did not fail, and leaves a host to the
//! others while one of them asks it or if it did not answer the last time. It gives a host that never
//! answered only a short time. So hanging forges, however many repositories they have, never occupy
//! all workers.
//!
//! Jobs wait only in the store, so a server that stops loses none, and any server can take any job.
//! A job never runs twice at once, because its row is claimed. Nobody waits for a worker: it wakes
//! up when a push is stored, and regularly checks for jobs that other processes made due.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use svc_engine_fact::Push;
use svc_engine_fact::clock::{Clock, Ids, later};
use svc_engine_fact::deadline::{Cancellation, Deadline};
use svc_engine_store::{ClaimedJob, JobChoice, MirrorJobs, RefreshRequest, Store, StoreError};

use super::failure::MirrorFailure;
use super::git::Git;
use super::refresh::{MirrorConfig, OnRefreshed, RefreshOutcome, Refresher, SPACE_PAUSE};

/// The time limit for looking for git.
const PROBE_MAX: Duration = Duration::from_secs(10);
/// The pause before looking for git or querying the store again.
const TROUBLE_PAUSE: Duration = Duration::from_secs(30);

/// The pause of a job that the worker for hosts that answer leaves to another.
const HOST_PAUSE: Duration = Duration::from_secs(2);
/// How much later than others the worker for hosts that answer looks for a job that becomes due.
const OTHERS_FIRST: Duration = Duration::from_millis(200);
/// How long the worker for hosts that answer works on a job of a host that never did.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(10);
/// A refresh that fails sooner failed because of an answer, such as that there is no repository.
const SILENCE_MIN: Duration = Duration::from_secs(5);

/// What is known of the hosts that were ever asked.
type Hosts = Mutex<HashMap<String, HostState>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostState {
    /// It is asked for the first time.
    Asked,
    /// It answered the last time.
    Answers,
    /// It did not answer the last time.
    Silent,
}

/// The workers of a server. Dropping them stops them.
pub struct Mirrors {
    bell: Arc<Bell>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    settle: Duration,
}

impl fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mirrors")
    }
}

/// Wakes workers, and tells them to stop.
#[derive(Debug, Default)]
struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
    cancellation: Cancellation,
}

impl Bell {
    fn ring(&self) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        *rings += 1;
        self.rung.notify_all();
    }

    /// Returns how often the bell has rung.
    fn rings(&self) -> u64 {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next ring, at most this long.
    fn wait(&self, heard: u64, at_most: Duration) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = |rings: &mut u64| *rings == heard && !self.cancellation.is_cancelled();
        drop(self.rung.wait_timeout_while(rings, at_most, quiet));
    }
}

impl Mirrors {
    /// Starts the workers. Every completed refresh is reported to the listener.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn start(
        store: &Arc<Store>,
        config: &MirrorConfig,
        clock: &Clock,
        ids: &Ids,
        on_refreshed: &OnRefreshed,
    ) -> std::io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let mirrors = Self {
            bell: Arc::clone(&bell),
            threads: Mutex::default(),
            settle: config.settle,
        };
        let hosts = Arc::new(Hosts::default());
        for number in 1..=config.workers {
            let worker = Worker {
                store: Arc::clone(store),
                config: config.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                on_refreshed: on_refreshed.clone(),
                bell: Arc::clone(&bell),
                hosts: Arc::clone(&hosts),
                choice: if number == 1 && config.workers > 1 {
                    JobChoice::Sound
                } else {
                    JobChoice::Any
                },
            };
            let thread = thread::Builder::new()
                .name(format!("svc-mirror-{number}"))
                .spawn(move || worker.run())?;
            let mut threads = mirrors
                .threads
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            threads.push(thread);
        }
        Ok(mirrors)
    }

    /// Returns the request to refresh the mirror for a push. The request is stored with the push.
    pub fn request(&self, push: &Push) -> RefreshRequest {
        RefreshRequest {
            push: push.clone(),
            due_at: later(push.captured_at, self.settle),
        }
    }

    /// Tells the workers that a job may be due.
    pub fn wake(&self) {
        self.bell.ring();
    }

    /// Stops the workers. Their jobs are returned and their programs killed, which takes about two
    /// seconds at most.
    pub fn stop(&self) {
        self.bell.cancellation.cancel();
        self.bell.ring();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("mirror.worker_panicked");
            }
        }
    }
}

impl Drop for Mirrors {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker {
    store: Arc<Store>,
    config: MirrorConfig,
    clock: Clock,
    ids: Ids,
    on_refreshed: OnRefreshed,
    bell: Arc<Bell>,
    hosts: Arc<Hosts>,
    choice: JobChoice,
}

impl Worker {
    fn run(self) {
        let Some(git) = self.find_git() else { return };
        let jobs = MirrorJobs::new(Arc::clone(&self.store));
        let refresher = Refresher::new(
            Arc::clone(&self.store),
            jobs,
            self.config.clone(),
            git,
            self.clock.clone(),
            self.ids.clone(),
        )
        .with_listener(self.on_refreshed.clone());
        while !self.bell.cancellation.is_cancelled() {
            let heard = self.bell.rings();
            // A panic over one repository must not cost the others their worker.
            let next = catch_unwind(AssertUnwindSafe(|| self.work(&refresher)));
            match next.unwrap_or_else(|_| {
                tracing::error!("mirror.job_panicked");
                WorkerStep::Pause(TROUBLE_PAUSE)
            }) {
                WorkerStep::Look => {}
                WorkerStep::Wait(at_most) => self.bell.wait(heard, at_most),
                // No delivery changes this.
                WorkerStep::Pause(time) => self.pause(time),
            }
        }
    }

    /// Looks for git until a usable one is found. Jobs wait meanwhile.
    fn find_git(&self) -> Option<Git> {
        while !self.bell.cancellation.is_cancelled() {
            let deadline = Deadline::after(PROBE_MAX).cancelled_by(&self.bell.cancellation);
            match Git::find(&deadline) {
                Ok(git) => return Some(git),
                Err(error) => tracing::error!(%error, "mirror.git_unusable"),
            }
            self.pause(TROUBLE_PAUSE);
        }
        None
    }

    fn work(&self, refresher: &Refresher) -> WorkerStep {
        let outcome = match refresher.claim(self.choice) {
            Ok(Some(job)) => self.refresh(refresher, &job),
            Ok(None) => {
                let until_due = refresher.until_due().ok().flatten();
                let look = self.config.look;
                let wait = until_due.map_or(look, |until_due| look.min(until_due));
                // What this worker has put back is for another, which goes first.
                let lag = match self.choice {
                    JobChoice::Sound => OTHERS_FIRST,
                    JobChoice::Any => Duration::ZERO,
                };
                return WorkerStep::Wait(wait + lag);
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(RefreshOutcome::PutBack(Some(MirrorFailure::DiskReserve))) => {
                WorkerStep::Pause(SPACE_PAUSE)
            }
            Ok(_) => WorkerStep::Look,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "mirror.store_failed"
                );
                WorkerStep::Pause(TROUBLE_PAUSE)
            }
        }
    }

    /// Works on a job, unless it is left to another worker because of its host.
    fn refresh(
        &self,
        refresher: &Refresher,
        job: &ClaimedJob,
    ) -> Result<RefreshOutcome, StoreError> {
        // A folder on this machine has no host, and always answers.
        let Some(host) = refresher.host(job) else {
            return refresher.run(job, &self.bell.cancellation);
        };
        let hosts = || self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = hosts().get(&host).copied();
        let is_for_sound_hosts = self.choice == JobChoice::Sound;
        if is_for_sound_hosts && matches!(known, Some(HostState::Asked | HostState::Silent)) {
            return refresher.put_back(job, HOST_PAUSE);
        }
        if known.is_none() {
            hosts().insert(host.clone(), HostState::Asked);
        }
        let limit = if is_for_sound_hosts && known.is_none() {
            FIRST_ANSWER_MAX
        } else {
            Duration::MAX
        };
        let start = Instant::now();
        let outcome = refresher.run_within(job, &self.bell.cancellation, limit);
        let answered = match &outcome {
            Ok(RefreshOutcome::Refreshed { .. }) => Some(HostState::Answers),
            Ok(RefreshOutcome::Failed(..)) if start.elapsed() < SILENCE_MIN => {
                Some(HostState::Answers)
            }
            Ok(
                RefreshOutcome::Failed(
                    MirrorFailure::FetchFailed | MirrorFailure::FetchTimeout,
                    ..,
                )
                | RefreshOutcome::PutBack(Some(MirrorFailure::FetchTimeout)),
            ) => Some(HostState::Silent),
            Ok(_) | Err(_) => known,
        };
        match answered {
            Some(answered) => hosts().insert(host, answered),
            None => hosts().remove(&host),
        };
        outcome
    }

    /// Pauses, unless the workers are told to stop.
    fn pause(&self, time: Duration) {
        let start = Instant::now();
        while !self.bell.cancellation.is_cancelled() {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            self.bell.wait(self.bell.rings(), left);
        }
    }
}

/// The next step of a worker.
enum WorkerStep {
    /// Look for the next job.
    Look,
    /// Wait until a job may be due.
    Wait(Duration),
    /// Pause.
    Pause(Duration),
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use svc_engine_fact::testing::builders::{push, repository};
    use svc_engine_fact::testing::processes;
    use svc_engine_store::testing::{Backend, TestStore};
    use svc_engine_store::{Append, Delivery, JobState, MirrorStatus};
    use svc_model::repository::CommitSha;

    use super::*;
    use crate::remote::{AllowedHosts, Remotes};
    use crate::testing::git::Repository;

    fn config(database: &TestStore) -> MirrorConfig {
        let remotes = Remotes::new(AllowedHosts::Anything, std::collections::BTreeMap::new());
        let mut config = MirrorConfig::new(database.folder().join("mirrors"), remotes);
        config.reserve_bytes = 0;
        config.look = Duration::from_millis(50);
        config
    }

    /// A store, a forge with one stamped commit, and another that accepts connections and stays
    /// silent.
    struct Stage {
        // Before the database that it belongs to, because fields are dropped in order.
        store: Arc<Store>,
        database: TestStore,
        forge: Repository,
        head: String,
        silent: TcpListener,
    }

    impl Stage {
        fn new() -> Self {
            let database = TestStore::create(Backend::Sqlite).unwrap();
            let forge = Repository::create();
            let head = forge.commit("head");
            forge.stamp(&head, &["s"]);
            forge.push();
            Self {
                store: Arc::new(database.open("acme")),
                database,
                forge,
                head,
                silent: TcpListener::bind("127.0.0.1:0").unwrap(),
            }
        }

        fn start(&self, change: impl FnOnce(&mut MirrorConfig)) -> Mirrors {
            let mut config = config(&self.database);
            change(&mut config);
            let (clock, ids) = (Clock::system(), Ids::random());
            Mirrors::start(
                &self.store,
                &config,
                &clock,
                &ids,
                &OnRefreshed::new(|_| {}),
            )
            .unwrap()
        }

        /// Stores a push to a repository and requests its refresh.
        fn deliver(&self, repository_number: u32, branch: &str, url: &str) {
            let push_number = self
                .store
                .snapshot_now()
                .fact_counts()
                .unwrap()
                .pushes
                .total
                + 1;
            let push = Push {
                repository: Some(repository(repository_number)),
                repo: format!("own/{repository_number}"),
                clone_url: url.to_owned(),
                r#ref: format!("refs/heads/{branch}"),
                after_sha: CommitSha::new(&self.head).unwrap(),
                captured_at: Clock::system().now(),
                ..push(push_number.into())
            };
            let request = RefreshRequest {
                due_at: push.captured_at,
                push: push.clone(),
            };
            let delivery = Delivery {
                facts: vec![Append::Push(Box::new(push))],
                refreshes: vec![request],
                ..Delivery::default()
            };
            self.store.append_blocking(delivery).unwrap();
        }

        fn deliver_to_silence(&self, repository_number: u32, branch: &str) {
            let url = format!("git://{}/r.git", self.silent.local_addr().unwrap());
            self.deliver(repository_number, branch, &url);
        }

        /// Returns the state of each mirror, by repository.
        fn states(&self) -> Vec<MirrorStatus> {
            let now = Clock::system().now();
            self.store.snapshot_now().mirrors(now).unwrap()
        }

        /// Counts the programs that are running in the mirrors.
        fn programs(&self) -> usize {
            processes::in_folder(self.database.folder()).len()
        }
    }

    fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_mins(1), "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_hanging_repository_does_not_block_the_others() {
        let stage = Stage::new();
        let mirrors = stage.start(|_| {});
        stage.deliver_to_silence(1, "main");
        mirrors.wake();
        for number in 2..8 {
            stage.deliver(number, "main", &stage.forge.url());
        }
        mirrors.wake();
        eventually("all are refreshed", || {
            let done = |status: &&MirrorStatus| status.last_success_at.is_some();
            stage.states().iter().filter(done).count() == 6
        });
        eventually("the other one hangs", || {
            matches!(stage.states()[0].state, JobState::Running(_)) && stage.programs() > 0
        });
        let start = Instant::now();
        mirrors.stop();
        assert!(start.elapsed() < Duration::from_secs(20));
        eventually("nothing is left", || stage.programs() == 0);
        let hanging = stage.states().remove(0);
        assert_eq!((hanging.state, hanging.attempts), (JobState::Waiting, 0));
        let observed = stage.store.snapshot_now().fact_counts().unwrap();
        assert_eq!(observed.session_commit_observations.total, 6);
    }

    #[test]
    fn new_repositories_of_a_silent_host_never_occupy_all_workers() {
        let stage = Stage::new();
        for number in 1..=3 {
            stage.deliver_to_silence(number, "main");
        }
        stage.deliver(9, "main", &stage.forge.url());
        let mirrors = stage.start(|config| config.deadline = Duration::from_mins(10));
        eventually("the sound one is refreshed", || {
            let states = stage.states();
            states.iter().any(|state| state.last_success_at.is_some())
        });
        let running = |status: &MirrorStatus| matches!(status.state, JobState::Running(_));
        assert!(stage.states().into_iter().filter(running).count() <= 1);
        mirrors.stop();
    }

    #[test]
    fn failing_repositories_never_occupy_all_workers() {
        let stage = Stage::new();
        for number in 1..=3 {
            stage.deliver_to_silence(number, "main");
        }
        let mirrors = stage.start(|config| config.deadline = Duration::from_millis(500));
        eventually("each has failed once", || {
            stage
                .states()
                .iter()
                .all(|state| state.last_failure.is_some())
        });
        mirrors.stop();
        // They are pushed to again, and hang for longer than anybody would wait.
        for number in 1..=3 {
            stage.deliver_to_silence(number, "again");
        }
        let mirrors = stage.start(|config| config.deadline = Duration::from_mins(10));
        let running = |status: &MirrorStatus| matches!(status.state, JobState::Running(_));
        eventually("one hangs again", || stage.states().iter().any(running));
        stage.deliver(9, "main", &stage.forge.url());
        mirrors.wake();
        eventually("the sound one is refreshed", || {
            stage
                .states()
                .iter()
                .any(|state| state.last_success_at.is_some())
        });
        let still_running = stage.states().into_iter().filter(running);
        assert_eq!(still_running.count(), 1);
        mirrors.stop();
    }

    #[test]
    fn a_job_that_hangs_ends_at_its_deadline_and_leaves_no_process() {
        let stage = Stage::new();
        stage.deliver_to_silence(1, "main");
        let mirrors = stage.start(|config| config.deadline = Duration::from_millis(700));
        eventually("git runs", || stage.programs() > 0);
        eventually("it is given up", || {
            stage.states()[0].last_failure.as_deref() == Some("fetch_timeout")
        });
        eventually("nothing is left", || stage.programs() == 0);
        mirrors.stop();
    }
}
