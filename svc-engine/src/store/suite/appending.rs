//! CI outcomes, and what appending promises whatever the fact.

use super::*;

#[rstest]
fn a_ci_outcome_is_one_per_run_and_attempt(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let conflict = Outcome::Conflict(Code::RepositoryIdentityConflict);
    let identified = |number, run: &str, repository_id| crate::fact::CiOutcome {
        repository: Some(repository(repository_id)),
        ..outcome(number, run)
    };
    assert_eq!(
        append_outcomes(&store, vec![outcome(1, "r")]),
        [Outcome::Stored(id(1))]
    );
    assert_eq!(
        append_outcomes(&store, vec![identified(2, "r", 7)]),
        [Outcome::Stored(id(2))]
    );
    let other_result = crate::fact::CiOutcome {
        result: svc_model::ingest::CiResult::Failed,
        ..outcome(3, "r")
    };
    let second = crate::fact::CiOutcome {
        run_attempt: Some(2),
        ..outcome(4, "r")
    };
    let elsewhere = crate::fact::CiOutcome {
        repo: "own/other".to_owned(),
        ..outcome(5, "r")
    };
    let other_commit = crate::fact::CiOutcome {
        commit_sha: CommitSha::new(&"d".repeat(40)).unwrap(),
        ..outcome(6, "r")
    };
    let other_workflow = crate::fact::CiOutcome {
        workflow_id: Some("w".to_owned()),
        ..outcome(7, "r")
    };
    let renamed = crate::fact::CiOutcome {
        repo: "own/renamed".to_owned(),
        ..identified(8, "r", 7)
    };
    for (sent, expected) in [
        (other_result, Outcome::Redelivered(id(1))),
        (second, Outcome::Stored(id(4))),
        (elsewhere, conflict),
        (other_commit, conflict),
        (other_workflow, conflict),
        (renamed, Outcome::Redelivered(id(2))),
        (identified(9, "r", 8), conflict),
    ] {
        assert_eq!(
            append_outcomes(&store, vec![sent.clone()]),
            [expected],
            "{sent:?}"
        );
    }
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .ci_outcomes
            .total,
        3
    );
    assert_eq!(
        append_outcomes(&store, vec![outcome(20, "q"), outcome(21, "q")]),
        [Outcome::Stored(id(20)), Outcome::Redelivered(id(20))]
    );
}

/// PostgreSQL keeps no NUL in a text. The checks before the store let none through; here one is
/// smuggled in, to see that its neighbours do not suffer.
#[test]
fn a_delivery_that_cannot_be_stored_takes_no_other_down() {
    let database = database!(Backend::Postgres);
    let store = Arc::new(database.open("acme"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let appended: Vec<_> = (0..40_u128)
        .map(|number| {
            let store = Arc::clone(&store);
            let run = if number == 20 {
                "bad\0run".to_owned()
            } else {
                format!("run {number}")
            };
            runtime.spawn(async move {
                store
                    .append(vec![Append::CiOutcome(Box::new(outcome(number + 1, &run)))])
                    .await
            })
        })
        .collect();
    for (number, appended) in appended.into_iter().enumerate() {
        let result = runtime.block_on(appended).unwrap();
        assert_eq!(result.is_err(), number == 20, "{number}: {result:?}");
    }
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .ci_outcomes
            .total,
        39
    );
}

#[rstest]
fn what_was_accepted_is_stored_when_the_store_closes(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    store.close();
    let facts = vec![Append::InferenceCall(Box::new(
        store.encode(call(2).build(), at(0)),
    ))];
    assert!(matches!(store.append_now(facts), Err(StoreError::Closed)));
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .inference_calls
            .total,
        1
    );
}
