use std::collections::BTreeSet;
use std::fs;

use rstest::rstest;
use svc_model::id::SessionId;
use svc_model::repository::CommitSha;

use super::*;
use crate::fact::Push;
use crate::mirror::remote::AllowedHosts;
use crate::store::{Delivery, JobState, MirrorStatus, RefreshRequest};
use crate::testing::builders::{at, id, push, repository};
use crate::testing::git::{NOTES, Repository, stamp};
use crate::testing::{Backend, TestStore};

const ZEROS: &str = "0000000000000000000000000000000000000000";

/// A service that mirrors one repository of this machine.
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

    /// Makes the forge push and deliver what was pushed; returns the id of the push.
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
        };
        self.store.append_blocking(delivery).unwrap();
        id(number)
    }

    pub(super) fn refresh(&self) -> Option<RefreshOutcome> {
        let job = self.refresher.claim(JobChoice::Any).unwrap()?;
        Some(self.refresher.run(&job, &CallOff::default()).unwrap())
    }

    /// Refreshes until nothing is due and returns how often, with what was stored.
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

    /// Returns commit, Session, push and ref of every observation.
    pub(super) fn observations(&self) -> BTreeSet<(String, String, String, String)> {
        let sql = "SELECT commit_sha, session_id, source_push_id, notes_ref
            FROM session_commit_observations";
        self.database
            .rows(sql, 4)
            .into_iter()
            .map(|row| <[String; 4]>::try_from(row).unwrap().into())
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
    let allowance = Allowance::of(Duration::from_mins(1), CallOff::default());
    let git = Git::find(&allowance).unwrap();
    // Far behind every delivery, so that each is due.
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

#[rstest]
fn a_push_becomes_observations(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let Some(service) = Service::start_with(backend, |_| {}) else {
        return;
    };
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s", "t"]);
    let push = service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(2, 0));
    assert_eq!(service.refresh(), None);
    let observed = |session: &str| {
        (
            head.clone(),
            session.to_owned(),
            push.to_string(),
            NOTES.to_owned(),
        )
    };
    assert_eq!(
        service.observations(),
        [observed("s"), observed("t")].into()
    );
    let session = SessionId::new("t").unwrap();
    let mut snapshot = service.store.snapshot_now();
    assert!(snapshot.session_known(&session).unwrap());
    let counts = snapshot.fact_counts().unwrap();
    assert_eq!(counts.session_commit_observations.visible, 2);
    drop(snapshot);
    let status = service.status();
    assert_eq!(status.state, JobState::Idle);
    assert!(status.last_success_at.is_some());
    assert_eq!((status.last_failure, status.waiting_pushes), (None, 0));
    let mirror = "mirrors/repositories-v1/acme/github/github.com/7/HEAD";
    assert!(service.database.folder().join(mirror).is_file());
}

#[test]
fn a_second_sighting_keeps_the_first() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let first = service.observations();
    service.deliver(&base, &head, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 1));
    service.deliver(&base, &head, |push| {
        "refs/heads/other".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh(), refreshed(0, 1));
    assert_eq!(service.observations(), first);
}

#[test]
fn both_kinds_of_notes_are_read_and_a_session_counts_once() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["both", "own"]);
    let note = r#"---
{"schema_version":"authorship/3.0.0","prompts":{},"sessions":{
 "s_1":{"agent_id":{"tool":"claude","id":"both"}},"s_2":{"agent_id":{"tool":"codex","id":"theirs"}}}}"#;
    service.forge.note("refs/notes/ai", &head, note);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(3, 0));
    let refs: BTreeSet<_> = service
        .observations()
        .into_iter()
        .map(|(_, session, _, notes)| (session, notes))
        .collect();
    let expected = [
        pair("both", NOTES),
        pair("own", NOTES),
        pair("theirs", "refs/notes/ai"),
    ];
    assert_eq!(refs, expected.into());
}

#[test]
fn notes_that_are_not_wanted_are_not_read() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.notes = vec![NotesRef::GitAi];
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
}

#[test]
fn every_commit_of_a_branch_with_notes_is_seen_however_it_was_pushed() {
    let service = Service::start();
    let commits = service.forge.add_stamped(45, "old");
    // A new branch, of which the push itself shows only the head.
    service.push(ZEROS, &commits[44]);
    assert_eq!(service.refresh(), refreshed(45, 0));
    let expected: BTreeSet<_> = (1..)
        .zip(&commits)
        .map(|(number, commit)| pair(commit, &format!("old-{number}")))
        .collect();
    assert_eq!(service.seen(), expected);
}

#[test]
fn a_forced_push_is_followed_and_what_was_seen_stays() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let first = service.forge.commit("first");
    service.forge.stamp(&first, &["first"]);
    service.push(&base, &first);
    assert_eq!(service.refresh(), refreshed(1, 0));
    service.forge.run(&["reset", "-q", "--hard", &base]);
    let second = service.forge.commit("second");
    service.forge.stamp(&second, &["second"]);
    service.forge.push();
    service.deliver(&first, &second, |push| push.forced = true);
    assert_eq!(service.refresh(), refreshed(1, 0));
    // Gitea does not say that a push was forced, and the commit before is gone for a new mirror.
    service.deliver(&first, &second, |push| {
        "refs/heads/gitea".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh(), refreshed(0, 1));
    // A branch that goes back shows its head.
    service.forge.run(&["reset", "-q", "--hard", &base]);
    service.forge.stamp(&base, &["base"]);
    service.push(&second, &base);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let expected = [
        pair(&first, "first"),
        pair(&second, "second"),
        pair(&base, "base"),
    ];
    assert_eq!(service.seen(), expected.into());
}

#[test]
fn late_and_changed_notes_are_seen_with_the_next_push() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    let first = service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
    service.forge.stamp(&base, &["late"]);
    let next = service.forge.commit("next");
    let second = service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let observed = service.observations();
    let late = observed.first().unwrap();
    assert_eq!((late.0.as_str(), late.1.as_str()), (&*base, "late"));
    assert_eq!(late.2, second.to_string(), "the push that led to the note");
    assert_ne!(late.2, first.to_string());
    service.forge.stamp(&base, &["late", "later"]);
    service.push(&head, &next);
    assert_eq!(service.refresh(), refreshed(1, 1));
    assert!(service.seen().contains(&pair(&base, "later")));
}

#[test]
fn notes_may_travel_ahead_of_their_branch() {
    let service = Service::start();
    let base = service.forge.commit("base");
    service.forge.push();
    service.forge.run(&["checkout", "-q", "-b", "feature"]);
    let commits: Vec<String> = (0..3)
        .map(|number| service.forge.commit(&number.to_string()))
        .collect();
    for commit in &commits {
        service
            .forge
            .stamp(commit, &[&format!("s{}", &commit[..7])]);
    }
    let forgotten = service.forge.commit("forgotten");
    service.forge.stamp(&forgotten, &["never"]);
    service.forge.run(&["push", "-q", "origin", NOTES]);
    // Another branch is refreshed in between.
    service.deliver(ZEROS, &base, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 0));
    let lifetime = Lifetime::Identified(repository(7));
    assert_eq!(
        service
            .refresher
            .jobs
            .deferred_notes(&lifetime)
            .unwrap()
            .len(),
        4
    );
    service.forge.run(&["reset", "-q", "--hard", &commits[2]]);
    service.forge.run(&["push", "-q", "origin", "feature"]);
    service.deliver(ZEROS, &commits[2], |push| {
        "refs/heads/feature".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh_all(), (1, 3));
    let seen: BTreeSet<String> = service
        .seen()
        .into_iter()
        .map(|(commit, _)| commit)
        .collect();
    assert_eq!(seen, commits.into_iter().collect());
    let left = service.refresher.jobs.deferred_notes(&lifetime).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].commit_sha.as_str(), forgotten);
}

#[test]
fn pushes_that_came_together_share_a_refresh_and_keep_their_commits() {
    let service = Service::start();
    let commits: Vec<String> = (0..4)
        .map(|number| service.forge.commit(&number.to_string()))
        .collect();
    for commit in &commits {
        service.forge.stamp(commit, &["s"]);
    }
    service.forge.push();
    let first = service.deliver(&commits[0], &commits[1], |_| {});
    let second = service.deliver(&commits[1], &commits[3], |_| {});
    assert_eq!(service.refresh(), refreshed(4, 0));
    assert_eq!(service.refresh(), None);
    let sources: Vec<(String, String)> = service
        .observations()
        .into_iter()
        .map(|(commit, _, push, _)| (commit, push))
        .collect();
    for (place, push) in [(0, second), (1, first), (2, second), (3, second)] {
        assert!(
            sources.contains(&pair(&commits[place], &push.to_string())),
            "{place}"
        );
    }
}

#[rstest]
fn what_is_too_much_for_one_refresh_is_done_by_the_next_ones(
    #[values(1, 7, 8)] notes: usize,
    #[values(false, true)] changing: bool,
) {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.budget.notes = notes;
    })
    .unwrap();
    let commits = service.forge.add_stamped(20, "s");
    service.push(ZEROS, &commits[19]);
    let mut rounds = 0;
    while let Some(outcome) = service.refresh() {
        let RefreshOutcome::Refreshed { stored, more, .. } = outcome else {
            panic!("{outcome:?}");
        };
        rounds += 1;
        assert!(stored <= notes + 1, "the head of the push comes beside");
        assert!(rounds < 60);
        // New notes come while the old ones are still read.
        if changing && rounds == 2 {
            assert!(more);
            service.forge.run(&["reset", "-q", "--hard", "main"]);
            for commit in [&commits[0], &commits[10], &commits[19]] {
                service.forge.stamp(commit, &["changed"]);
            }
            service.forge.push();
        }
    }
    assert!(rounds > 2, "{rounds}");
    let mut expected: BTreeSet<_> = (1..)
        .zip(&commits)
        .map(|(number, commit)| pair(commit, &format!("s-{number}")))
        .collect();
    if changing {
        expected.extend([0, 10, 19].map(|place| pair(&commits[place], "changed")));
    }
    assert_eq!(service.seen(), expected);
}

#[test]
fn a_budget_of_bytes_or_sessions_never_stops_the_reading() {
    for (bytes, sessions) in [(1, 1_000), (1_000_000, 1)] {
        let service = Service::start_with(Backend::Sqlite, |config| {
            config.budget.bytes = bytes;
            config.budget.sessions = sessions;
        })
        .unwrap();
        let head = service.forge.commit("head");
        for number in 0..4 {
            let commit = service.forge.commit(&number.to_string());
            service
                .forge
                .stamp(&commit, &[&format!("a{number}"), &format!("b{number}")]);
        }
        service.push(ZEROS, &head);
        let (rounds, stored) = service.refresh_all();
        assert_eq!(stored, 8);
        assert!(rounds >= 4, "{rounds}");
    }
}

#[test]
fn a_mirror_that_was_lost_is_made_again() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let remove = || fs::remove_dir_all(service.database.folder().join("mirrors")).unwrap();
    remove();
    let next = service.forge.commit("next");
    service.forge.stamp(&next, &["s"]);
    service.push(&head, &next);
    // The observed state is in the history of the notes, so only what is new is read.
    assert_eq!(service.refresh(), refreshed(1, 0));
    remove();
    let tree = service
        .forge
        .run(&["rev-parse", &format!("{NOTES}^{{tree}}")]);
    let alone = service.forge.run(&["commit-tree", "-m", "x", &tree]);
    service.forge.run(&["update-ref", NOTES, &alone]);
    service.push(&head, &next);
    // Without that history everything is read again.
    assert_eq!(service.refresh(), refreshed(0, 2));
    // A mirror that was interrupted before it had anything.
    let mirror = service
        .refresher
        .folder
        .path(&Lifetime::Identified(repository(7)));
    fs::remove_file(mirror.join("HEAD")).unwrap();
    service.deliver(&head, &next, |_| {});
    assert!(matches!(
        service.refresh(),
        Some(RefreshOutcome::Refreshed { .. })
    ));
}

#[test]
fn malformed_notes_are_ignored_and_told() {
    let service = Service::start();
    let head = service.forge.commit("head");
    let good = service.forge.commit("good");
    let large = service.forge.commit("large");
    service.forge.note(NOTES, &head, "reviewed by me");
    service.forge.stamp(&good, &["s"]);
    service
        .forge
        .note(NOTES, &large, &"x".repeat(10 * 1024 * 1024));
    service.push(ZEROS, &large);
    assert_eq!(
        service.refresh(),
        Some(RefreshOutcome::Refreshed {
            stored: 1,
            duplicates: 0,
            ignored: 2,
            more: false
        })
    );
    let status = service.status();
    assert_eq!(status.last_failure.as_deref(), Some("note_invalid"));
    assert!(status.last_success_at.is_some());
    service.deliver(ZEROS, &large, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 0), "they are told of once");
}

#[test]
fn a_repository_that_is_gone_is_tried_again_until_it_is_back() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.forge.push();
    let url = service.forge.url();
    service.deliver(ZEROS, &head, |push| {
        push.clone_url = format!("{url}-missing");
    });
    let Some(RefreshOutcome::Failed(reason, detail, Some(retry_at))) = service.refresh() else {
        panic!("it fails");
    };
    assert_eq!(reason, MirrorFailure::FetchFailed);
    assert!(detail.starts_with("fatal: "), "{detail}");
    let status = service.status();
    assert_eq!(status.state, JobState::Retrying(retry_at));
    assert_eq!(status.last_failure.as_deref(), Some("fetch_failed"));
    assert_eq!(service.refresh(), None, "it waits");
    // The same push comes again, and says from where.
    service.deliver(ZEROS, &head, |push| push.captured_at = at(2_000));
    assert_eq!(service.refresh(), refreshed(1, 0));
}

#[test]
fn a_refused_url_is_final_and_an_earlier_one_serves() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        let allowed = AllowedHosts::Listed(vec!["forge.test".to_owned()]);
        config.remotes = Remotes::new(allowed, std::collections::BTreeMap::new());
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let Some(RefreshOutcome::Declined(reason, detail)) = service.refresh() else {
        panic!("it is refused");
    };
    assert_eq!(reason, MirrorFailure::CloneUrlRefused);
    assert_eq!(detail, "the scheme is not http, https, git or ssh");
    assert_eq!(service.refresh(), None);
    let status = service.status();
    assert_eq!(status.state, JobState::Idle);
    assert_eq!(status.last_failure.as_deref(), Some("clone_url_refused"));
    assert!(!service.database.folder().join("mirrors").exists());
}

#[test]
fn without_space_jobs_wait() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.reserve_bytes = u64::MAX;
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    assert_eq!(
        service.refresh(),
        Some(RefreshOutcome::PutBack(Some(MirrorFailure::DiskReserve)))
    );
    let status = service.status();
    assert_eq!(status.last_failure.as_deref(), Some("disk_reserve"));
    assert_eq!((status.attempts, status.waiting_pushes), (0, 1));
    assert!(matches!(status.state, JobState::Retrying(_)));
}

#[test]
fn a_job_that_is_called_off_or_finds_its_mirror_taken_is_put_back() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let call_off = CallOff::default();
    call_off.now();
    let job = service.refresher.claim(JobChoice::Any).unwrap().unwrap();
    assert_eq!(
        service.refresher.run(&job, &call_off).unwrap(),
        RefreshOutcome::PutBack(None)
    );
    assert_eq!(service.status().attempts, 0);
    let allowance = Allowance::of(Duration::from_mins(1), CallOff::default());
    let lock = service
        .refresher
        .folder
        .lock(&job.lifetime, &allowance)
        .unwrap();
    assert_eq!(service.refresh(), Some(RefreshOutcome::PutBack(None)));
    drop(lock);
    assert!(
        service
            .refresher
            .claim_now(&job.lifetime)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_deadline_ends_a_job() {
    let service = Service::start_with(Backend::Sqlite, |config| {
        config.deadline = Duration::ZERO;
    })
    .unwrap();
    let head = service.forge.commit("head");
    service.push(ZEROS, &head);
    let outcome = service.refresh();
    assert!(
        matches!(
            outcome,
            Some(RefreshOutcome::Failed(
                MirrorFailure::FetchTimeout,
                _,
                Some(_)
            ))
        ),
        "{outcome:?}"
    );
}

#[test]
fn a_repository_without_an_identity_has_a_mirror_by_its_name() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.forge.push();
    service.deliver(ZEROS, &head, |push| push.repository = None);
    assert_eq!(service.refresh(), refreshed(1, 0));
    assert!(
        service
            .database
            .folder()
            .join("mirrors/acme%2Fown%2Frepo/HEAD")
            .is_file()
    );
}

#[test]
fn a_note_that_says_nothing_new_is_no_work() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.note(NOTES, &head, r#"{"v":1,"sessions":[]}"#);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(0, 0));
    let long = "x".repeat(1_025);
    service
        .forge
        .note(NOTES, &head, &stamp(&[&long, " padded "]));
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    assert_eq!(service.seen(), [pair(&head, "padded")].into());
}

#[test]
fn a_name_that_two_repositories_bore_leads_nowhere() {
    let service = Service::start();
    let head = service.forge.commit("head");
    let next = service.forge.commit("next");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    // The name is given up and taken again.
    service.deliver(ZEROS, &head, |push| push.repository = Some(repository(8)));
    let ambiguous = RefreshOutcome::Declined(MirrorFailure::NameAmbiguous, String::new());
    assert_eq!(service.refresh(), Some(ambiguous.clone()));
    service.deliver(&head, &next, |_| {});
    assert_eq!(service.refresh(), Some(ambiguous.clone()));
    // Under a name of its own each is followed again.
    for number in [7, 8] {
        service.deliver(&head, &next, |push| {
            push.repository = Some(repository(number));
            push.repo = format!("own/renamed-{number}");
            push.r#ref = format!("refs/heads/{number}");
        });
        assert!(matches!(
            service.refresh(),
            Some(RefreshOutcome::Refreshed { .. })
        ));
    }
    // Facts without an identity mean neither.
    service.deliver(ZEROS, &head, |push| push.repository = None);
    assert_eq!(service.refresh(), Some(ambiguous));
    assert_eq!(service.refresh(), None);
}

#[test]
fn a_quarantined_push_is_forgotten() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    let push = service.push(ZEROS, &head);
    let hide = crate::store::NewQuarantineEntry {
        quarantine_id: uuid::Uuid::from_u128(1),
        table: svc_model::facts::FactTable::Pushes,
        fact_id: push.to_string(),
        action: crate::store::QuarantineAction::Quarantine,
        reason: "test".to_owned(),
        recorded_at: at(0),
    };
    service.database.ledger("acme").quarantine(&[hide]).unwrap();
    assert_eq!(service.refresh(), Some(RefreshOutcome::Nothing));
    assert_eq!(service.refresh(), None);
    let status = service.status();
    assert_eq!((status.last_failure, status.state), (None, JobState::Idle));
    assert!(!service.database.folder().join("mirrors").exists());
}
