//! How attempts end, and what follows.

use super::*;

#[rstest]
fn a_failed_job_is_retried_and_then_given_up_until_the_next_delivery(
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
fn a_delivery_during_a_failing_attempt_makes_the_job_due_at_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, jobs) = (database.open("acme"), jobs(&database));
    deliver(&store, push(1));
    let job = claim(&jobs, 0).unwrap();
    // The clock of the server that receives the push may be behind.
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
fn a_failed_job_counts_once_for_all_its_pushes_and_a_dead_server_adds_none(
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
    // An attempt reads the pushes that have waited longest, not all of them.
    assert_eq!(jobs.waiting_pushes(&job.lifetime, 2).unwrap().len(), 2);
    let failed = JobEnd::Failed {
        reason: "fetch_failed",
        retry_at: Some(at(1_000)),
    };
    assert!(jobs.end(&job, failed, at(1)).unwrap());
    assert_eq!((claim(&jobs, 999), attempts()), (None, 1));
    // The server dies, and the next one puts the job back.
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
fn the_last_attempt_decides_the_state_even_if_clocks_disagree(
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
fn a_declined_push_leaves_the_job_and_the_others_stay(
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
    // The mirror may be fetched for the next push.
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
fn a_job_that_is_put_back_is_unchanged(
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
