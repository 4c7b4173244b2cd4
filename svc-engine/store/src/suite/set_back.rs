//! A database that is set back under a running service: memories of the lost state must not be
//! mistaken for what is stored.

use super::*;

fn call_with_input(number: u128, session_id: &str, content: &str) -> InferenceCall {
    let mut call = call(number).session(session_id).build();
    call.input_messages = vec![text("user", content)];
    call
}

#[rstest]
fn after_a_set_back_lost_repository_claims_are_stored_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let pushed = |number: u128, after| svc_engine_fact::Push {
        repository: Some(repository(7)),
        after_sha: commit(after),
        ..push(number)
    };
    let claims = || database.rows("SELECT name FROM repository_claims", 1).len();
    append_one(&store, Append::CiOutcome, outcome(1, "r"));
    database.back_up();
    append_one(&store, Append::Push, pushed(2, 'a'));
    assert_eq!(claims(), 1);
    database.restore();
    assert_eq!(claims(), 0);
    append_one(&store, Append::Push, pushed(3, 'b'));
    assert_eq!(claims(), 1);
    append_one(&store, Append::Push, pushed(4, 'c'));
    assert_eq!((claims(), count(&store, FactTable::Pushes).total), (1, 2));
}

#[rstest]
fn after_a_set_back_no_content_id_is_reused(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let ids = || {
        let sql = "SELECT CAST(content_id AS TEXT) FROM content";
        let rows = database.rows(sql, 1).into_iter();
        rows.map(|row| row[0].clone())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let store = database.open("acme");
    append(&store, vec![call_with_input(1, "s", "first")]);
    let kept = ids();
    database.back_up();
    append(&store, vec![call_with_input(2, "s", "second")]);
    let lost: Vec<String> = ids().difference(&kept).cloned().collect();
    database.restore();
    append(&store, vec![call_with_input(3, "s", "third")]);
    let restarted = database.open("acme");
    append(&restarted, vec![call_with_input(4, "s", "fourth")]);
    let given = ids();
    assert!(given.len() > kept.len() + 1);
    assert!(!lost.is_empty() && lost.iter().all(|id| !given.contains(id)));
}

#[rstest]
fn after_a_set_back_lost_claims_of_a_session_are_stored_again(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let claims = || {
        let sql = "SELECT value FROM session_claims";
        database.rows(sql, 1).len()
    };
    let decide = |number: u8, session_id: &str| {
        let fact = svc_engine_fact::DeveloperDecision {
            session_id: session(session_id),
            occurred_at: at(number.into()),
            ..decision(number.into())
        };
        append_one(&store, Append::DeveloperDecision, fact)
    };
    decide(1, "s");
    database.back_up();
    decide(2, "t");
    assert_eq!(claims(), 2);
    database.restore();
    assert_eq!(claims(), 1);
    decide(3, "t");
    assert_eq!(claims(), 2);
    decide(4, "t");
    let decisions = count(&store, FactTable::DeveloperDecisions);
    assert_eq!((claims(), decisions.total), (2, 3));
}
