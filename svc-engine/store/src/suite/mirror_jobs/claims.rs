//! Which server has a job, and for how long.

use super::*;

#[rstest]
fn a_job_is_claimed_by_only_one_of_many_servers(
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
                    // A locked row is skipped, so one claim may find nothing while jobs are left.
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
        "it no longer owns the job"
    );
    assert_eq!(waiting(&jobs, "own/repo").len(), 1);
    assert!(succeed(&jobs, &taken, &pushes, 12));
    assert!(!succeed(&jobs, &taken, &pushes, 13), "the job has ended");
    assert_eq!(waiting(&jobs, "own/repo"), []);
}

#[rstest]
fn a_worker_for_sound_jobs_does_not_claim_failed_ones(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    let sound = |second| {
        jobs.claim(JobChoice::Sound, at(second), at(second + 10), holder(1))
            .unwrap()
    };
    deliver(&store, push(1));
    let job = sound(0).expect("it was never attempted");
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
    assert!(
        sound(8).is_some(),
        "the repository no longer counts as failing"
    );
}

#[rstest]
fn successive_pushes_share_a_refresh_and_do_not_postpone_it(
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
fn a_renewed_lease_does_not_expire(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
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
    assert!(
        !jobs.renew(&job, at(90)).unwrap(),
        "it no longer owns the job"
    );
    assert_eq!(
        jobs.claim(JobChoice::Any, at(29), at(39), holder(3))
            .unwrap(),
        None
    );
    assert!(succeed(&jobs, &taken, &waiting(&jobs, "own/repo"), 29));
    assert!(!jobs.renew(&taken, at(90)).unwrap(), "the job has ended");
}

#[rstest]
fn pushes_that_arrive_while_a_job_runs_wait_for_the_next(
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
