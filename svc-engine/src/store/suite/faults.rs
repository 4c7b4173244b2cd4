//! A fault in the writer fails only the commands that it concerns.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread;

use svc_model::capture::CaptureSource;

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
    let mut other = Connection::open(database.url()).unwrap();
    other
        .batch("BEGIN; LOCK TABLE ci_outcomes IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let checked = |number: u128| {
        let outcome = outcome(number, &format!("r{number}"));
        vec![Append::CiOutcome(Box::new(outcome))]
    };
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
