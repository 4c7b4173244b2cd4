//! What the row of an organization promises: exact counts, boundaries and revisions, however many
//! servers write.

use std::collections::BTreeMap;

use svc_model::capture::CaptureSource;

use super::*;

/// The steps of a law: facts with given numbers, and quarantines before and after them.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u128>),
    Change(FactTable, u128, QuarantineAction),
    ChangeCalls(QuarantineAction),
}

fn any_step() -> impl Strategy<Value = Step> {
    let action = || {
        prop_oneof![
            Just(QuarantineAction::Quarantine),
            Just(QuarantineAction::Release)
        ]
    };
    let table = prop_oneof![
        Just(FactTable::InferenceCalls),
        Just(FactTable::Pushes),
        Just(FactTable::DeveloperDecisions),
    ];
    prop_oneof![
        4 => proptest::collection::vec(1_u128..6, 1..4).prop_map(Step::Append),
        4 => (table, 1_u128..6, action())
            .prop_map(|(table, number, action)| Step::Change(table, number, action)),
        1 => action().prop_map(Step::ChangeCalls),
    ]
}

/// Returns three facts of three kinds, each with its own id, in one of three Sessions.
fn facts(store: &Store, number: u128) -> Vec<Append> {
    let session_id = format!("s{}", number % 3);
    let call = call(number).session(&session_id).build();
    let decision = svc_engine_fact::DeveloperDecision {
        session_id: session(&session_id),
        call_id: Some(format!("call {number}")),
        ..decision(100 + number)
    };
    let push = svc_engine_fact::Push {
        r#ref: format!("refs/heads/{number}"),
        ..push(200 + number)
    };
    vec![
        Append::InferenceCall(Box::new(store.encode(call, at(0)))),
        Append::DeveloperDecision(Box::new(decision)),
        Append::Push(Box::new(push)),
    ]
}

fn fact_id(table: FactTable, number: u128) -> FactId {
    id(number
        + match table {
            FactTable::DeveloperDecisions => 100,
            FactTable::Pushes => 200,
            _ => 0,
        })
}

/// Counts the rows, one by one.
fn counted(database: &TestStore) -> BTreeMap<String, (u64, u64)> {
    let number = |row: &[String], place: usize| row[place].parse::<u64>().unwrap();
    let mut counted: BTreeMap<String, (u64, u64)> = FactTable::ALL
        .iter()
        .map(|table| {
            let id = kind::table(*table).id();
            let sql = format!(
                "SELECT CAST(COUNT(*) AS TEXT), CAST(COUNT(CASE WHEN (SELECT q.action
                    FROM quarantine_log q WHERE q.org_id = f.org_id AND q.fact_table = '{table}'
                        AND q.fact_id = f.{id} ORDER BY q.quarantine_revision DESC LIMIT 1)
                    = 'quarantine' THEN NULL ELSE 1 END) AS TEXT)
                FROM {table} f WHERE f.org_id = 'acme'"
            );
            let row = &database.rows(&sql, 2)[0];
            (table.to_string(), (number(row, 0), number(row, 1)))
        })
        .collect();
    let sql = "SELECT CAST(COUNT(*) AS TEXT) FROM sessions WHERE org_id = 'acme'";
    let sessions = number(&database.rows(sql, 1)[0], 0);
    counted.insert("sessions".to_owned(), (sessions, sessions));
    counted
}

/// Returns the stored counts.
fn kept(store: &Store) -> BTreeMap<String, (u64, u64)> {
    let mut snapshot = store.snapshot_now();
    let counts = snapshot.fact_counts().unwrap();
    let mut kept: BTreeMap<String, (u64, u64)> = FactTable::ALL
        .iter()
        .map(|table| {
            let count = counts.get(*table);
            (table.to_string(), (count.total, count.visible))
        })
        .collect();
    let sessions = snapshot.session_count().unwrap();
    kept.insert("sessions".to_owned(), (sessions, sessions));
    kept
}

fn counts_are_exact(backend: Backend) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let steps = proptest::collection::vec(any_step(), 1..20);
    runner
        .run(&steps, |steps| {
            let Some(database) = TestStore::create(backend) else {
                return Ok(());
            };
            let servers = [database.open("acme"), database.open("acme")];
            let other = database.open("other");
            let ledger = database.ledger("acme");
            for (turn, step) in steps.into_iter().enumerate() {
                let store = &servers[turn % 2];
                match step {
                    Step::Append(numbers) => {
                        let facts = numbers.into_iter().flat_map(|number| facts(store, number));
                        store.append_now(facts.collect::<Vec<_>>()).unwrap();
                    }
                    Step::Change(table, number, action) => {
                        let fact = fact_id(table, number).to_string();
                        ledger.quarantine(&[entry(table, &fact, action)]).unwrap();
                    }
                    Step::ChangeCalls(action) => {
                        let change = BulkChange {
                            action,
                            reason: "because".to_owned(),
                            recorded_at: at(0),
                            client_id: "operator".to_owned(),
                        };
                        let mut next = 1_000_000 * (turn as u128 + 1);
                        let fresh = || {
                            next += 1;
                            Uuid::from_u128(next)
                        };
                        ledger
                            .quarantine_calls(&CallFilter::default(), &change, fresh)
                            .unwrap();
                    }
                }
                prop_assert_eq!(kept(store), counted(&database));
            }
            prop_assert!(kept(&other).values().all(|count| *count == (0, 0)));
            Ok(())
        })
        .unwrap();
}

#[rstest]
fn the_stored_counts_equal_the_rows_after_any_changes(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    counts_are_exact(backend);
}

fn captured(number: u128, received: i64) -> Append {
    Append::CiOutcome(Box::new(svc_engine_fact::CiOutcome {
        captured_at: at(received),
        ..outcome(number, &format!("r{number}"))
    }))
}

fn moments(database: &TestStore) -> Vec<i64> {
    let sql = "SELECT CAST(captured_at_us AS TEXT) FROM ci_outcomes ORDER BY outcome_id";
    let rows = database.rows(sql, 1);
    rows.iter().map(|row| row[0].parse().unwrap()).collect()
}

#[rstest]
fn a_fact_is_captured_when_it_was_received_or_after_the_last_one(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (one, two) = (
        database.open_stamping("acme"),
        database.open_stamping("acme"),
    );
    one.append_now(vec![captured(1, 10), captured(2, 20)])
        .unwrap();
    two.append_now(vec![captured(3, 5), captured(4, 30)])
        .unwrap();
    one.append_now(vec![captured(5, 30)]).unwrap();
    let us = |seconds| at(seconds).microseconds();
    assert_eq!(
        moments(&database),
        [us(10), us(20), us(20) + 1, us(30), us(30) + 1]
    );
    let boundary = |as_of| one.snapshot_now().boundary(as_of).unwrap().microseconds();
    assert_eq!(boundary(None), us(30) + 1);
    assert_eq!(boundary(Some(at(25))), us(25));
    assert_eq!(
        boundary(Some(at(99))),
        us(30) + 1,
        "a later boundary is not final"
    );
    assert_eq!(
        database
            .open("other")
            .snapshot_now()
            .boundary(None)
            .unwrap(),
        svc_model::time::Instant::from_microseconds(0).unwrap()
    );
}

/// Two servers store at once while a reader asks. An answer up to its boundary never changes.
#[rstest]
fn an_answer_up_to_a_boundary_never_changes_while_two_servers_write(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const EACH: u128 = 60;
    let database = database!(backend);
    let servers = [
        database.open_stamping("acme"),
        database.open_stamping("acme"),
    ];
    let reader = database.open_stamping("acme");
    let done = std::sync::atomic::AtomicUsize::new(0);
    let answer = |boundary: svc_model::time::Instant| {
        let mut snapshot = reader.snapshot_now();
        let outcomes = snapshot.ci_outcomes_of_commit(&commit('c'), boundary, usize::MAX);
        outcomes
            .unwrap()
            .unwrap()
            .into_iter()
            .map(|outcome| outcome.outcome_id)
            .collect::<Vec<_>>()
    };
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        for (place, store) in servers.iter().enumerate() {
            let done = &done;
            scope.spawn(move || {
                for number in 0..EACH {
                    let number = 1 + number * 2 + place as u128;
                    // Receipt times are in a different order: late, early, or equal.
                    let received = i64::try_from(number * 37 % 23).unwrap();
                    store.append_now(vec![captured(number, received)]).unwrap();
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        while done.load(Ordering::SeqCst) < 2 {
            let boundary = reader.snapshot_now().boundary(None).unwrap();
            answers.push((boundary, answer(boundary)));
        }
    });
    assert!(answers.len() > 3, "{} answers", answers.len());
    for (boundary, first) in answers {
        assert_eq!(answer(boundary), first, "{boundary}");
    }
    let stored = moments(&database);
    let distinct: std::collections::BTreeSet<_> = stored.iter().collect();
    assert_eq!(
        distinct.len(),
        2 * EACH as usize,
        "no two commits have the same time"
    );
}

/// A change of many calls draws its revisions before it commits. A change that commits before it
/// must not have a later revision.
#[rstest]
fn a_quarantine_revision_is_visible_only_with_all_earlier_ones(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, (1..40).map(|number| call(number).build()).collect());
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        let (database, done) = (&database, &done);
        let bulk = scope.spawn(move || {
            for round in 0..20_u128 {
                let action = [QuarantineAction::Quarantine, QuarantineAction::Release]
                    [usize::from(round % 2 == 1)];
                let change = BulkChange {
                    action,
                    reason: "because".to_owned(),
                    recorded_at: at(0),
                    client_id: "operator".to_owned(),
                };
                let mut next = 5_000_000 + 1_000 * round;
                let fresh = || {
                    next += 1;
                    Uuid::from_u128(next)
                };
                let ledger = database.ledger("acme");
                ledger
                    .quarantine_calls(&CallFilter::default(), &change, fresh)
                    .unwrap();
            }
        });
        scope.spawn(move || {
            let ledger = database.ledger("acme");
            while !done.load(Ordering::SeqCst) {
                let entry = entry(FactTable::Pushes, "nothing", QuarantineAction::Quarantine);
                ledger.quarantine(&[entry]).unwrap();
            }
        });
        let count =
            "SELECT CAST(COUNT(*) AS TEXT) FROM quarantine_log WHERE quarantine_revision <= ";
        while !bulk.is_finished() {
            let revision = store.snapshot_now().quarantine_revision().unwrap();
            let rows = database.rows(&format!("{count}{revision}"), 1);
            seen.push((revision, rows));
        }
        done.store(true, Ordering::SeqCst);
        bulk.join().unwrap();
        for (revision, rows) in seen {
            assert_eq!(
                database.rows(&format!("{count}{revision}"), 1),
                rows,
                "{revision}"
            );
        }
    });
}

#[rstest]
fn deliveries_are_counted_in_the_transaction_that_stores_them(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let one = database.open("acme");
    let other = database.open("acme");
    let deliver = |store: &Store, numbers: &[u128]| {
        let mut counted = DeliveryCounts::new(CaptureSource::Gateway, at(7));
        counted.source().skipped.insert("no_session".to_owned(), 2);
        let facts = numbers.iter().map(|number| {
            let call = call(*number).build();
            Append::InferenceCall(Box::new(store.encode(call, at(0))))
        });
        let delivery = Delivery {
            facts: facts.collect(),
            counted: Some(counted),
            ..Delivery::default()
        };
        store.append_now(delivery).unwrap();
    };
    let captured = |store: &Store| {
        let mut captured = store.snapshot_now().capture_totals().unwrap();
        let gateway = captured.of(CaptureSource::Gateway).clone();
        let facts = gateway
            .facts
            .get(&FactTable::InferenceCalls.into())
            .copied()
            .unwrap_or_default();
        let skipped = gateway
            .skipped
            .get("no_session")
            .copied()
            .unwrap_or_default();
        (gateway.deliveries, facts.stored, facts.duplicates, skipped)
    };
    assert_eq!(captured(&one), (0, 0, 0, 0));
    deliver(&one, &[1, 2]);
    assert_eq!(captured(&other), (1, 2, 0, 2), "in the same commit");
    deliver(&other, &[2]);
    assert_eq!(
        captured(&one),
        (1, 2, 0, 2),
        "a redelivery alone writes nothing"
    );
    assert!(other.has_uncounted() && !one.has_uncounted());
    deliver(&other, &[3]);
    assert_eq!(
        captured(&one),
        (3, 3, 1, 6),
        "it is written with the next delivery"
    );
    assert!(!other.has_uncounted());

    one.count(&CaptureTotals::delivery(CaptureSource::ForgeOther, at(9)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(one.write_counts()).unwrap();
    let mut totals = other.snapshot_now().capture_totals().unwrap();
    assert_eq!(totals.since, Some(at(7)));
    assert_eq!(totals.of(CaptureSource::ForgeOther).deliveries, 1);
    assert_eq!(
        totals.of(CaptureSource::Gateway).last_delivery_at,
        Some(at(7))
    );
    // Counts that are not written yet are written when the store is closed.
    one.count(&CaptureTotals::delivery(CaptureSource::ForgeOther, at(10)));
    one.close();
    let mut totals = other.snapshot_now().capture_totals().unwrap();
    assert_eq!(totals.of(CaptureSource::ForgeOther).deliveries, 2);
}

#[rstest]
fn a_last_fact_that_is_ahead_of_the_clock_is_noticed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ahead = |seconds| store.snapshot_now().captured_ahead_of(at(seconds)).unwrap();
    assert_eq!(ahead(0), None, "there is no fact");
    let push = svc_engine_fact::Push {
        captured_at: at(1_000),
        ..push(1)
    };
    append_one(&store, Append::Push, push);
    assert_eq!([ahead(2_000), ahead(940)], [None; 2]);
    assert_eq!(ahead(939), Some(at(1_000)));
}

#[rstest]
fn a_question_up_to_now_covers_what_was_captured_ahead_of_the_clock(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let bound = |asked, now| store.snapshot_now().bound(at(asked), at(now)).unwrap();
    let mut first = push(1);
    first.captured_at = at(1_000);
    append_one(&store, Append::Push, first);
    for asked in [0, 939, 940, 1_000, 2_000] {
        assert_eq!(bound(asked, 1_000), at(asked), "the clock is right");
        assert_eq!(bound(asked, 940), at(asked), "it is within a minute");
    }
    // The clock was ahead.
    let mut second = push(2);
    second.captured_at = at(9_001);
    second.after_sha = commit('c');
    append_one(&store, Append::Push, second);
    assert_eq!(bound(1_040, 1_101), at(1_040), "a moment of the past");
    for asked in [1_041, 1_101, 9_000, 9_060] {
        assert_eq!(bound(asked, 1_101), at(9_060), "{asked}");
    }
    assert_eq!(bound(9_061, 1_101), at(9_061));
}
