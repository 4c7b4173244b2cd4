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
            fact_id: fact.clone(),
            revision: 1,
            target_found: true,
            unchanged: false,
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
    let (rows, length) = ledger.snapshot().unwrap().quarantine_log(2, None).unwrap();
    assert_eq!((rows.len(), length), (2, 3));
    assert_eq!(rows[1].fact_id, "nothing");
}

#[rstest]
fn a_quarantine_targets_one_stored_fact_of_the_organization(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    append(&store, vec![call(1).build(), call(2).build()]);
    append(&database.open("other"), vec![call(3).build()]);
    let (first, foreign) = (id(1).to_string(), id(3).to_string());
    let revision = || ledger.snapshot().unwrap().quarantine_revision().unwrap();
    let change = |fact_id: &str, absent| {
        let entry = entry(
            FactTable::InferenceCalls,
            fact_id,
            QuarantineAction::Quarantine,
        );
        ledger.quarantine_one(&entry, absent).unwrap()
    };
    let refused = |fact_id: &str| change(fact_id, WhenAbsent::Refuse).unwrap_err();

    for absent in [
        foreign.as_str(),
        "00000000-0000-0000-0000-00000000000f",
        "nothing",
        &first[..7],
        "%",
    ] {
        assert_eq!(refused(absent), NoTarget::Absent, "{absent}");
    }
    assert_eq!(refused(&first[..12]), NoTarget::Ambiguous);
    let wrong = entry(FactTable::Pushes, &first, QuarantineAction::Quarantine);
    let wrong = ledger.quarantine_one(&wrong, WhenAbsent::Refuse).unwrap();
    assert_eq!(wrong, Err(NoTarget::Absent), "of another kind");
    assert_eq!(revision(), 0, "nothing was recorded");

    let whole = change(&first, WhenAbsent::Refuse).unwrap();
    assert_eq!(
        (whole.fact_id.as_str(), whole.target_found, whole.unchanged),
        (first.as_str(), true, false)
    );
    assert!(change(&first, WhenAbsent::Refuse).unwrap().unchanged);
    let forced = change("later", WhenAbsent::Record).unwrap();
    assert_eq!(
        (forced.fact_id.as_str(), forced.target_found),
        ("later", false)
    );
    let rows = ledger
        .snapshot()
        .unwrap()
        .quarantine_log(2, Some(3))
        .unwrap();
    let ids: Vec<_> = rows
        .0
        .iter()
        .map(|row| (row.revision, &row.fact_id))
        .collect();
    assert_eq!(ids, [(1, &first), (2, &first)]);
    assert_eq!((rows.1, rows.0[0].client_id.as_str()), (3, "operator"));
    // A text is never taken for an id, even if it is as long as the bytes of an id.
    for text in ["later", "sixteen letters!"] {
        let forced = change(text, WhenAbsent::Record).unwrap();
        assert_eq!((&*forced.fact_id, forced.target_found), (text, false));
        let rows = ledger.snapshot().unwrap().quarantine_log(1, None).unwrap();
        assert_eq!(rows.0[0].fact_id, text);
    }
    // Whoever follows the log passes over what is about no fact.
    let changes = ledger.snapshot().unwrap().quarantine_after(0, 100).unwrap();
    let ids: Vec<_> = changes.iter().map(|change| change.fact_id).collect();
    assert_eq!(ids[..3], [Some(id(1)), Some(id(1)), None]);
    // The id is recorded in lower case, as a fact stored later would have it.
    let spelled = id(0xabcd).to_string();
    let forced = change(&spelled.to_uppercase(), WhenAbsent::Record).unwrap();
    assert_eq!((forced.fact_id, forced.target_found), (spelled, false));
}

#[rstest]
fn quarantine_accepts_an_unambiguous_prefix_of_a_fact_id(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let far = FactId::new(Uuid::from_u128(0xabcd_ef01 << 96));
    let calls = [id(1), far].map(|inference_call_id| svc_engine_fact::InferenceCall {
        inference_call_id,
        ..call(inference_call_id.uuid().as_u128()).build()
    });
    append(&store, calls.into());
    let hide = entry(
        FactTable::InferenceCalls,
        "ABCDEF01",
        QuarantineAction::Quarantine,
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let recorded = runtime.block_on(store.quarantine(hide, WhenAbsent::Refuse));
    assert_eq!(recorded.unwrap().unwrap().fact_id, far.to_string());
    assert_eq!(count(&store, FactTable::InferenceCalls).visible, 1);
    // The writer's next append comes after the quarantine.
    append(&store, vec![call(9).build()]);
    assert_eq!(count(&store, FactTable::InferenceCalls).visible, 2);
}

#[rstest]
fn a_commit_match_needs_a_visible_observation_and_a_visible_push(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let (seen, pushed) = (id(1), id(2));
    let pushed_to = svc_engine_fact::Push {
        repository: Some(repository(7)),
        ..push(2)
    };
    append_one(&store, Append::Push, pushed_to);
    let observed = svc_engine_fact::SessionCommitObservation {
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
        &Pool::new(database.url().clone(), 1),
        &OrgId::new("acme").unwrap(),
        &Deadline::after(Duration::ZERO),
    )
    .and_then(|mut snapshot| snapshot.call_summaries(&session("s")));
    assert!(matches!(late, Err(StoreError::Deadline)));
}
