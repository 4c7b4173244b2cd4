//! Quarantine and release of many calls at once.

use svc_model::ingest::GatewayProvider;

use super::*;

fn change(action: QuarantineAction) -> BulkChange {
    BulkChange {
        action,
        reason: " because\n".to_owned(),
        recorded_at: at(9),
        client_id: "operator".to_owned(),
    }
}

fn run(ledger: &Ledger, filter: &CallFilter, action: QuarantineAction) -> BulkReceipt {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let fresh = || Uuid::from_u128((1 << 64) | u128::from(NEXT.fetch_add(1, Ordering::Relaxed)));
    ledger
        .quarantine_calls(filter, &change(action), fresh)
        .unwrap()
}

fn of_session(session_id: &str) -> CallFilter {
    CallFilter {
        session_id: Some(session(session_id)),
        ..CallFilter::default()
    }
}

const fn tally(matched: u64, visible: u64) -> CallTally {
    CallTally { matched, visible }
}

#[rstest]
fn a_bulk_change_skips_and_counts_calls_already_in_that_state(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    append(&store, (1..=5).map(|number| call(number).build()).collect());
    append(&store, vec![call(6).session("t").build()]);
    append(&database.open("other"), vec![call(7).build()]);
    let hidden = id(2).to_string();
    ledger
        .quarantine(&[entry(
            FactTable::InferenceCalls,
            &hidden,
            QuarantineAction::Quarantine,
        )])
        .unwrap();
    let seen = |filter| ledger.snapshot().unwrap().call_tally(filter).unwrap();
    let visible = || store.snapshot_now().fact_counts().unwrap().inference_calls;

    assert_eq!(seen(&of_session("s")), tally(5, 4));
    let hidden = run(&ledger, &of_session("s"), QuarantineAction::Quarantine);
    assert_eq!(hidden.before, tally(5, 4));
    assert_eq!(hidden.before.changed_by(QuarantineAction::Quarantine), 4);
    assert_eq!(
        visible(),
        FactCount {
            total: 6,
            visible: 1
        }
    );
    let again = run(&ledger, &of_session("s"), QuarantineAction::Quarantine);
    assert_eq!(
        (again.before, again.revision),
        (tally(5, 0), hidden.revision),
        "nothing is appended for a call that is quarantined"
    );

    let shown = run(&ledger, &CallFilter::default(), QuarantineAction::Release);
    assert_eq!(shown.before, tally(6, 1));
    assert_eq!(shown.before.changed_by(QuarantineAction::Release), 5);
    assert_eq!(
        visible(),
        FactCount {
            total: 6,
            visible: 6
        }
    );

    let (rows, length) = ledger
        .snapshot()
        .unwrap()
        .quarantine_log(100, None)
        .unwrap();
    assert_eq!(length, 1 + 4 + 5);
    let (quarantined, released) = rows[1..].split_at(4);
    let facts =
        |rows: &[LogEntry]| -> Vec<String> { rows.iter().map(|row| row.fact_id.clone()).collect() };
    let numbers = |numbers: &[u128]| -> Vec<String> {
        numbers
            .iter()
            .map(|number| id(*number).to_string())
            .collect()
    };
    assert_eq!(
        facts(quarantined),
        numbers(&[1, 3, 4, 5]),
        "in the order of observation"
    );
    assert_eq!(facts(released), numbers(&[1, 2, 3, 4, 5]));
    assert!(quarantined.iter().all(|row| row.reason == " because\n"
        && row.action == "quarantine"
        && row.recorded_at == at(9)));
    assert_eq!(rows.last().unwrap().revision, shown.revision);
}

#[rstest]
fn the_conditions_of_a_filter_combine_and_both_bounds_are_inclusive(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut calls: Vec<_> = (1..=4).map(|number| call(number).build()).collect();
    calls.extend((5..=8).map(|number| call(number).session("t").build()));
    for call in calls.iter_mut().step_by(2) {
        call.gateway_provider = GatewayProvider::Unknown;
    }
    append(&store, calls);
    let mut snapshot = store.snapshot_now();
    let observed = |first, last| Some((at(first), at(last)));
    for (session_id, gateway_provider, observed, matched) in [
        (None, None, None, 8),
        (Some("t"), None, None, 4),
        (Some("u"), None, None, 0),
        (None, Some(GatewayProvider::Unknown), None, 4),
        (None, Some(GatewayProvider::GatewayB), None, 0),
        (None, None, observed(3, 6), 4),
        (None, None, observed(8, 8), 1),
        (None, None, observed(9, 99), 0),
        (Some("s"), None, observed(4, 6), 1),
        (Some("t"), Some(GatewayProvider::Unknown), observed(5, 6), 1),
    ] {
        let filter = CallFilter {
            session_id: session_id.map(session),
            gateway_provider,
            capture_source: None,
            agent: None,
            observed,
        };
        assert_eq!(
            snapshot.call_tally(&filter).unwrap(),
            tally(matched, matched),
            "{filter:?}"
        );
    }
}

#[rstest]
fn calls_beyond_one_statement_are_still_one_change(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let calls: Vec<_> = (1..=8_200).map(|number| call(number).build()).collect();
    for calls in calls.chunks(512) {
        append(&store, calls.to_vec());
    }
    let ledger = database.ledger("acme");
    let receipt = run(
        &ledger,
        &CallFilter::default(),
        QuarantineAction::Quarantine,
    );
    assert_eq!(receipt.before, tally(8_200, 8_200));
    let mut snapshot = ledger.snapshot().unwrap();
    assert_eq!(snapshot.fact_counts().unwrap().inference_calls.visible, 0);
    assert_eq!(snapshot.quarantine_log(1, None).unwrap().1, 8_200);
    assert_eq!(snapshot.quarantine_revision().unwrap(), receipt.revision);
}

#[rstest]
fn a_failed_bulk_change_leaves_nothing_and_needs_the_schema_at_head(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build(), call(2).build()]);
    let ledger = database.ledger("acme");
    // Two rows have the same id. The second cannot be inserted, so neither is.
    let failed = ledger.quarantine_calls(
        &CallFilter::default(),
        &change(QuarantineAction::Quarantine),
        || Uuid::from_u128(1),
    );
    assert!(failed.is_err());
    assert_eq!(
        ledger
            .snapshot()
            .unwrap()
            .quarantine_log(1, None)
            .unwrap()
            .1,
        0
    );
    let mut connection = Connection::open(database.url()).unwrap();
    connection
        .batch("UPDATE _sqlx_migrations SET version = 999 WHERE version = 1")
        .unwrap();
    let refused = ledger.quarantine_calls(
        &CallFilter::default(),
        &change(QuarantineAction::Quarantine),
        || Uuid::from_u128(1),
    );
    assert!(matches!(
        refused,
        Err(StoreError::Schema(SchemaState::Ahead(999)))
    ));
    let mut snapshot = ledger.snapshot().unwrap();
    assert_eq!(
        snapshot.call_tally(&CallFilter::default()).unwrap(),
        tally(2, 2),
        "reading works on another schema"
    );
    assert!(snapshot.has_table("quarantine_log").unwrap());
    assert!(!snapshot.has_table("no_such_table").unwrap());
}
