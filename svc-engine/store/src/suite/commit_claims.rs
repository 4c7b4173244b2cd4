//! Reported commits are kept once, settled once, and expire.

use svc_engine_fact::{CommitClaim, NamedRepository, ObservationOrigin, SessionCommitObservation};
use svc_model::capture::CommitClaimCounts;
use svc_model::id::UserId;
use svc_model::limit::OPEN_COMMIT_CLAIMS_MAX;
use svc_model::query::ObservationSource;
use svc_model::repository::{RepositoryHost, RepositoryProvider};
use svc_model::time::Instant;

use super::backups::put;
use super::*;
use crate::backup::{LoadRequest, Watch, take, verify_store};

const DAY: i64 = 86_400;

fn deadline() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

fn claimed(claims: Vec<CommitClaim>) -> Delivery {
    Delivery {
        claims,
        ..Delivery::default()
    }
}

fn keep(store: &Store, claim: CommitClaim) {
    store.append_now(claimed(vec![claim])).unwrap();
}

/// The observation that a claim of Session `s` becomes, at commit `b` of repository 7.
fn observed(number: u128) -> SessionCommitObservation {
    SessionCommitObservation {
        repository: Some(repository(7)),
        origin: ObservationOrigin::Telemetry,
        ..observation(number, id(40))
    }
}

fn resolve(store: &Store, claim: u128, fact: SessionCommitObservation) {
    let settled = SettledClaim {
        claim_id: id(claim),
        observation_id: Some(fact.observation_id),
    };
    let delivery = Delivery {
        facts: vec![Append::SessionCommitObservation(Box::new(fact))],
        settled_claims: vec![settled],
        ..Delivery::default()
    };
    store.append_now(delivery).unwrap();
}

fn call_ambiguous(store: &Store, claim: u128) {
    let settled = SettledClaim {
        claim_id: id(claim),
        observation_id: None,
    };
    let delivery = Delivery {
        settled_claims: vec![settled],
        ..Delivery::default()
    };
    store.append_now(delivery).unwrap();
}

fn open(store: &Store) -> Vec<CommitClaim> {
    store.snapshot_now().open_commit_claims().unwrap()
}

fn counts(store: &Store, now: Instant) -> Option<CommitClaimCounts> {
    store.snapshot_now().commit_claim_counts(now).unwrap()
}

/// Returns the state of each claim and its observation, by claim.
fn states(database: &TestStore) -> Vec<Vec<String>> {
    let observation = database.hexadecimal("resolved_observation_id");
    let text = format!(
        "SELECT state, COALESCE({observation}, '') FROM session_commit_claims ORDER BY claim_id"
    );
    database.rows(&text, 2)
}

fn hexadecimal(number: u128) -> String {
    id(number).uuid().simple().to_string()
}

fn state(state: &str, observation: &str) -> Vec<String> {
    vec![state.to_owned(), observation.to_owned()]
}

fn verified(database: &TestStore) {
    let mut watch = Watch {
        deadline: deadline(),
        progress: &mut |_, _| {},
    };
    let found = verify_store(database.url(), &mut watch).unwrap();
    assert_eq!((found.total, found.findings), (0, vec![]));
}

#[rstest]
fn a_claim_is_kept_once_and_touches_its_session(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    assert_eq!(counts(&store, at(9)), None);
    let claim = CommitClaim {
        user_id: Some(UserId::new("ann").unwrap()),
        tool_use_id: Some("tu1".to_owned()),
        repository: Some(NamedRepository {
            provider: Some(RepositoryProvider::Github),
            host: RepositoryHost::new("github.com"),
            name: name("own/repo"),
        }),
        ..commit_claim(1, "abcdef1")
    };
    let later = CommitClaim {
        claim_id: id(2),
        captured_at: at(5),
        user_id: None,
        ..claim.clone()
    };
    keep(&store, claim.clone());
    keep(&store, later.clone());
    assert_eq!(open(&store), std::slice::from_ref(&claim));
    let of = |claims: &[u128]| {
        let ids: Vec<FactId> = claims.iter().map(|number| id(*number)).collect();
        store.snapshot_now().open_commit_claims_of(&ids).unwrap()
    };
    assert_eq!(of(&[2, 1, 3]), std::slice::from_ref(&claim));
    assert_eq!(of(&[2]), []);
    let other = CommitClaim {
        session_id: session("t"),
        ..later
    };
    let of_others = CommitClaim {
        claim_id: id(8),
        ..other.clone()
    };
    keep(&database.open("other"), of_others);
    keep(&store, other.clone());
    let bare = commit_claim(3, "abcdef12");
    keep(&store, bare.clone());
    assert_eq!(open(&store), [claim, bare, other]);

    let mut snapshot = store.snapshot_now();
    let counted = snapshot.fact_counts().unwrap();
    assert_eq!(counted.session_commit_observations.total, 0);
    let sessions = "SELECT CAST(sessions AS TEXT) FROM organizations WHERE org_id = 'acme'";
    assert_eq!(database.rows(sessions, 1), [["2"]]);
    let span = snapshot.session_span(&session("s")).unwrap();
    assert_eq!(span, Some((at(1), at(1))), "a redelivery does not touch it");
    let said = "SELECT kind, value FROM session_claims WHERE org_id = 'acme' ORDER BY kind, value";
    let said = database.rows(said, 2);
    assert!(said.iter().any(|said| said[1] == "ann"), "{said:?}");
    assert!(said.iter().all(|said| said[1] != "own/repo"), "{said:?}");
    drop(snapshot);
    let all = CommitClaimCounts {
        open: 3,
        ..CommitClaimCounts::default()
    };
    assert_eq!(counts(&store, at(9)), Some(all));
    verified(&database);
}

#[rstest]
fn a_claim_is_settled_once(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    append_one(&store, Append::Push, push(40));
    let claims = ["abcdef1", "abcdef2", "abcdef3"];
    let claims = (1..).zip(claims);
    let claims = claims.map(|(number, commit)| commit_claim(number, commit));
    store.append_now(claimed(claims.collect())).unwrap();
    resolve(&store, 1, observed(11));
    call_ambiguous(&store, 2);
    // Others have decided already. Nothing changes, and nothing is stored.
    call_ambiguous(&store, 1);
    let elsewhere = SessionCommitObservation {
        commit_sha: commit('d'),
        ..observed(12)
    };
    resolve(&store, 2, elsewhere.clone());
    resolve(&store, 99, elsewhere);
    // The same fact from another claim.
    resolve(&store, 3, observed(13));
    let expected = [
        state("resolved", &hexadecimal(11)),
        state("ambiguous", ""),
        state("resolved", &hexadecimal(11)),
    ];
    assert_eq!(states(&database), expected);
    let mut snapshot = store.snapshot_now();
    assert_eq!(
        snapshot
            .fact_counts()
            .unwrap()
            .session_commit_observations
            .total,
        1
    );
    let links = snapshot
        .commits_of_session(&session("s"), at(99), 9)
        .unwrap();
    let sources: Vec<_> = links.into_iter().map(|link| link.source).collect();
    assert_eq!(sources, [Some(ObservationSource::Telemetry)]);
    drop(snapshot);
    let expected = CommitClaimCounts {
        resolved: 2,
        ambiguous: 1,
        ..CommitClaimCounts::default()
    };
    assert_eq!(counts(&store, at(9)), Some(expected));
    assert_eq!(open(&store), []);
    // The same claims again: they stay as they are.
    keep(&store, commit_claim(7, "abcdef2"));
    assert_eq!(counts(&store, at(9)), Some(expected));
    verified(&database);
}

#[rstest]
fn a_note_and_a_claim_are_one_observation(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append_one(&store, Append::Push, push(40));
    let note = SessionCommitObservation {
        origin: ObservationOrigin::Note("refs/notes/svc".to_owned()),
        ..observed(10)
    };
    append_one(&store, Append::SessionCommitObservation, note);
    keep(&store, commit_claim(1, "bbbbbbb"));
    resolve(&store, 1, observed(11));
    assert_eq!(states(&database), [state("resolved", &hexadecimal(10))]);
    let mut snapshot = store.snapshot_now();
    let links = snapshot
        .commits_of_session(&session("s"), at(99), 9)
        .unwrap();
    let links = links.into_iter();
    let links: Vec<_> = links
        .map(|link| (link.observation_id, link.source))
        .collect();
    assert_eq!(links, [(id(10), None)]);
}

#[rstest]
fn a_claim_is_open_for_thirty_days(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    keep(&store, commit_claim(1, "abcdef1"));
    let open_and_expired = |open, expired| {
        Some(CommitClaimCounts {
            open,
            expired,
            ..CommitClaimCounts::default()
        })
    };
    let end = 1 + 30 * DAY;
    assert_eq!(counts(&store, at(end - 1)), open_and_expired(1, 0));
    assert_eq!(counts(&store, at(end)), open_and_expired(0, 1));
    let expire = |second| store.expire_commit_claims(at(second)).unwrap();
    expire(end - 1);
    assert_eq!(states(&database), [state("open", "")]);
    // So does a claim that arrives.
    keep(
        &store,
        CommitClaim {
            captured_at: at(end),
            ..commit_claim(2, "abcdef2")
        },
    );
    assert_eq!(states(&database), [state("expired", ""), state("open", "")]);
    expire(end + 30 * DAY);
    assert_eq!(counts(&store, at(0)), open_and_expired(0, 2));
    call_ambiguous(&store, 1);
    resolve(&store, 2, observed(11));
    assert_eq!(counts(&store, at(0)), open_and_expired(0, 2));
}

#[rstest]
fn the_oldest_of_too_many_claims_expire(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    keep(&store, commit_claim(1, "abcdef1"));
    let id = match backend {
        Backend::Sqlite => "randomblob(16)",
        Backend::Postgres => "decode(md5(CAST(n AS TEXT)), 'hex')",
    };
    database.change(&format!(
        "INSERT INTO session_commit_claims (claim_id, org_id, session_id, agent_harness, git_commit_id,
            occurred_at_us, captured_at_us)
        WITH RECURSIVE numbers(n) AS
            (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {OPEN_COMMIT_CLAIMS_MAX})
        SELECT {id}, 'acme', 's', 'claude-code', CAST(10000000 + n AS TEXT), 0, 2000000000000000 + n
            FROM numbers"
    ));
    let newest = CommitClaim {
        captured_at: Instant::from_microseconds(2_000_000_000_500_000).unwrap(),
        ..commit_claim(2, "abcdef2")
    };
    keep(&store, newest.clone());
    let now = newest.captured_at;
    let expected = CommitClaimCounts {
        open: OPEN_COMMIT_CLAIMS_MAX.unsigned_abs(),
        expired: 2,
        ..CommitClaimCounts::default()
    };
    assert_eq!(counts(&store, now), Some(expected));
    let open = open(&store);
    assert_eq!(open.first().unwrap().git_commit_id.as_str(), "10000002");
    assert_eq!(open.last(), Some(&newest));
}

#[rstest]
fn claims_are_erased_with_their_sessions(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let of = |number: u128, session_id: &str, user: Option<&str>, second: i64| CommitClaim {
        session_id: session(session_id),
        user_id: user.map(|user| UserId::new(user).unwrap()),
        captured_at: at(second),
        ..commit_claim(number, "abcdef1")
    };
    let claims = [
        of(1, "gone", None, 1),
        of(2, "ann", Some("ann"), 2),
        of(3, "both", Some("ann"), 3),
        CommitClaim {
            git_commit_id: commit_claim(9, "abcdef4").git_commit_id,
            ..of(4, "both", Some("bob"), 4)
        },
        CommitClaim {
            git_commit_id: commit_claim(9, "abcdef5").git_commit_id,
            ..of(5, "ann", None, 4)
        },
        CommitClaim {
            git_commit_id: commit_claim(9, "abcdef6").git_commit_id,
            ..of(6, "both", None, 8)
        },
    ];
    for claim in claims {
        keep(&store, claim);
    }
    let folder = database.folder().join("copy");
    std::fs::create_dir(&folder).unwrap();
    let mut watch = Watch {
        deadline: deadline(),
        progress: &mut |_, _| {},
    };
    let taken = take(database.url(), &folder, &mut watch).unwrap();
    let ledger = database.ledger("acme");
    let erase = |subject: &ErasureSubject| {
        let plan = ledger.plan_erasure(subject, &deadline()).unwrap();
        assert!(!plan.is_empty());
        let order = erasure_order(subject);
        ledger
            .erase(plan, &order, &deadline(), &mut |_| {})
            .unwrap();
        assert!(
            ledger
                .plan_erasure(subject, &deadline())
                .unwrap()
                .is_empty()
        );
    };
    let left = |database: &TestStore| -> Vec<FactId> {
        let store = database.open("acme");
        let claims = store
            .snapshot_now()
            .open_commit_claims()
            .unwrap()
            .into_iter();
        claims.map(|claim| claim.claim_id).collect()
    };
    erase(&ErasureSubject::Session(session("gone")));
    assert_eq!(left(&database), [2, 3, 4, 5, 6].map(id));
    erase(&ErasureSubject::User(UserId::new("ann").unwrap()));
    assert_eq!(left(&database), [4, 6].map(id));
    erase(&ErasureSubject::OlderThan(at(5)));
    assert_eq!(left(&database), [id(6)]);
    verified(&database);

    // The restore of an older backup erases them again.
    let erasures = KeptErasures::of(database.url(), &deadline()).unwrap();
    let other = database!(backend);
    put(other.url(), &folder, &taken.tables, true, &mut watch).unwrap();
    assert_eq!(left(&other).len(), 6);
    drop(store);
    let loading = LoadRequest {
        folder: &folder,
        tables: &taken.tables,
        replace: true,
        erasures: &erasures,
    };
    loading.load(database.url(), &mut watch).unwrap();
    assert_eq!(left(&database), [id(6)]);
    verified(&database);
}
