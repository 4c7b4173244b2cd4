//! Jobs: made by pushes, claimed by one server at a time, ended without losing new deliveries.

mod claims;
mod ends;
mod notes;

use std::collections::BTreeSet;

use svc_engine_fact::{Lifetime, Push};
use svc_model::repository::{CommitSha, RepositoryIdentity};

use super::*;

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
        ..Delivery::default()
    };
    store.append_now(delivery).unwrap();
}

fn lifetime(text: &str) -> Lifetime {
    Lifetime::parse(text).unwrap()
}

fn holder(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Claims a job at this second, for ten seconds.
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
fn a_push_and_its_redelivery_make_the_mirror_due(
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
fn a_push_quarantined_while_it_waits_is_read_as_quarantined(
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
fn an_unreadable_job_does_not_block_the_others(
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
