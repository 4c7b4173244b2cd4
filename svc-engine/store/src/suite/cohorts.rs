//! What reports read.

use svc_engine_fact::Push;
use svc_model::time::Instant as Moment;

use super::*;

fn seconds(range: std::ops::Range<i64>) -> std::ops::Range<Moment> {
    at(range.start)..at(range.end)
}

#[rstest]
fn the_calls_of_a_range_are_read_in_order_of_observation(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, other) = (database.open("acme"), database.open("other"));
    let observed =
        |number, session: &str, seconds| call(number).session(session).observed(seconds).build();
    append(
        &store,
        vec![
            observed(1, "s", 5),
            observed(2, "t", 2),
            observed(3, "s", 4),
            observed(4, "t", 1),
            observed(5, "s", 3),
        ],
    );
    append(&other, vec![observed(6, "s", 3)]);
    set(
        &database,
        FactTable::InferenceCalls,
        id(3),
        QuarantineAction::Quarantine,
    );
    let mut snapshot = store.snapshot_now();
    let mut calls = Vec::new();
    snapshot
        .calls_observed(seconds(2..5), |call| {
            calls.push((call.inference_call_id, call.session_id.as_str().to_owned()));
            Ok(())
        })
        .unwrap();
    // The first moment is included, the last is not.
    assert_eq!(calls, [(id(2), "t".to_owned()), (id(5), "s".to_owned())]);
    let stopped = snapshot.calls_observed(seconds(0..9), |_| Err(StoreError::Deadline));
    assert!(matches!(stopped, Err(StoreError::Deadline)));
}

#[rstest]
fn calls_are_read_with_the_contents_of_their_answers(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let answered = |number: u128, what: &[&str]| {
        let answers = what.iter().map(|what| text("assistant", what));
        call(number).observed(1).output(answers.collect()).build()
    };
    append(
        &store,
        vec![
            answered(1, &["a", "b"]),
            answered(2, &["a"]),
            answered(3, &[]),
        ],
    );
    let mut found = Vec::new();
    let mut snapshot = store.snapshot_now();
    snapshot
        .calls_observed(seconds(0..9), |call| {
            found.push(call);
            Ok(())
        })
        .unwrap();
    found.sort_unstable_by_key(|call| call.inference_call_id);
    let [one, two, three] = &found[..] else {
        panic!("{found:?}");
    };
    let [one, two, three] = [one, two, three].map(|call| &call.answer);
    assert_eq!((one.contents.len(), three.contents.len()), (2, 0));
    assert_eq!(two.contents[..], one.contents[..1]);
    assert!(one.byte_count > two.byte_count);
    let mut bytes = 0;
    snapshot
        .content(&one.contents, |_, content| {
            bytes += content.len() as u64;
            Ok(())
        })
        .unwrap();
    assert_eq!(bytes + 3, one.byte_count, "two brackets and a comma");
}

#[rstest]
fn facts_of_repositories_are_read_in_order_of_capture(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let facts = |number: u128, seconds: i64| {
        let pushed = Push {
            r#ref: format!("refs/heads/{number}"),
            captured_at: at(seconds),
            ..push(number)
        };
        let mut seen = observation(400 + number, id(number));
        seen.session_id = session(&number.to_string());
        seen.captured_at = at(seconds);
        vec![
            Append::Push(Box::new(pushed)),
            Append::SessionCommitObservation(Box::new(seen)),
        ]
    };
    for (number, seconds) in [(1, 5), (2, 2), (3, 4), (4, 1), (5, 3)] {
        store.append_now(facts(number, seconds)).unwrap();
    }
    set(
        &database,
        FactTable::Pushes,
        id(5),
        QuarantineAction::Quarantine,
    );
    let mut snapshot = store.snapshot_now();
    macro_rules! ids {
        ($method:ident, $id:ident) => {{
            let mut ids = Vec::new();
            snapshot
                .$method(seconds(2..5), |fact| {
                    ids.push(fact.$id);
                    Ok(())
                })
                .unwrap();
            ids
        }};
    }
    assert_eq!(ids!(pushes_captured, push_id), [id(2), id(3)]);
    assert_eq!(
        ids!(observations_captured, observation_id),
        [id(402), id(405), id(403)]
    );
}

#[rstest]
fn decisions_and_edits_are_read_by_session(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for (number, of) in (1..).zip(["s", "t", "u", "s"]) {
        let call_id = number.to_string();
        let mut decided = decision(number);
        decided.session_id = session(of);
        decided.call_id = Some(call_id.clone());
        let mut edited = edit(10 + number, &call_id);
        edited.session_id = session(of);
        let mut retried = linkage(20 + number, &call_id, "again");
        retried.session_id = session(of);
        if number == 4 {
            decided.captured_at = at(9);
            edited.captured_at = at(9);
            retried.captured_at = at(9);
        }
        let facts = vec![
            Append::DeveloperDecision(Box::new(decided)),
            Append::EditObservation(Box::new(edited)),
            Append::RetryLinkage(Box::new(retried)),
        ];
        store.append_now(facts).unwrap();
    }
    let mut snapshot = store.snapshot_now();
    let sessions = [session("s"), session("t")];
    let mut found = Vec::new();
    snapshot
        .decisions_of_sessions(&sessions, at(8), |decision| {
            found.push(decision.decision_id);
            Ok(())
        })
        .unwrap();
    snapshot
        .edits_of_sessions(&sessions, at(8), |edit| {
            found.push(edit.observation_id);
            Ok(())
        })
        .unwrap();
    snapshot
        .retries_of_sessions(&sessions, at(8), |linkage| {
            found.push(linkage);
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [id(1), id(2), id(11), id(12), id(21), id(22)]);
}

/// The cost of a cohort depends only on its range. An index returns its calls in order.
#[rstest]
fn the_cost_of_a_cohort_depends_only_on_its_range(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let mut snapshot = store.snapshot_now();
    snapshot.calls_observed(seconds(0..9), |_| Ok(())).unwrap();
    assert_eq!(snapshot.latest_call(seconds(0..9)).unwrap(), None);
    snapshot.pushes_captured(seconds(0..9), |_| Ok(())).unwrap();
    let connection = snapshot.connection().unwrap();
    for (part, index) in [
        (
            "f.observed_at_us < $3\n    ORDER BY",
            "inference_calls_by_observation",
        ),
        (
            "ORDER BY f.observed_at_us DESC\n    LIMIT 1",
            "inference_calls_by_observation",
        ),
        (
            "FROM visible_pushes f WHERE COALESCE(f.org_id, '') = $1 AND f.org_id",
            "pushes_by_capture",
        ),
    ] {
        let plans = plan_check::of(connection, part);
        assert_eq!(plans.len(), 1, "{part}");
        assert!(plans[0].1.contains(index), "{plans:?}");
    }
}
