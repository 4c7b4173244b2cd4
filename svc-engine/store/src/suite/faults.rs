//! A fault in the writer fails only the commands that it concerns.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use std::sync::mpsc;
use std::thread;

use svc_model::capture::CaptureSource;
use svc_model::time::Instant;

use super::*;

/// What a sender asks of the writer.
type Command<'c> = Box<dyn FnOnce(&Store) -> Result<(), StoreError> + Send + 'c>;

/// Blocks the writer while commands are sent, so that they form one group, and returns the answers.
fn in_one_group(store: &Store, commands: Vec<Command<'_>>) -> Vec<Result<(), StoreError>> {
    let (blocked, answers) = behind(store, || Ok(()), commands);
    blocked.unwrap();
    answers
}

/// Blocks the writer while commands are sent, and then ends the blocking command with `end`.
/// Returns its answer and the answers to the commands.
fn behind(
    store: &Store,
    end: fn() -> Result<(), StoreError>,
    commands: Vec<Command<'_>>,
) -> (Result<(), StoreError>, Vec<Result<(), StoreError>>) {
    let (go_on, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let waits = Mutex::new(waits);
        let (begun, has_begun) = mpsc::channel::<()>();
        let blocker = scope.spawn(move || {
            store.writer.run_blocking(move |_| {
                begun.send(()).unwrap();
                waits.lock().unwrap().recv().unwrap();
                end()
            })
        });
        has_begun.recv().unwrap();
        let expected = commands.len();
        let answers: Vec<_> = commands
            .into_iter()
            .map(|command| scope.spawn(move || command(store)))
            .collect();
        while store.writer.waiting() < expected {
            std::thread::yield_now();
        }
        go_on.send(()).unwrap();
        let blocked = blocker.join().unwrap();
        let answers = answers.into_iter().map(|answer| answer.join().unwrap());
        (blocked, answers.collect())
    })
}

fn counting(tries: &Arc<AtomicUsize>) -> Command<'_> {
    let tries = Arc::clone(tries);
    Box::new(move |store| {
        store.writer.run_blocking(move |_| {
            tries.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    })
}

fn failing(error: fn() -> StoreError) -> Command<'static> {
    Box::new(move |store| store.writer.run_blocking(move |_| Err(error())))
}

#[rstest]
fn only_an_error_in_the_data_is_retried_delivery_by_delivery(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let group = |error: fn() -> StoreError| {
        let tries = Arc::new(AtomicUsize::new(0));
        let commands = (0..20).map(|_| counting(&tries));
        let commands = commands.chain([failing(error)]).collect();
        let stored = in_one_group(&store, commands);
        let stored = stored.iter().filter(|answer| answer.is_ok()).count();
        (stored, tries.load(Ordering::SeqCst))
    };
    let (stored, tries) = group(|| StoreError::Corrupt {
        table: "pushes",
        what: "it is a test",
    });
    assert_eq!(stored, 20);
    assert!((20..=40).contains(&tries), "{tries}");
    let (stored, tries) = group(|| StoreError::Deadline);
    assert_eq!(stored, 0, "the others are told to retry");
    assert!(tries <= 20, "{tries}");
}

#[rstest]
fn deliveries_retried_one_by_one_do_not_each_wait_for_a_hanging_database(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let alone = Arc::new(AtomicBool::new(false));
    let tries = Arc::new(AtomicUsize::new(0));
    let corrupt: Command<'_> = {
        let alone = Arc::clone(&alone);
        Box::new(move |store| {
            store.writer.run_blocking(move |_| {
                alone.store(true, Ordering::SeqCst);
                Err(StoreError::Corrupt {
                    table: "pushes",
                    what: "it is a test",
                })
            })
        })
    };
    let hung = || -> Command<'_> {
        let (alone, tries) = (Arc::clone(&alone), Arc::clone(&tries));
        Box::new(move |store| {
            store.writer.run_blocking(move |_| {
                if !alone.load(Ordering::SeqCst) {
                    return Ok(());
                }
                tries.fetch_add(1, Ordering::SeqCst);
                Err(StoreError::Deadline)
            })
        })
    };
    let commands = (0..20).map(|_| hung()).chain([corrupt]).collect();
    let stored = in_one_group(&store, commands);
    assert!(stored.iter().all(Result::is_err), "{stored:?}");
    assert_eq!(tries.load(Ordering::SeqCst), 1);
}

#[rstest]
fn a_panic_in_the_writer_fails_only_its_group(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let skipped = CaptureTotals::delivery(CaptureSource::Gateway, at(1));
    store.count(&skipped);
    let panicked: Result<(), _> = store.writer.run_blocking(|transaction| {
        transaction
            .connection
            .execute("DELETE FROM inference_calls", &[])?;
        panic!("a defect of a test")
    });
    assert!(
        matches!(panicked, Err(StoreError::NotStored)),
        "{panicked:?}"
    );
    assert!(store.is_writing());
    assert_eq!(store.uncounted(), skipped, "it is counted later");
    assert_eq!(
        append(&store, vec![call(1).build(), call(2).build()]),
        [Outcome::Redelivered(id(1)), Outcome::Stored(id(2))]
    );
    store.close();
    assert!(!store.is_writing());
}

#[test]
fn a_terminated_backend_fails_no_sender() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    database.end_connections();
    assert_eq!(
        append(&store, vec![call(2).build()]),
        [Outcome::Stored(id(2))],
        "it was idle"
    );
    let ended = AtomicUsize::new(0);
    let ended: &'static AtomicUsize = Box::leak(Box::new(ended));
    let commands: Vec<Command<'_>> = vec![
        Box::new(|store| {
            let stored = append(store, vec![call(3).build()]);
            assert_eq!(stored, [Outcome::Stored(id(3))]);
            Ok(())
        }),
        Box::new(move |store| {
            store.writer.run_blocking(move |transaction| {
                if ended.fetch_add(1, Ordering::SeqCst) == 0 {
                    let end = "SELECT CAST(pg_terminate_backend(pg_backend_pid()) AS TEXT)";
                    transaction.connection.first(end, &[], |row| row.text(0))?;
                }
                Ok(())
            })
        }),
    ];
    for stored in in_one_group(&store, commands) {
        stored.unwrap();
    }
    assert_eq!(ended.load(Ordering::SeqCst), 2);
    assert_eq!(count(&store, FactTable::InferenceCalls).total, 3);
}

#[rstest]
fn deliveries_behind_a_hanging_database_fail_together_with_the_first(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let tries = Arc::new(AtomicUsize::new(0));
    let hangs = || Err(StoreError::Deadline);
    let (hanging, waiting) = behind(&store, hangs, vec![counting(&tries)]);
    let cause = match &hanging {
        Err(StoreError::TransactionFailed(cause)) => Some(&**cause),
        _ => None,
    };
    assert!(matches!(cause, Some(StoreError::Deadline)), "{hanging:?}");
    assert!(matches!(waiting[0], Err(StoreError::NotStored)));
    assert_eq!(tries.load(Ordering::SeqCst), 0);
    append(&store, vec![call(1).build()]);
}

#[rstest]
fn accepted_deliveries_are_stored_before_the_store_closes(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let (go_on, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (store, waits) = (&store, Mutex::new(waits));
        let (begun, has_begun) = mpsc::channel::<()>();
        scope.spawn(move || {
            let waiting = store.writer.run_blocking(move |_| {
                begun.send(()).unwrap();
                waits.lock().unwrap().recv().unwrap();
                Ok(())
            });
            waiting.unwrap();
        });
        has_begun.recv().unwrap();
        let accepted: Vec<_> = (1..=20)
            .map(|number| scope.spawn(move || append(store, vec![call(number).build()])))
            .collect();
        while store.writer.waiting() < 20 {
            std::thread::yield_now();
        }
        let closing = scope.spawn(|| store.close());
        // Once it begins to close, it accepts nothing.
        let refused = loop {
            if !store.writer.accepts() {
                break store.append_now(vec![Append::InferenceCall(Box::new(
                    store.encode(call(21).build(), at(0)),
                ))]);
            }
            std::thread::yield_now();
        };
        assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
        go_on.send(()).unwrap();
        closing.join().unwrap();
        for (number, accepted) in (1..).zip(accepted) {
            assert_eq!(accepted.join().unwrap(), [Outcome::Stored(id(number))]);
        }
    });
    assert_eq!(count(&store, FactTable::InferenceCalls).total, 20);
}

#[test]
fn a_locked_table_delays_only_writers_that_need_it() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let checked = |number: u128| {
        let outcome = outcome(number, &format!("r{number}"));
        vec![Append::CiOutcome(Box::new(outcome))]
    };
    // The plan of each statement is checked when it is first used, which the lock would prevent.
    store.append_now(checked(2)).unwrap();
    let mut other = Connection::open(database.url()).unwrap();
    other
        .batch("BEGIN; LOCK TABLE ci_outcomes IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    for round in [10_u128, 20] {
        let commands: Vec<Command<'_>> = vec![
            Box::new(move |store| store.append_now(checked(round)).map(drop)),
            Box::new(move |store| {
                let stored = append(store, vec![call(round).build()]);
                assert_eq!(stored, [Outcome::Stored(id(round))]);
                Ok(())
            }),
        ];
        let stored = in_one_group(&store, commands);
        assert!(stored[0].is_err() && stored[1].is_ok(), "{stored:?}");
    }
    other.batch("ROLLBACK").unwrap();
    // The table is still suspect, but a lock on the organization's row is waited for as usual.
    let mut busy = Connection::open(database.url()).unwrap();
    busy.batch("BEGIN; SELECT 1 FROM organizations FOR UPDATE")
        .unwrap();
    let stored = thread::scope(|scope| {
        let appending = scope.spawn(|| store.append_now(checked(30)));
        thread::sleep(Duration::from_millis(500));
        busy.batch("ROLLBACK").unwrap();
        appending.join().unwrap()
    });
    assert_eq!(stored.unwrap(), [Outcome::Stored(id(30))]);
}

#[rstest]
fn nothing_is_captured_by_a_clock_that_was_set_or_differs_from_the_databases(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const HOUR: i64 = 3_600_000_000;
    let database = database!(backend);
    let ahead = Arc::new(AtomicI64::new(0));
    let system = Clock::system();
    let set = {
        let (ahead, system, steady) = (Arc::clone(&ahead), system.clone(), system.clone());
        let now = move || {
            let now = system.now().microseconds() + ahead.load(Ordering::SeqCst);
            Instant::from_microseconds(now).unwrap()
        };
        Clock::of(now, move || steady.passed_microseconds().unwrap())
    };
    let store = database.open_by("acme", &set);
    let deliver = |store: &Store, number| {
        let call = store.encode(call(number).session("s").build(), set.now());
        store.append_now(vec![Append::InferenceCall(Box::new(call))])
    };
    let last = |store: &Store| store.snapshot_now().boundary(None).unwrap();
    deliver(&store, 1).unwrap();
    let before = last(&store);
    for by in [HOUR, -HOUR] {
        ahead.store(by, Ordering::SeqCst);
        let refused = deliver(&store, 2).unwrap_err();
        assert!(matches!(refused, StoreError::Clock(_)), "{refused}");
        assert_eq!(store.obstacle(), Some(Obstacle::Clock));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let empty = runtime.unwrap().block_on(store.write_counts_as_facts());
        assert!(matches!(empty, Err(StoreError::Clock(_))), "{empty:?}");
        // Nothing else depends on the clock.
        store.writer.run_blocking(|_| Ok(())).unwrap();
    }
    assert_eq!(last(&store), before);
    ahead.store(0, Ordering::SeqCst);
    deliver(&store, 2).unwrap();
    assert_eq!(store.obstacle(), None);
    assert!(before < last(&store));
    // A server that starts with such a clock.
    ahead.store(HOUR, Ordering::SeqCst);
    let other = database.open_by("acme", &set);
    let compared = check_clock(database.url(), &set);
    match backend {
        Backend::Sqlite => {
            compared.unwrap();
            deliver(&other, 3).unwrap();
            let last = last(&other);
            let ahead = other.snapshot_now().captured_ahead_of(system.now());
            assert_eq!(ahead.unwrap(), Some(last));
        }
        Backend::Postgres => {
            let message = "this clock is 3600 s ahead of the database server's";
            let refused = deliver(&other, 3).unwrap_err().to_string();
            assert!(refused.starts_with(message), "{refused}");
            let compared = compared.unwrap_err().to_string();
            assert!(compared.starts_with(message), "{compared}");
        }
    }
}

#[test]
fn a_server_that_is_paused_in_a_transaction_holds_nobody_up() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    append_one(&store, Append::Push, push(1));
    let mut paused = Connection::open(database.url()).unwrap();
    paused.begin_write(&transaction::deadline()).unwrap();
    let lock = "SELECT sessions FROM organizations WHERE org_id = 'acme' FOR UPDATE";
    plan_check::unchecked(|| paused.first(lock, &[], |row| row.integer(0))).unwrap();
    // The first delivery waits, and is not refused.
    append_one(&store, Append::Push, push(2));
    // The other notices when it goes on.
    let lost = paused.commit().unwrap_err();
    assert!(lost.is_connection_lost(), "{lost:?}");
}

#[test]
fn every_error_of_postgres_has_a_cause_and_its_sqlstate() {
    let database = database!(Backend::Postgres);
    let mut connection = Connection::open(database.url()).unwrap();
    let mut raise = |sqlstate: &str| {
        let raise = format!("DO $$ BEGIN RAISE 'the text' USING ERRCODE = '{sqlstate}'; END $$");
        connection.batch(&raise).unwrap_err()
    };
    for (sqlstate, cause) in [
        ("55000", Some(Obstacle::Refused)),
        ("42P01", Some(Obstacle::Other)),
        ("XX000", Some(Obstacle::Other)),
        ("53200", Some(Obstacle::Other)),
        ("42P05", Some(Obstacle::Pooler)),
        ("26000", Some(Obstacle::Pooler)),
        // The next attempt or another delivery may succeed.
        ("40P01", None),
        ("55P03", None),
        ("22003", None),
    ] {
        let error = raise(sqlstate);
        assert_eq!(error.obstacle(), cause, "{sqlstate}");
        assert_eq!(error.sqlstate(), Some(sqlstate));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, format!("the text (SQLSTATE {sqlstate})"));
    }
    drop(connection);
    let refused = database.while_refusing(|| Connection::open(database.url()).unwrap_err());
    assert_eq!(refused.obstacle(), Some(Obstacle::Refused));
    assert_eq!(refused.sqlstate(), Some("55000"));
}
