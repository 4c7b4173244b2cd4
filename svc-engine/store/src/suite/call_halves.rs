//! Halves of calls: they arrive once, share what repeats, and go together with the facts made of
//! them.

use std::collections::BTreeSet;

use svc_engine_fact::testing::builders::call_half;
use svc_engine_fact::{CallHalf, HalfKey, HalfSide, HalfState};
use svc_model::capture::PendingHalves;
use svc_model::id::UserId;

use super::*;
use crate::backup::Watch;

const SYSTEM: &str =
    "You are an agent that has a long system prompt, which it sends with every request.";

fn body(text: &str) -> Object {
    Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
}

/// Returns the body of a request with these messages.
fn asked(messages: &[&str]) -> Object {
    let message = |text: &&str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let messages: Vec<String> = messages.iter().map(message).collect();
    body(&format!(
        r#"{{"model":"m","system":[{{"type":"text","text":"{SYSTEM}"}}],"messages":[{}]}}"#,
        messages.join(",")
    ))
}

fn request(number: u8, session_id: &str, messages: &[&str]) -> CallHalf {
    call_half(number, session_id, HalfSide::Request, asked(messages))
}

fn response(number: u8, session_id: &str) -> CallHalf {
    let body = body(r#"{"id":"msg_1","content":[{"type":"text","text":"done"}]}"#);
    call_half(number, session_id, HalfSide::Response, body)
}

fn arrive(store: &Store, halves: Vec<CallHalf>) {
    let arrived = halves.into_iter().map(|half| ArrivedHalf {
        due_at: at(1_000 + i64::from(half.outline.key[0])),
        half,
    });
    let delivery = Delivery {
        halves: arrived.collect(),
        ..Delivery::default()
    };
    assert_eq!(store.append_now(delivery).unwrap(), []);
}

fn keys(store: &Store, session_id: &str) -> Vec<(u8, HalfState)> {
    let kept = store.snapshot_now().kept_halves(&session(session_id));
    let mut kept: Vec<(u8, HalfState)> = kept
        .unwrap()
        .into_iter()
        .map(|kept| (kept.outline.key[0], kept.state))
        .collect();
    kept.sort_by_key(|(key, _)| *key);
    kept
}

fn pending(store: &Store) -> Option<PendingHalves> {
    store.snapshot_now().pending_halves().unwrap()
}

fn rows(database: &TestStore, table: &str) -> i64 {
    let mut connection = Connection::open(database.url()).unwrap();
    let text = format!("SELECT /* every row */ COUNT(*) FROM {table}");
    let rows = connection.first(&text, &[], |row| row.integer(0));
    rows.unwrap().unwrap()
}

fn settled(session_id: &str, open: &[u8], settled: &[u8], witness: Option<u8>) -> SettledHalves {
    let keys =
        |numbers: &[u8]| -> Vec<HalfKey> { numbers.iter().map(|number| [*number; 16]).collect() };
    SettledHalves {
        session_id: session(session_id),
        open: keys(open),
        settled: keys(settled),
        witness: witness.map(|number| [number; 16]),
        witness_until: at(2_000),
        remembered_until: at(3_000),
    }
}

fn settle(
    store: &Store,
    settled: SettledHalves,
    calls: Vec<InferenceCall>,
) -> Result<Vec<Outcome>, StoreError> {
    let calls = calls.into_iter().map(|call| store.encode(call, at(0)));
    store.append_now(Delivery {
        facts: calls
            .map(|call| Append::InferenceCall(Box::new(call)))
            .collect(),
        settled_halves: Some(settled),
        ..Delivery::default()
    })
}

fn damage(database: &TestStore) -> Vec<String> {
    let mut watch = Watch {
        deadline: Deadline::after(Duration::from_mins(1)),
        progress: &mut |_, _| {},
    };
    let findings = crate::backup::verify_store(database.url(), &mut watch);
    let findings = findings.unwrap().findings.into_iter();
    findings.map(|finding| format!("{finding:?}")).collect()
}

#[rstest]
fn halves_arrive_once_and_are_read_back_as_they_were(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    assert_eq!(pending(&store), None);
    let halves = || {
        vec![
            request(1, "s", &["a"]),
            request(2, "s", &["a", "b"]),
            response(3, "s"),
        ]
    };
    arrive(&store, halves());
    arrive(&store, halves());
    arrive(
        &store,
        vec![request(1, "s", &["other"]), request(4, "t", &["a"])],
    );
    let counted = pending(&store).unwrap();
    assert_eq!((counted.count, counted.oldest_at), (4, Some(at(101))));
    let bytes = |half: CallHalf| Json::Object(half.body).canonical_len() as u64;
    let all = halves().into_iter().chain([request(4, "t", &["a"])]);
    assert_eq!(counted.bytes, all.map(bytes).sum::<u64>());
    // The system prompt and two messages of one Session, and two pieces of the other.
    assert_eq!(rows(&database, "half_pieces"), 5);
    let mut snapshot = store.snapshot_now();
    let kept = snapshot.kept_halves(&session("s")).unwrap();
    assert_eq!(kept.len(), 3);
    for (kept, half) in kept.iter().zip(halves()) {
        assert_eq!(kept.outline, half.outline);
        assert_eq!(kept.state, HalfState::Open);
        assert_eq!(snapshot.call_half(kept).unwrap(), Some(half));
    }
    assert_eq!(snapshot.last_half_at(&session("s")).unwrap(), Some(at(103)));
    assert_eq!(snapshot.last_half_at(&session("none")).unwrap(), None);
    assert_eq!(
        snapshot.session_of_oldest_half().unwrap(),
        Some(session("s"))
    );
    drop(snapshot);
    let other = database.open("other");
    assert_eq!(pending(&other), None);
    assert_eq!(keys(&other, "s"), []);
    assert_eq!(damage(&database), Vec::<String>::new());
}

#[rstest]
fn halves_go_together_with_the_facts_that_are_made_of_them(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    arrive(
        &store,
        vec![
            request(1, "s", &["a"]),
            request(2, "s", &["a", "b"]),
            response(3, "s"),
        ],
    );
    // Another half came meanwhile, or one has gone.
    for open in [&[1, 3][..], &[1, 2, 3, 4]] {
        let refused = settle(
            &store,
            settled("s", open, &[1, 3], Some(1)),
            vec![call(1).build()],
        );
        assert!(
            matches!(refused, Err(StoreError::HalvesChanged)),
            "{refused:?}"
        );
        assert_eq!(count(&store, FactTable::InferenceCalls).total, 0);
    }
    let stored = settle(
        &store,
        settled("s", &[1, 2, 3], &[1, 3], Some(1)),
        vec![call(1).build()],
    );
    assert_eq!(stored.unwrap().len(), 1);
    assert_eq!(count(&store, FactTable::InferenceCalls).total, 1);
    assert_eq!(
        keys(&store, "s"),
        [(1, HalfState::Witness), (2, HalfState::Open)]
    );
    assert_eq!(pending(&store).unwrap().count, 1);
    let again = settle(
        &store,
        settled("s", &[1, 2, 3], &[1, 3], Some(1)),
        Vec::new(),
    );
    assert!(matches!(again, Err(StoreError::HalvesChanged)));
    // The other request still needs all of its pieces.
    assert_eq!(rows(&database, "half_pieces"), 3);
    let mut snapshot = store.snapshot_now();
    let kept = snapshot.kept_halves(&session("s")).unwrap();
    let open = kept
        .iter()
        .find(|kept| kept.state == HalfState::Open)
        .unwrap();
    assert_eq!(
        snapshot.call_half(open).unwrap(),
        Some(request(2, "s", &["a", "b"]))
    );
    let witness = kept
        .iter()
        .find(|kept| kept.state == HalfState::Witness)
        .unwrap();
    assert_eq!(witness.outline.called_tools, open.outline.called_tools);
    assert_eq!(snapshot.call_half(witness).unwrap(), None);
    drop(snapshot);
    // A redelivery is recognised.
    arrive(&store, vec![request(1, "s", &["a"]), response(3, "s")]);
    assert_eq!(pending(&store).unwrap().count, 1);
    assert_eq!(damage(&database), Vec::<String>::new());
    settle(&store, settled("s", &[2], &[2], None), Vec::new()).unwrap();
    assert_eq!(rows(&database, "half_pieces"), 0);
    let none = PendingHalves {
        count: 0,
        bytes: 0,
        oldest_at: None,
    };
    assert_eq!(pending(&store), Some(none));
    assert_eq!(damage(&database), Vec::<String>::new());
}

#[rstest]
fn two_servers_settle_halves_once(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let stores = [database.open("acme"), database.open("acme")];
    for round in 0..8_u8 {
        let (one, two) = (2 * round + 1, 2 * round + 2);
        arrive(
            &stores[0],
            vec![request(one, "s", &["a"]), response(two, "s")],
        );
        let barrier = Barrier::new(2);
        let results: Vec<bool> = std::thread::scope(|scope| {
            let settling = stores.each_ref().map(|store| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let call = call(100 + u128::from(round)).build();
                    settle(
                        store,
                        settled("s", &[one, two], &[one, two], Some(one)),
                        vec![call],
                    )
                    .is_ok()
                })
            });
            settling.map(|thread| thread.join().unwrap()).to_vec()
        });
        assert_eq!(
            results.iter().filter(|result| **result).count(),
            1,
            "{results:?}"
        );
        let calls = count(&stores[0], FactTable::InferenceCalls).total;
        assert_eq!(calls, u64::from(round) + 1);
    }
}

#[rstest]
fn what_is_due_is_found_and_what_is_settled_is_forgotten(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    assert_eq!(store.snapshot_now().next_half_due().unwrap(), None);
    arrive(
        &store,
        vec![
            request(1, "s", &["a"]),
            response(2, "s"),
            request(3, "t", &["a"]),
        ],
    );
    let due = |now| store.snapshot_now().due_halves(now).unwrap();
    assert_eq!(
        store.snapshot_now().next_half_due().unwrap(),
        Some(at(1_001))
    );
    assert_eq!(due(at(1_000)).sessions, []);
    assert_eq!(due(at(1_003)).sessions, [session("s"), session("t")]);
    store
        .postpone_halves(&session("t"), at(1_003), at(5_000))
        .unwrap();
    assert_eq!(due(at(1_003)).sessions, [session("s")]);
    settle(&store, settled("s", &[1, 2], &[1, 2], Some(1)), Vec::new()).unwrap();
    arrive(&store, vec![request(4, "s", &["b"])]);
    let forget = |now| store.forget_halves(now, at(5_000), at(9_000)).unwrap();
    assert!(!due(at(1_999)).settled);
    assert!(due(at(2_000)).settled, "the witness");
    forget(at(2_000));
    assert_eq!(keys(&store, "s"), [(4, HalfState::Open)]);
    assert_eq!(rows(&database, "call_halves"), 4);
    forget(at(6_000));
    assert_eq!(
        rows(&database, "call_halves"),
        4,
        "the Session has an open half"
    );
    settle(&store, settled("s", &[4], &[4], None), Vec::new()).unwrap();
    forget(at(9_000));
    assert_eq!(rows(&database, "call_halves"), 1);
    assert_eq!(damage(&database), Vec::<String>::new());
}

#[rstest]
fn an_erasure_deletes_the_halves_of_its_subject(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let fill = || {
        let mut nobody = request(3, "t", &["a"]);
        nobody.outline.user_id = None;
        let mut other = request(4, "u", &["a"]);
        other.outline.user_id = Some(UserId::new("other").unwrap());
        let mut beside = request(5, "u", &["b"]);
        beside.outline.user_id = None;
        arrive(
            &store,
            vec![
                request(1, "s", &["a"]),
                response(2, "s"),
                nobody,
                request(6, "t", &["c"]),
                other,
                beside,
            ],
        );
        settle(&store, settled("s", &[1, 2], &[2], None), Vec::new()).unwrap();
    };
    let left = || -> BTreeSet<u8> {
        let sessions = ["s", "t", "u"].into_iter();
        sessions
            .flat_map(|session| keys(&store, session))
            .map(|(key, _)| key)
            .collect()
    };
    let ledger = database.ledger("acme");
    let erase = |subject: ErasureSubject, expected: u64, rest: &[u8]| {
        fill();
        let deadline = Deadline::after(Duration::from_mins(1));
        let forecast = ledger.forecast_erasure(&subject, &deadline).unwrap();
        assert_eq!(forecast.halves, expected);
        let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
        let order = erasure_order(&subject);
        let erased = ledger.erase(plan, &order, &deadline, &mut |_| {}).unwrap();
        assert_eq!((erased.halves, erased.facts.total()), (expected, 0));
        assert!(erased.stored_bytes > 0);
        assert_eq!(left(), rest.iter().copied().collect());
        assert_eq!(damage(&database), Vec::<String>::new());
        let everything = ErasureSubject::OlderThan(at(100_000));
        let plan = ledger.plan_erasure(&everything, &deadline).unwrap();
        let order = erasure_order(&everything);
        ledger.erase(plan, &order, &deadline, &mut |_| {}).unwrap();
        assert_eq!(rows(&database, "half_pieces"), 0);
        run_sql(database.url(), "DELETE FROM call_halves").unwrap();
    };
    let user = |name| ErasureSubject::User(UserId::new(name).unwrap());
    erase(ErasureSubject::Session(session("s")), 2, &[3, 4, 5, 6]);
    erase(user("dev"), 3, &[4, 5]);
    erase(user("other"), 2, &[1, 3, 6]);
    erase(ErasureSubject::OlderThan(at(104)), 2, &[4, 5, 6]);
}

/// The halves become a call after the erasure was planned, which did not know of the call.
#[rstest]
fn a_call_that_is_made_of_planned_halves_is_erased_too(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    arrive(&store, vec![request(1, "s", &["a"]), response(2, "s")]);
    let subject = ErasureSubject::Session(session("s"));
    let deadline = Deadline::after(Duration::from_mins(1));
    let ledger = database.ledger("acme");
    let plan = ledger.plan_erasure(&subject, &deadline).unwrap();
    let made = InferenceCall {
        session_id: session("s"),
        ..call(1).build()
    };
    settle(&store, settled("s", &[1, 2], &[1, 2], Some(1)), vec![made]).unwrap();
    let order = erasure_order(&subject);
    let erased = ledger.erase(plan, &order, &deadline, &mut |_| {}).unwrap();
    assert_eq!(erased.facts.get(FactTable::InferenceCalls), 1);
    assert_eq!(keys(&store, "s"), []);
    assert_eq!(damage(&database), Vec::<String>::new());
}

#[rstest]
fn a_check_finds_what_is_wrong_with_halves(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let damages = [
        ("UPDATE half_totals SET halves = 7", "CountDiffers"),
        ("DELETE FROM half_totals", "CountDiffers"),
        ("DELETE FROM half_pieces", "ContentAbsent"),
        ("UPDATE half_pieces SET session_id = 'x'", "DigestDiffers"),
        ("DELETE FROM call_halves WHERE side = 'q'", "ContentRemains"),
        (
            "UPDATE call_halves SET side = 'x' WHERE side = 'r'",
            "RowUnreadable",
        ),
    ];
    for (sql, expected) in damages {
        let database = database!(backend);
        let store = database.open("acme");
        arrive(&store, vec![request(1, "s", &["a"]), response(2, "s")]);
        store.close();
        run_sql(database.url(), sql).unwrap();
        let damage = damage(&database);
        assert!(
            damage.iter().any(|found| found.contains(expected)),
            "{sql}: {damage:?}"
        );
    }
}
