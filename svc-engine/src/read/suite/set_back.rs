//! A database that is set back under a running service: what the service remembers of the lost
//! state must not be mistaken for what is stored.

use svc_engine_fact::InferenceCall;
use svc_engine_fact::testing::builders::text;
use svc_engine_store::testing::{append, count, session};
use svc_engine_store::{CallContents, StoreError};

use svc_model::evidence::Message;

use super::*;

fn call_with_input(number: u128, session_id: &str, content: &str) -> InferenceCall {
    let mut call = call(number).session(session_id).build();
    call.input_messages = vec![text("user", content)];
    call
}

fn prepared(store: &Store, call: InferenceCall) -> Append {
    Append::InferenceCall(Box::new(store.encode(call, at(0))))
}

/// Returns the input messages of a Session's calls, from the cache or from the store.
fn asked(store: &Store, cache: &ContentCache, session_id: &str) -> Vec<Message> {
    let mut snapshot = store.snapshot_now();
    let calls = snapshot.call_contents(&session(session_id)).unwrap();
    let ids = calls.iter().flat_map(|call| call.input.iter());
    let loaded = cache.load(&mut snapshot, ids).unwrap();
    let first = |call: &CallContents| loaded[&call.input.iter().next().unwrap()].message.clone();
    calls.iter().map(first).collect()
}

#[rstest]
fn after_a_set_back_no_session_reads_the_text_of_another(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
    #[values(true, false)] begins_with_what_is_lost: bool,
) {
    let Stage { database, .. } = &stage!(backend);
    let store = database.open("acme");
    let cache = ContentCache::new(1_000_000);
    append(&store, vec![call_with_input(1, "mine", "before")]);
    database.back_up();
    append(&store, vec![call_with_input(2, "mine", "of mine alone")]);
    assert_eq!(asked(&store, &cache, "mine").len(), 2);
    let relies_on_what_is_lost = prepared(&store, call_with_input(3, "mine", "of mine alone"));
    database.restore();

    let lost = |delivery: Append| {
        let refused = store.append_now(vec![delivery]);
        assert!(
            matches!(refused, Err(StoreError::ContentLost)),
            "{refused:?}"
        );
    };
    let other = |store: &Store| {
        let stored = append(
            store,
            vec![call_with_input(4, "other", "of the other alone")],
        );
        assert_eq!(stored, [Outcome::Stored(id(4))]);
    };
    if begins_with_what_is_lost {
        lost(relies_on_what_is_lost);
        other(&store);
    } else {
        other(&store);
        lost(relies_on_what_is_lost);
    }
    // The same call, encoded again, and once more with what is known by now.
    for number in [3, 5] {
        let stored = append(
            &store,
            vec![call_with_input(number, "mine", "of mine alone")],
        );
        assert_eq!(stored, [Outcome::Stored(id(number))]);
    }
    let user = |content| text("user", content);
    for cache in [&cache, &ContentCache::new(1_000_000)] {
        assert_eq!(
            asked(&store, cache, "mine"),
            [user("before"), user("of mine alone"), user("of mine alone")]
        );
        assert_eq!(asked(&store, cache, "other"), [user("of the other alone")]);
    }
    assert_eq!(count(&store, FactTable::InferenceCalls).total, 4);
}

#[rstest]
fn after_a_set_back_content_that_is_still_there_is_used(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Stage { database, .. } = &stage!(backend);
    let store = database.open("acme");
    append(&store, vec![call_with_input(1, "mine", "before")]);
    database.back_up();
    append(&store, vec![call_with_input(2, "mine", "after")]);
    let relies_on_what_is_there = prepared(&store, call_with_input(3, "mine", "before"));
    database.restore();
    let stored = store.append_now(vec![relies_on_what_is_there]).unwrap();
    assert_eq!(stored, [Outcome::Stored(id(3))]);
    let cache = ContentCache::new(1_000_000);
    let before = text("user", "before");
    assert_eq!(asked(&store, &cache, "mine"), [before.clone(), before]);
}
