//! Failures page by page, and links from one reply to the next.

use svc_client::ErrorKind;
use svc_client::model::endpoint::{CiFailuresQuery, CommitQuery};
use svc_client::model::id::{FactId, RunId};
use svc_client::model::ingest::{CiProvider, CiResult};
use svc_client::model::problem::{Problem, QueryFault};
use svc_client::model::query::{
    CiCursor, CiFailures, CiFailuresRequest, CiOutcomeRecord, CiOutcomeRequest, CiRunsRequest,
    CommitEvidence, CommitLink, CommitRequest, RepositorySelector, RunName,
};
use svc_client::model::repository::{Branch, CommitSha, RepositoryName};
use svc_client::model::time::Instant;
use svc_client::testing::{Answer, FakeServer};
use uuid::Uuid;

pub(super) const SHA: &str = "9b2f3a6c1d4e5f708192a3b4c5d6e7f8091a2b3c";

fn repository() -> RepositorySelector {
    RepositorySelector::named(RepositoryName::new("acme/shop").expect("a name"))
}

fn at(text: &str) -> Instant {
    Instant::parse(text).expect("an instant")
}

pub(super) fn outcome() -> CiOutcomeRequest {
    CiOutcomeRequest {
        provider: CiProvider::Other,
        run_id: RunId::new("run 1").expect("an id"),
        run_attempt: Some(2),
        latest: false,
        repository: repository(),
        as_of: Some(at("2026-11-20T12:00:00Z")),
    }
}

pub(super) fn runs() -> CiRunsRequest {
    CiRunsRequest {
        name: RunName::Id(RunId::new("run 1").expect("an id")),
        provider: None,
        repository: repository(),
        as_of: None,
    }
}

pub(super) fn failures() -> CiFailuresRequest {
    CiFailuresRequest::new(
        repository(),
        at("2026-11-01T00:00:00Z"),
        at("2026-12-01T00:00:00Z"),
    )
}

pub(super) fn commit() -> CommitRequest {
    CommitRequest::new(CommitSha::new(SHA).expect("a commit"))
}

fn record(number: u128) -> CiOutcomeRecord {
    CiOutcomeRecord {
        outcome_id: FactId::new(Uuid::from_u128(number)),
        provider: CiProvider::Other.into(),
        run_id: format!("run {number}"),
        run_attempt: None,
        repo: "acme/shop".to_owned(),
        commit_sha: CommitSha::new(SHA).expect("a commit"),
        branch: Branch::new("main").expect("a branch"),
        result: CiResult::Failed.into(),
        workflow_name: "".into(),
        workflow_id: None,
        run_url: None,
        provider_result: None,
        error_type: None,
        reason: None,
        pr_number: None,
        captured_at: at("2026-11-20T11:00:00Z"),
        commit_query: CommitLink::new(&commit()),
        repository_identity: None,
        superseded: None,
    }
}

fn page(numbers: &[u128], next: Option<&str>) -> Answer {
    Answer::reply::<CiFailuresQuery>(&CiFailures {
        result: CiResult::Failed.into(),
        outcomes: numbers.iter().copied().map(record).collect(),
        next_cursor: next.map(CiCursor::new),
        repository_known: false,
        repository_skipped: None,
        unresolved_ci_outcomes: None,
    })
}

#[tokio::test]
async fn a_stream_follows_the_cursors_to_the_last_page() {
    let server = FakeServer::start([
        page(&[3, 2], Some("after 2")),
        page(&[], Some("still more")),
        page(&[1], None),
    ]);
    let read = server
        .client()
        .ci_failures(failures())
        .collect_all()
        .await
        .unwrap();
    assert_eq!(read, [record(3), record(2), record(1)]);
    let asked: Vec<String> = server
        .received()
        .into_iter()
        .map(|request| request.target)
        .collect();
    let first = "/query/ci/failures?captured_after=2026-11-01T00%3A00%3A00Z&\
                 captured_before=2026-12-01T00%3A00%3A00Z&repo=acme%2Fshop&result=failed&limit=50";
    assert_eq!(
        asked,
        [
            format!("{first}&explain=true"),
            format!("{first}&cursor=after+2&explain=true"),
            format!("{first}&cursor=still+more&explain=true"),
        ]
    );
}

#[tokio::test]
async fn a_stream_requests_a_page_only_when_needed() {
    let server = FakeServer::start([page(&[2, 1], Some("more"))]);
    let client = server.client();
    let mut failures = client.ci_failures(failures());
    assert!(server.received().is_empty());
    assert_eq!(failures.next().await.unwrap().unwrap(), record(2));
    assert_eq!(failures.next().await.unwrap().unwrap(), record(1));
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_stream_ends_with_the_fault_when_the_quarantine_log_has_moved() {
    let moved = Problem::Query(QueryFault::CursorMismatch);
    let server = FakeServer::start([page(&[1], Some("more")), Answer::problem(422, &moved)]);
    let mut failures = server.client().ci_failures(failures());
    assert!(failures.next().await.unwrap().is_ok());
    let error = failures.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Query(QueryFault::CursorMismatch));
    assert!(!error.is_retryable());
    assert!(failures.next().await.is_none(), "it has ended");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_stream_ends_when_the_cursors_form_a_loop() {
    for (cursors, pages) in [
        (&["a", "a", "a", "a"][..], 2),
        (&["a", "b", "a", "b"], 3),
        (&["a", "b", "c", "b", "c", "b", "c"], 5),
    ] {
        let script = cursors.iter().map(|cursor| page(&[1], Some(cursor)));
        let server = FakeServer::start(script.collect::<Vec<_>>());
        let mut failures = server.client().ci_failures(failures());
        let error = loop {
            if let Err(error) = failures.next().await.unwrap() {
                break error;
            }
        };
        assert_eq!(error.kind().code(), "cursor_repeated", "{cursors:?}");
        assert!(!error.is_retryable());
        assert!(failures.next().await.is_none(), "it has ended");
        assert_eq!(server.received().len(), pages, "{cursors:?}");
    }
}

#[tokio::test]
async fn a_link_is_followed_with_its_boundary() {
    let found = CommitEvidence::none(CommitSha::new(SHA).expect("a commit"));
    let server = FakeServer::start([Answer::reply::<CommitQuery>(&found)]);
    let link = CommitLink::new(&CommitRequest {
        as_of: Some(at("2026-11-20T11:08:02.836278Z")),
        ..commit()
    });
    assert_eq!(server.client().commit_at(&link).await.unwrap(), found);
    assert_eq!(
        server.received()[0].target,
        format!("/query/commit/{SHA}?as_of=2026-11-20T11%3A08%3A02.836278Z&explain=true")
    );
}

#[tokio::test]
async fn an_unknown_session_has_no_dossier() {
    let server = FakeServer::start([Answer::text(200, r#"{"found":false}"#)]);
    let session = svc_client::model::id::SessionId::new("a/b").expect("an id");
    assert_eq!(
        server.client().session_dossier(&session).await.unwrap(),
        None
    );
    assert_eq!(
        server.received()[0].target,
        "/query/session/a%2Fb?explain=true"
    );
}

#[tokio::test]
async fn an_unreadable_dossier_is_not_reported_as_an_unknown_session() {
    let server = FakeServer::start([Answer::text(200, r#"{"found":true,"session_id":"s"}"#)]);
    let session = svc_client::model::id::SessionId::new("s").expect("an id");
    let error = server.client().session_dossier(&session).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unreadable);
}

#[tokio::test]
async fn the_log_of_quarantine_is_read_from_its_end() {
    let page = |revisions: [u64; 2], next: &str| {
        let entry = |revision: u64| {
            format!(
                r#"{{"quarantine_revision":{revision},"recorded_at":"2026-11-20T12:00:00Z","client_id":"c","action":"release","table":"pushes","fact_id":"f","reason":"r"}}"#
            )
        };
        let [first, second] = revisions.map(entry);
        Answer::text(
            200,
            format!(
                r#"{{"org_id":"o","quarantine_revision":4,"rows":4,"entries":[{first},{second}],"next_before":{next}}}"#
            ),
        )
    };
    let server = FakeServer::start([page([3, 4], "3"), page([1, 2], "null")]);
    let entries = server.client().quarantine_entries().collect_all().await;
    let revisions = entries
        .unwrap()
        .into_iter()
        .map(|entry| entry.quarantine_revision);
    assert_eq!(revisions.collect::<Vec<_>>(), [4, 3, 2, 1]);
    let asked: Vec<String> = server
        .received()
        .into_iter()
        .map(|request| request.target)
        .collect();
    assert!(asked[1].ends_with("&before=3"), "{asked:?}");
}
