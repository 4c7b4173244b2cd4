//! A copy of a database can be restored to either backend unchanged, and damage is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use svc_engine_fact::CiOutcome;
use svc_engine_fact::deadline::Cancellation;
use svc_model::ingest::CiResult;

use super::*;
use crate::backup::{
    CopyError, Damage, Finding, Findings, LoadRequest, TableFile, Watch, take, verify_store,
    verify_tables,
};

fn watched<T>(work: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    work(&mut Watch {
        deadline: Deadline::after(Duration::from_mins(1)),
        progress: &mut |_, _| {},
    })
}

fn taken(database: &TestStore, name: &str) -> (PathBuf, Vec<TableFile>) {
    let folder = database.folder().join(name);
    fs::create_dir(&folder).unwrap();
    let taken = watched(|watch| take(database.url(), &folder, watch)).unwrap();
    (folder, taken.tables)
}

/// Restores the tables of a backup, and returns where the old file is.
pub(super) fn put(
    url: &DatabaseUrl,
    folder: &Path,
    tables: &[TableFile],
    replace: bool,
    watch: &mut Watch<'_>,
) -> Result<Option<PathBuf>, CopyError> {
    let loading = LoadRequest {
        folder,
        tables,
        replace,
        erasures: &KeptErasures::default(),
    };
    Ok(loading.load(url, watch)?.replaced)
}

fn digests(tables: &[TableFile]) -> Vec<(&str, u64, &str)> {
    let tables = tables.iter();
    tables
        .map(|table| (&*table.table, table.rows, &*table.sha256))
        .collect()
}

#[rstest]
fn a_copy_is_restored_unchanged_into_either_backend(
    #[values(Backend::Sqlite, Backend::Postgres)] from: Backend,
    #[values(Backend::Sqlite, Backend::Postgres)] to: Backend,
) {
    let (database, other) = (database!(from), database!(to));
    let store = filled(&database);
    // The forge's signed word about a run that was reported otherwise.
    let signed = CiOutcome {
        signed: true,
        result: CiResult::Failed,
        ..outcome(21, "r")
    };
    append_one(&store, Append::CiOutcome, signed);
    let (folder, tables) = taken(&database, "copy");
    assert!(
        tables
            .iter()
            .all(|table| table.rows > 0 || table.table.starts_with("mirror_deferred")),
        "{:#?}",
        digests(&tables)
    );
    let put_in = |replace| watched(|watch| put(other.url(), &folder, &tables, replace, watch));
    assert_eq!(put_in(false).unwrap(), None);
    let (_, again) = taken(&other, "again");
    assert_eq!(digests(&tables), digests(&again));
    let none = watched(|watch| verify_store(other.url(), watch)).unwrap();
    assert_eq!((none.total, none.findings), (0, vec![]));

    // The restored store can be written to: new numbers are greater than those that were loaded.
    let restored = other.open("acme");
    assert_eq!(messages(&restored, "s"), messages(&store, "s"));
    let mut snapshot = restored.snapshot_now();
    assert_eq!(
        snapshot.call_raw(id(1)).unwrap(),
        store.snapshot_now().call_raw(id(1)).unwrap()
    );
    drop(snapshot);
    append(&restored, vec![call(40).session("s").build()]);
    set(&other, FactTable::Pushes, id(14), QuarantineAction::Release);
    assert!(matches!(put_in(false), Err(CopyError::NotEmpty { .. })));
    assert_eq!(put_in(true).unwrap().is_some(), to == Backend::Sqlite);
    let (_, replaced) = taken(&other, "replaced");
    assert_eq!(digests(&tables), digests(&replaced));
}

#[rstest]
fn a_restored_database_under_a_running_server_is_noticed(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = filled(&database);
    let (folder, tables) = taken(&database, "copy");
    append(&store, vec![call(41).session("lost").build()]);
    watched(|watch| put(database.url(), &folder, &tables, true, watch)).unwrap();
    let mut new_call = call(42).session("lost").build();
    new_call.input_messages = call(41).build().input_messages;
    let fact = Append::InferenceCall(Box::new(store.encode(new_call.clone(), at(0))));
    match backend {
        // The open file was replaced: nothing is stored in a file that nobody would find.
        Backend::Sqlite => {
            let refused = store.append_now(vec![fact]);
            assert!(refused.is_err(), "{refused:?}");
            let read = store.snapshot(&Deadline::after(Duration::from_secs(5)));
            assert!(matches!(read, Err(StoreError::Replaced)));
        }
        Backend::Postgres => {
            // The contents that it relies on are lost. Encoded again, the same call is stored.
            drop(store.append_now(vec![fact]));
            let fact = Append::InferenceCall(Box::new(store.encode(new_call, at(0))));
            let again = store.append_now(vec![fact]).unwrap();
            assert!(!matches!(again[0], Outcome::Conflict(_)), "{again:?}");
            let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
            assert_eq!((found.total, found.findings), (0, vec![]));
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced() {
    let (database, other) = (database!(Backend::Sqlite), database!(Backend::Sqlite));
    drop(filled(&database));
    let (folder, tables) = taken(&database, "copy");
    let (link, away) = (other.folder().join("link.db"), other.folder().join("away"));
    let file = away.join("real.db");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let url = DatabaseUrl::sqlite(&link);
    let restore = || watched(|watch| put(&url, &folder, &tables, false, watch));
    assert!(matches!(restore(), Err(CopyError::File(_))));
    assert!(link.is_symlink());
    fs::create_dir(&away).unwrap();
    fs::write(&file, "").unwrap();
    restore().unwrap();
    assert!(link.is_symlink());
    assert!(fs::metadata(&file).unwrap().len() > 0);
}

/// SQLite would apply a log that a deleted file left to the file that comes after it.
#[test]
fn a_log_that_is_left_without_its_file_is_put_aside() {
    let database = database!(Backend::Sqlite);
    let store = filled(&database);
    let (folder, tables) = taken(&database, "copy");
    let DatabaseUrl::Sqlite(file) = database.url() else {
        panic!("it is SQLite");
    };
    let log = PathBuf::from(format!("{}-wal", file.display()));
    for number in 50..80 {
        append(&store, vec![call(number).session("later").build()]);
    }
    let left = fs::read(&log).unwrap();
    assert!(left.len() > 100_000, "{}", left.len());
    drop(store);
    fs::remove_file(file).unwrap();
    fs::write(&log, left).unwrap();

    watched(|watch| put(database.url(), &folder, &tables, false, watch)).unwrap();
    let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
    assert_eq!((found.total, found.findings), (0, vec![]));
    let (_, restored) = taken(&database, "restored");
    assert_eq!(digests(&tables), digests(&restored));
}

fn named(found: &Findings) -> BTreeSet<(Damage, String, String)> {
    let findings = found.findings.iter();
    findings
        .map(|finding| {
            (
                finding.damage,
                finding.table.clone(),
                finding.id.clone().unwrap_or_default(),
            )
        })
        .collect()
}

#[rstest]
fn damage_in_any_table_is_named(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    drop(filled(&database));
    let (folder, tables) = taken(&database, "whole");
    let content = &database.rows(
        "SELECT CAST(content_id AS TEXT) FROM content ORDER BY content_id LIMIT 1",
        1,
    )[0][0];
    let number = &database.rows(
        "SELECT CAST(MIN(call_number) AS TEXT) FROM inference_calls",
        1,
    )[0][0];
    let session_number = &database.rows(
        "SELECT CAST(session_number AS TEXT) FROM sessions WHERE session_id = 't'",
        1,
    )[0][0];
    let text = |number: u128| id(number).to_string();
    let blob = match backend {
        Backend::Sqlite => "x'00ff17'",
        Backend::Postgres => r"'\x00ff17'",
    };
    let stored = |number: u128| {
        let id = id(number).uuid().simple().to_string();
        match backend {
            Backend::Sqlite => format!("x'{id}'"),
            Backend::Postgres => format!(r"'\x{id}'"),
        }
    };
    // Each change to the database, and a finding that it must cause.
    let damages: Vec<(String, Damage, &str, String)> = vec![
        (
            format!(
                "UPDATE content SET bytes = {blob}, codec = 0, byte_count = 3 WHERE content_id = {content}"
            ),
            Damage::DigestDiffers,
            "content",
            content.clone(),
        ),
        (
            format!("UPDATE content SET bytes = {blob} WHERE content_id = {content}"),
            Damage::RowUnreadable,
            "content",
            content.clone(),
        ),
        (
            format!("DELETE FROM content WHERE content_id = {content}"),
            Damage::ContentAbsent,
            "inference_calls",
            text(1),
        ),
        (
            "UPDATE session_commit_claims SET session_id = 'nowhere'".to_owned(),
            Damage::SessionAbsent,
            "session_commit_claims",
            text(22),
        ),
        (
            "UPDATE session_commit_claims SET state = 'resolved'".to_owned(),
            Damage::RowUnreadable,
            "session_commit_claims",
            text(22),
        ),
        (
            format!(
                "UPDATE session_commit_claims SET state = 'resolved', resolved_observation_id = {}",
                stored(99)
            ),
            Damage::ObservationAbsent,
            "session_commit_claims",
            text(22),
        ),
        (
            format!("DELETE FROM raw_payloads WHERE call_number = {number}"),
            Damage::RawPayloadAbsent,
            "raw_payloads",
            text(1),
        ),
        (
            format!(
                "UPDATE raw_payloads SET skeleton = {blob}, codec = 0, byte_count = 3 WHERE call_number = {number}"
            ),
            Damage::RowUnreadable,
            "raw_payloads",
            text(1),
        ),
        (
            format!("DELETE FROM inference_calls WHERE call_number = {number}"),
            Damage::CallAbsent,
            "raw_payloads",
            number.clone(),
        ),
        (
            format!("UPDATE inference_calls SET input_byte_count = 1 WHERE call_number = {number}"),
            Damage::SizeDiffers,
            "inference_calls",
            text(1),
        ),
        (
            "DELETE FROM call_aliases WHERE call_id = 'alias-2' OR call_id = 'other-2'".to_owned(),
            Damage::AliasAbsent,
            "call_aliases",
            text(2),
        ),
        (
            "UPDATE call_keys SET kind = 'x'".to_owned(),
            Damage::RowUnreadable,
            "call_keys",
            text(1),
        ),
        (
            format!("UPDATE developer_decisions SET raw = {blob}"),
            Damage::RowUnreadable,
            "developer_decisions",
            text(10),
        ),
        (
            "UPDATE developer_decisions SET accepted = 1 - accepted".to_owned(),
            Damage::RowUnreadable,
            "developer_decisions",
            text(10),
        ),
        (
            format!("UPDATE edit_observations SET applied_text = {blob}"),
            Damage::RowUnreadable,
            "edit_observations",
            text(11),
        ),
        (
            format!("UPDATE rejected_edits SET proposed = {blob}"),
            Damage::RowUnreadable,
            "rejected_edits",
            text(12),
        ),
        (
            "UPDATE retry_linkages SET accepted_call_id = 'z'".to_owned(),
            Damage::RowUnreadable,
            "retry_linkages",
            text(13),
        ),
        (
            "DELETE FROM pushes WHERE org_id = 'acme'".to_owned(),
            Damage::PushAbsent,
            "session_commit_observations",
            text(19),
        ),
        (
            "DELETE FROM pull_request_revisions".to_owned(),
            Damage::CountDiffers,
            "organizations",
            "acme".to_owned(),
        ),
        (
            "UPDATE pull_request_merges SET merge_commit_sha = 'no commit'".to_owned(),
            Damage::RowUnreadable,
            "pull_request_merges",
            text(16),
        ),
        (
            "DELETE FROM repository_renames".to_owned(),
            Damage::CountDiffers,
            "organizations",
            "acme".to_owned(),
        ),
        (
            "UPDATE ci_outcomes SET result = 'perhaps'".to_owned(),
            Damage::RowUnreadable,
            "ci_outcomes",
            text(18),
        ),
        (
            "DELETE FROM sessions WHERE session_id = 't'".to_owned(),
            Damage::SessionAbsent,
            "inference_calls",
            text(3),
        ),
        (
            format!("UPDATE inference_calls SET session_number = 7 WHERE call_number = {number}"),
            Damage::SessionAbsent,
            "inference_calls",
            text(1),
        ),
        (
            "UPDATE sessions SET claims = '' WHERE session_id = 't'".to_owned(),
            Damage::ClaimAbsent,
            "session_claims",
            session_number.clone(),
        ),
        (
            "UPDATE sessions SET claims = 'u:9:x' WHERE session_id = 't'".to_owned(),
            Damage::RowUnreadable,
            "sessions",
            "t".to_owned(),
        ),
        (
            format!("DELETE FROM session_claims WHERE session_number = {session_number}"),
            Damage::ClaimAbsent,
            "inference_calls",
            text(3),
        ),
        (
            "DELETE FROM repository_claims".to_owned(),
            Damage::ClaimAbsent,
            "repository_renames",
            text(17),
        ),
        (
            "DELETE FROM quarantine_log WHERE fact_table = 'pushes'".to_owned(),
            Damage::CountDiffers,
            "organizations",
            "acme".to_owned(),
        ),
        (
            "DELETE FROM organizations WHERE org_id = 'other'".to_owned(),
            Damage::CountDiffers,
            "organizations",
            "other".to_owned(),
        ),
        (
            "DELETE FROM erasure_log".to_owned(),
            Damage::ErasureAbsent,
            "erased_facts",
            text(5),
        ),
        (
            "DELETE FROM erased_facts".to_owned(),
            Damage::RawPayloadAbsent,
            "raw_payloads",
            text(5),
        ),
        (
            format!("UPDATE erased_facts SET fact_id = {}", stored(6)),
            Damage::FactAbsent,
            "erased_facts",
            text(6),
        ),
        (
            format!("UPDATE erased_facts SET fact_id = {}", stored(1)),
            Damage::ContentRemains,
            "inference_calls",
            text(1),
        ),
        (
            format!(
                "UPDATE erased_facts SET fact_table = 'edit_observations', fact_id = {}",
                stored(11)
            ),
            Damage::ContentRemains,
            "edit_observations",
            text(11),
        ),
        (
            "UPDATE price_tables SET digest = 'other'".to_owned(),
            Damage::DigestDiffers,
            "price_tables",
            Uuid::from_u128(1).to_string(),
        ),
        (
            "UPDATE price_tables SET byte_count = 1".to_owned(),
            Damage::SizeDiffers,
            "price_tables",
            Uuid::from_u128(1).to_string(),
        ),
        (
            "UPDATE price_tables SET format = 'other'".to_owned(),
            Damage::RowUnreadable,
            "price_tables",
            Uuid::from_u128(1).to_string(),
        ),
        (
            "DELETE FROM grants_in_force".to_owned(),
            Damage::GrantDiffers,
            "grants_in_force",
            "ann".to_owned(),
        ),
        (
            "UPDATE grants_in_force SET grant_revision = 7".to_owned(),
            Damage::GrantDiffers,
            "grants_in_force",
            "ann".to_owned(),
        ),
        (
            "UPDATE grant_log SET action = 'remove', removed_grant_id = 'g'".to_owned(),
            Damage::GrantDiffers,
            "grants_in_force",
            "ann".to_owned(),
        ),
        (
            "UPDATE organizations SET captured_at_us = 1 WHERE org_id = 'acme'".to_owned(),
            Damage::CapturedBeyond,
            "organizations",
            "acme".to_owned(),
        ),
    ];
    for (sql, damage, table, id) in &damages {
        assert!(database.change(sql) > 0, "{sql}");
        let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
        let expected = (*damage, (*table).to_owned(), id.clone());
        assert!(named(&found).contains(&expected), "{sql}\n{found:#?}");
        watched(|watch| put(database.url(), &folder, &tables, true, watch)).unwrap();
    }
    database.change("DELETE FROM writers");
    let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
    assert!(
        found
            .findings
            .iter()
            .any(|finding| finding.damage == Damage::WriterAbsent)
    );
}

#[rstest]
fn data_in_an_unreadable_row_is_not_reported_as_missing(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(filled(&database));
    database.change("UPDATE sessions SET claims = 'user:9:x' WHERE session_id = 't'");
    let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
    let row = |damage, id: &str| (damage, "sessions".to_owned(), id.to_owned());
    assert_eq!(
        named(&found),
        BTreeSet::from([row(Damage::RowUnreadable, "t"), row(Damage::CannotTell, "")]),
        "{found:#?}"
    );
    // The claims of another Session can be checked.
    database.change("UPDATE sessions SET claims = '' WHERE session_id = 's'");
    let found = watched(|watch| verify_store(database.url(), watch)).unwrap();
    let absent = |finding: &Finding| finding.damage == Damage::ClaimAbsent;
    assert!(found.findings.iter().any(absent), "{found:#?}");
}

#[test]
fn a_truncated_or_changed_file_of_a_copy_is_named_and_never_restored() {
    let database = TestStore::create(Backend::Sqlite).expect("SQLite is never skipped");
    drop(filled(&database));
    let (folder, tables) = taken(&database, "copy");
    let other = TestStore::create(Backend::Sqlite).expect("SQLite is never skipped");
    for table in &tables {
        let path = folder.join(&table.file);
        let whole = fs::read(&path).unwrap();
        let middle = whole.len() / 2;
        let mut flipped = whole.clone();
        flipped[middle] ^= 1;
        for damaged in [&flipped[..], &whole[..middle], &whole[..0]] {
            fs::write(&path, damaged).unwrap();
            let found = watched(|watch| verify_tables(&folder, &tables, watch)).unwrap();
            let is_named = found.findings.iter().any(|finding| {
                finding.table == table.table && finding.damage == Damage::FileDamaged
            });
            assert!(is_named, "{}: {found:#?}", table.table);
            // The data in the file must not be reported as missing, because nobody can tell.
            let is_sure = |damage| {
                !matches!(
                    damage,
                    Damage::FileDamaged
                        | Damage::RowsUnreadable
                        | Damage::RowUnreadable
                        | Damage::CannotTell
                )
            };
            let claimed = found
                .findings
                .iter()
                .find(|finding| is_sure(finding.damage));
            assert_eq!(claimed, None, "{}: {found:#?}", table.table);
            let refused = watched(|watch| put(other.url(), &folder, &tables, false, watch));
            assert!(
                matches!(&refused, Err(CopyError::Damaged { file }) if *file == table.file),
                "{refused:?}"
            );
            let DatabaseUrl::Sqlite(path) = other.url() else {
                unreachable!("it is SQLite")
            };
            let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
            assert_eq!(left, 0, "nothing remains of an unfinished copy");
        }
        fs::write(&path, &whole).unwrap();
    }
    let none = watched(|watch| verify_tables(&folder, &tables, watch)).unwrap();
    assert_eq!((none.total, none.findings), (0, vec![]));
}

#[rstest]
fn a_cancelled_backup_or_restore_stops_and_changes_nothing(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(filled(&database));
    let (folder, tables) = taken(&database, "copy");
    let cancellation = Cancellation::default();
    let switch = cancellation.clone();
    // The task stops at its next check of the deadline.
    let mut progress = |_: &str, _: u64| switch.cancel();
    let mut watch = Watch {
        deadline: Deadline::after(Duration::from_mins(1)).cancelled_by(&cancellation),
        progress: &mut progress,
    };
    let again = database.folder().join("again");
    fs::create_dir(&again).unwrap();
    let ended = take(database.url(), &again, &mut watch);
    assert!(
        matches!(ended, Err(CopyError::Store(StoreError::Deadline))),
        "{ended:?}"
    );
    let ended = put(database.url(), &folder, &tables, true, &mut watch);
    assert!(
        matches!(ended, Err(CopyError::Store(StoreError::Deadline))),
        "{ended:?}"
    );
    let (_, after) = taken(&database, "after");
    assert_eq!(digests(&tables), digests(&after));
}
