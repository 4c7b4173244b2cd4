//! What the parameters of the queries accept, and which violation each other value gives.

use proptest::prelude::*;

use super::*;
use crate::field::FieldError;
use crate::id::RunId;
use crate::ingest::{CiProvider, CiResult};
use crate::json::{Json, NodeBudget, Object, Text};
use crate::problem::QueryFault;
use crate::quarantine::QuarantineLogRequest;
use crate::repository::{
    CommitSha, RepositoryHost, RepositoryId, RepositoryIdentity, RepositoryName, RepositoryProvider,
};
use crate::request::{Incoming, Refusal, Request};
use crate::time::Instant;

fn object<N: AsRef<str>, V: AsRef<str>>(members: &[(N, V)]) -> Object {
    members
        .iter()
        .map(|(name, value)| (Text::from(name.as_ref()), Json::from(value.as_ref())))
        .collect()
}

fn read<R: Request>(path: &[(&str, &str)], query: &[(&str, &str)]) -> Result<R, Refusal> {
    R::read(&Incoming {
        path: &object(path),
        query: &object(query),
        headers: &Object::new(),
        body: &[],
        memory: &NodeBudget::unlimited(),
    })
}

/// Returns the names of the violated parameters.
fn violated<R: Request + std::fmt::Debug>(query: &[(&str, &str)]) -> Vec<String> {
    let sha = "a".repeat(40);
    let Err(Refusal::Invalid(violations)) = read::<R>(&[("sha", &sha)], query) else {
        panic!("no violation: {query:?}");
    };
    let name = |error: FieldError| {
        assert_eq!(error.loc[0], "query".into());
        serde_json::to_value(&error.loc[1])
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    violations.into_vec().into_iter().map(name).collect()
}

fn fault<R: Request + std::fmt::Debug>(
    path: &[(&str, &str)],
    query: &[(&str, &str)],
) -> QueryFault {
    match read::<R>(path, query) {
        Err(Refusal::Query(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

const BOUNDS: [(&str, &str); 2] = [
    ("captured_after", "2026-01-01T00:00:00Z"),
    ("captured_before", "2026-02-01T00:00:00Z"),
];

#[test]
fn every_violation_of_an_outcome_query_is_listed() {
    assert_eq!(violated::<CiOutcomeRequest>(&[]), ["provider", "run_id"]);
    let wrong = [
        ("provider", "OTHER"),
        ("run_id", " "),
        ("run_attempt", "0"),
        ("repo", "noslash"),
        ("repository_provider", "gitforge"),
        ("repository_host", "a b"),
        ("repository_id", "01"),
        ("as_of", "2020-01-01T00:00:00"),
    ];
    assert_eq!(
        violated::<CiOutcomeRequest>(&wrong),
        wrong.map(|(name, _)| name)
    );
}

#[test]
fn every_violation_of_a_failures_query_is_listed() {
    assert_eq!(
        violated::<CiFailuresRequest>(&[]),
        ["captured_after", "captured_before"]
    );
    let wrong = [
        ("captured_after", "2020-01-01"),
        ("captured_before", ""),
        ("repo", ""),
        ("as_of", "soon"),
        ("result", ""),
        ("pr_number", "9223372036854775808"),
        ("limit", "101"),
    ];
    assert_eq!(
        violated::<CiFailuresRequest>(&wrong),
        wrong.map(|(name, _)| name)
    );
    for limit in ["0", "-1", "many", "", "99999999999999999999"] {
        let query = [BOUNDS[0], BOUNDS[1], ("limit", limit)];
        assert_eq!(violated::<CiFailuresRequest>(&query), ["limit"]);
    }
}

#[test]
fn an_instant_needs_an_offset_that_is_encoded() {
    for (text, microseconds) in [
        ("2099-01-01T00:00Z", 4_070_908_800_000_000),
        ("2099-01-01 02:00:00+02:00", 4_070_908_800_000_000),
        ("2099-01-01T00:00:00.1234569Z", 4_070_908_800_123_456),
    ] {
        let query = [("as_of", text)];
        let sha = "a".repeat(40);
        let request: CommitRequest = read(&[("sha", &sha)], &query).unwrap();
        assert_eq!(
            request.as_of.unwrap().microseconds(),
            microseconds,
            "{text}"
        );
    }
    // A plus sign that was not encoded arrives as a blank.
    for text in [
        "2099-01-01T00:00:00 02:00",
        "2099-01-01T00:00:00",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-12:00",
    ] {
        assert_eq!(violated::<CommitRequest>(&[("as_of", text)]), ["as_of"]);
    }
}

#[test]
fn violations_are_reported_before_faults() {
    let reversed = [
        ("captured_after", "2026-02-01T00:00:00Z"),
        ("captured_before", "2026-02-01T00:00:00Z"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&reversed[..], more].concat();
    assert_eq!(
        violated::<CiFailuresRequest>(&with(&[("limit", "x")])),
        ["limit"]
    );
    assert_eq!(
        fault::<CiFailuresRequest>(&[], &with(&[("repository_id", "1")])),
        QueryFault::ReversedBounds
    );
    assert_eq!(
        fault::<CiFailuresRequest>(&[], &[BOUNDS[0], BOUNDS[1], ("repository_id", "1")]),
        QueryFault::IncompleteIdentity
    );
    assert_eq!(
        fault::<CiFailuresRequest>(&[], &BOUNDS),
        QueryFault::MissingSelector
    );
    assert_eq!(
        violated::<CommitRequest>(&[("repo", "x")]),
        ["repo"],
        "whatever the commit"
    );
    assert_eq!(
        fault::<CommitRequest>(&[("sha", "abc")], &[("repository_id", "1")]),
        QueryFault::MalformedSha
    );
}

#[test]
fn an_incomplete_identity_is_refused() {
    let components = [
        ("repository_provider", "github"),
        ("repository_host", "GitHub.com"),
        ("repository_id", "7"),
    ];
    let sha = "A".repeat(64);
    for mask in 0..8_u8 {
        let given: Vec<_> = (0..3)
            .filter(|bit| mask & (1 << bit) != 0)
            .map(|bit| components[bit])
            .collect();
        let request = read::<CommitRequest>(&[("sha", &sha)], &given);
        match mask {
            0 => assert!(request.unwrap().repository.is_empty()),
            7 => {
                let identity = request.unwrap().repository.identity.unwrap();
                assert_eq!(identity.repository_host.as_str(), "github.com");
            }
            _ => assert_eq!(
                request,
                Err(Refusal::Query(QueryFault::IncompleteIdentity)),
                "{given:?}"
            ),
        }
    }
}

#[test]
fn parameters_are_normalised() {
    let request: CiOutcomeRequest = read(
        &[],
        &[
            ("provider", "ci_a"),
            ("run_id", " r \u{1f}"),
            ("repo", " Own/Repo "),
            ("org_id", "other"),
        ],
    )
    .unwrap();
    assert_eq!(request.run_id, RunId::new("r").unwrap());
    assert_eq!(request.repository.repo.unwrap().as_str(), "own/repo");
    let request: CiFailuresRequest = read(
        &[],
        &[
            BOUNDS[0],
            BOUNDS[1],
            ("repo", "a/b"),
            ("workflow_name", "  "),
            ("cursor", ""),
        ],
    )
    .unwrap();
    assert_eq!(request.workflow_name.as_deref(), Some(""));
    assert_eq!(request.cursor, Some(CiCursor::new("")));
    assert_eq!(request.result, CiResult::Failed);
    assert_eq!(request.limit.get(), 50);
}

fn any_selector() -> impl Strategy<Value = RepositorySelector> {
    let repo = "[a-z0-9 +%&=\u{e9}]{1,8}/[a-z0-9._-]{1,8}"
        .prop_filter_map("a name", |text| RepositoryName::new(&text));
    let identity = ("[a-z0-9]{1,9}(\\.[a-z]{2,3})?", "[1-9][0-9]{0,19}").prop_map(|(host, id)| {
        RepositoryIdentity {
            repository_provider: RepositoryProvider::Github,
            repository_host: RepositoryHost::new(&host).unwrap(),
            repository_id: RepositoryId::new(&id).unwrap(),
        }
    });
    (proptest::option::of(repo), proptest::option::of(identity))
        .prop_map(|(repo, identity)| RepositorySelector { repo, identity })
}

fn any_instant() -> impl Strategy<Value = Instant> {
    (0..9_214_646_400_000_000_i64).prop_map(|at| Instant::from_microseconds(at).unwrap())
}

/// A request that is written is read back unchanged.
fn same<R: Request + PartialEq + std::fmt::Debug>(request: &R) {
    let outgoing = request.write().unwrap();
    let read = R::read(&Incoming {
        path: &object(&outgoing.path),
        query: &object(&outgoing.query),
        headers: &Object::new(),
        body: &[],
        memory: &NodeBudget::unlimited(),
    });
    assert_eq!(read.as_ref(), Ok(request));
}

proptest! {
    #[test]
    fn requests_are_read_back_from_their_parameters(
        repository in any_selector(),
        instants in proptest::array::uniform3(any_instant()),
        with_as_of in any::<bool>(),
        attempt in proptest::option::of(1..=i64::MAX),
        limit in 1..=100_u64,
        name in proptest::option::of("[a-z \u{e9}\0]{0,6}"),
    ) {
        let [first, second, third] = instants;
        let as_of = with_as_of.then_some(third);
        same(&CiOutcomeRequest {
            provider: CiProvider::CiA,
            run_id: RunId::new("r 1").unwrap(),
            run_attempt: attempt,
            latest: attempt.is_none(),
            repository: repository.clone(),
            as_of,
        });
        for name in [
            RunName::Id(RunId::new("500/test 1").unwrap()),
            RunName::Url(RunUrl::new("https://ci.example/job/a%2Fb/7/?x=1#L3").unwrap()),
        ] {
            same(&CiRunsRequest {
                name,
                provider: with_as_of.then_some(CiProvider::CiA),
                repository: repository.clone(),
                as_of,
            });
        }
        same(&QuarantineLogRequest {
            limit,
            before: attempt.map(i64::unsigned_abs),
        });
        let commit = CommitRequest {
            commit_sha: CommitSha::new(&"b".repeat(64)).unwrap(),
            repository: repository.clone(),
            as_of,
            explain: with_as_of,
        };
        same(&commit);
        // A link does not set `explain`.
        let linked = CommitRequest {
            explain: false,
            ..commit.clone()
        };
        prop_assert_eq!(CommitLink::new(&commit).request(), Some(linked));
        prop_assume!(!repository.is_empty() && first != second);
        same(&CiFailuresRequest {
            as_of,
            result: CiResult::Error,
            workflow_name: name.map(|name| name.trim().to_owned()),
            pr_number: attempt,
            limit: PageLimit::new(limit).unwrap(),
            cursor: Some(CiCursor::new("x/+")),
            ..CiFailuresRequest::new(repository, first.min(second), first.max(second))
        });
    }
}
