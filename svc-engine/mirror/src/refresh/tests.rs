use std::collections::BTreeSet;
use std::fs;

use rstest::rstest;
use svc_engine_fact::testing::builders::{at, id, push, repository};
use svc_engine_store::testing::{Backend, TestStore};
use svc_engine_store::{Append, Delivery, JobState, MirrorStatus, RefreshRequest};
use svc_model::id::{FactId, SessionId};
use svc_model::repository::CommitSha;
use uuid::Uuid;

use super::*;
use crate::remote::AllowedHosts;
use crate::testing::git::{NOTES, Repository, stamp};

mod heads;
mod notes;
mod pushes;
mod setbacks;

const ZEROS: &str = "0000000000000000000000000000000000000000";

/// A service that mirrors one repository on this machine.
pub(super) struct Service {
    pub(super) database: TestStore,
    store: Arc<Store>,
    pub(super) refresher: Refresher,
    pub(super) forge: Repository,
    pushes: std::cell::Cell<u128>,
}

impl Service {
    fn start() -> Self {
        Self::start_with(Backend::Sqlite, |_| {}).unwrap()
    }

    pub(super) fn start_with(
        backend: Backend,
        configure: impl FnOnce(&mut MirrorConfig),
    ) -> Option<Self> {
        let database = TestStore::create(backend)?;
        let store = Arc::new(database.open("acme"));
        let refresher = refresher(&database, &store, configure);
        Some(Self {
            database,
            store,
            refresher,
            forge: Repository::create(),
            pushes: std::cell::Cell::new(1),
        })
    }

    /// Pushes from the forge's work tree, delivers the push, and returns its id.
    fn push(&self, before: &str, after: &str) -> FactId {
        self.forge.push();
        self.deliver(before, after, |_| {})
    }

    pub(super) fn deliver(
        &self,
        before: &str,
        after: &str,
        change: impl FnOnce(&mut Push),
    ) -> FactId {
        let number = self.pushes.get();
        self.pushes.set(number + 1);
        let mut push = Push {
            repository: Some(repository(7)),
            clone_url: self.forge.url(),
            before_sha: CommitSha::new(before).unwrap(),
            after_sha: CommitSha::new(after).unwrap(),
            captured_at: at(i64::try_from(number).unwrap()),
            ..push(number)
        };
        change(&mut push);
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
        id(number)
    }

    pub(super) fn refresh(&self) -> Option<RefreshOutcome> {
        let job = self.refresher.claim(JobChoice::Any).unwrap()?;
        Some(self.refresher.run(&job, &Cancellation::default()).unwrap())
    }

    /// Refreshes until nothing is due. Returns how often, and how much was stored.
    fn refresh_all(&self) -> (usize, usize) {
        let mut all = (0, 0);
        while let Some(outcome) = self.refresh() {
            let RefreshOutcome::Refreshed { stored, .. } = outcome else {
                panic!("{outcome:?}");
            };
            all = (all.0 + 1, all.1 + stored);
        }
        all
    }

    /// Returns the commit, Session, push and ref of every observation.
    pub(super) fn observations(&self) -> BTreeSet<(String, String, String, String)> {
        let push_id = self.database.hexadecimal("source_push_id");
        let sql = format!(
            "SELECT commit_sha, session_id, {push_id}, notes_ref FROM session_commit_observations"
        );
        self.database
            .rows(&sql, 4)
            .into_iter()
            .map(|row| {
                let [commit, session, push_id, notes] = row.try_into().unwrap();
                let push_id = Uuid::parse_str(&push_id).unwrap();
                (commit, session, push_id.to_string(), notes)
            })
            .collect()
    }

    pub(super) fn seen(&self) -> BTreeSet<(String, String)> {
        let observations = self.observations().into_iter();
        observations
            .map(|(commit, session, ..)| (commit, session))
            .collect()
    }

    fn status(&self) -> MirrorStatus {
        let mirrors = self
            .store
            .snapshot_now()
            .mirrors(self.refresher.clock.now());
        mirrors.unwrap().remove(0)
    }
}

fn refresher(
    database: &TestStore,
    store: &Arc<Store>,
    configure: impl FnOnce(&mut MirrorConfig),
) -> Refresher {
    let remotes = Remotes::new(AllowedHosts::Anything, std::collections::BTreeMap::new());
    let mut config = MirrorConfig::new(database.folder().join("mirrors"), remotes);
    config.reserve_bytes = 0;
    configure(&mut config);
    let jobs = MirrorJobs::new(Arc::clone(store));
    let git = Git::find(&Deadline::after(Duration::from_mins(1))).unwrap();
    // Far after every delivery, so that each is due.
    let clock = Clock::ticking(at(1_000_000));
    Refresher::new(Arc::clone(store), jobs, config, git, clock, Ids::random())
}

fn pair(commit: &str, session: &str) -> (String, String) {
    (commit.to_owned(), session.to_owned())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is compared with what may be nothing"
)]
pub(super) fn refreshed(stored: usize, duplicates: usize) -> Option<RefreshOutcome> {
    Some(RefreshOutcome::Refreshed {
        stored,
        duplicates,
        ignored: 0,
        more: false,
    })
}
