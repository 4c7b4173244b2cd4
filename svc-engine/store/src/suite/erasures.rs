//! Erased content is gone, facts stay, and everything that others need stays too.

use std::collections::BTreeMap;

use svc_engine_fact::RawPayload;
use svc_engine_fact::deadline::Cancellation;
use svc_engine_fact::testing::builders::CallBuilder;
use svc_model::id::UserId;

use super::backups::put;
use super::*;
use crate::backup::{LoadRequest, Watch, take, verify_store};

const LONG: &str =
    "what is said in every call of a Session, again and again, so that it is kept once";

/// Returns a call of a Session, with its own payload.
fn call_with_payload(number: u128, session_id: &str, asked: &str) -> CallBuilder {
    let raw = format!(r#"{{"number":{number},"said":"only call {number} has said this"}}"#);
    call(number)
        .session(session_id)
        .input(vec![text("system", LONG), text("user", asked)])
        .output(vec![text("assistant", &format!("answer {number} {asked}"))])
        .raw(RawPayload::from(Json::parse(raw.as_bytes()).unwrap()))
}

fn of_session(session_id: &str) -> ErasureSubject {
    ErasureSubject::Session(session(session_id))
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

fn try_erase(database: &TestStore, plan: ErasurePlan) -> Result<ErasedContent, StoreError> {
    let order = erasure_order(&of_session("s"));
    database
        .ledger("acme")
        .erase(plan, &order, &deadline(), &mut |_| {})
}

/// Erases, checks that the result is as forecast, and returns the forecast.
fn erase(database: &TestStore, subject: &ErasureSubject) -> ErasureForecast {
    let ledger = database.ledger("acme");
    let forecast = ledger.forecast_erasure(subject, &deadline()).unwrap();
    let plan = ledger.plan_erasure(subject, &deadline()).unwrap();
    let erased = ledger
        .erase(plan, &erasure_order(subject), &deadline(), &mut |_| {})
        .unwrap();
    assert_eq!(
        (erased.facts, erased.contents, erased.stored_bytes),
        (forecast.facts, forecast.contents, forecast.stored_bytes)
    );
    assert!(
        ledger
            .plan_erasure(subject, &deadline())
            .unwrap()
            .is_empty()
    );
    forecast
}

fn verified(database: &TestStore) {
    let found = verify_store(
        database.url(),
        &mut Watch {
            deadline: deadline(),
            progress: &mut |_, _| {},
        },
    )
    .unwrap();
    assert_eq!((found.total, found.findings), (0, vec![]));
}

/// Returns the messages and payloads of all calls, by id.
fn everything(store: &Store, sessions: &[&str]) -> BTreeMap<String, (Sides, Option<Vec<u8>>)> {
    let mut all = BTreeMap::new();
    for session_id in sessions {
        let mut snapshot = store.snapshot_now();
        let ids: Vec<FactId> = snapshot
            .call_scalars(&session(session_id))
            .unwrap()
            .into_iter()
            .map(|call| call.inference_call_id)
            .collect();
        for (id, sides) in ids.into_iter().zip(messages(store, session_id)) {
            let raw = snapshot.call_raw(id).unwrap();
            all.insert(id.to_string(), (sides, raw));
        }
    }
    all
}

fn content_rows(database: &TestStore) -> usize {
    let count = "SELECT CAST(COUNT(*) AS TEXT) FROM content";
    database.rows(count, 1)[0][0].parse().unwrap()
}

#[rstest]
fn erasing_a_session_removes_its_content_and_keeps_its_facts(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(
        &store,
        vec![
            call_with_payload(1, "s", "first")
                .user("ann")
                .model_call("m-1")
                .build(),
            call_with_payload(2, "s", "second").build(),
            call_with_payload(3, "t", "first").build(),
        ],
    );
    append_one(&store, Append::DeveloperDecision, {
        let mut decision = decision(10);
        decision.raw = Json::parse(br#"{"prompt":"what was decided"}"#).unwrap();
        decision
    });
    append_one(&store, Append::EditObservation, edit(11, "c"));
    append_one(&store, Append::RejectedEdit, rejection(12, "c"));
    append_one(&store, Append::RetryLinkage, linkage(13, "c", "d"));
    let others = everything(&store, &["t"]);
    let mut snapshot = store.snapshot_now();
    let scalars = snapshot.call_scalars(&session("s")).unwrap();
    assert_eq!(snapshot.revisions().unwrap(), Revisions::default());
    assert!(snapshot.erased_calls(&session("s")).unwrap().is_empty());
    drop(snapshot);

    let forecast = erase(&database, &of_session("s"));
    assert_eq!(
        forecast.facts.iter().collect::<Vec<_>>(),
        [
            (FactTable::InferenceCalls, 2),
            (FactTable::DeveloperDecisions, 1),
            (FactTable::EditObservations, 1),
            (FactTable::RejectedEdits, 1),
            (FactTable::RetryLinkages, 1),
        ]
    );
    assert_eq!((forecast.sessions, forecast.shared_in_session), (1, 0));
    assert_eq!(forecast.shared_by_all, 1, "the system prompt of t");
    assert!(forecast.contents >= 4 && forecast.stored_bytes > 100);

    let mut snapshot = store.snapshot_now();
    assert_eq!(snapshot.call_scalars(&session("s")).unwrap(), scalars);
    let erased = snapshot.erased_calls(&session("s")).unwrap();
    assert_eq!(erased, BTreeMap::from([(id(1), at(9)), (id(2), at(9))]));
    assert!(snapshot.erased_calls(&session("t")).unwrap().is_empty());
    assert_eq!(
        snapshot.erased_of_session(&session("s")).unwrap(),
        forecast.facts
    );
    let measure = snapshot.call_measure(&session("s")).unwrap();
    assert_eq!((measure.calls, measure.parts), (2, 0));
    assert_eq!(snapshot.call_raw(id(1)).unwrap(), None);
    let decision: svc_engine_fact::DeveloperDecision = snapshot.fact(id(10)).unwrap().unwrap();
    assert_eq!(
        (decision.raw, &*decision.file_path),
        (Json::Null, "src/a.rs")
    );
    let edit: svc_engine_fact::EditObservation = snapshot.fact(id(11)).unwrap().unwrap();
    assert_eq!(
        (edit.raw, edit.texts),
        (Json::Null, svc_engine_fact::EditTexts::default())
    );
    let rejection: svc_engine_fact::RejectedEdit = snapshot.fact(id(12)).unwrap().unwrap();
    assert_eq!(
        (rejection.raw, rejection.proposed),
        (Json::Null, Text::from(""))
    );
    let [row] = &snapshot.erasure_log(9, None).unwrap()[..1] else {
        unreachable!("a slice of one")
    };
    assert_eq!(
        (&*row.reason, &*row.client_id, row.recorded_at),
        ("because", "operator", at(9))
    );
    assert_eq!(row.subject, of_session("s"));
    assert_eq!(row.erased.facts.get(FactTable::InferenceCalls), 2);
    drop(snapshot);
    assert!(
        messages(&store, "s")
            .iter()
            .all(|(input, output)| input.is_empty() && output.is_empty())
    );
    assert_eq!(everything(&store, &["t"]), others);
    verified(&database);

    // A redelivery brings nothing back. A new call with the same messages is stored whole.
    let again = append(
        &store,
        vec![
            call_with_payload(1, "s", "first")
                .user("ann")
                .model_call("m-1")
                .build(),
        ],
    );
    assert_eq!(again, [Outcome::Redelivered(id(1))]);
    assert!(messages(&store, "s")[0].0.is_empty());
    append(&store, vec![call_with_payload(4, "s", "first").build()]);
    assert_eq!(messages(&store, "s")[2].0.len(), 2);
    verified(&database);
}

#[rstest]
fn erasing_a_user_includes_nameless_calls_of_sessions_without_another_user(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(
        &store,
        vec![
            call_with_payload(1, "alone", "a").user("ann").build(),
            call_with_payload(2, "alone", "b").build(),
            call_with_payload(3, "both", "c").user("ann").build(),
            call_with_payload(4, "both", "d").user("bob").build(),
            call_with_payload(5, "both", "e").build(),
            call_with_payload(6, "other", "f").user("bob").build(),
            call_with_payload(7, "nobody", "g").build(),
        ],
    );
    append(
        &database.open("foreign"),
        vec![call_with_payload(8, "alone", "a").user("ann").build()],
    );
    let subject = ErasureSubject::User(UserId::new("ann").unwrap());
    assert_eq!(
        erase(&database, &subject)
            .facts
            .get(FactTable::InferenceCalls),
        3
    );
    let mut snapshot = store.snapshot_now();
    let mut erased = Vec::new();
    for session_id in ["alone", "both", "other", "nobody"] {
        erased.extend(
            snapshot
                .erased_calls(&session(session_id))
                .unwrap()
                .into_keys(),
        );
    }
    assert_eq!(erased, [id(1), id(2), id(3)]);
    let foreign = database.open("foreign");
    assert_eq!(messages(&foreign, "alone")[0].0.len(), 2);
    verified(&database);
}

#[rstest]
fn content_older_than_a_moment_is_erased(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for number in 1..=4 {
        let call = call_with_payload(number, "s", "again").build();
        let moment = at(i64::try_from(number).unwrap());
        store
            .append_now(vec![Append::InferenceCall(Box::new(
                store.encode(call, moment),
            ))])
            .unwrap();
    }
    append_one(&store, Append::DeveloperDecision, decision(10));
    let forecast = erase(&database, &ErasureSubject::OlderThan(at(3)));
    assert_eq!(
        (
            forecast.facts.get(FactTable::InferenceCalls),
            forecast.facts.get(FactTable::DeveloperDecisions)
        ),
        (2, 1)
    );
    assert!(
        forecast.shared_in_session > 0,
        "content that later calls need too"
    );
    let left = messages(&store, "s");
    let lengths: Vec<usize> = left.iter().map(|(input, _)| input.len()).collect();
    assert_eq!(lengths, [0, 0, 2, 2]);
    assert_eq!(
        erase(&database, &ErasureSubject::OlderThan(at(3)))
            .facts
            .total(),
        0
    );
    verified(&database);
}

#[rstest]
fn a_server_stores_remembered_content_again_after_its_erasure(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, another) = (database.open("acme"), database.open("acme"));
    append(&store, vec![call_with_payload(1, "s", "once").build()]);
    append(&another, vec![call_with_payload(2, "t", "twice").build()]);
    let prepared = |store: &Store, number, session_id: &str, asked: &str| {
        let call = call_with_payload(number, session_id, asked).build();
        Append::InferenceCall(Box::new(store.encode(call, at(0))))
    };
    let relies_on_it = prepared(&store, 3, "s", "once");
    let relies_on_what_stays = prepared(&another, 4, "t", "twice");
    erase(&database, &of_session("s"));

    let refused = store.append_now(vec![relies_on_it]);
    assert!(
        matches!(refused, Err(StoreError::ContentLost)),
        "{refused:?}"
    );
    let stored = another.append_now(vec![relies_on_what_stays]).unwrap();
    assert_eq!(stored, [Outcome::Stored(id(4))]);
    for (store, number) in [(&store, 5), (&another, 6)] {
        let stored = append(store, vec![call_with_payload(number, "s", "once").build()]);
        assert_eq!(stored, [Outcome::Stored(id(number))]);
    }
    let lengths: Vec<usize> = messages(&store, "s")
        .iter()
        .map(|message| message.0.len())
        .collect();
    assert_eq!(lengths, [0, 2, 2]);
    verified(&database);
}

#[rstest]
fn an_erasure_keeps_content_that_a_later_call_shares(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call_with_payload(1, "s", "once").build()]);
    let ledger = database.ledger("acme");
    let plan = ledger.plan_erasure(&of_session("s"), &deadline()).unwrap();
    let late = ledger.plan_erasure(&of_session("s"), &deadline()).unwrap();
    append(&store, vec![call_with_payload(2, "s", "once").build()]);
    let before = messages(&store, "s")[1].clone();
    let erased = try_erase(&database, plan).unwrap();
    assert_eq!(erased.facts.get(FactTable::InferenceCalls), 1);
    let after = messages(&store, "s");
    assert!(after[0].0.is_empty());
    assert_eq!(after[1], before);
    verified(&database);
    let refused = try_erase(&database, late);
    assert!(
        matches!(refused, Err(StoreError::ErasedByAnother)),
        "{refused:?}"
    );
    // The next plan includes both calls.
    assert_eq!(
        erase(&database, &of_session("s"))
            .facts
            .get(FactTable::InferenceCalls),
        1
    );
    assert_eq!(content_rows(&database), 0);
    verified(&database);
}

#[rstest]
fn a_large_erasure_uses_several_transactions(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let calls = (1..=600).map(|number| call_with_payload(number, "s", "again").build());
    append(&store, calls.collect());
    append(&store, vec![call_with_payload(1_000, "t", "again").build()]);
    let before = everything(&store, &["t"]);
    let forecast = erase(&database, &of_session("s"));
    assert_eq!(forecast.facts.get(FactTable::InferenceCalls), 600);
    let log = store.snapshot_now().erasure_log(9, None).unwrap();
    assert_eq!(log.len(), 3);
    assert!(log.iter().all(|row| row.erasure_id == log[0].erasure_id));
    assert_eq!(everything(&store, &["t"]), before);
    verified(&database);
}

#[rstest]
fn a_restore_repeats_later_erasures_or_changes_nothing(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(
        &store,
        vec![
            call_with_payload(1, "s", "shared").user("ann").build(),
            call_with_payload(2, "t", "shared").user("bob").build(),
            call_with_payload(3, "u", "shared").user("bob").build(),
        ],
    );
    append_one(&store, Append::EditObservation, edit(4, "c"));
    append(
        &database.open("other"),
        vec![call_with_payload(5, "s", "shared").user("ann").build()],
    );
    let before = everything(&store, &["t"]);
    let folder = database.folder().join("copy");
    std::fs::create_dir(&folder).unwrap();
    let cancellation = Cancellation::default();
    let mut progress = |_: &str, _: u64| {};
    let mut watch = Watch {
        deadline: deadline(),
        progress: &mut progress,
    };
    let taken = take(database.url(), &folder, &mut watch).unwrap();
    let bob = ErasureSubject::User(UserId::new("bob").unwrap());
    // The backup does not have this Session.
    append(&store, vec![call_with_payload(6, "v", "shared").build()]);
    for (org_id, subject) in [
        ("acme", of_session("v")),
        ("acme", of_session("s")),
        ("acme", ErasureSubject::Session(session("u"))),
        ("other", of_session("s")),
    ] {
        let ledger = database.ledger(org_id);
        let plan = ledger.plan_erasure(&subject, &deadline()).unwrap();
        let erased = ledger.erase(plan, &erasure_order(&subject), &deadline(), &mut |_| {});
        assert!(erased.unwrap().facts.total() > 0);
    }
    let log = |org_id: &str| {
        let store = database.open(org_id);
        let log = store.snapshot_now().erasure_log(9, None).unwrap();
        let log = log.into_iter();
        log.map(|row| (row.erasure_id, row.subject, row.erased, row.recorded_at))
            .collect::<Vec<_>>()
    };
    let logs = (log("acme"), log("other"));
    let erasures = KeptErasures::of(database.url(), &deadline()).unwrap();
    let loading = LoadRequest {
        folder: &folder,
        tables: &taken.tables,
        replace: true,
        erasures: &erasures,
    };

    let cancelled = loading.load(
        database.url(),
        &mut Watch {
            deadline: deadline().cancelled_by(&cancellation),
            progress: &mut |what, _| {
                if what == "erased_facts" {
                    cancellation.cancel();
                }
            },
        },
    );
    assert!(cancelled.is_err(), "{cancelled:?}");
    let lengths = |org_id: &str| {
        let store = database.open(org_id);
        ["s", "t", "u"].map(|session_id| {
            let messages = messages(&store, session_id);
            messages.first().map(|message| message.0.len())
        })
    };
    assert_eq!(lengths("acme"), [Some(0), Some(2), Some(0)]);
    assert_eq!(lengths("other"), [Some(0), None, None]);
    assert_eq!((log("acme"), log("other")), logs);

    let loaded = loading.load(database.url(), &mut watch).unwrap();
    assert_eq!(loaded.erased_again.facts, 4);
    assert_eq!(loaded.compaction.unwrap(), Compaction::Done);
    assert_eq!(lengths("acme"), [Some(0), Some(2), Some(0)]);
    assert_eq!(lengths("other"), [Some(0), None, None]);
    assert_eq!((log("acme"), log("other")), logs);
    assert_eq!(everything(&database.open("acme"), &["t"]), before);
    verified(&database);
    let (last, _) = loaded.erased_again.last.unwrap();
    assert_eq!(last.as_str(), "other");
    // What is still there can be erased.
    assert_eq!(
        erase(&database, &bob).facts.get(FactTable::InferenceCalls),
        1
    );
    verified(&database);
}

/// A few calls with few Sessions, users and texts.
fn any_calls() -> impl Strategy<Value = Vec<(u8, u8, u8, u8)>> {
    proptest::collection::vec((0..3_u8, 0..3_u8, 0..4_u8, 0..4_u8), 1..12)
}

#[rstest]
fn content_that_is_not_erased_is_read_back_unchanged(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let sessions = ["r", "s", "t"];
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        proptest::test_runner::Config {
            cases: 12,
            failure_persistence: None,
            ..Default::default()
        },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let next = std::cell::Cell::new(1_u128);
    let store = database.open("acme");
    let (calls, which) = (any_calls(), 0..3_u8);
    let result = runner.run(&(calls, which), |(calls, which)| {
        let calls = calls.into_iter().map(|(of, user, asked, answered)| {
            let number = next.replace(next.get() + 1);
            let mut call =
                call_with_payload(number, sessions[usize::from(of)], &format!("ask {asked}"));
            if user > 0 {
                call = call.user(["", "ann", "bob"][usize::from(user)]);
            }
            let answer = text("assistant", &format!("answer {answered}"));
            call.output(vec![answer]).build()
        });
        let calls: Vec<InferenceCall> = calls.collect();
        for call in calls {
            let prepared = || Append::InferenceCall(Box::new(store.encode(call.clone(), at(0))));
            // A call that relies on content that was just erased is stored when it is sent again.
            let stored = match store.append_now(vec![prepared()]) {
                Err(StoreError::ContentLost) => store.append_now(vec![prepared()]),
                stored => stored,
            };
            stored.unwrap();
        }
        let before = everything(&store, &sessions);
        let subject = match which {
            0 => of_session("s"),
            1 => ErasureSubject::User(UserId::new("ann").unwrap()),
            _ => of_session("nobody"),
        };
        erase(&database, &subject);
        let mut snapshot = store.snapshot_now();
        let mut erased = BTreeMap::new();
        for session_id in sessions {
            erased.extend(snapshot.erased_calls(&session(session_id)).unwrap());
        }
        drop(snapshot);
        let erased: Vec<String> = erased.keys().map(ToString::to_string).collect();
        for (id, contents) in everything(&store, &sessions) {
            if erased.contains(&id) {
                prop_assert_eq!(contents, ((vec![], vec![]), None));
            } else {
                prop_assert_eq!(Some(&contents), before.get(&id));
            }
        }
        Ok(())
    });
    result.unwrap();
    verified(&database);

    let folder = database.folder().join("copy");
    std::fs::create_dir(&folder).unwrap();
    let mut progress = |_: &str, _: u64| {};
    let mut watch = Watch {
        deadline: deadline(),
        progress: &mut progress,
    };
    let taken = take(database.url(), &folder, &mut watch).unwrap();
    let other = database!(backend);
    put(other.url(), &folder, &taken.tables, false, &mut watch).unwrap();
    let restored = other.open("acme");
    assert_eq!(
        everything(&restored, &sessions),
        everything(&store, &sessions)
    );
    verified(&other);
}
