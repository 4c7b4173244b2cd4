//! The examples of the SDK, run against a service. The example of an agent that resumes work is run
//! in [`first_use`](super::first_use).

use std::time::{Duration, SystemTime};

use svc_client::model::ingest::CiResult;
use svc_client::model::query::SessionSummary;
use svc_client::model::repository::RepositoryName;
use svc_client::model::time::Instant;
use svc_client::{Outbox, OutboxLimits};

use super::first_use::Service;

#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../../svc-client/examples/follow_sessions.rs"]
mod follow_sessions;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../../svc-client/examples/outbox.rs"]
mod outbox;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../../svc-client/examples/send_ci.rs"]
mod send_ci;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../../svc-client/examples/triage.rs"]
mod triage;

/// What Jenkins says about a build.
fn build(name: &str, result: &str) -> Option<String> {
    let value = match name {
        "BUILD_RESULT" => result,
        "BUILD_TAG" => "jenkins-shop-7",
        "REPOSITORY" => "acme/shop",
        "GIT_COMMIT" => "9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c",
        "GIT_BRANCH" => "main",
        "JOB_NAME" => "shop",
        _ => return None,
    };
    Some(value.to_owned())
}

fn moment(at: SystemTime) -> Instant {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970");
    let microseconds = i64::try_from(since.as_micros()).expect("before the year 294247");
    Instant::from_microseconds(microseconds).expect("a year of four digits")
}

#[tokio::test]
async fn a_failure_reported_by_ci_is_found_by_the_triage_example() {
    let service = Service::start();
    service.wait_until_healthy().await;
    let pipeline = service.client(Some("SVC_OPERATOR_TOKEN"));
    let failed = send_ci::outcome(|name| build(name, "FAILURE")).unwrap();
    let stored = send_ci::send(&pipeline, &failed).await.unwrap();
    assert_eq!(stored, CiResult::Failed);
    // The first report of a run is kept.
    let passed = send_ci::outcome(|name| build(name, "SUCCESS")).unwrap();
    let stored = send_ci::send(&pipeline, &passed).await.unwrap();
    assert_eq!(stored, CiResult::Failed);

    let operator = service.client(Some("SVC_OPERATOR_TOKEN"));
    let hour = Duration::from_hours(1);
    let range = moment(SystemTime::now() - hour)..moment(SystemTime::now() + hour);
    let found = triage::triage(&operator, "acme/shop", range.clone()).await;
    let found = found.unwrap();
    let [finding] = &*found else {
        panic!("expected one run, not {found:?}");
    };
    assert_eq!(finding.run.run_id, "jenkins-shop-7");
    assert_eq!(finding.run.result, CiResult::Failed);
    assert!(finding.sessions.is_empty(), "nobody observed one");
    let elsewhere = triage::triage(&operator, "acme/other", range).await;
    assert!(elsewhere.unwrap().is_empty());
}

#[tokio::test]
async fn the_hook_of_an_agent_reports_its_edits() {
    let service = Service::start();
    service.wait_until_healthy().await;
    let folder = tempfile::tempdir().expect("a folder");
    let queue = Outbox::open(folder.path().join("outbox"), OutboxLimits::default()).unwrap();
    let hook = service.client(Some("SVC_OPERATOR_TOKEN"));
    for call in ["call-1", "call-2"] {
        let reported = outbox::report(&queue, &hook, "s-1", call, "src/pager.rs");
        reported.await.unwrap();
    }
    let facts = service.client(Some("SVC_OPERATOR_TOKEN")).facts().await;
    assert_eq!(facts.unwrap().tables.developer_decisions.visible, 2);
}

#[tokio::test]
async fn the_follow_example_shows_each_new_session_once() {
    let service = Service::start();
    service.wait_until_healthy().await;
    let hook = service.client(Some("SVC_OPERATOR_TOKEN"));
    let folder = tempfile::tempdir().expect("a folder");
    let queue = Outbox::open(folder.path().join("outbox"), OutboxLimits::default()).unwrap();
    let operator = service.client(Some("SVC_OPERATOR_TOKEN"));
    let from = moment(SystemTime::now() - Duration::from_hours(1));
    let mut follower = follow_sessions::Follower::new(operator.clone(), from, None);
    let ids = |found: Vec<SessionSummary>| -> Vec<String> {
        let ids = found
            .into_iter()
            .map(|session| session.session_id.as_str().to_owned());
        ids.collect()
    };
    assert_eq!(ids(follower.look().await.unwrap()), [""; 0]);
    for session in ["s-1", "s-2"] {
        let reported = outbox::report(&queue, &hook, session, session, "src/pager.rs");
        reported.await.unwrap();
    }
    assert_eq!(ids(follower.look().await.unwrap()), ["s-1", "s-2"]);
    // A Session that continues is not new.
    for (session, call) in [("s-1", "call-2"), ("s-3", "call-1")] {
        let reported = outbox::report(&queue, &hook, session, call, "src/pager.rs");
        reported.await.unwrap();
    }
    assert_eq!(ids(follower.look().await.unwrap()), ["s-3"]);
    assert_eq!(ids(follower.look().await.unwrap()), [""; 0]);

    let elsewhere = RepositoryName::new("acme/other");
    let mut other = follow_sessions::Follower::new(operator, from, elsewhere);
    assert_eq!(ids(other.look().await.unwrap()), [""; 0]);
}
