//! The store suite: every case runs on SQLite and on PostgreSQL.

use std::sync::{Arc, Barrier};

use proptest::prelude::*;
use rstest::rstest;
use svc_model::evidence::{Message, Part};
use svc_model::facts::{FactCount, FactTable};
use svc_model::id::{InferenceCallId, SessionId};
use svc_model::json::{Json, Object, Text};
use svc_model::problem::Code;
use svc_model::repository::{CommitAnchor, CommitSha};
use uuid::Uuid;

use super::*;
use crate::testing::builders::{at, call, id, outcome, repository, text};
use crate::testing::{Backend, TestStore};

/// Returns a database, or ends the case where the backend is skipped.
macro_rules! database {
    ($backend:expr) => {
        match TestStore::create($backend) {
            Some(database) => database,
            None => return,
        }
    };
}

fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn append(store: &Store, calls: Vec<InferenceCall>) -> Vec<Outcome> {
    let facts = calls
        .into_iter()
        .map(|call| Append::InferenceCall(Box::new(store.encode(call, at(0)))))
        .collect();
    store.append_now(facts).unwrap()
}

fn append_outcomes(store: &Store, outcomes: Vec<crate::fact::CiOutcome>) -> Vec<Outcome> {
    let facts = outcomes
        .into_iter()
        .map(|it| Append::CiOutcome(Box::new(it)))
        .collect();
    store.append_now(facts).unwrap()
}

fn entry(table: FactTable, fact_id: &str, action: QuarantineAction) -> NewQuarantineEntry {
    NewQuarantineEntry {
        quarantine_id: Uuid::from_u128(rand_id()),
        table,
        fact_id: fact_id.to_owned(),
        action,
        reason: "because".to_owned(),
        recorded_at: at(0),
    }
}

fn rand_id() -> u128 {
    crate::clock::Ids::random().fresh().as_u128()
}

/// The canonical messages of a call: its input and its output.
type Sides = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn messages(store: &Store, session_id: &str) -> Vec<Sides> {
    let mut snapshot = store.snapshot_now();
    let calls = snapshot.call_contents(&session(session_id)).unwrap();
    let mut bytes = std::collections::HashMap::new();
    let ids: Vec<i64> = calls
        .iter()
        .flat_map(|call| [&call.input, &call.output])
        .flatten()
        .copied()
        .collect();
    snapshot
        .content(&ids, |id, content| {
            bytes.insert(id, content);
            Ok(())
        })
        .unwrap();
    let side = |ids: &[i64]| ids.iter().map(|id| bytes[id].clone()).collect::<Vec<_>>();
    calls
        .iter()
        .map(|call| (side(&call.input), side(&call.output)))
        .collect()
}

#[rstest]
fn every_statement_is_prepared(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    drop(database.open("acme"));
    let mut connection = Connection::open(database.url()).unwrap();
    let statements = [
        calls::statements(),
        ci::statements(),
        compatibility::statements(),
        content::statements(),
        counts::statements(),
        observations::statements(),
        quarantine::statements(),
        sessions::statements(),
    ];
    for statement in statements.concat() {
        connection
            .prepare(&statement)
            .unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

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
    let sqlite = include_str!("../../migrations/sqlite/0001_facts.sql");
    let postgres = include_str!("../../migrations/postgres/0001_facts.sql");
    assert_eq!(shape(sqlite), shape(postgres));
    assert!(shape(sqlite).contains("raw_skeleton"));
}

#[rstest]
fn the_schema_goes_from_absent_to_head_and_is_not_mistaken(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    assert_eq!(schema_state(database.url()).unwrap(), SchemaState::Absent);
    let head = upgrade(database.url()).unwrap();
    assert_eq!(
        upgrade(database.url()).unwrap(),
        head,
        "a second time changes nothing"
    );
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::AtHead(head)
    );

    let mut connection = Connection::open(database.url()).unwrap();
    connection
        .batch("INSERT INTO schema_revisions (revision, digest) VALUES (999, 'later')")
        .unwrap();
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::Ahead(999)
    );
    assert!(matches!(
        database.try_open("acme"),
        Err(StoreError::Schema(SchemaState::Ahead(999)))
    ));
    connection.batch("DELETE FROM schema_revisions").unwrap();
    assert_eq!(
        schema_state(database.url()).unwrap(),
        SchemaState::Behind(0)
    );
    connection
        .batch("INSERT INTO schema_revisions (revision, digest) VALUES (1, 'changed')")
        .unwrap();
    assert!(matches!(
        database.try_open("acme"),
        Err(StoreError::MigrationChanged(1))
    ));
}

#[rstest]
fn several_processes_may_bring_the_schema_to_head_at_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    std::thread::scope(|scope| {
        let upgrades: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| upgrade(database.url()).unwrap()))
            .collect();
        for upgrade in upgrades {
            assert_eq!(upgrade.join().unwrap(), SchemaState::head());
        }
    });
}

#[rstest]
fn a_call_comes_back_as_it_was(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    let raw = Json::parse(
        format!(
            r#"{{"messages":[{{"role":"user","content":"{}"}}],"n":1.10,"z":"\ud800\u0000"}}"#,
            "word ".repeat(200)
        )
        .as_bytes(),
    )
    .unwrap();
    let sent = call(1).model_call("c1").user("u").raw(raw.clone()).build();
    assert_eq!(append(&store, vec![sent.clone()]), [Outcome::Stored(id(1))]);

    let mut snapshot = store.snapshot_now();
    let summaries = snapshot.call_summaries(&session("s")).unwrap();
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].inference_call_id, id(1));
    assert_eq!(summaries[0].observed_at, sent.observed_at);
    assert_eq!(
        snapshot.call_raw(id(1)).unwrap().unwrap(),
        raw.to_canonical()
    );
    let scalars = snapshot.call_scalars(&session("s")).unwrap();
    assert_eq!(scalars[0].model_call_id.as_deref(), Some("c1"));
    let measure = snapshot.call_measure(&session("s")).unwrap();
    let canonical = |message: &Message| {
        let mut out = Vec::new();
        content::write_message(message, &mut out);
        out.len() as u64 + 2
    };
    assert_eq!(
        measure,
        ScanMeasure {
            calls: 1,
            metadata_bytes: 37,
            row_bytes: 37
                + canonical(&sent.input_messages[0])
                + canonical(&sent.output_messages[0]),
            row_bytes_max: measure.row_bytes,
            parts: 2,
        }
    );
}

fn any_text() -> impl Strategy<Value = Text> {
    proptest::collection::vec(
        prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            Just(vec![0]),
            Just(vec![0xed, 0xa0, 0x80]),
            Just(b"\\\"\n".to_vec()),
        ],
        0..40,
    )
    .prop_filter_map("generalised UTF-8", |pieces| {
        Text::from_wtf8(pieces.concat())
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let part = prop_oneof![
        any_text().prop_map(|content| Part::Text { content }),
        any_text().prop_map(|content| Part::Reasoning { content }),
        any_text().prop_map(|name| Part::ToolCall {
            id: "t".to_owned(),
            arguments: [(name.clone(), Json::parse(b"[NaN,1.10,-0,1e400]").unwrap())]
                .into_iter()
                .collect::<Object>(),
            name,
        }),
        any_text().prop_map(|result| Part::ToolCallResponse {
            id: "t".to_owned(),
            result: Json::String(result),
        }),
    ];
    (
        any_text(),
        proptest::collection::vec(part, 0..4),
        proptest::option::of(any_text()),
    )
        .prop_map(|(role, parts, finish_reason)| Message {
            role,
            parts,
            finish_reason,
        })
}

/// Law: what is read back equals what was stored, to the byte, on both backends; and storing a
/// delivery twice equals storing it once.
#[test]
fn read_back_is_exact_and_a_second_delivery_changes_nothing() {
    let databases: Vec<TestStore> = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .filter_map(TestStore::create)
        .collect();
    let stores: Vec<Store> = databases
        .iter()
        .map(|database| database.open("acme"))
        .collect();
    let next = std::cell::Cell::new(1_u128);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (
        proptest::collection::vec(any_message(), 0..5),
        proptest::collection::vec(any_message(), 0..2),
    );
    runner
        .run(&strategy, |(input, output)| {
            let number = next.replace(next.get() + 1);
            let name = format!("law-{number}");
            let canonical = |messages: &[Message]| {
                messages
                    .iter()
                    .map(|message| {
                        let mut out = Vec::new();
                        content::write_message(message, &mut out);
                        out
                    })
                    .collect::<Vec<_>>()
            };
            let expected = vec![(canonical(&input), canonical(&output))];
            let sent = call(number)
                .session(&name)
                .input(input)
                .output(output)
                .build();
            for store in &stores {
                prop_assert_eq!(
                    append(store, vec![sent.clone()]),
                    [Outcome::Stored(id(number))]
                );
                prop_assert_eq!(&messages(store, &name), &expected);
                let counts = store.snapshot_now().fact_counts().unwrap();
                prop_assert_eq!(
                    append(store, vec![sent.clone()]),
                    [Outcome::Redelivered(id(number))]
                );
                prop_assert_eq!(store.snapshot_now().fact_counts().unwrap(), counts);
                prop_assert_eq!(&messages(store, &name), &expected);
            }
            Ok(())
        })
        .unwrap();
}

/// The decision table of sheet ingest, 5.3. Letters are fact ids, digits model call ids.
#[rstest]
fn redelivery_and_conflict_follow_the_ids(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let conflict = Outcome::Conflict(Code::InferenceCallIdentityConflict);
    let with = |fact: u128, model_call: &str| call(fact).model_call(model_call).build();
    assert_eq!(append(&store, vec![with(1, "x")]), [Outcome::Stored(id(1))]);
    assert_eq!(append(&store, vec![with(2, "y")]), [Outcome::Stored(id(2))]);
    assert_eq!(
        append(&store, vec![call(3).build()]),
        [Outcome::Stored(id(3))]
    );
    for (sent, expected) in [
        (
            call(1).model_call("x").session("other").build(),
            Outcome::Redelivered(id(1)),
        ),
        (with(9, "x"), Outcome::Redelivered(id(1))),
        (with(1, "z"), conflict),
        (call(1).build(), conflict),
        (with(3, "z"), conflict),
        (call(3).build(), Outcome::Redelivered(id(3))),
        (with(1, "y"), conflict),
        (call(4).build(), Outcome::Stored(id(4))),
    ] {
        assert_eq!(append(&store, vec![sent.clone()]), [expected], "{sent:?}");
    }
    let mut snapshot = store.snapshot_now();
    assert_eq!(snapshot.fact_counts().unwrap().inference_calls.total, 4);
    assert!(
        !snapshot.session_known(&session("other")).unwrap(),
        "a redelivery makes no Session"
    );
}

#[rstest]
fn calls_of_one_append_are_judged_in_order(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let with = |fact: u128, model_call: &str| call(fact).model_call(model_call).build();
    assert_eq!(
        append(
            &store,
            vec![
                with(1, "x"),
                with(1, "x"),
                with(2, "x"),
                with(1, "y"),
                call(3).build()
            ]
        ),
        [
            Outcome::Stored(id(1)),
            Outcome::Redelivered(id(1)),
            Outcome::Redelivered(id(1)),
            Outcome::Conflict(Code::InferenceCallIdentityConflict),
            Outcome::Stored(id(3)),
        ]
    );
}

#[rstest]
fn an_id_is_one_of_its_organization(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (acme, other) = (database.open("acme"), database.open("other"));
    append(&acme, vec![call(1).model_call("x").build()]);
    assert_eq!(
        append(&other, vec![call(2).model_call("x").build()]),
        [Outcome::Stored(id(2))]
    );
    assert_eq!(
        append(&other, vec![call(1).model_call("x").build()]),
        [Outcome::Conflict(Code::InferenceCallIdentityConflict)]
    );
    assert_eq!(
        acme.snapshot_now()
            .fact_counts()
            .unwrap()
            .inference_calls
            .total,
        1
    );
    let foreign = InferenceCallId::new(&id(2).to_string()).unwrap();
    assert!(
        acme.snapshot_now()
            .call(&session("s"), &foreign)
            .unwrap()
            .is_none()
    );
}

#[rstest]
fn of_equal_deliveries_at_once_exactly_one_is_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    // Three stores are three processes as far as the database can tell.
    let stores: Vec<Arc<Store>> = (0..3).map(|_| Arc::new(database.open("acme"))).collect();
    for round in 0..10_u128 {
        let barrier = Arc::new(Barrier::new(6));
        let threads: Vec<_> = (0..6)
            .map(|thread: usize| {
                let (store, barrier) = (Arc::clone(&stores[thread % 3]), Arc::clone(&barrier));
                let fact = if thread < 4 {
                    round * 10
                } else {
                    round * 10 + thread as u128
                };
                std::thread::spawn(move || {
                    let sent = call(fact).model_call(&format!("c{round}")).build();
                    barrier.wait();
                    append(&store, vec![sent])[0]
                })
            })
            .collect();
        let outcomes: Vec<Outcome> = threads.into_iter().map(|it| it.join().unwrap()).collect();
        let stored = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Stored(_)))
            .count();
        assert_eq!(stored, 1, "{outcomes:?}");
    }
    let counts = stores[0].snapshot_now().fact_counts().unwrap();
    assert_eq!(
        counts.inference_calls,
        FactCount {
            total: 10,
            visible: 10
        }
    );
}

#[rstest]
fn a_history_is_stored_once(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut history = vec![text("system", "be brief")];
    for turn in 0..50_u128 {
        history.push(text("user", &format!("question {turn}")));
        let answer = text("assistant", &format!("answer {turn}"));
        let sent = call(turn + 1)
            .input(history.clone())
            .output(vec![answer.clone()])
            .build();
        append(&store, vec![sent]);
        history.push(answer);
    }
    let mut connection = Connection::open(database.url()).unwrap();
    let count = connection
        .first("SELECT COUNT(*) FROM content", &[], |row| row.integer(0))
        .unwrap();
    assert_eq!(count, Some(101), "one row a distinct message");
    let calls = messages(&store, "s");
    assert_eq!(calls.last().unwrap().0.len(), 100);
}

#[rstest]
fn a_session_keeps_its_first_user_until_another_contradicts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let row = || {
        Connection::open(database.url())
            .unwrap()
            .first(
                "SELECT user_id, user_id_conflict, first_observed_at_us, last_observed_at_us
                 FROM sessions WHERE session_id = 's'",
                &[],
                |row| {
                    let user = row.optional_text(0)?;
                    Ok((user, row.integer(1)?, row.integer(2)?, row.integer(3)?))
                },
            )
            .unwrap()
            .unwrap()
    };
    let at = |seconds| at(seconds).microseconds();
    append(&store, vec![call(1).observed(50).build()]);
    assert_eq!(row(), (None, 0, at(50), at(50)));
    append(&store, vec![call(2).observed(10).user("u").build()]);
    assert_eq!(row(), (Some("u".to_owned()), 0, at(10), at(50)));
    append(
        &store,
        vec![
            call(3).observed(99).user("u").build(),
            call(4).observed(20).build(),
        ],
    );
    assert_eq!(row(), (Some("u".to_owned()), 0, at(10), at(99)));
    append(&store, vec![call(5).observed(20).user("v").build()]);
    assert_eq!(row(), (None, 1, at(10), at(99)));
    append(&store, vec![call(6).observed(20).user("u").build()]);
    assert_eq!(row(), (None, 1, at(10), at(99)));
    append(
        &store,
        vec![
            call(7).session("t").user("a").build(),
            call(8).session("t").user("b").build(),
        ],
    );
    let conflict = Connection::open(database.url())
        .unwrap()
        .first(
            "SELECT user_id_conflict FROM sessions WHERE session_id = 't'",
            &[],
            |row| row.integer(0),
        )
        .unwrap();
    assert_eq!(conflict, Some(1), "also within one transaction");
}

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
            revision: 1,
            target_found: true
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
    let (rows, length) = ledger.snapshot().unwrap().quarantine_log(2).unwrap();
    assert_eq!((rows.len(), length), (2, 3));
    assert_eq!(rows[1].fact_id, "nothing");
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
    let started = Instant::now();
    connection
        .begin_read(started + Duration::from_millis(200))
        .unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
        SELECT COUNT(*) FROM n";
    let stopped = connection.first(endless, &[], |row| row.integer(0));
    assert!(matches!(stopped, Err(StoreError::Deadline)), "{stopped:?}");
    // Without a deadline it would run for minutes.
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(matches!(
        Snapshot::open(
            &pool::Pool::new(database.url().clone(), 1),
            &OrgId::new("acme").unwrap(),
            Instant::now()
                .checked_sub(Duration::from_millis(1))
                .unwrap(),
        )
        .and_then(|mut snapshot| snapshot
            .call_summaries(&session("s"))
            .and_then(|_| snapshot.check_deadline())),
        Err(StoreError::Deadline)
    ));
}

#[rstest]
fn a_ci_outcome_is_one_per_run_and_attempt(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let conflict = Outcome::Conflict(Code::RepositoryIdentityConflict);
    let identified = |number, run: &str, repository_id| crate::fact::CiOutcome {
        repository: Some(repository(repository_id)),
        ..outcome(number, run)
    };
    assert_eq!(
        append_outcomes(&store, vec![outcome(1, "r")]),
        [Outcome::Stored(id(1))]
    );
    assert_eq!(
        append_outcomes(&store, vec![identified(2, "r", 7)]),
        [Outcome::Stored(id(2))]
    );
    let other_result = crate::fact::CiOutcome {
        result: svc_model::ingest::CiResult::Failed,
        ..outcome(3, "r")
    };
    let second = crate::fact::CiOutcome {
        run_attempt: Some(2),
        ..outcome(4, "r")
    };
    let elsewhere = crate::fact::CiOutcome {
        repo: "own/other".to_owned(),
        ..outcome(5, "r")
    };
    let other_commit = crate::fact::CiOutcome {
        commit_sha: CommitSha::new(&"d".repeat(40)).unwrap(),
        ..outcome(6, "r")
    };
    let other_workflow = crate::fact::CiOutcome {
        workflow_id: Some("w".to_owned()),
        ..outcome(7, "r")
    };
    let renamed = crate::fact::CiOutcome {
        repo: "own/renamed".to_owned(),
        ..identified(8, "r", 7)
    };
    for (sent, expected) in [
        (other_result, Outcome::Redelivered(id(1))),
        (second, Outcome::Stored(id(4))),
        (elsewhere, conflict),
        (other_commit, conflict),
        (other_workflow, conflict),
        (renamed, Outcome::Redelivered(id(2))),
        (identified(9, "r", 8), conflict),
    ] {
        assert_eq!(
            append_outcomes(&store, vec![sent.clone()]),
            [expected],
            "{sent:?}"
        );
    }
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .ci_outcomes
            .total,
        3
    );
    assert_eq!(
        append_outcomes(&store, vec![outcome(20, "q"), outcome(21, "q")]),
        [Outcome::Stored(id(20)), Outcome::Redelivered(id(20))]
    );
}

/// PostgreSQL keeps no NUL in a text. The checks before the store let none through; here one is
/// smuggled in, to see that its neighbours do not suffer.
#[test]
fn a_delivery_that_cannot_be_stored_takes_no_other_down() {
    let database = database!(Backend::Postgres);
    let store = Arc::new(database.open("acme"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let appended: Vec<_> = (0..40_u128)
        .map(|number| {
            let store = Arc::clone(&store);
            let run = if number == 20 {
                "bad\0run".to_owned()
            } else {
                format!("run {number}")
            };
            runtime.spawn(async move {
                store
                    .append(vec![Append::CiOutcome(Box::new(outcome(number + 1, &run)))])
                    .await
            })
        })
        .collect();
    for (number, appended) in appended.into_iter().enumerate() {
        let result = runtime.block_on(appended).unwrap();
        assert_eq!(result.is_err(), number == 20, "{number}: {result:?}");
    }
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .ci_outcomes
            .total,
        39
    );
}

#[rstest]
fn a_commit_match_needs_a_visible_observation_and_a_visible_push(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let (observation, push, sha) = (id(1), id(2), "a".repeat(40));
    let mut connection = Connection::open(database.url()).unwrap();
    connection
        .batch(&format!(
            "INSERT INTO pushes VALUES ('{push}', 'acme', 'github', 'own/repo', 'github',
                'github.com', '7', '', 'refs/heads/main', '{sha}', '{sha}', 0, 1);
             INSERT INTO session_commit_observations VALUES ('{observation}', 'acme', 's',
                'own/repo', 'github', 'github.com', '7', '{sha}', '{push}', 5);"
        ))
        .unwrap();
    let anchor = |number| {
        let repository = repository(number);
        CommitAnchor {
            repository_provider: repository.repository_provider,
            repository_host: repository.repository_host,
            repository_id: repository.repository_id,
            commit_sha: CommitSha::new(&sha).unwrap(),
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
        (observation, push)
    );
    assert_eq!(found("s", 8), None);
    assert_eq!(found("t", 7), None);
    let ledger = database.ledger("acme");
    for (table, fact) in [
        (FactTable::Pushes, push),
        (FactTable::SessionCommitObservations, observation),
    ] {
        let fact = fact.to_string();
        ledger
            .quarantine(&[entry(table, &fact, QuarantineAction::Quarantine)])
            .unwrap();
        assert_eq!(found("s", 7), None, "{table}");
        ledger
            .quarantine(&[entry(table, &fact, QuarantineAction::Release)])
            .unwrap();
        assert!(found("s", 7).is_some(), "{table}");
    }
}

#[rstest]
fn what_was_accepted_is_stored_when_the_store_closes(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).build()]);
    store.close();
    let facts = vec![Append::InferenceCall(Box::new(
        store.encode(call(2).build(), at(0)),
    ))];
    assert!(matches!(store.append_now(facts), Err(StoreError::Closed)));
    assert_eq!(
        store
            .snapshot_now()
            .fact_counts()
            .unwrap()
            .inference_calls
            .total,
        1
    );
}
