//! Jobs: made by pushes, claimed by one server at a time, ended without losing what came meanwhile.

use std::collections::BTreeSet;

use svc_model::repository::{CommitSha, RepositoryIdentity};

use super::*;
use crate::fact::{Lifetime, Push};

fn jobs(database: &TestStore) -> MirrorJobs {
    MirrorJobs::new(Arc::new(database.open("acme")))
}

fn identified(number: u128, repository: RepositoryIdentity) -> Push {
    Push {
        repository: Some(repository),
        ..push(number)
    }
}

/// Stores a push and asks for a refresh, as a delivery does.
fn deliver(store: &Store, push: Push) {
    let request = RefreshRequest {
        due_at: push.captured_at,
        push: push.clone(),
    };
    deliver_with(store, push, request);
}

fn deliver_with(store: &Store, push: Push, request: RefreshRequest) {
    let delivery = Delivery {
        facts: vec![Append::Push(Box::new(push))],
        refreshes: vec![request],
        counted: None,
    };
    store.append_now(delivery).unwrap();
}

fn lifetime(text: &str) -> Lifetime {
    Lifetime::parse(text).unwrap()
}

fn holder(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Claims at a second, for ten seconds.
fn claim(jobs: &MirrorJobs, second: i64) -> Option<ClaimedJob> {
    jobs.claim(JobChoice::Any, at(second), at(second + 10), holder(1))
        .unwrap()
}

fn waiting(jobs: &MirrorJobs, repository: &str) -> Vec<WaitingPush> {
    jobs.waiting_pushes(&lifetime(repository), 100).unwrap()
}

fn succeed(jobs: &MirrorJobs, job: &ClaimedJob, done: &[WaitingPush], second: i64) -> bool {
    let end = JobEnd::Succeeded {
        done: done.to_vec(),
        notes: String::new(),
        reached: Vec::new(),
        remark: None,
        more: false,
    };
    jobs.end(job, end, at(second)).unwrap()
}

fn status(store: &Store, second: i64) -> Vec<MirrorStatus> {
    store.snapshot_now().mirrors(at(second)).unwrap()
}

#[rstest]
fn a_push_makes_its_mirror_due_and_a_redelivery_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    assert_eq!(claim(&jobs, 0), None);
    let first = identified(1, repository(7));
    deliver(&store, first.clone());
    let job = claim(&jobs, 0).unwrap();
    assert_eq!(job.lifetime, lifetime("github/github.com/7"));
    assert_eq!((job.attempts, job.notes.as_str()), (0, ""));
    assert_eq!(claim(&jobs, 1), None, "it is claimed");
    let pushes = waiting(&jobs, "github/github.com/7");
    assert_eq!(pushes.len(), 1);
    assert_eq!(pushes[0].push, first);
    assert!(pushes[0].visible);
    assert!(succeed(&jobs, &job, &pushes, 2));
    assert_eq!(claim(&jobs, 100), None);

    let again = Push {
        push_id: id(2),
        repo: "own/renamed".to_owned(),
        clone_url: "https://elsewhere.test/r".to_owned(),
        captured_at: at(200),
        ..first.clone()
    };
    deliver(&store, again);
    let job = claim(&jobs, 200).unwrap();
    let pushes = waiting(&jobs, "github/github.com/7");
    assert_eq!(pushes[0].push.push_id, id(1), "the stored push");
    assert_eq!(pushes[0].push.repo, "own/repo");
    assert_eq!(pushes[0].push.clone_url, "https://elsewhere.test/r");
    assert_eq!(pushes[0].delivered_repo.as_str(), "own/renamed");
    assert!(succeed(&jobs, &job, &pushes, 201));
}

#[rstest]
fn pushes_of_one_repository_share_a_job(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    for (number, after) in (1..).zip(['b', 'c', 'd']) {
        deliver(
            &store,
            Push {
                after_sha: commit(after),
                captured_at: at(number.try_into().unwrap()),
                ..push(number)
            },
        );
    }
    deliver(&store, identified(9, repository(7)));
    let mut claimed: Vec<String> = (0..)
        .map_while(|_| claim(&jobs, 50))
        .map(|job| job.lifetime.to_string())
        .collect();
    claimed.sort();
    assert_eq!(claimed, ["github/github.com/7", "own/repo"]);
    let pushes = waiting(&jobs, "own/repo");
    let ids: Vec<_> = pushes.iter().map(|push| push.push.push_id).collect();
    assert_eq!(ids, [id(1), id(2), id(3)], "the oldest first");
    assert_eq!(
        jobs.waiting_pushes(&lifetime("own/repo"), 2).unwrap().len(),
        2
    );
}

#[rstest]
fn a_nameless_or_quarantined_push_makes_nothing_due(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let nameless = Push {
        repo: String::new(),
        ..identified(1, repository(7))
    };
    deliver(&store, nameless.clone());
    let named_later = Push {
        repo: "own/repo".to_owned(),
        ..nameless
    };
    deliver(&store, named_later);
    assert_eq!(claim(&jobs, 50), None, "the stored push has no name");

    store
        .append_now(vec![Append::Push(Box::new(push(2)))])
        .unwrap();
    let hide = entry(
        FactTable::Pushes,
        &id(2).to_string(),
        QuarantineAction::Quarantine,
    );
    database.ledger("acme").quarantine(&[hide]).unwrap();
    deliver(&store, push(3));
    assert_eq!(claim(&jobs, 50), None);
    assert_eq!(status(&store, 50), []);
}

#[rstest]
fn a_push_that_is_quarantined_while_it_waits_is_seen_as_such(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let hide = entry(
        FactTable::Pushes,
        &id(1).to_string(),
        QuarantineAction::Quarantine,
    );
    database.ledger("acme").quarantine(&[hide]).unwrap();
    assert!(!waiting(&jobs, "own/repo")[0].visible);
}

#[rstest]
fn a_job_is_claimed_by_one_of_many_servers(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const JOBS: u32 = 12;
    let database = database!(backend);
    let store = database.open("acme");
    for number in 1..=JOBS {
        deliver(&store, identified(number.into(), repository(number)));
    }
    let servers = 6;
    let barrier = Barrier::new(servers);
    let claimed: Vec<String> = std::thread::scope(|scope| {
        let servers: Vec<_> = (0..servers)
            .map(|_| {
                scope.spawn(|| {
                    let jobs = jobs(&database);
                    barrier.wait();
                    let mut claimed = Vec::new();
                    // A locked row is passed over, so one look may find nothing while jobs are left.
                    for _ in 0..JOBS * 3 {
                        claimed.extend(claim(&jobs, 50).map(|job| job.lifetime.to_string()));
                    }
                    claimed
                })
            })
            .collect();
        servers
            .into_iter()
            .flat_map(|server| server.join().unwrap())
            .collect()
    });
    let distinct: BTreeSet<&String> = claimed.iter().collect();
    assert_eq!(claimed.len(), distinct.len(), "{claimed:?}");
    assert_eq!(claimed.len(), JOBS as usize);
}

#[rstest]
fn the_job_of_a_dead_server_is_taken_again_and_its_end_is_ignored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let dead = jobs
        .claim(JobChoice::Any, at(0), at(10), holder(1))
        .unwrap()
        .unwrap();
    assert_eq!(
        jobs.claim(JobChoice::Any, at(9), at(19), holder(2))
            .unwrap(),
        None
    );
    assert_eq!(status(&store, 9)[0].state, JobState::Running(at(0)));
    let taken = jobs
        .claim(JobChoice::Any, at(10), at(20), holder(2))
        .unwrap()
        .unwrap();
    assert_eq!(taken.lifetime, dead.lifetime);
    let pushes = waiting(&jobs, "own/repo");
    assert!(
        !succeed(&jobs, &dead, &pushes, 11),
        "it is not its any more"
    );
    assert_eq!(waiting(&jobs, "own/repo").len(), 1);
    assert!(succeed(&jobs, &taken, &pushes, 12));
    assert!(!succeed(&jobs, &taken, &pushes, 13), "it is over");
    assert_eq!(waiting(&jobs, "own/repo"), []);
}

#[rstest]
fn what_failed_before_is_not_taken_by_who_takes_sound_jobs(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let sound = |second| {
        jobs.claim(JobChoice::Sound, at(second), at(second + 10), holder(1))
            .unwrap()
    };
    deliver(&store, push(1));
    let job = sound(0).expect("it was never tried");
    let failed = JobEnd::Failed {
        reason: "fetch_timeout",
        retry_at: Some(at(5)),
    };
    assert!(jobs.end(&job, failed, at(2)).unwrap());
    assert_eq!(sound(6), None);
    let job = claim(&jobs, 6).expect("others take it");
    assert!(succeed(&jobs, &job, &waiting(&jobs, "own/repo"), 7));
    deliver(
        &store,
        Push {
            after_sha: commit('d'),
            ..push(2)
        },
    );
    assert!(sound(8).is_some(), "it is sound again");
}

#[rstest]
fn pushes_that_follow_each_other_share_a_refresh_and_do_not_put_it_off(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let settled = |number: u128, after: char, delivered: i64, due: i64| {
        let push = Push {
            after_sha: commit(after),
            captured_at: at(delivered),
            ..push(number)
        };
        let request = RefreshRequest {
            push: push.clone(),
            due_at: at(due),
        };
        deliver_with(&store, push, request);
    };
    settled(1, 'c', 0, 10);
    settled(2, 'd', 5, 15);
    assert_eq!(jobs.next_due(at(5)).unwrap(), Some(at(10)));
    assert_eq!(claim(&jobs, 9), None);
    let job = claim(&jobs, 10).unwrap();
    let both = waiting(&jobs, "own/repo");
    assert_eq!(both.len(), 2);
    let failed = JobEnd::Failed {
        reason: "fetch_failed",
        retry_at: Some(at(1_000)),
    };
    assert!(jobs.end(&job, failed, at(11)).unwrap());
    settled(3, 'e', 20, 30);
    assert_eq!(jobs.next_due(at(20)).unwrap(), Some(at(30)), "news");
    assert!(claim(&jobs, 30).is_some());
}

#[rstest]
fn a_lease_that_is_renewed_does_not_end(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let job = claim(&jobs, 0).unwrap();
    assert!(jobs.renew(&job, at(20)).unwrap());
    assert_eq!(claim(&jobs, 19), None);
    let taken = jobs
        .claim(JobChoice::Any, at(20), at(30), holder(2))
        .unwrap()
        .unwrap();
    assert!(!jobs.renew(&job, at(90)).unwrap(), "it is not its any more");
    assert_eq!(
        jobs.claim(JobChoice::Any, at(29), at(39), holder(3))
            .unwrap(),
        None
    );
    assert!(succeed(&jobs, &taken, &waiting(&jobs, "own/repo"), 29));
    assert!(!jobs.renew(&taken, at(90)).unwrap(), "it is over");
}

#[rstest]
fn what_comes_while_a_job_runs_is_looked_at_next(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let job = claim(&jobs, 0).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    let later = Push {
        after_sha: commit('c'),
        captured_at: at(3),
        ..push(2)
    };
    deliver(&store, later);
    let again = Push {
        clone_url: "https://elsewhere.test/r".to_owned(),
        captured_at: at(4),
        ..push(3)
    };
    deliver(&store, again);
    assert_eq!(claim(&jobs, 5), None, "one at a time");
    assert!(succeed(&jobs, &job, &pushes, 6));
    let job = claim(&jobs, 6).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    let ids: Vec<_> = pushes.iter().map(|push| push.push.push_id).collect();
    assert_eq!(ids, [id(2), id(1)], "the one that came again too");
    assert!(succeed(&jobs, &job, &pushes, 7));
    assert_eq!(claim(&jobs, 1_000), None);
}

#[rstest]
fn a_failure_is_tried_again_then_given_up_until_something_is_delivered(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let fail = |job: &ClaimedJob, retry_at: Option<i64>, now: i64| {
        let end = JobEnd::Failed {
            reason: "fetch_failed",
            retry_at: retry_at.map(at),
        };
        assert!(jobs.end(job, end, at(now)).unwrap());
    };
    fail(&claim(&jobs, 0).unwrap(), Some(30), 1);
    assert_eq!(claim(&jobs, 29), None);
    let shown = status(&store, 29).remove(0);
    assert_eq!(shown.state, JobState::Retrying(at(30)));
    assert_eq!((shown.attempts, shown.waiting_pushes), (1, 1));
    assert_eq!(shown.last_failure.as_deref(), Some("fetch_failed"));
    assert_eq!(
        (shown.last_failure_at, shown.last_success_at),
        (Some(at(1)), None)
    );
    assert_eq!(status(&store, 30)[0].state, JobState::Waiting);

    let job = claim(&jobs, 30).unwrap();
    assert_eq!(job.attempts, 1);
    fail(&job, None, 31);
    assert_eq!(claim(&jobs, 100_000), None);
    let shown = status(&store, 100_000).remove(0);
    assert_eq!((shown.state, shown.attempts), (JobState::GivenUp, 2));

    let repaired = Push {
        captured_at: at(200_000),
        ..push(2)
    };
    deliver(&store, repaired);
    let job = claim(&jobs, 200_000).unwrap();
    assert_eq!(job.attempts, 0);
    assert!(succeed(&jobs, &job, &waiting(&jobs, "own/repo"), 200_001));
    let shown = status(&store, 200_002).remove(0);
    assert_eq!(shown.state, JobState::Idle);
    assert_eq!(shown.last_success_at, Some(at(200_001)));
    assert_eq!(
        shown.last_failure_at,
        Some(at(31)),
        "the operator still sees it"
    );
}

#[rstest]
fn a_delivery_during_a_failing_attempt_is_tried_at_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let job = claim(&jobs, 0).unwrap();
    // The clock of the server that takes it may be behind.
    let repaired = Push {
        captured_at: at(0),
        ..push(2)
    };
    deliver(&store, repaired);
    let end = JobEnd::Failed {
        reason: "fetch_failed",
        retry_at: Some(at(1_000)),
    };
    assert!(jobs.end(&job, end, at(3)).unwrap());
    assert_eq!(claim(&jobs, 3).unwrap().attempts, 0);
}

#[rstest]
fn a_failure_is_one_however_many_pushes_wait_and_a_server_that_died_had_none(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    for (number, after) in (1..).zip(['d', 'e', 'f']) {
        deliver(
            &store,
            Push {
                after_sha: commit(after),
                ..push(number)
            },
        );
    }
    let attempts = || status(&store, 0)[0].attempts;
    let job = claim(&jobs, 0).unwrap();
    assert_eq!(attempts(), 0);
    // An attempt looks at the pushes that have waited longest, and not at all of them.
    assert_eq!(jobs.waiting_pushes(&job.lifetime, 2).unwrap().len(), 2);
    let failed = JobEnd::Failed {
        reason: "fetch_failed",
        retry_at: Some(at(1_000)),
    };
    assert!(jobs.end(&job, failed, at(1)).unwrap());
    assert_eq!((claim(&jobs, 999), attempts()), (None, 1));
    // Its server dies, and the next one puts it back.
    let dead = claim(&jobs, 1_000).unwrap();
    let taken = claim(&jobs, 2_000).unwrap();
    assert_eq!((dead.attempts, taken.attempts, attempts()), (1, 1, 1));
    let put_back = JobEnd::PutBack {
        due_at: at(3_000),
        reason: None,
    };
    assert!(jobs.end(&taken, put_back, at(2_001)).unwrap());
    assert_eq!(attempts(), 1);
}

#[rstest]
fn the_last_attempt_says_how_a_mirror_is_whatever_the_clocks_say(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let decline = |job: &ClaimedJob, now| {
        let end = JobEnd::Declined {
            done: waiting(&jobs, "own/repo"),
            reason: Some("name_ambiguous"),
        };
        assert!(jobs.end(job, end, at(now)).unwrap());
    };
    let state = || status(&store, 9)[0].state;
    decline(&claim(&jobs, 0).unwrap(), 100);
    assert_eq!(state(), JobState::Refused);
    deliver(&store, push(2));
    let job = jobs
        .claim(JobChoice::Any, at(1), at(9), holder(2))
        .unwrap()
        .unwrap();
    assert!(succeed(&jobs, &job, &waiting(&jobs, "own/repo"), 2));
    assert_eq!(state(), JobState::Idle);
    deliver(&store, push(3));
    let sound = jobs.claim(JobChoice::Sound, at(3), at(9), holder(2));
    decline(&sound.unwrap().expect("its last attempt succeeded"), 4);
    assert_eq!(state(), JobState::Refused);
}

#[rstest]
fn a_declined_push_is_forgotten_and_the_others_stay(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let decline = |job: &ClaimedJob, done: &[WaitingPush], now| {
        let end = JobEnd::Declined {
            done: done.to_vec(),
            reason: Some("clone_url_refused"),
        };
        assert!(jobs.end(job, end, at(now)).unwrap());
    };
    let job = claim(&jobs, 0).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    deliver(
        &store,
        Push {
            after_sha: commit('c'),
            captured_at: at(1),
            ..push(2)
        },
    );
    decline(&job, &pushes, 2);
    let job = claim(&jobs, 2).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    assert_eq!(pushes[0].push.push_id, id(2));
    decline(&job, &pushes, 3);
    assert_eq!(claim(&jobs, 1_000), None);
    let shown = status(&store, 4).remove(0);
    assert_eq!(shown.state, JobState::Refused);
    assert!(shown.is_failing());
    assert_eq!(shown.last_failure.as_deref(), Some("clone_url_refused"));
    assert_eq!(shown.last_failure_at, Some(at(3)));
    // The next one may be fetched for.
    let allowed = Push {
        after_sha: commit('d'),
        captured_at: at(5),
        ..push(3)
    };
    deliver(&store, allowed);
    assert_eq!(status(&store, 6)[0].state, JobState::Waiting);
    let job = claim(&jobs, 6).unwrap();
    let end = JobEnd::Succeeded {
        done: waiting(&jobs, "own/repo"),
        notes: String::new(),
        reached: Vec::new(),
        remark: Some("note_invalid"),
        more: false,
    };
    assert!(jobs.end(&job, end, at(7)).unwrap());
    let shown = status(&store, 8).remove(0);
    assert_eq!((shown.state, shown.is_failing()), (JobState::Idle, false));
}

#[rstest]
fn a_job_that_was_put_back_is_as_it_was(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let job = claim(&jobs, 0).unwrap();
    let end = JobEnd::PutBack {
        due_at: at(60),
        reason: None,
    };
    assert!(jobs.end(&job, end, at(1)).unwrap());
    assert_eq!(claim(&jobs, 59), None);
    let again = claim(&jobs, 60).unwrap();
    assert_eq!((again.attempts, &again.lifetime), (0, &job.lifetime));
    assert_eq!(status(&store, 61)[0].last_failure, None);
}

#[rstest]
fn what_a_refresh_leaves_is_there_for_the_next(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let note = |digit| DeferredNote {
        notes_ref: "refs/notes/svc".to_owned(),
        commit_sha: commit(digit),
    };
    let refresh = |deferred: &[DeferredNote], reached: &[DeferredNote], notes: &str, more, now| {
        let job = claim(&jobs, now).unwrap();
        let given_up = jobs.defer(&job.lifetime, deferred, 100, at(now));
        assert_eq!(given_up.unwrap(), 0);
        let end = JobEnd::Succeeded {
            done: waiting(&jobs, "own/repo"),
            notes: notes.to_owned(),
            reached: reached.to_vec(),
            remark: None,
            more,
        };
        assert!(jobs.end(&job, end, at(now)).unwrap());
    };
    let own = lifetime("own/repo");
    refresh(&[note('1'), note('2')], &[], "one", true, 0);
    assert_eq!(jobs.deferred_notes(&own).unwrap(), [note('1'), note('2')]);
    let job = claim(&jobs, 1).unwrap();
    assert_eq!(job.notes, "one");
    let back = JobEnd::PutBack {
        due_at: at(2),
        reason: Some("disk_reserve"),
    };
    jobs.end(&job, back, at(2)).unwrap();
    let shown = status(&store, 2).remove(0);
    assert_eq!(shown.last_failure.as_deref(), Some("disk_reserve"));
    assert_eq!(shown.attempts, 0);
    refresh(&[note('2'), note('3')], &[note('1')], "two", false, 3);
    assert_eq!(jobs.deferred_notes(&own).unwrap(), [note('2'), note('3')]);
    assert_eq!(jobs.deferred_notes(&lifetime("own/other")).unwrap(), []);
    assert_eq!(claim(&jobs, 1_000), None, "nothing is left to do");
}

#[rstest]
fn notes_that_wait_are_bounded_and_the_oldest_give_way(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let note = |number: usize| DeferredNote {
        notes_ref: "refs/notes/svc".to_owned(),
        commit_sha: CommitSha::new(&format!("{number:040x}")).unwrap(),
    };
    deliver(&store, push(1));
    let own = lifetime("own/repo");
    for (second, numbers, expected) in [(0, 0..900, 0), (1, 900..1_050, 50), (2, 2_000..2_001, 1)] {
        let deferred: Vec<_> = numbers.map(note).collect();
        let given_up = jobs.defer(&own, &deferred, 1_000, at(second)).unwrap();
        assert_eq!(given_up, expected, "it is told how many");
    }
    let kept = jobs.deferred_notes(&own).unwrap();
    assert_eq!(kept.len(), 1_000);
    assert!(kept.contains(&note(1_049)) && kept.contains(&note(2_000)));
}

#[rstest]
fn an_operator_may_ask_for_a_refresh(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let ask = |text: &str, now| {
        jobs.claim_now(&lifetime(text), at(now), at(now + 10), holder(5))
            .unwrap()
    };
    assert_eq!(ask("own/repo", 0), None, "nobody ever pushed");
    deliver(&store, push(1));
    let newer = Push {
        after_sha: commit('c'),
        captured_at: at(1),
        ..push(2)
    };
    deliver(&store, newer);
    let job = ask("own/repo", 2).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    assert_eq!(pushes.len(), 2);
    assert_eq!(ask("own/repo", 3), None, "somebody works on it");
    assert!(succeed(&jobs, &job, &pushes, 4));
    let job = ask("own/repo", 5).unwrap();
    let pushes = waiting(&jobs, "own/repo");
    assert_eq!(pushes.len(), 1);
    assert_eq!(pushes[0].push.push_id, id(2), "the newest push once more");
    assert!(succeed(&jobs, &job, &pushes, 6));
    assert_eq!(claim(&jobs, 7), None);
}

#[rstest]
fn a_job_that_cannot_be_read_does_not_stand_before_the_others(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let broken = "UPDATE mirror_jobs SET mirror = 'no repository'";
    assert_eq!(database.change(broken), 1);
    deliver(
        &store,
        Push {
            captured_at: at(1),
            ..identified(2, repository(7))
        },
    );
    let job = claim(&jobs, 2).unwrap();
    assert_eq!(job.lifetime, Lifetime::Identified(repository(7)));
    let aside = "SELECT last_failure FROM mirror_jobs WHERE due_at_us IS NULL";
    assert_eq!(database.rows(aside, 1), [["store_failed"]]);
    assert_eq!(claim(&jobs, 3), None);
}

#[rstest]
fn jobs_survive_a_restart(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    deliver(&store, push(1));
    store.close();
    drop(store);
    drop(database.open("acme"));
    let restarted = jobs(&database);
    assert!(claim(&restarted, 0).is_some());
    let other = MirrorJobs::new(Arc::new(database.open("other")));
    assert_eq!(claim(&other, 100), None, "jobs are of one organization");
}
