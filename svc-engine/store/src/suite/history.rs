//! The pushes and merges of one repository since a moment, pushes at a commit, and named calls.

use svc_engine_fact::{Lifetime, PullRequestMerge, Push};
use svc_model::repository::RepositoryName;
use svc_model::time::Instant as Moment;

use super::*;

/// A push of a name, with or without an identity, received at this second.
fn received(number: u128, identity: Option<u32>, repo: &str, seconds: i64) -> Append {
    Append::Push(Box::new(Push {
        repository: identity.map(repository),
        repo: repo.to_owned(),
        r#ref: format!("refs/heads/{number}"),
        captured_at: at(seconds),
        ..push(number)
    }))
}

fn merged(number: u128, identity: Option<u32>, repo: &str, seconds: i64) -> Append {
    let mut merge: PullRequestMerge = merge(number);
    merge.pull_request.pr_number = i64::try_from(number).unwrap();
    merge.pull_request.repository = identity.map(repository);
    merge.pull_request.repo = repo.to_owned();
    merge.captured_at = at(seconds);
    Append::PullRequestMerge(Box::new(merge))
}

fn range(seconds: std::ops::RangeInclusive<i64>) -> (Moment, Moment) {
    (at(*seconds.start()), at(*seconds.end()))
}

#[rstest]
fn the_first_facts_of_a_repository_are_read_in_order_of_receipt(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for fact in [received as fn(_, _, &str, _) -> _, merged] {
        let facts = [
            fact(1, Some(7), "own/new", 1),
            fact(2, Some(7), "own/old", 2),
            fact(3, Some(8), "own/new", 3),
            fact(4, Some(7), "own/new", 4),
            fact(5, None, "own/new", 5),
            fact(6, None, "own/other", 6),
            fact(7, Some(7), "own/new", 7),
            fact(8, None, "own/new", 8),
            fact(9, Some(7), "own/new", 9),
        ];
        for fact in facts {
            store.append_now(vec![fact]).unwrap();
        }
    }
    for table in [FactTable::Pushes, FactTable::PullRequestMerges] {
        set(&database, table, id(4), QuarantineAction::Quarantine);
    }
    let identified = Lifetime::Identified(repository(7));
    let named = Lifetime::Named(name("own/new"));
    let mut snapshot = store.snapshot_now();
    let mut first = |lifetime: &Lifetime, names: &[&str], seconds, rows_max| {
        let names: Vec<RepositoryName> = names.iter().map(|text| name(text)).collect();
        let seconds = range(seconds);
        let pushes = snapshot.first_pushes(lifetime, &names, seconds, rows_max);
        let pushes = pushes.unwrap().into_iter().map(|push| push.push_id);
        let pushes: Vec<FactId> = pushes.collect();
        let merges = snapshot.first_merges(lifetime, &names, seconds, rows_max);
        let merges = merges.unwrap().into_iter().map(|merge| merge.merge_id);
        assert_eq!(merges.collect::<Vec<_>>(), pushes);
        pushes
    };
    let both = ["own/new", "own/old"];
    assert_eq!(first(&identified, &both, 1..=9, 99), [1, 2, 7, 9].map(id));
    assert_eq!(first(&identified, &both, 2..=7, 99), [2, 7].map(id));
    assert_eq!(first(&identified, &both, 1..=9, 2), [1, 2].map(id));
    assert_eq!(first(&identified, &["own/old"], 1..=9, 99), [id(2)]);
    assert_eq!(first(&identified, &[], 1..=9, 99), []);
    assert_eq!(first(&named, &["own/new"], 1..=9, 99), [5, 8].map(id));
    assert_eq!(first(&named, &["own/new"], 6..=9, 1), [id(8)]);
}

#[rstest]
fn pushes_are_found_by_the_commit_that_they_left_a_branch_at(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, other) = (database.open("acme"), database.open("other"));
    let facts = |number| {
        let of = |fact| match fact {
            Append::Push(mut push) => {
                push.after_sha = commit('d');
                Append::Push(push)
            }
            fact => fact,
        };
        vec![
            of(received(number, Some(7), "own/a", 1)),
            of(received(number + 1, None, "own/b", 2)),
            received(number + 2, Some(7), "own/a", 3),
            of(received(number + 3, Some(9), "own/c", 4)),
        ]
    };
    store.append_now(facts(1)).unwrap();
    other.append_now(facts(11)).unwrap();
    set(
        &database,
        FactTable::Pushes,
        id(2),
        QuarantineAction::Quarantine,
    );
    let mut snapshot = store.snapshot_now();
    let mut at_commit = |seconds, rows_max| {
        let pushes = snapshot.pushes_at(&commit('d'), at(seconds), rows_max);
        let mut ids: Vec<FactId> = pushes
            .unwrap()
            .into_iter()
            .map(|push| push.push_id)
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(at_commit(9, 99), [1, 4].map(id));
    assert_eq!(at_commit(9, 1).len(), 1);
    // Facts in one transaction have different capture times.
    assert_eq!(at_commit(0, 99), []);
}

#[rstest]
fn calls_are_named_by_their_ids(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let database = database!(backend);
    let (store, other) = (database.open("acme"), database.open("other"));
    let mut provided = call(1).session("s").build();
    provided.model_provider = Some("p".to_owned());
    append(
        &store,
        vec![provided, call(2).build(), call(3).session("t").build()],
    );
    append(&other, vec![call(4).build()]);
    set(
        &database,
        FactTable::InferenceCalls,
        id(2),
        QuarantineAction::Quarantine,
    );
    let mut named = store
        .snapshot_now()
        .named_calls(&[1, 2, 3, 4, 5].map(id))
        .unwrap();
    named.sort_by_key(|named| named.inference_call_id);
    let texts = named.iter().map(|named| {
        let provider = named.model_provider.as_deref().unwrap_or("-");
        let model = named.model.as_deref().unwrap_or("-");
        let session = named.session_id.as_str();
        format!(
            "{} {session} {} {provider} {model}",
            named.inference_call_id, named.gateway_provider
        )
    });
    let one = format!("{} s gateway_a p m", id(1));
    let three = format!("{} t gateway_a - m", id(3));
    assert_eq!(texts.collect::<Vec<_>>(), [one, three]);
    assert_eq!(store.snapshot_now().named_calls(&[]).unwrap(), []);
}
