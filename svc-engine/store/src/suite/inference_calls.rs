//! Inference calls: exact read-back, redelivery and conflict, and a history that is stored once.

use svc_engine_capture::gateway::{self, Captured};
use svc_engine_capture::redaction::Secrets;
use svc_engine_capture::{Receipt, Redaction};
use svc_engine_fact::clock::Ids;
use svc_model::ingest::{CallMember, GatewayIngestRequest, GatewayProvider};
use svc_model::json::NodeBudget;

use super::*;

#[rstest]
fn a_call_is_read_back_unchanged(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
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

/// A gateway's payload is read back byte for byte, whether it is the first of its kind or its
/// messages and templates are stored already. The same holds after redaction, when parts and
/// payload differ.
#[rstest]
fn a_raw_payload_is_read_back_unchanged(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    const DELIVERED: &str =
        include_str!("../../../../tests/fixtures/litellm/generic_api_json_array.json");
    let database = database!(backend);
    let store = database.open("acme");
    let ids = Ids::counting();
    let delivered = Json::parse(DELIVERED.as_bytes()).unwrap();
    let payloads = delivered.into_array().unwrap().into_iter().chain([Json::parse(
        br#"{"litellm_call_id":"c-12345678","messages":[
            {"role":"user","content":[{"type":"text","text":"api_key=abcdefghijklmnop","cache_control":{"type":"ephemeral"}}]},
            {"type":"image"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"edit","arguments":"{\"api_key\": \"hunter22hunter\", \"n\": 1.10}"}}]},
            {"role":"tool","tool_call_id":"call_1","content":"{\"n\": NaN}"}],
            "response":{"id":"c-12345678","choices":[{"message":{"role":"assistant","content":"done \ud800"}}]}}"#,
    ).unwrap()]);
    let mut sent = Vec::new();
    for payload in payloads.flat_map(|payload| [payload.clone(), payload]) {
        let request = GatewayIngestRequest {
            provider: GatewayProvider::GatewayA,
            session_id: Some(session("s-12345678")),
            user_id: None,
            payload,
            capture: None,
            compare: false,
        };
        let receipt = Receipt {
            org_id: store.org_id(),
            received_at: at(0),
            ids: &ids,
            redaction: Redaction::On,
            secrets: &Secrets::default(),
        };
        let Ok((Captured::Call(mut call), _)) =
            gateway::capture(request, receipt, &NodeBudget::unlimited())
        else {
            panic!("a call")
        };
        // Each is delivered twice, as two calls.
        call.model_call_id = call.model_call_id.map(|id| format!("{id}{}", sent.len()));
        sent.push((call.inference_call_id, call.raw.payload.to_canonical()));
        append(&store, vec![*call]);
    }
    let mut snapshot = store.snapshot_now();
    for (id, raw) in sent {
        let read = snapshot.call_raw(id).unwrap().unwrap();
        assert_eq!(String::from_utf8(read), String::from_utf8(raw));
    }
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
            sent: (name.len() % 2 == 0).then(|| name.clone()),
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

/// Law: what is read equals what was stored, byte for byte, on both backends. Storing a delivery
/// twice equals storing it once.
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

/// Every way in which a call can share ids with stored ones. Letters are fact ids, digits are the
/// ids of the model.
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
        (call(1).model_call("x").session("other").build(), conflict),
        (call(3).session("other").build(), conflict),
        (with(9, "x"), Outcome::Redelivered(id(1))),
        (
            call(9)
                .model_call("x")
                .output(vec![text("assistant", "AnsweR")])
                .build(),
            Outcome::Differs(id(1), &[CallMember::Content]),
        ),
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
        "a conflict creates no Session"
    );
}

/// A gateway may report several calls of a model under one id. They started at different times.
#[rstest]
fn calls_of_one_id_that_started_at_different_times_are_all_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let conflict = Outcome::Conflict(Code::InferenceCallIdentityConflict);
    let further = |number: u128| id(number + 1_000_000);
    let with = |fact: u128, started: i64| call(fact).model_call("x").started(started);
    // Both in one transaction, under one id, and the second a second time.
    let both = vec![
        with(1, 10).build(),
        with(1, 20).build(),
        with(1, 20).build(),
    ];
    assert_eq!(
        append(&store, both),
        [
            Outcome::Stored(id(1)),
            Outcome::Stored(further(1)),
            Outcome::Redelivered(further(1)),
        ]
    );
    let mut named = with(8, 40).build();
    named.further_id = None;
    let mut named_again = with(8, 50).build();
    named_again.further_id = None;
    for (sent, expected) in [
        (with(2, 10).build(), Outcome::Redelivered(id(1))),
        (with(1, 20).build(), Outcome::Redelivered(further(1))),
        (with(1, 10).build(), Outcome::Redelivered(id(1))),
        (call(3).model_call("x").build(), Outcome::Redelivered(id(1))),
        (with(4, 30).build(), Outcome::Stored(further(4))),
        (with(5, 30).build(), Outcome::Redelivered(further(4))),
        (with(6, 60).session("other").build(), conflict),
        // The sender names these deliveries itself.
        (named, Outcome::Stored(id(8))),
        (named_again, Outcome::Redelivered(id(8))),
        (with(9, 40).build(), Outcome::Redelivered(id(8))),
    ] {
        assert_eq!(append(&store, vec![sent.clone()]), [expected], "{sent:?}");
    }
    let mut snapshot = store.snapshot_now();
    assert_eq!(snapshot.fact_counts().unwrap().inference_calls.total, 4);
    // A call without a start is the same call as any of its id.
    append(&store, vec![call(20).model_call("y").build()]);
    let later = call(21).model_call("y").started(10).build();
    assert_eq!(append(&store, vec![later]), [Outcome::Redelivered(id(20))]);
}

#[rstest]
fn calls_of_one_append_are_decided_in_order(
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
    // The second call conflicts over the first one's model id and is not stored. So the third,
    // which has the second one's id, is new.
    let third = call(12).model_call("q").session("other").build();
    assert_eq!(
        append(&store, vec![with(11, "p"), with(12, "p"), third.clone()]),
        [
            Outcome::Stored(id(11)),
            Outcome::Conflict(Code::InferenceCallIdentityConflict),
            Outcome::Stored(id(12)),
        ]
    );
    let raw = store.snapshot_now().call_raw(id(12)).unwrap();
    assert_eq!(raw, Some(third.raw.payload.to_canonical()));
}

#[rstest]
fn ids_of_calls_are_scoped_to_their_organization(
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
fn exactly_one_of_several_equal_concurrent_deliveries_is_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    // To the database, three stores are three processes.
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
        let outcomes: Vec<Outcome> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
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

/// Which servers write the calls of a Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    One,
    /// Two servers take turns.
    Two,
    /// A new server writes each call.
    OneACall,
}

/// Any server may store a call of a Session, and there is a decision now and then.
#[rstest]
fn a_history_is_stored_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(Writers::One, Writers::Two, Writers::OneACall)] writers: Writers,
) {
    let database = database!(backend);
    let mut stores = [database.open("acme"), database.open("acme")];
    let mut history = vec![text("system", "be brief")];
    for turn in 0..50_u128 {
        let store = match writers {
            Writers::One => &stores[0],
            Writers::Two => &stores[turn as usize % 2],
            Writers::OneACall => {
                stores[0] = database.open("acme");
                &stores[0]
            }
        };
        history.push(text("user", &format!("question {turn}")));
        let answer = text("assistant", &format!("answer {turn}"));
        let sent = call(turn + 1)
            .input(history.clone())
            .output(vec![answer.clone()])
            .build();
        append(store, vec![sent]);
        history.push(answer);
        if turn % 7 == 0 {
            append_one(store, Append::DeveloperDecision, decision(100 + turn));
        }
    }
    let mut connection = Connection::open(database.url()).unwrap();
    let count = || connection.first("SELECT COUNT(*) FROM content", &[], |row| row.integer(0));
    let count = plan_check::unchecked(count).unwrap();
    assert_eq!(count, Some(101), "one row per distinct message");
    let calls = messages(&stores[0], "s");
    assert_eq!(calls.last().unwrap().0.len(), 100);
}

#[rstest]
fn equal_messages_of_two_sessions_are_stored_for_each(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let of = |number: u128, session: &str| {
        call(number)
            .session(session)
            .input(vec![text("system", "be brief"), text("user", "hello")])
            .output(vec![text("assistant", "hello")])
            .build()
    };
    append(&store, vec![of(1, "s"), of(2, "t")]);
    append(&store, vec![of(3, "s")]);
    append(&database.open("acme"), vec![of(4, "t")]);
    let mut contents = database.rows(
        "SELECT CAST(is_shared AS TEXT), CAST(COUNT(*) AS TEXT) FROM content GROUP BY is_shared",
        2,
    );
    contents.sort();
    assert_eq!(contents, [["0", "4"], ["1", "1"]]);
}

/// Calls are found by the number of their Session. Any server may be the first to give it out.
#[rstest]
fn concurrent_servers_give_a_new_session_one_number(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let stores: Vec<Store> = (0..3).map(|_| database.open("acme")).collect();
    for round in 0..10_u128 {
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for (server, store) in (1..).zip(&stores) {
                let barrier = &barrier;
                let session_id = format!("s{round}");
                scope.spawn(move || {
                    let number = round * 10 + server;
                    let decided = decision(number);
                    let decided = svc_engine_fact::DeveloperDecision {
                        session_id: session(&session_id),
                        ..decided
                    };
                    barrier.wait();
                    // A decision may be what creates the Session.
                    if server == 3 {
                        let decided = Append::DeveloperDecision(Box::new(decided));
                        store.append_now(vec![decided]).unwrap();
                    }
                    append(store, vec![call(number).session(&session_id).build()]);
                });
            }
        });
    }
    let found = "SELECT CAST(COUNT(*) AS TEXT), CAST(COUNT(DISTINCT f.session_number) AS TEXT)
        FROM inference_calls f JOIN sessions s ON s.session_number = f.session_number
            AND s.org_id = f.org_id";
    assert_eq!(database.rows(found, 2), [["30", "10"]]);
    let mut snapshot = stores[0].snapshot_now();
    for round in 0..10_u128 {
        let calls = snapshot.call_scalars(&session(&format!("s{round}")));
        let mut calls: Vec<FactId> = calls
            .unwrap()
            .iter()
            .map(|call| call.inference_call_id)
            .collect();
        calls.sort();
        assert_eq!(
            calls,
            [1, 2, 3].map(|server| id(round * 10 + server)),
            "{round}"
        );
    }
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
                 FROM sessions WHERE org_id = 'acme' AND session_id = 's'",
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
            "SELECT user_id_conflict FROM sessions WHERE org_id = 'acme' AND session_id = 't'",
            &[],
            |row| row.integer(0),
        )
        .unwrap();
    assert_eq!(conflict, Some(1), "even within one transaction");
}
