//! One call from several sources, and several calls under one id.

use svc_engine_fact::{CallKey, CallKeyKind};
use svc_model::ingest::GatewayProvider;
use svc_model::usage::CallSource;

use super::*;

/// Returns a call with this answer from a source that knows these keys, such as `response:r`.
fn sent(number: u128, source: CallSource, keys: &[&str], answer: &str) -> InferenceCall {
    let mut call = call(number).build();
    call.capture_source = source;
    call.further_id = Some(id(number + 1_000));
    call.keys = keys
        .iter()
        .map(|key| {
            let (kind, id) = key.split_once(':').unwrap();
            let mut kinds = CallKeyKind::ALL.into_iter();
            CallKey::new(kinds.find(|known| known.as_str() == kind).unwrap(), id)
        })
        .collect();
    if source != CallSource::Gateway {
        call.gateway_provider = GatewayProvider::Unknown;
    }
    call.output_messages[0].parts = vec![Part::Text {
        content: answer.into(),
    }];
    call
}

const SOURCES: [CallSource; 4] = [
    CallSource::Gateway,
    CallSource::Telemetry,
    CallSource::Span,
    CallSource::Transcript,
];

#[rstest]
fn a_call_of_two_sources_is_one_call_in_every_order(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(true, false)] together: bool,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut number = 0;
    for first in SOURCES {
        for second in SOURCES.into_iter().filter(|second| *second != first) {
            number += 2;
            let key = format!("response:r{number}");
            let one = sent(number, first, &[&key], "a");
            let two = sent(number + 1, second, &[&key], "b");
            let outcomes = if together {
                append(&store, vec![one, two])
            } else {
                [append(&store, vec![one]), append(&store, vec![two])].concat()
            };
            let expected = [
                Outcome::Stored(id(number)),
                Outcome::Redelivered(id(number)),
            ];
            assert_eq!(outcomes, expected, "{first} {second}");
        }
    }
}

#[rstest]
fn a_call_gathers_what_other_sources_know_of_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver =
        |number, source, keys: &[&str]| append(&store, vec![sent(number, source, keys, "a")])[0];
    let known = Outcome::Redelivered(id(1));
    assert_eq!(
        deliver(1, CallSource::Gateway, &["response:r"]),
        Outcome::Stored(id(1))
    );
    assert_eq!(
        deliver(2, CallSource::Telemetry, &["response:r", "request:q"]),
        known
    );
    assert_eq!(
        deliver(3, CallSource::Span, &["request:q", "span:t:s"]),
        known
    );
    assert_eq!(deliver(4, CallSource::Transcript, &["span:t:s"]), known);
    // A key that nobody has named is of another call.
    assert_eq!(
        deliver(5, CallSource::Transcript, &["request:other"]),
        Outcome::Stored(id(5))
    );
    let keys = [
        CallKey::new(CallKeyKind::Request, "q"),
        CallKey::new(CallKeyKind::Request, "other"),
        CallKey::new(CallKeyKind::Request, "unknown"),
    ];
    let found = store.snapshot_now().calls_of_keys(&keys).unwrap();
    assert_eq!(found.get(&keys[0]), Some(&id(1)));
    assert_eq!(found.get(&keys[1]), Some(&id(5)));
    assert_eq!(found.len(), 2);
}

#[rstest]
fn a_gateway_tells_its_calls_apart_by_its_own_ids(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let gateway = |number| sent(number, CallSource::Gateway, &["response:r"], "a");
    let outcomes = append(&store, vec![gateway(1), gateway(2)]);
    assert_eq!(outcomes, [Outcome::Stored(id(1)), Outcome::Stored(id(2))]);
    let client = sent(3, CallSource::Telemetry, &["response:r"], "a");
    assert_eq!(append(&store, vec![client]), [Outcome::Redelivered(id(1))]);
}

#[rstest]
fn a_source_that_repeats_itself_is_told_from_one_that_shares_an_id(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let deliver = |number, keys: &[&str], answer| {
        append(&store, vec![sent(number, CallSource::Span, keys, answer)])[0]
    };
    assert_eq!(
        deliver(1, &["response:r", "span:t:1"], "a"),
        Outcome::Stored(id(1))
    );
    // The same span again, whatever it says now.
    for answer in ["a", "b"] {
        let again = deliver(1, &["response:r", "span:t:1"], answer);
        assert_eq!(again, Outcome::Redelivered(id(1)));
    }
    // Another span with the same answer is the same call; with another answer it is not.
    assert_eq!(
        deliver(2, &["response:r", "span:t:2"], "a"),
        Outcome::Redelivered(id(1))
    );
    let other = ["response:r", "span:t:3"];
    let apart = id(1_003);
    assert_eq!(deliver(3, &other, "c"), Outcome::StoredApart(apart));
    assert_eq!(deliver(3, &other, "c"), Outcome::Redelivered(apart));
    // A call with the ids of two calls is neither.
    let both = ["request:q", "response:r", "span:t:3"];
    assert_eq!(deliver(4, &both, "d"), Outcome::StoredApart(id(1_004)));
    assert_eq!(
        store
            .snapshot_now()
            .call_scalars(&session("s"))
            .unwrap()
            .len(),
        3
    );
}

#[rstest]
fn calls_without_keys_are_known_by_their_ids(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let client = |number| sent(number, CallSource::Telemetry, &[], "a");
    let outcomes = append(&store, vec![client(1), client(2), client(1)]);
    assert_eq!(
        outcomes,
        [
            Outcome::Stored(id(1)),
            Outcome::Stored(id(2)),
            Outcome::Redelivered(id(1))
        ]
    );
    assert_eq!(
        append(&store, vec![client(2)]),
        [Outcome::Redelivered(id(2))]
    );
}

#[rstest]
fn servers_that_store_one_call_at_once_store_it_once(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let stores = [database.open("acme"), database.open("acme")];
    std::thread::scope(|scope| {
        for (server, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                for number in 1..40 {
                    let source = SOURCES[(server + number) % SOURCES.len()];
                    let key = format!("response:r{number}");
                    let fact = (server * 100 + number) as u128;
                    append(store, vec![sent(fact, source, &[&key], "a")]);
                }
            });
        }
    });
    let calls = stores[0]
        .snapshot_now()
        .call_scalars(&session("s"))
        .unwrap();
    assert_eq!(calls.len(), 39);
}
