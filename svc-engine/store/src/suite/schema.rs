//! The schema.

use svc_model::usage::CallUsage;

use super::*;
use crate::sql::migrate;

#[test]
fn both_dialects_have_the_same_tables_and_columns() {
    let shape = |text: &str| {
        let mut tables = Vec::new();
        for statement in text.split(';') {
            let lines: Vec<&str> = statement
                .lines()
                .map(str::trim)
                .filter(|line| !line.starts_with("--"))
                .collect();
            let Some(start) = lines
                .iter()
                .position(|line| line.starts_with("CREATE TABLE"))
            else {
                continue;
            };
            let columns: Vec<&str> = lines[start + 1..]
                .iter()
                .filter_map(|line| line.split(' ').next())
                .filter(|word| {
                    word.chars()
                        .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
                })
                .collect();
            tables.push((lines[start], columns));
        }
        format!("{tables:?}")
    };
    for (_, sql) in migrate::MIGRATIONS {
        assert_eq!(shape(sql.sqlite), shape(sql.postgres));
    }
    assert!(shape(migrate::MIGRATIONS[0].1.sqlite).contains("raw_payloads"));
}

#[rstest]
fn an_absent_schema_is_upgraded_to_head_and_unknown_ones_are_recognised(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(database) = TestStore::create_empty(backend) else {
        return;
    };
    assert_eq!(schema_state(database.url()).unwrap(), SchemaState::Absent);
    let head = upgrade(database.url()).unwrap();
    assert_eq!(
        upgrade(database.url()).unwrap(),
        head,
        "a second upgrade changes nothing"
    );
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::AtHead(head)
    );

    let mut connection = Connection::open(database.url()).unwrap();
    connection
        .batch(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                SELECT 999, 'later', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1",
        )
        .unwrap();
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::Ahead(999)
    );
    assert!(matches!(
        database.try_open("acme"),
        Err(StoreError::Schema(SchemaState::Ahead(999)))
    ));
    connection
        .batch("DELETE FROM _sqlx_migrations WHERE version = 999")
        .unwrap();
    connection
        .batch("UPDATE _sqlx_migrations SET version = version - 1")
        .unwrap();
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::Behind(head - 1)
    );
    let other = match backend {
        Backend::Sqlite => "x'00'",
        Backend::Postgres => r"'\x00'",
    };
    let last = head - 1;
    connection
        .batch(&format!(
            "UPDATE _sqlx_migrations SET version = {head}, checksum = {other} WHERE version = {last}"
        ))
        .unwrap();
    assert!(matches!(
        database.try_open("acme"),
        Err(StoreError::MigrationChanged(_))
    ));
    assert!(matches!(
        schema_state(database.url()),
        Err(StoreError::MigrationChanged(_))
    ));
}

#[rstest]
fn a_store_of_the_first_revision_keeps_its_facts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(database) = TestStore::create_empty(backend) else {
        return;
    };
    let mut connection = Connection::open(database.url()).unwrap();
    migrate::upgrade_to(&mut connection, 1).unwrap();
    let id = match backend {
        Backend::Sqlite => "x'00000000000000000000000000000001'",
        Backend::Postgres => r"'\x00000000000000000000000000000001'",
    };
    connection
        .batch(&format!(
            "INSERT INTO organizations (org_id, captured_at_us, sessions, inference_calls)
                VALUES ('acme', 1, 1, 1);
            INSERT INTO sessions VALUES (1, 'acme', 's', NULL, 0, 1, 1, 1, 1, '');
            INSERT INTO inference_calls (inference_call_id, org_id, session_number,
                gateway_provider, observed_at_us, captured_at_us, call_alias_count,
                input_byte_count, input_part_count, output_byte_count, output_part_count,
                input_contents, output_contents, is_further)
                VALUES ({id}, 'acme', 1, 'a', 1, 1, 0, 2, 0, 2, 0, '', '', 0)"
        ))
        .unwrap();
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::Behind(1)
    );
    upgrade(database.url()).unwrap();
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    let calls = snapshot.call_scalars(&session("s")).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].usage, CallUsage::default());
    assert_eq!(calls[0].capture_source, None);
    assert_eq!(snapshot.fact_counts().unwrap().inference_calls.total, 1);
    drop(snapshot);
    append_one(&store, Append::UsageReceipt, usage(2));
    assert_eq!(count(&store, FactTable::UsageReceipts).total, 1);
}

#[rstest]
fn several_processes_may_upgrade_the_schema_at_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(database) = TestStore::create_empty(backend) else {
        return;
    };
    std::thread::scope(|scope| {
        let upgrades: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| upgrade(database.url()).unwrap()))
            .collect();
        for upgrade in upgrades {
            assert_eq!(upgrade.join().unwrap(), SchemaState::head());
        }
    });
}

#[test]
fn a_migration_runs_without_the_time_limits_of_statements() {
    use sqlx::migrate::{Migration, MigrationType, Migrator};
    let Some(database) = TestStore::create_empty(Backend::Postgres) else {
        return;
    };
    let mut connection = Connection::open(database.url()).unwrap();
    let migration = Migration::new(
        1,
        "limits".into(),
        MigrationType::Simple,
        sqlx::SqlStr::from_static(
            "CREATE TABLE limits AS SELECT current_setting('statement_timeout') AS statement,
                current_setting('lock_timeout') AS lock",
        ),
        false,
    );
    connection
        .migrate(&Migrator::with_migrations(vec![migration]))
        .unwrap();
    let mut limits = |sql| {
        let limits = || connection.first(sql, &[], |row| Ok((row.text(0)?, row.text(1)?)));
        plan_check::unchecked(limits).unwrap()
    };
    assert_eq!(
        limits("SELECT statement, lock FROM limits"),
        Some(("0".to_owned(), "0".to_owned()))
    );
    assert_eq!(
        limits("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"),
        Some(("30s".to_owned(), "5s".to_owned())),
        "the limits apply again afterwards"
    );
}

#[test]
fn the_file_of_another_application_is_refused_and_stays_as_it_is() {
    let Some(database) = TestStore::create_empty(Backend::Sqlite) else {
        return;
    };
    let DatabaseUrl::Sqlite(path) = database.url() else {
        unreachable!("it is SQLite");
    };
    for foreign in [
        "CREATE TABLE notes (text TEXT)",
        "CREATE TABLE organizations (name TEXT); PRAGMA application_id = 7",
    ] {
        drop(std::fs::remove_file(path));
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch(foreign).unwrap();
        drop(other);
        let before = std::fs::read(path).unwrap();
        for refused in [
            database.try_open("acme").map(drop),
            upgrade(database.url()).map(drop),
            schema_state(database.url()).map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert!(
                matches!(&refused, StoreError::AnotherApplication(file) if file == path),
                "{refused}"
            );
        }
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_database_in_another_encoding_is_refused() {
    let Some(database) = TestStore::create_empty(Backend::Postgres) else {
        return;
    };
    let url = database.url_in_encoding("LATIN1");
    let refused = upgrade(&url).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Encoding(encoding) if encoding == "LATIN1"),
        "{refused}"
    );
    let refused = check_writing(&url).unwrap_err();
    assert!(matches!(refused, StoreError::Encoding(_)), "{refused}");
}
