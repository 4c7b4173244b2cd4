//! Price tables are kept, each once in a row, and found by the moment that is asked about.

use svc_model::limit::PRICE_TABLES_MAX;
use svc_model::spend::PriceTable;
use svc_model::time::Instant;

use super::backups::put;
use super::*;
use crate::backup::{Watch, take, verify_store};
use crate::testing::price_table;

fn load(store: &Store, number: u8, file: &[u8]) -> PriceLoad {
    let table = price_table(number, file);
    store.load_price_table_now(table).unwrap()
}

fn loaded(store: &Store, number: u8, file: &[u8]) -> PriceTable {
    match load(store, number, file) {
        PriceLoad::New(table) => table,
        other => panic!("{other:?}"),
    }
}

fn in_force(store: &Store, as_of: Instant) -> Option<PriceTable> {
    store.snapshot_now().price_table_in_force(as_of).unwrap()
}

fn after(moment: Instant) -> Instant {
    Instant::from_microseconds(moment.microseconds() + 1).unwrap()
}

fn before(moment: Instant) -> Instant {
    Instant::from_microseconds(moment.microseconds() - 1).unwrap()
}

#[rstest]
fn the_newest_table_of_a_moment_is_in_force(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    assert_eq!(in_force(&store, at(99)), None);
    let first = loaded(&store, 1, b"one");
    assert_eq!(first.loaded_at, at(1));
    assert_eq!((first.models, first.ignored), (3, 4));
    let second = loaded(&store, 5, b"two");
    for (as_of, expected) in [
        (before(at(1)), None),
        (at(1), Some(&first)),
        (before(at(5)), Some(&first)),
        (at(5), Some(&second)),
        (at(99), Some(&second)),
    ] {
        assert_eq!(in_force(&store, as_of).as_ref(), expected);
    }
    let other = database.open("other");
    assert_eq!(in_force(&other, at(99)), None);
    let mut snapshot = store.snapshot_now();
    assert_eq!(snapshot.price_tables(100).unwrap(), [second.clone(), first]);
    assert_eq!(snapshot.price_tables(1).unwrap().first(), Some(&second));
    let mut file = |id| snapshot.price_table_file(id).unwrap();
    assert_eq!(file(second.price_table_id), Some(b"two".to_vec()));
    assert_eq!(file(Uuid::from_u128(9)), None);
    let mut foreign = other.snapshot_now();
    let foreign = foreign.price_table_file(second.price_table_id);
    assert_eq!(foreign.unwrap(), None);
}

#[rstest]
fn the_file_in_force_is_not_stored_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let first = loaded(&store, 1, b"one");
    assert_eq!(load(&store, 2, b"one"), PriceLoad::InForce(first.clone()));
    let second = loaded(&store, 3, b"two");
    // An earlier file may come into force again.
    let third = loaded(&store, 4, b"one");
    assert_eq!(in_force(&store, at(9)).as_ref(), Some(&third));
    // The clock was set back. The newest table is still the one that was loaded last.
    let fourth = loaded(&store, 2, b"three");
    assert_eq!(fourth.loaded_at, after(third.loaded_at));
    let tables = store.snapshot_now().price_tables(9).unwrap();
    assert_eq!(tables, [fourth, third, second, first]);
    // It is no other organization's table.
    loaded(&database.open("other"), 9, b"three");
}

#[rstest]
fn there_are_at_most_so_many_tables(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    loaded(&store, 1, b"one");
    let more = PRICE_TABLES_MAX - 2;
    let others = format!(
        "INSERT INTO price_tables SELECT 'other-' || CAST(n AS TEXT), org_id, format, name, digest,
            loaded_at_us - n, models, ignored, byte_count, file
        FROM price_tables, (WITH RECURSIVE numbers(n) AS
            (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {more}) SELECT n FROM numbers) numbers"
    );
    database.change(&others);
    loaded(&store, 2, b"two");
    assert_eq!(load(&store, 3, b"three"), PriceLoad::Full);
    assert!(matches!(load(&store, 3, b"two"), PriceLoad::InForce(_)));
    assert_eq!(in_force(&store, at(9)).unwrap().name, "prices-2.json");
    loaded(&database.open("other"), 3, b"three");
}

#[rstest]
fn a_backup_has_the_price_tables(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    let file = b"prices ".repeat(10_000);
    let table = loaded(&store, 1, &file);
    let folder = database.folder().join("copy");
    std::fs::create_dir(&folder).unwrap();
    let mut watch = Watch {
        deadline: Deadline::after(Duration::from_mins(1)),
        progress: &mut |_, _| {},
    };
    let taken = take(database.url(), &folder, &mut watch).unwrap();
    let other = match backend {
        Backend::Sqlite => Backend::Postgres,
        Backend::Postgres => Backend::Sqlite,
    };
    let other = database!(other);
    put(other.url(), &folder, &taken.tables, true, &mut watch).unwrap();
    let restored = other.open("acme");
    let mut snapshot = restored.snapshot_now();
    assert_eq!(
        snapshot.price_tables(9).unwrap(),
        std::slice::from_ref(&table)
    );
    let found = snapshot.price_table_file(table.price_table_id).unwrap();
    assert_eq!(found, Some(file));
    drop(snapshot);
    let found = verify_store(other.url(), &mut watch).unwrap();
    assert_eq!((found.total, found.findings), (0, vec![]));
}

/// A report reads the receipts of its time, whatever else the organization has.
#[rstest]
fn receipts_are_found_by_their_time(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let connection = snapshot.connection().unwrap();
    let of_time = "SELECT f.usage_receipt_id FROM visible_usage_receipts f
        WHERE (f.org_id || '') = $1 AND f.occurred_at_us >= $2 AND f.occurred_at_us < $3";
    let keys = ["acme".into(), 0_i64.into(), 9_i64.into()];
    assert_eq!(connection.all(of_time, &keys, |_| Ok(())).unwrap(), []);
    let plans = plan_check::of(connection, "f.occurred_at_us >= $2");
    for (_, plan) in plans {
        assert!(plan.contains("usage_receipts_by_time"), "{plan}");
    }
}
