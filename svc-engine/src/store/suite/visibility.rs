//! What quarantine hides, and what a snapshot sees.

use super::*;

#[rstest]
fn quarantine_hides_a_fact_and_release_shows_it_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    append(
        &store,
        vec![call(1).model_call("x").build(), call(2).build()],
    );
    let fact = id(1).to_string();
    let named = InferenceCallId::new(&fact).unwrap();
    let seen = || {
        let mut snapshot = store.snapshot_now();
        (
            snapshot.call_summaries(&session("s")).unwrap().len(),
            snapshot.call(&session("s"), &named).unwrap().is_some(),
            snapshot.fact_counts().unwrap().inference_calls,
            snapshot
                .session_fact_count(&session("s"), FactTable::InferenceCalls)
                .unwrap(),
            snapshot.quarantine_revision().unwrap(),
        )
    };
    let count = |total, visible| FactCount { total, visible };
    assert_eq!(seen(), (2, true, count(2, 2), count(2, 2), 0));

    let hide = [entry(
        FactTable::InferenceCalls,
        &fact,
        QuarantineAction::Quarantine,
    )];
    let receipts = ledger.quarantine(&hide).unwrap();
    assert_eq!(
        receipts,
        [QuarantineReceipt {
            revision: 1,
            target_found: true
        }]
    );
    assert_eq!(seen(), (1, false, count(2, 1), count(2, 1), 1));
    assert_eq!(
        append(&store, vec![call(1).model_call("x").build()]),
        [Outcome::Redelivered(id(1))],
        "a redelivery does not release"
    );
    assert_eq!(seen().0, 1);

    let show = [entry(
        FactTable::InferenceCalls,
        &fact,
        QuarantineAction::Release,
    )];
    ledger.quarantine(&show).unwrap();
    assert_eq!(seen(), (2, true, count(2, 2), count(2, 2), 2));

    let unknown = [entry(
        FactTable::Pushes,
        "nothing",
        QuarantineAction::Quarantine,
    )];
    assert!(!ledger.quarantine(&unknown).unwrap()[0].target_found);
    let (rows, length) = ledger.snapshot().unwrap().quarantine_log(2).unwrap();
    assert_eq!((rows.len(), length), (2, 3));
    assert_eq!(rows[1].fact_id, "nothing");
}

#[rstest]
fn a_commit_match_needs_a_visible_observation_and_a_visible_push(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let (seen, pushed) = (id(1), id(2));
    let pushed_to = crate::fact::Push {
        repository: Some(repository(7)),
        ..push(2)
    };
    append_one(&store, Append::Push, pushed_to);
    let observed = crate::fact::SessionCommitObservation {
        repository: Some(repository(7)),
        ..observation(1, pushed)
    };
    append_one(&store, Append::SessionCommitObservation, observed);
    let anchor = |number| {
        let repository = repository(number);
        CommitAnchor {
            repository_provider: repository.repository_provider,
            repository_host: repository.repository_host,
            repository_id: repository.repository_id,
            commit_sha: commit('b'),
        }
    };
    let found = |session_id: &str, number| {
        store
            .snapshot_now()
            .commit_match(&session(session_id), &anchor(number))
            .unwrap()
    };
    let matched = found("s", 7).unwrap();
    assert_eq!(
        (matched.observation_id, matched.source_push_id),
        (seen, pushed)
    );
    assert_eq!(found("s", 8), None);
    assert_eq!(found("t", 7), None);
    for (table, fact) in [
        (FactTable::Pushes, pushed),
        (FactTable::SessionCommitObservations, seen),
    ] {
        set(&database, table, fact, QuarantineAction::Quarantine);
        assert_eq!(found("s", 7), None, "{table}");
        set(&database, table, fact, QuarantineAction::Release);
        assert!(found("s", 7).is_some(), "{table}");
    }
}

#[rstest]
fn a_snapshot_does_not_see_what_comes_after_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let mut snapshot = store.snapshot_now();
    assert_eq!(snapshot.call_summaries(&session("s")).unwrap().len(), 1);
    append(&store, vec![call(2).build()]);
    assert_eq!(snapshot.call_summaries(&session("s")).unwrap().len(), 1);
    drop(snapshot);
    assert_eq!(
        store
            .snapshot_now()
            .call_summaries(&session("s"))
            .unwrap()
            .len(),
        2
    );
}

#[rstest]
fn the_deadline_stops_a_running_statement(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open_reading(database.url()).unwrap();
    let started = std::time::Instant::now();
    connection
        .begin_read(&Deadline::after(Duration::from_millis(200)))
        .unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
        SELECT COUNT(*) FROM n";
    let stopped = connection.first(endless, &[], |row| row.integer(0));
    assert!(matches!(stopped, Err(StoreError::Deadline)), "{stopped:?}");
    // Without a deadline it would run for minutes.
    assert!(started.elapsed() < Duration::from_secs(20));
    let late = Snapshot::open(
        &pool::Pool::new(database.url().clone(), 1),
        &OrgId::new("acme").unwrap(),
        &Deadline::after(Duration::ZERO),
    )
    .and_then(|mut snapshot| snapshot.call_summaries(&session("s")));
    assert!(matches!(late, Err(StoreError::Deadline)));
}
