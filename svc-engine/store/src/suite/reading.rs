//! Connections for reading: what returns to the pool, and what a deadline limits.

use super::*;

fn soon() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

#[test]
fn idle_connections_that_died_are_replaced_in_the_pool() {
    let database = database!(Backend::Postgres);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 3);
    let leases: Vec<_> = (0..3).map(|_| pool.begin_read(&soon()).unwrap()).collect();
    assert_eq!(pool.left(), 0);
    drop(leases);
    assert_eq!(pool.left(), 3);
    // As after a restart of the server: every idle connection is dead, not just the first.
    run_sql(
        database.url(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .unwrap();
    let mut lease = pool.begin_read(&soon()).unwrap();
    let one = lease.first("SELECT CAST(1 AS BIGINT)", &[], |row| row.integer(0));
    assert_eq!(one.unwrap(), Some(1));
    drop(lease);
    assert_eq!(pool.left(), 3);
}

#[test]
fn a_connection_that_dies_during_a_read_frees_its_place() {
    let database = database!(Backend::Postgres);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 1);
    let mut lease = pool.begin_read(&soon()).unwrap();
    let ended = lease.first("SELECT pg_terminate_backend(pg_backend_pid())", &[], |_| {
        Ok(())
    });
    assert!(ended.is_err());
    assert!(!lease.is_usable());
    drop(lease);
    assert_eq!(pool.left(), 1);
    drop(pool.begin_read(&soon()).unwrap());
}

#[rstest]
fn two_connections_see_one_state_and_work_in_parallel(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let mut snapshot = store.snapshot_of_two_now();
    append(&store, vec![call(2).build()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    let calls = |snapshot: &mut Snapshot<'_>| {
        let count = snapshot.fact_counts().unwrap().inference_calls;
        count.total
    };
    for _ in 0..2 {
        let both = snapshot.both(
            |snapshot| {
                // If the two ran one after the other, this would never arrive.
                receiver.recv_timeout(Duration::from_secs(30)).unwrap();
                // While the other connection is in use, this one does both.
                snapshot.both(calls, calls)
            },
            |snapshot| {
                sender.send(()).unwrap();
                calls(snapshot)
            },
        );
        assert_eq!(both, ((1, 1), 1));
    }
    drop(snapshot);
    assert_eq!(calls(&mut store.snapshot_now()), 2);
}

#[rstest]
fn a_second_connection_is_only_taken_when_it_is_free(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 3);
    let (_first, second) = pool.begin_read_twice(&soon()).unwrap();
    assert!(second.is_some());
    assert_eq!(pool.left(), 1);
    let (_third, fourth) = pool.begin_read_twice(&soon()).unwrap();
    assert!(fourth.is_none());
    drop(second);
    assert_eq!(pool.left(), 1);
}

#[test]
fn both_connections_of_a_snapshot_see_the_same_commits() {
    let database = database!(Backend::Sqlite);
    let store = database.open("acme");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 1.. {
                append(&store, vec![call(number).build()]);
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..300 {
            let calls = |snapshot: &mut Snapshot<'_>| {
                let count = snapshot.fact_counts().unwrap().inference_calls;
                count.total
            };
            let (one, other) = store.snapshot_of_two_now().both(calls, calls);
            assert_eq!(one, other);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        writing.join().unwrap();
    });
}

#[rstest]
fn a_read_waits_for_a_connection_until_its_deadline(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 1);
    let lease = pool.begin_read(&soon()).unwrap();
    let late = pool.begin_read(&Deadline::after(Duration::from_millis(30)));
    assert!(matches!(late, Err(StoreError::Deadline)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.begin_read(&soon()).map(drop));
        drop(lease);
        waiting.join().unwrap().unwrap();
    });
}

#[rstest]
fn one_deadline_bounds_all_statements_of_a_read(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 1);
    let started = std::time::Instant::now();
    let mut lease = pool
        .begin_read(&Deadline::after(Duration::from_secs(2)))
        .unwrap();
    // Each is short. Together they never end.
    let counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT COUNT(*) FROM n";
    let stopped = loop {
        if let Err(error) = lease.first(counting, &[], |row| row.integer(0)) {
            break error;
        }
    };
    assert!(matches!(stopped, StoreError::Deadline), "{stopped:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(lease);
    drop(pool.begin_read(&soon()).unwrap());
}

#[rstest]
fn a_cancelled_read_ends_in_the_middle_of_its_statement(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deadline = soon();
    let mut snapshot = store.snapshot(&deadline).unwrap();
    deadline.cancel();
    let cancelled = snapshot.quarantine_revision();
    assert!(matches!(cancelled, Err(StoreError::Deadline)));
}

#[test]
fn a_hanging_server_delays_a_read_only_until_its_deadline() {
    let database = database!(Backend::Postgres);
    drop(database.open("acme"));
    let pool = Pool::new(database.url().clone(), 1);
    let mut lease = pool
        .begin_read(&Deadline::after(Duration::from_millis(500)))
        .unwrap();
    // Like a stopped server: it neither answers nor closes.
    let hung = lease.first(
        "SELECT set_config('statement_timeout', '0', true), pg_sleep(30)",
        &[],
        |_| Ok(()),
    );
    assert!(matches!(hung, Err(StoreError::Deadline)), "{hung:?}");
    drop(lease);
    assert_eq!(pool.left(), 1);
    drop(pool.begin_read(&soon()).unwrap());
}

#[test]
fn a_deleted_or_replaced_database_file_is_refused() {
    let database = database!(Backend::Sqlite);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let DatabaseUrl::Sqlite(path) = database.url() else {
        panic!("a file");
    };
    let aside = path.with_extension("aside");
    std::fs::rename(path, &aside).unwrap();
    let facts = vec![Append::InferenceCall(Box::new(
        store.encode(call(2).build(), at(0)),
    ))];
    let refused = store.append_now(facts);
    assert!(matches!(refused, Err(StoreError::Replaced)), "{refused:?}");
    let refused = store.snapshot(&soon());
    assert!(matches!(refused, Err(StoreError::Replaced)));
    std::fs::write(path, b"").unwrap();
    let refused = store.snapshot(&soon());
    assert!(matches!(refused, Err(StoreError::Replaced)));
    // The open file is back: nothing was lost.
    std::fs::rename(&aside, path).unwrap();
    append(&store, vec![call(2).build()]);
    assert_eq!(
        store
            .snapshot_now()
            .call_summaries(&session("s"))
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn the_file_and_its_folder_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let database = database!(Backend::Sqlite);
    let path = database.folder().join("new").join("svc.db");
    upgrade(&DatabaseUrl::sqlite(&path)).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn a_truncated_database_file_is_an_error() {
    let database = database!(Backend::Sqlite);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    let DatabaseUrl::Sqlite(path) = database.url() else {
        panic!("a file");
    };
    run_sql(database.url(), "PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(4_096).unwrap();
    let read = store
        .snapshot(&soon())
        .and_then(|mut snapshot| snapshot.call_summaries(&session("s")));
    assert!(read.is_err());
}

#[test]
fn six_services_start_on_one_new_file() {
    let database = database!(Backend::Sqlite);
    let barrier = Barrier::new(6);
    std::thread::scope(|scope| {
        let starting: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    database.try_open("acme").map(drop)
                })
            })
            .collect();
        for started in starting {
            started.join().unwrap().unwrap();
        }
    });
}
