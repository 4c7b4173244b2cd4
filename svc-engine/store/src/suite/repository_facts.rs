//! Facts of repositories: redelivery, conflict, and the two key spaces.

use svc_engine_fact::{
    CiOutcome, ObservationOrigin, PullRequest, PullRequestMerge, PullRequestRevision, Push,
    RepositoryRename, SessionCommitObservation,
};
use svc_model::ingest::CiResult;

use super::*;
use crate::write::append;
use crate::write::appending::{Afterwards, Appending, StagedCalls};
use crate::write::claims::KnownClaims;
use crate::write::session_claims::KnownSessionClaims;
use crate::write::sessions::Numbers;
use crate::write::witness::Epoch;

const CONFLICT: Outcome = Outcome::Conflict(Code::RepositoryIdentityConflict);

type Change<F> = fn(&mut F);

fn changed<F>(mut fact: F, change: impl FnOnce(&mut F)) -> F {
    change(&mut fact);
    fact
}

#[rstest]
fn there_is_one_ci_outcome_per_run_and_attempt_of_a_forge(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::CiOutcome, fact);
    let named = |number| outcome(number, "r");
    let identified = |number| CiOutcome {
        repository: Some(repository(7)),
        ..outcome(number, "r")
    };
    assert_eq!(deliver(named(1)), Outcome::Stored(id(1)));
    assert_eq!(
        deliver(identified(2)),
        Outcome::Stored(id(2)),
        "with an identity it is another fact"
    );
    let elsewhere = changed(identified(3), |outcome| {
        let mut repository = repository(7);
        repository.repository_host =
            svc_model::repository::RepositoryHost::new("forge.example").unwrap();
        outcome.repository = Some(repository);
    });
    assert_eq!(deliver(elsewhere), Outcome::Stored(id(3)), "another forge");
    let redeliveries: [Change<CiOutcome>; 4] = [
        |outcome| outcome.result = CiResult::Failed,
        |outcome| outcome.branch = svc_model::repository::Branch::new("other").unwrap(),
        |outcome| outcome.reason = Some(Text::from("flaky")),
        |outcome| outcome.captured_at = at(50),
    ];
    let conflicts: [Change<CiOutcome>; 3] = [
        |outcome| outcome.commit_sha = commit('d'),
        |outcome| outcome.workflow_id = Some("w".to_owned()),
        |outcome| outcome.workflow_path = Some("w.yml".to_owned()),
    ];
    for (sent, first) in [(named as fn(u128) -> CiOutcome, 1), (identified, 2)] {
        for change in redeliveries {
            let fact = changed(sent(10), change);
            assert_eq!(deliver(fact), Outcome::Redelivered(id(first)));
        }
        for change in conflicts {
            assert_eq!(deliver(changed(sent(10), change)), CONFLICT);
        }
    }
    let renamed: Change<CiOutcome> = |outcome| outcome.repo = "own/renamed".to_owned();
    assert_eq!(deliver(changed(named(10), renamed)), CONFLICT);
    assert_eq!(
        deliver(changed(identified(10), renamed)),
        Outcome::Redelivered(id(2)),
        "the name does not matter if there is an identity"
    );
    let another = changed(identified(10), |outcome| {
        outcome.repository = Some(repository(8));
    });
    assert_eq!(deliver(another), CONFLICT);
    for (number, attempt) in [(11, 1), (12, 2)] {
        let fact = changed(named(number), |outcome| outcome.run_attempt = Some(attempt));
        assert_eq!(deliver(fact), Outcome::Stored(id(number)));
    }
    assert_eq!(count(&store, FactTable::CiOutcomes).total, 5);
    let kept: CiOutcome = store.snapshot_now().fact(id(1)).unwrap().unwrap();
    assert_eq!(kept, named(1), "the first fact is unchanged");
}

#[rstest]
fn a_push_never_conflicts(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::Push, fact);
    let identified = |number| Push {
        repository: Some(repository(7)),
        ..push(number)
    };
    assert_eq!(deliver(push(1)), Outcome::Stored(id(1)));
    assert_eq!(deliver(identified(2)), Outcome::Stored(id(2)));
    let altered = |push: &mut Push| {
        push.clone_url = "https://forge.example/x".to_owned();
        push.forced = true;
        push.captured_at = at(9);
    };
    assert_eq!(
        deliver(changed(push(3), altered)),
        Outcome::Redelivered(id(1))
    );
    let renamed = changed(identified(4), |push| push.repo = "own/renamed".to_owned());
    assert_eq!(deliver(renamed), Outcome::Redelivered(id(2)));
    let others: [Change<Push>; 5] = [
        |push| push.r#ref = "refs/heads/other".to_owned(),
        |push| push.before_sha = commit('0'),
        |push| push.after_sha = commit('d'),
        |push| push.repository = Some(repository(8)),
        |push| {
            push.repository = None;
            push.repo = "own/other".to_owned();
        },
    ];
    for (number, change) in (10..).zip(others) {
        let fact = changed(identified(number), change);
        assert_eq!(deliver(fact), Outcome::Stored(id(number)));
    }
}

#[rstest]
fn there_is_one_revision_per_pair_of_commits_and_another_head_repository_conflicts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::PullRequestRevision, fact);
    let of = |number, change: fn(&mut PullRequest)| {
        changed(revision(number), |revision| {
            change(&mut revision.pull_request);
        })
    };
    assert_eq!(deliver(revision(1)), Outcome::Stored(id(1)));
    let same = changed(
        of(2, |pull_request| pull_request.head_ref = branch("other")),
        |revision| {
            revision.previous_head_sha = Some(commit('e'));
            revision.source_event_id = Some("again".to_owned());
        },
    );
    assert_eq!(deliver(same), Outcome::Redelivered(id(1)));
    let conflicts: [Change<PullRequest>; 3] = [
        |pull_request| pull_request.head_repo = Some("fork/other".to_owned()),
        |pull_request| pull_request.head_repo = None,
        |pull_request| pull_request.head_repository = Some(repository(9)),
    ];
    for change in conflicts {
        assert_eq!(deliver(of(3, change)), CONFLICT);
    }
    let others: [Change<PullRequest>; 5] = [
        |pull_request| pull_request.pr_number = 8,
        |pull_request| pull_request.head_sha = commit('d'),
        |pull_request| pull_request.base_sha = commit('d'),
        |pull_request| pull_request.repo = "own/other".to_owned(),
        |pull_request| pull_request.repository = Some(repository(7)),
    ];
    for (number, change) in (10..).zip(others) {
        assert_eq!(deliver(of(number, change)), Outcome::Stored(id(number)));
    }
    let with_head = |number, head: Option<u32>, name: &str| {
        changed(revision(number), |revision: &mut PullRequestRevision| {
            revision.pull_request.repository = Some(repository(7));
            revision.pull_request.pr_number = 9;
            revision.pull_request.head_repository = head.map(repository);
            revision.pull_request.head_repo = Some(name.to_owned());
        })
    };
    assert_eq!(
        deliver(with_head(20, Some(4), "fork/repo")),
        Outcome::Stored(id(20))
    );
    assert_eq!(
        deliver(with_head(21, Some(4), "fork/renamed")),
        Outcome::Redelivered(id(20))
    );
    assert_eq!(deliver(with_head(22, Some(5), "fork/repo")), CONFLICT);
    assert_eq!(deliver(with_head(23, None, "fork/repo")), CONFLICT);
}

fn branch(text: &str) -> svc_model::repository::Branch {
    svc_model::repository::Branch::new(text).unwrap()
}

#[rstest]
fn there_is_one_merge_per_pull_request_and_other_commits_conflict(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::PullRequestMerge, fact);
    let identify: Change<PullRequestMerge> =
        |merge| merge.pull_request.repository = Some(repository(7));
    assert_eq!(deliver(merge(1)), Outcome::Stored(id(1)));
    assert_eq!(deliver(changed(merge(2), identify)), Outcome::Stored(id(2)));
    let redeliveries: [Change<PullRequestMerge>; 3] = [
        |merge| merge.merged_at = at(9),
        |merge| merge.pull_request.base_ref = branch("other"),
        |merge| merge.source_event_id = Some("again".to_owned()),
    ];
    let conflicts: [Change<PullRequestMerge>; 5] = [
        |merge| merge.merge_commit_sha = commit('d'),
        |merge| merge.pull_request.head_sha = commit('d'),
        |merge| merge.pull_request.base_sha = commit('d'),
        |merge| merge.pull_request.head_repo = None,
        |merge| merge.pull_request.head_repository = Some(repository(9)),
    ];
    let as_it_is: Change<PullRequestMerge> = |_| {};
    for (first, base) in [(1, as_it_is), (2, identify)] {
        for change in redeliveries {
            let fact = changed(changed(merge(3), base), change);
            assert_eq!(deliver(fact), Outcome::Redelivered(id(first)));
        }
        for change in conflicts {
            assert_eq!(deliver(changed(changed(merge(3), base), change)), CONFLICT);
        }
    }
    let renamed = changed(changed(merge(3), identify), |merge| {
        merge.pull_request.repo = "own/renamed".to_owned();
    });
    assert_eq!(deliver(renamed), Outcome::Redelivered(id(2)));
    let other = changed(merge(4), |merge| merge.pull_request.pr_number = 8);
    assert_eq!(deliver(other), Outcome::Stored(id(4)));
}

#[rstest]
fn a_merge_whose_head_repository_is_gone_is_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let gone = |number| {
        changed(merge(number), |merge: &mut PullRequestMerge| {
            merge.pull_request.repository = Some(repository(7));
            merge.pull_request.head_repo = None;
        })
    };
    let deliver = |fact| append_one(&store, Append::PullRequestMerge, fact);
    assert_eq!(deliver(gone(1)), Outcome::Stored(id(1)));
    assert_eq!(deliver(gone(2)), Outcome::Redelivered(id(1)));
    let back = changed(gone(3), |merge| {
        merge.pull_request.head_repo = Some("fork/repo".to_owned());
    });
    assert_eq!(deliver(back), CONFLICT);
}

#[rstest]
fn there_is_one_rename_per_named_delivery(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::RepositoryRename, fact);
    let sent = |number, event: Option<&str>| RepositoryRename {
        source_event_id: event.map(str::to_owned),
        ..rename(number, repository(7))
    };
    assert_eq!(deliver(sent(1, Some("k1"))), Outcome::Stored(id(1)));
    let later = changed(sent(2, Some("k1")), |rename| rename.captured_at = at(9));
    assert_eq!(deliver(later), Outcome::Redelivered(id(1)));
    let conflicts: [Change<RepositoryRename>; 4] = [
        |rename| rename.old_repo = name("own/zed"),
        |rename| rename.new_repo = name("own/zed"),
        |rename| rename.repository = repository(8),
        |rename| rename.occurred_at = Some(at(1)),
    ];
    for change in conflicts {
        assert_eq!(deliver(changed(sent(3, Some("k1")), change)), CONFLICT);
    }
    assert_eq!(deliver(sent(4, Some("k2"))), Outcome::Stored(id(4)));
    assert_eq!(deliver(sent(5, None)), Outcome::Stored(id(5)));
    assert_eq!(deliver(sent(6, None)), Outcome::Stored(id(6)));
}

#[rstest]
fn there_is_one_observation_per_session_and_commit_for_any_push_and_ref(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |fact| append_one(&store, Append::SessionCommitObservation, fact);
    let identified = |number| SessionCommitObservation {
        repository: Some(repository(7)),
        ..observation(number, id(1))
    };
    assert_eq!(deliver(observation(1, id(1))), Outcome::Stored(id(1)));
    assert_eq!(deliver(identified(2)), Outcome::Stored(id(2)));
    let again = changed(identified(3), |observation| {
        observation.source_push_id = id(9);
        observation.origin = ObservationOrigin::Telemetry;
        observation.repo = name("own/renamed");
        observation.captured_at = at(99);
    });
    assert_eq!(deliver(again), Outcome::Known);
    let others: [Change<SessionCommitObservation>; 4] = [
        |observation| observation.commit_sha = commit('d'),
        |observation| observation.session_id = session("t"),
        |observation| observation.repository = Some(repository(8)),
        |observation| {
            observation.repository = None;
            observation.repo = name("own/other");
        },
    ];
    for (number, change) in (10..).zip(others) {
        let fact = changed(identified(number), change);
        assert_eq!(deliver(fact), Outcome::Stored(id(number)));
    }
}

/// What an operator learns about a redelivery: where it differs from the retained fact.
#[rstest]
fn a_differing_redelivery_is_reported_with_its_columns(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    let org_id = OrgId::new("acme").unwrap();
    let identified = |number| CiOutcome {
        repository: Some(repository(7)),
        captured_at: at(i64::try_from(number).unwrap()),
        ..outcome(number, "r")
    };
    let mut deliver = |facts: Vec<CiOutcome>| -> Vec<String> {
        let facts = facts.into_iter();
        let facts: Vec<Append> = facts
            .map(|fact| Append::CiOutcome(Box::new(fact)))
            .collect();
        let mut delivery = Delivery::from(facts).prepare(&org_id);
        let given = transaction::Moments::Given;
        let differences = transaction::write(
            &mut connection,
            &org_id,
            given,
            &transaction::deadline(),
            |transaction| {
                let mut appending = Appending {
                    encoder: &Encoder::default(),
                    known_claims: &KnownClaims::default(),
                    known_session_claims: &KnownSessionClaims::default(),
                    epoch: &mut Epoch::begin(transaction.connection, None)?,
                    transaction,
                    table: &std::cell::Cell::new(None),
                    locked: &[],
                    calls: StagedCalls::default(),
                    session_numbers: Numbers::default(),
                    afterwards: Afterwards::default(),
                };
                append::write(&mut appending, &mut [&mut delivery])?;
                Ok(appending.afterwards.differences)
            },
        )
        .unwrap()
        .0;
        differences
            .iter()
            .map(|difference| difference.columns().join(" "))
            .collect()
    };
    let other_result = changed(identified(2), |outcome| {
        outcome.result = CiResult::Failed;
        outcome.reason = Some(Text::from("flaky"));
    });
    let renamed = changed(identified(3), |outcome| {
        outcome.repo = "own/renamed".to_owned();
    });
    let in_conflict = changed(other_result.clone(), |outcome| {
        outcome.commit_sha = commit('d');
    });
    assert_eq!(
        deliver(vec![
            identified(1),
            other_result,
            identified(4),
            in_conflict,
            renamed
        ]),
        ["result reason", "repo"]
    );
}

#[rstest]
fn exactly_one_of_several_equal_concurrent_deliveries_is_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let stores: Vec<Store> = (0..3).map(|_| database.open("acme")).collect();
    for round in 0..10_u128 {
        let barrier = Barrier::new(3);
        let outcomes: Vec<Vec<Outcome>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(&stores)
                .map(|(server, store)| {
                    let barrier = &barrier;
                    let number = round * 10 + server;
                    let run = format!("run {round}");
                    scope.spawn(move || {
                        let decided = decision(number);
                        let facts = vec![
                            Append::CiOutcome(Box::new(outcome(number, &run))),
                            Append::DeveloperDecision(Box::new(
                                svc_engine_fact::DeveloperDecision {
                                    session_id: session(&run),
                                    ..decided
                                },
                            )),
                        ];
                        barrier.wait();
                        store.append_now(facts).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        for kind in 0..2 {
            let stored = outcomes
                .iter()
                .filter(|outcomes| matches!(outcomes[kind], Outcome::Stored(_)));
            assert_eq!(stored.count(), 1, "{outcomes:?}");
        }
    }
}
