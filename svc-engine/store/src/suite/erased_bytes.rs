//! No byte of erased content is left in the files of the database, and its space is freed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use svc_engine_fact::RawPayload;

use super::*;
use sha2::{Digest as _, Sha256};

/// Every column that holds captured content.
const COLUMNS: [(&str, &str); 9] = [
    ("content", "bytes"),
    ("raw_payloads", "skeleton"),
    ("developer_decisions", "raw"),
    ("edit_observations", "applied_text"),
    ("edit_observations", "observed_file_text"),
    ("edit_observations", "raw"),
    ("rejected_edits", "proposed"),
    ("rejected_edits", "raw"),
    ("retry_linkages", "raw"),
];

/// Returns a text without repetitions.
fn noise(seed: &str, pieces: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for piece in 0..pieces {
        for byte in Sha256::digest(format!("{seed} {piece}")) {
            write!(text, "{byte:02x}").unwrap();
        }
    }
    text
}

/// Stores facts of every kind that holds content, in one Session.
fn fill(store: &Store, first: u128, session_id: &str) {
    let json = |seed: &str| {
        let text = format!(r#"{{"said":"{}"}}"#, noise(&format!("{seed} {first}"), 4));
        Json::parse(text.as_bytes()).unwrap()
    };
    let calls = (0..40).map(|number| {
        let long = noise(&format!("{session_id} {number}"), 1 + (number * 7) % 200);
        call(first + number as u128)
            .session(session_id)
            .input(vec![text("user", &long)])
            .output(vec![text(
                "assistant",
                &noise(&format!("{first} said {number}"), 9),
            )])
            .raw(RawPayload::from(json(&format!("raw {number}"))))
            .build()
    });
    append(store, calls.collect());
    let mut decision = decision(first + 100);
    decision.raw = json("decision");
    decision.session_id = session(session_id);
    append_one(store, Append::DeveloperDecision, decision);
    let mut edit = edit(first + 101, "c");
    edit.session_id = session(session_id);
    edit.texts.applied = Text::from(&*noise("applied", 5));
    edit.texts.observed_file = Text::from(&*noise("observed", 600));
    edit.raw = json("edit");
    append_one(store, Append::EditObservation, edit);
    let mut rejection = rejection(first + 102, "c");
    rejection.session_id = session(session_id);
    rejection.proposed = Text::from(&*noise("proposed", 5));
    rejection.raw = json("rejection");
    append_one(store, Append::RejectedEdit, rejection);
    let mut linkage = linkage(first + 103, "c", "d");
    linkage.session_id = session(session_id);
    linkage.raw = json("linkage");
    append_one(store, Append::RetryLinkage, linkage);
}

/// Returns every content as stored.
fn kept(database: &TestStore) -> BTreeSet<Vec<u8>> {
    let mut kept = BTreeSet::new();
    for (table, column) in COLUMNS {
        let hexadecimal = database.hexadecimal(column);
        let rows = database.rows(&format!("SELECT {hexadecimal} FROM {table}"), 1);
        kept.extend(rows.into_iter().flatten().map(|digits| {
            let byte = |place: usize| u8::from_str_radix(&digits[place..place + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>()
        }));
    }
    kept
}

/// Returns the folder with the files of a database.
fn folder(database: &TestStore, backend: Backend) -> PathBuf {
    match backend {
        Backend::Sqlite => database.folder().to_owned(),
        Backend::Postgres => {
            let place = "SELECT current_setting('data_directory'), pg_relation_filepath('content')";
            let [row] = &database.rows(place, 2)[..] else {
                unreachable!("one row")
            };
            Path::new(&row[0]).join(Path::new(&row[1]).parent().unwrap())
        }
    }
}

/// Flushes what the database holds in memory to its files.
fn flush(database: &TestStore, backend: Backend) {
    if backend == Backend::Postgres {
        run_sql(database.url(), "CHECKPOINT").unwrap();
    }
}

fn files(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        match std::fs::read(entry.unwrap().path()) {
            Ok(file) => bytes.extend(file),
            // PostgreSQL renames a file when a connection starts.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        }
    }
    bytes
}

/// Number of bytes that identify a content and are stored contiguously.
const WINDOW: usize = 24;

/// Returns how many of the pieces are in the bytes.
fn found(bytes: &[u8], pieces: &BTreeSet<&[u8]>) -> usize {
    let there: BTreeSet<&[u8]> = bytes
        .windows(WINDOW)
        .filter(|window| pieces.contains(window))
        .collect();
    there.len()
}

#[rstest]
fn no_byte_of_erased_content_is_left_in_the_files(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    // A server is running meanwhile.
    let store = database.open("acme");
    // A reader of an early state, so that SQLite's log is not begun anew before it is looked at.
    let mut early = store.snapshot_now();
    early.fact_counts().unwrap();
    fill(&store, 1_000, "s");
    fill(&store, 2_000, "t");
    let before = kept(&database);
    let folder = folder(&database, backend);
    flush(&database, backend);
    let size = files(&folder).len();

    let ledger = database.ledger("acme");
    let deadline = Deadline::after(Duration::from_mins(1));
    let subject = ErasureSubject::Session(session("s"));
    let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
    let order = ErasureOrder {
        erasure_id: Uuid::from_u128(1),
        subject,
        reason: "because".to_owned(),
        recorded_at: at(9),
        client_id: "operator".to_owned(),
    };
    let erased = ledger.erase(plan, &order, &deadline, &mut |_| {}).unwrap();
    assert_eq!(erased.facts.total(), 44);

    let after = kept(&database);
    let still_there: Vec<u8> = after.iter().flatten().copied().collect();
    let still_there: BTreeSet<&[u8]> = still_there.windows(WINDOW).collect();
    let gone: Vec<&Vec<u8>> = before.difference(&after).collect();
    // Skips the bytes with which all compressed texts begin.
    let pieces: BTreeSet<&[u8]> = gone
        .iter()
        .filter_map(|content| content.get(12..12 + WINDOW))
        .filter(|piece| !still_there.contains(piece))
        .collect();
    assert!(pieces.len() > 80, "{}", pieces.len());
    if backend == Backend::Sqlite {
        let log = std::fs::read(folder.join("svc.db-wal")).unwrap();
        assert!(found(&log, &pieces) > 80, "the log holds what was written");
    }

    drop(early);
    assert_eq!(ledger.compact().unwrap(), Compaction::Done);
    flush(&database, backend);
    let left = files(&folder);
    assert_eq!(found(&left, &pieces), 0, "of {} pieces", pieces.len());
    let kept_pieces: BTreeSet<&[u8]> = after
        .iter()
        .filter_map(|after| after.get(12..12 + WINDOW))
        .collect();
    assert!(
        found(&left, &kept_pieces) > 80,
        "content that stays is found this way"
    );
    assert!(left.len() < size, "{} of {size}", left.len());
    if backend == Backend::Sqlite {
        let log = std::fs::metadata(folder.join("svc.db-wal")).unwrap();
        assert_eq!(log.len(), 0, "the log is empty");
    }

    // The server continues with the same file.
    append(&store, vec![call(1).session("s").build()]);
    assert_eq!(messages(&store, "t").len(), 40);
}

#[test]
fn the_statistics_of_the_planner_hold_no_content() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    fill(&store, 1_000, "s");
    // Autovacuum does this within minutes.
    run_sql(database.url(), "ANALYZE").unwrap();
    for (table, column) in COLUMNS {
        let sampled = format!(
            "SELECT tablename FROM pg_stats WHERE tablename = '{table}' AND attname = '{column}'
                AND (most_common_vals IS NOT NULL OR histogram_bounds IS NOT NULL)"
        );
        assert!(database.rows(&sampled, 1).is_empty(), "{table}.{column}");
    }
    let any = "SELECT tablename FROM pg_stats WHERE tablename = 'inference_calls'";
    assert!(
        !database.rows(any, 1).is_empty(),
        "the planner samples other columns"
    );
}

#[rstest]
fn compaction_waits_for_readers_of_the_earlier_state(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    fill(&store, 1_000, "s");
    std::thread::scope(|scope| {
        let mut reading = store.snapshot_now();
        assert!(reading.session_known(&session("s")).unwrap());
        append(&store, vec![call(1).session("s").build()]);
        let compacted = scope.spawn(|| database.ledger("acme").compact().unwrap());
        std::thread::sleep(Duration::from_millis(500));
        assert!(!compacted.is_finished());
        drop(reading);
        assert_eq!(compacted.join().unwrap(), Compaction::Done);
    });
}

#[test]
fn compaction_waits_for_transactions_of_other_databases_in_the_cluster() {
    let database = database!(Backend::Postgres);
    let elsewhere = database!(Backend::Postgres);
    let mut other = Connection::open(elsewhere.url()).unwrap();
    other.batch("BEGIN; SELECT txid_current()").unwrap();
    let store = database.open("acme");
    fill(&store, 1_000, "s");
    std::thread::scope(|scope| {
        let compacted = scope.spawn(|| database.ledger("acme").compact().unwrap());
        std::thread::sleep(Duration::from_millis(500));
        assert!(!compacted.is_finished());
        other.batch("COMMIT").unwrap();
        assert_eq!(compacted.join().unwrap(), Compaction::Done);
    });
}

#[test]
fn a_role_that_owns_nothing_is_told_that_it_cannot_rewrite_the_files() {
    let database = database!(Backend::Postgres);
    let store = database.open("acme");
    fill(&store, 1_000, "s");
    let role = database.url_of_role_that_owns_nothing();
    let ledger = Ledger::open(&role, store.org_id().clone()).unwrap();
    // It may delete rows.
    let deadline = Deadline::after(Duration::from_mins(1));
    let subject = ErasureSubject::Session(session("s"));
    let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
    let erased = ledger.erase(plan, &erasure_order(&subject), &deadline, &mut |_| {});
    assert_eq!(erased.unwrap().facts.total(), 44);
    for refused in [
        ledger.check_compaction().unwrap_err(),
        ledger.compact().unwrap_err(),
    ] {
        let StoreError::NotOwner { owner, role } = refused else {
            panic!("{refused:?}");
        };
        assert_ne!(owner, role);
        assert!(role.ends_with("_rows"), "{role}");
    }
    database.ledger("acme").check_compaction().unwrap();
    assert_eq!(database.ledger("acme").compact().unwrap(), Compaction::Done);
}

#[test]
fn a_table_that_is_skipped_is_not_taken_for_rewritten() {
    let database = database!(Backend::Postgres);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    // Like a table that is skipped, a view has no file before and none after.
    let skipped = connection.compact(&["visible_pushes"]);
    assert!(
        matches!(skipped, Err(StoreError::NotRewritten("visible_pushes"))),
        "{skipped:?}"
    );
}
