//! Claims: which facts prove that a repository has a name, since when, and at what cost.

use std::collections::BTreeSet;

use svc_engine_fact::{
    CiOutcome, PullRequestMerge, PullRequestRevision, Push, RepositoryClaim, RepositoryRename,
    SessionCommitObservation,
};
use svc_model::ingest::CiResult;
use svc_model::repository::{RepositoryIdentity, RepositoryName};

use super::*;

/// Returns the proven claims for names and for `github.com`'s repositories with these numbers, as
/// name, number and second of the latest receipt.
fn claims(
    store: &Store,
    names: &[&str],
    numbers: &[u32],
    seconds: i64,
) -> Vec<(String, String, Option<i64>)> {
    let names: BTreeSet<RepositoryName> = names.iter().map(|text| name(text)).collect();
    let repositories: BTreeSet<RepositoryIdentity> =
        numbers.iter().map(|number| repository(*number)).collect();
    store
        .snapshot_now()
        .repository_claims(&names, &repositories, at(seconds))
        .unwrap()
        .iter()
        .map(read)
        .collect()
}

fn read(claim: &RepositoryClaim) -> (String, String, Option<i64>) {
    let second = |moment: svc_model::time::Instant| {
        (moment.microseconds() - at(0).microseconds()) / 1_000_000
    };
    (
        claim.name.to_string(),
        claim.repository.repository_id.to_string(),
        claim.borne_at.map(second),
    )
}

fn claim(
    name: &str,
    number: &str,
    seconds: impl Into<Option<i64>>,
) -> (String, String, Option<i64>) {
    (name.to_owned(), number.to_owned(), seconds.into())
}

/// Returns a push of a repository under a name, received at this second.
fn push_of(number: u128, repository_number: u32, repo: &str, seconds: i64) -> Push {
    Push {
        repo: repo.to_owned(),
        repository: Some(repository(repository_number)),
        r#ref: format!("refs/heads/{repo}-{number}"),
        captured_at: at(seconds),
        ..push(number)
    }
}

#[rstest]
fn every_kind_of_fact_that_names_a_repository_proves_the_name(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let repo = || "own/one".to_owned();
    let one = || Some(repository(1));
    let facts = vec![
        Append::Push(Box::new(push_of(1, 1, "own/one", 1))),
        Append::CiOutcome(Box::new(CiOutcome {
            repo: repo(),
            repository: one(),
            captured_at: at(2),
            ..outcome(1, "r")
        })),
        Append::SessionCommitObservation(Box::new(SessionCommitObservation {
            repo: name("own/one"),
            repository: one(),
            captured_at: at(3),
            ..observation(1, id(1))
        })),
    ];
    let with = |base: bool, seconds| svc_engine_fact::PullRequest {
        pr_number: seconds,
        repo: if base { repo() } else { "own/base".to_owned() },
        repository: base.then(|| repository(1)),
        head_repo: Some(if base { "own/fork".to_owned() } else { repo() }),
        head_repository: (!base).then(|| repository(1)),
        ..svc_engine_fact::testing::builders::pull_request()
    };
    let pull_requests =
        [(true, 4_i64), (false, 5), (true, 6), (false, 7)].map(|(base, seconds)| {
            let number = u128::from(seconds.unsigned_abs());
            if seconds < 6 {
                Append::PullRequestRevision(Box::new(PullRequestRevision {
                    pull_request: with(base, seconds),
                    captured_at: at(seconds),
                    ..revision(number)
                }))
            } else {
                Append::PullRequestMerge(Box::new(PullRequestMerge {
                    pull_request: with(base, seconds),
                    captured_at: at(seconds),
                    ..merge(number)
                }))
            }
        });
    let renamed = |number, from: &str, to: &str, seconds| {
        Append::RepositoryRename(Box::new(RepositoryRename {
            old_repo: name(from),
            new_repo: name(to),
            captured_at: at(seconds),
            ..rename(number, repository(1))
        }))
    };
    let renames = [
        renamed(8, "own/zero", "own/one", 8),
        renamed(9, "own/one", "own/two", 9),
    ];
    // Each fact is the only proof of the name, and stops proving it when it is quarantined.
    for fact in facts.into_iter().chain(pull_requests).chain(renames) {
        let table = fact.table();
        let Outcome::Stored(fact_id) = store.append_now(vec![fact]).unwrap()[0] else {
            panic!("{table} is stored");
        };
        let proven = || {
            claims(&store, &["own/one"], &[], 100)
                .iter()
                .any(|(name, number, _)| name == "own/one" && number == "1")
        };
        assert!(proven(), "{table}");
        set(&database, table, fact_id, QuarantineAction::Quarantine);
        assert!(!proven(), "{table}");
    }
}

#[rstest]
fn an_outcome_of_any_result_proves_its_name(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for (number, result) in (1..).zip(CiResult::ALL) {
        let outcome = CiOutcome {
            repository: Some(repository(number)),
            result: *result,
            captured_at: at(5),
            ..outcome(u128::from(number), &format!("run {number}"))
        };
        append_one(&store, Append::CiOutcome, outcome);
        assert_eq!(
            claims(&store, &[], &[number], 5),
            [claim("own/repo", &number.to_string(), 5)],
            "{result}"
        );
    }
}

#[rstest]
fn a_fact_without_a_name_or_an_identity_proves_no_claim(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let unnamed = Push {
        repo: String::new(),
        ..push_of(1, 1, "", 1)
    };
    append_one(&store, Append::Push, unnamed);
    append_one(&store, Append::Push, push(2));
    append_one(&store, Append::PullRequestMerge, merge(3));
    assert_eq!(claims(&store, &["own/repo", "fork/repo"], &[1], 100), []);
    assert_eq!(
        claims(&database.open("other"), &["own/repo"], &[1], 100),
        [],
        "another organization"
    );
}

#[rstest]
fn a_claim_carries_its_latest_visible_fact_up_to_the_boundary(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for (number, seconds) in [(1, 30), (2, 10), (3, 20)] {
        append_one(&store, Append::Push, push_of(number, 1, "own/one", seconds));
    }
    let latest = |seconds| {
        let claims = claims(&store, &["own/one"], &[], seconds);
        claims.first().map(|claim| claim.2.unwrap())
    };
    assert_eq!(latest(9), None);
    for (boundary, expected) in [(10, 10), (19, 10), (20, 20), (29, 20), (30, 30), (99, 30)] {
        assert_eq!(latest(boundary), Some(expected), "{boundary}");
    }
    set(
        &database,
        FactTable::Pushes,
        id(2),
        QuarantineAction::Quarantine,
    );
    assert_eq!(latest(19), None, "the earliest is quarantined");
    assert_eq!(latest(20), Some(20));
    set(
        &database,
        FactTable::Pushes,
        id(1),
        QuarantineAction::Quarantine,
    );
    assert_eq!(latest(99), Some(20), "and the latest");
    set(
        &database,
        FactTable::Pushes,
        id(3),
        QuarantineAction::Quarantine,
    );
    assert_eq!(latest(99), None, "and the last");
    set(
        &database,
        FactTable::Pushes,
        id(2),
        QuarantineAction::Release,
    );
    assert_eq!(latest(99), Some(10));
}

#[rstest]
fn a_rename_claims_both_names_and_only_the_new_one_as_current(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let renamed = RepositoryRename {
        captured_at: at(5),
        ..rename(1, repository(1))
    };
    append_one(&store, Append::RepositoryRename, renamed);
    let both = [claim("own/new", "1", 5), claim("own/old", "1", None)];
    assert_eq!(claims(&store, &["own/old"], &[], 5), both);
    assert_eq!(claims(&store, &["own/new"], &[], 5), both);
    assert_eq!(claims(&store, &[], &[1], 5), both);
    assert_eq!(claims(&store, &["own/old"], &[1], 4), []);
    append_one(&store, Append::Push, push_of(2, 1, "own/old", 3));
    append_one(&store, Append::Push, push_of(3, 1, "own/old", 9));
    let with_pushes = |seconds| [claim("own/new", "1", 5), claim("own/old", "1", seconds)];
    assert_eq!(claims(&store, &["own/old"], &[], 8), with_pushes(3));
    assert_eq!(claims(&store, &["own/old"], &[], 9), with_pushes(9));
}

#[rstest]
fn a_reused_name_is_claimed_by_both_repositories(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for push in [
        push_of(1, 1, "own/name", 1),
        push_of(2, 1, "own/first", 2),
        push_of(3, 2, "own/name", 3),
        push_of(4, 2, "own/second", 4),
        push_of(5, 3, "own/third", 5),
    ] {
        append_one(&store, Append::Push, push);
    }
    // Sorted by name, then by identity.
    let first = claim("own/first", "1", 2);
    let second = claim("own/second", "2", 4);
    let names = [claim("own/name", "1", 1), claim("own/name", "2", 3)];
    assert_eq!(
        claims(&store, &["own/name"], &[], 9),
        [first.clone(), names[0].clone(), names[1].clone(), second]
    );
    assert_eq!(claims(&store, &[], &[1], 9), [first, names[0].clone()]);
    assert_eq!(
        claims(&store, &["own/third", "own/fourth"], &[], 9),
        [claim("own/third", "3", 5)]
    );
}

#[rstest]
fn concurrent_servers_writing_the_same_claims_keep_them_all(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let stores: Vec<Store> = (0..2).map(|_| database.open("acme")).collect();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for (server, store) in (0..).zip(&stores) {
            let barrier = &barrier;
            scope.spawn(move || {
                for round in 0..10_u32 {
                    let number = u128::from(round) * 2 + server;
                    // The servers have different clocks and different orders of names.
                    let seconds = if server == 0 { 50 } else { 10 };
                    let mut names = [format!("own/a{round}"), format!("own/b{round}")];
                    if server == 1 {
                        names.reverse();
                    }
                    let pushes = names.map(|repo| Push {
                        push_id: FactId::new(Uuid::new_v5(
                            &Uuid::from_u128(number),
                            repo.as_bytes(),
                        )),
                        ..push_of(number, round + 1, &repo, seconds)
                    });
                    barrier.wait();
                    append_all(store, Append::Push, pushes.to_vec());
                }
            });
        }
    });
    for round in 0..10_u32 {
        let (a, b) = (format!("own/a{round}"), format!("own/b{round}"));
        let number = (round + 1).to_string();
        for (boundary, expected) in [(10, 10), (50, 50)] {
            assert_eq!(
                claims(&stores[0], &[&a], &[], boundary),
                [claim(&a, &number, expected), claim(&b, &number, expected)]
            );
        }
        assert_eq!(claims(&stores[1], &[&a], &[], 9), []);
    }
}

/// PostgreSQL cannot store NUL in a text. A delivery with NUL fails after its claims were written.
#[test]
fn a_claim_of_a_failed_delivery_is_stored_by_the_next() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    let failing = vec![
        Append::Push(Box::new(push_of(1, 1, "own/one", 1))),
        Append::CiOutcome(Box::new(outcome(1, "bad\0run"))),
    ];
    assert!(store.append_now(failing).is_err());
    assert_eq!(claims(&store, &["own/one"], &[], 9), []);
    append_one(&store, Append::Push, push_of(2, 1, "own/one", 2));
    assert_eq!(
        claims(&store, &["own/one"], &[], 9),
        [claim("own/one", "1", 2)]
    );
}

#[rstest]
fn reading_claims_stops_just_beyond_the_limit(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for number in 1..=4_u32 {
        let of_one_name = push_of(u128::from(number), number, "own/name", 1);
        append_one(&store, Append::Push, of_one_name);
        let of_one_identity = push_of(u128::from(number) + 10, 9, &format!("own/{number}"), 1);
        append_one(&store, Append::Push, of_one_identity);
    }
    let mut snapshot = store.snapshot_now();
    let mut found = |names: &[&str], numbers: &[u32], claims_max| {
        let names = names.iter().map(|text| name(text)).collect();
        let numbers = numbers.iter().map(|number| repository(*number)).collect();
        let claims = snapshot.claims_up_to(&names, &numbers, at(9), claims_max);
        claims.unwrap().len()
    };
    for (names, numbers) in [(&["own/name"][..], &[][..]), (&[], &[9])] {
        assert_eq!(found(names, numbers, 4), 4);
        assert_eq!(found(names, numbers, 3), 4, "one more than the limit");
        assert_eq!(found(names, numbers, 1), 2, "one more than the limit");
    }
}
