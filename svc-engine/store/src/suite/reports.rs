//! What reports look up for the calls of their cohort.

use svc_engine_fact::{CiOutcome, Lifetime, Push, SessionCommitObservation};

use super::*;

fn alias(mut call: InferenceCall, ids: &[&str]) -> InferenceCall {
    let ids = ids.iter().map(|id| (*id).to_owned());
    call.call_aliases.extend(ids);
    call.call_aliases.sort_unstable();
    call
}

#[rstest]
fn at_most_two_owners_of_an_id_are_read(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let (store, other) = (database.open("acme"), database.open("other"));
    let own = |number, own: &str| call(number).model_call(own).observed(2).build();
    append(
        &store,
        vec![
            own(1, "one"),
            alias(own(2, "two"), &["tool", "shared"]),
            alias(call(3).observed(2).build(), &["one", "shared"]),
            alias(call(4).observed(2).build(), &["shared", "later"]),
            alias(call(5).observed(3).build(), &["later"]),
            alias(call(6).observed(2).build(), &["gone"]),
        ],
    );
    append(
        &other,
        vec![alias(call(7).observed(2).build(), &["foreign"])],
    );
    set(
        &database,
        FactTable::InferenceCalls,
        id(6),
        QuarantineAction::Quarantine,
    );
    let mut snapshot = store.snapshot_now();
    let of_session = session("s");
    let mut owners = |ids: &[&str], known: &[u128]| {
        let known: Vec<FactId> = known.iter().map(|number| id(*number)).collect();
        let known = |call: FactId| known.contains(&call).then_some(&of_session);
        let mut found = Vec::new();
        snapshot
            .owners_of_ids(ids, at(2), known, |owned| {
                assert_eq!(owned.session_id, of_session);
                found.push((owned.call_id, owned.inference_call_id));
                Ok(())
            })
            .unwrap();
        found.sort_unstable();
        let shared: Vec<_> = found.iter().filter(|(id, _)| id == "shared").collect();
        assert_eq!(shared.len(), 2);
        found.retain(|(id, _)| id != "shared");
        found
    };
    let owned = |text: &str, number| (text.to_owned(), id(number));
    let ids = [
        "foreign", "gone", "later", "one", "shared", "tool", "unknown",
    ];
    // Whatever is known, which is too little for some ids and enough for the others.
    for known in [&[][..], &[2], &[1, 2, 3, 4]] {
        let of_one = [owned("one", 1), owned("one", 3), owned("tool", 2)];
        assert_eq!(owners(&["one", "shared", "tool"], known), of_one);
        let later = std::iter::once(owned("later", 4));
        assert_eq!(owners(&ids, known), later.chain(of_one).collect::<Vec<_>>());
    }
}

#[rstest]
fn an_id_repeated_by_every_answer_does_not_hide_others(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let calls = (1..1_100).map(|number| alias(call(number).observed(1).build(), &["call_0"]));
    let mut calls: Vec<InferenceCall> = calls.collect();
    calls.push(alias(call(2_000).observed(1).build(), &["alone"]));
    append(&store, calls);
    let mut snapshot = store.snapshot_now();
    let mut found = Vec::new();
    snapshot
        .owners_of_ids(
            &["alone", "call_0"],
            at(2),
            |_| None,
            |owned| {
                found.push(owned.call_id);
                Ok(())
            },
        )
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, ["alone", "call_0", "call_0"]);
}

#[rstest]
fn the_calls_of_sessions_are_limited_to_a_range(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let of = |number, session: &str, seconds| call(number).session(session).observed(seconds);
    append(
        &store,
        vec![
            of(1, "s", 1).build(),
            of(2, "s", 2).build(),
            of(3, "t", 3).build(),
            of(4, "u", 3).build(),
            of(5, "s", 4).build(),
        ],
    );
    let mut snapshot = store.snapshot_now();
    let mut found = Vec::new();
    snapshot
        .calls_of_sessions(&[session("s"), session("t")], at(2)..at(4), |call| {
            found.push(call.inference_call_id);
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [id(2), id(3)]);
}

#[rstest]
fn links_are_found_by_sessions_and_by_commits_with_their_pushes(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let later = Push {
        after_sha: commit('d'),
        captured_at: at(9),
        ..push(2)
    };
    append_all(&store, Append::Push, vec![push(1), later]);
    let seen = |number, of: &str, digit, push, seconds| SessionCommitObservation {
        session_id: session(of),
        commit_sha: commit(digit),
        captured_at: at(seconds),
        ..observation(number, id(push))
    };
    let links = vec![
        seen(11, "s", 'b', 1, 1),
        seen(12, "t", 'b', 1, 1),
        seen(13, "s", 'e', 2, 2),
        seen(14, "s", 'f', 1, 9),
    ];
    for link in links {
        append_one(&store, Append::SessionCommitObservation, link);
    }
    let mut snapshot = store.snapshot_now();
    let mut found = Vec::new();
    snapshot
        .commits_of_sessions(&[session("s"), session("u")], at(8), |link| {
            found.push((link.observation_id, link.push.is_some()));
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [(id(11), true), (id(13), false)]);
    let mut found = Vec::new();
    snapshot
        .sessions_of_commits(&[&commit('b'), &commit('f')], at(8), |link| {
            found.push(link.observation_id);
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [id(11), id(12)]);
}

#[rstest]
fn outcomes_are_found_by_commits_and_by_runs(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let checked = |number, run: &str, attempt: i64, digit, seconds| CiOutcome {
        run_attempt: (attempt > 0).then_some(attempt),
        commit_sha: commit(digit),
        captured_at: at(seconds),
        ..outcome(number, run)
    };
    let outcomes = vec![
        checked(1, "one", 0, 'b', 1),
        checked(2, "one", 2, 'd', 1),
        checked(3, "two", 1, 'b', 2),
        checked(4, "two", 2, 'e', 9),
        checked(5, "three", 1, 'e', 1),
    ];
    for outcome in outcomes {
        append_one(&store, Append::CiOutcome, outcome);
    }
    let mut snapshot = store.snapshot_now();
    let mut found = Vec::new();
    snapshot
        .ci_outcomes_of_commits(&[&commit('b'), &commit('f')], at(8), |outcome| {
            found.push((outcome.outcome_id, outcome.run_attempt));
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [(id(1), None), (id(3), Some(1))]);
    let mut found = Vec::new();
    snapshot
        .ci_outcomes_of_runs(
            &["one", "two"],
            at(8),
            &std::collections::HashSet::default(),
            |outcome| {
                found.push(outcome.outcome_id);
                Ok(())
            },
        )
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [id(1), id(2), id(3)]);
}

#[rstest]
fn pull_requests_are_found_by_the_id_of_their_repository_or_by_a_name_without_one(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let merged = |number, identity: Option<u32>, repo: &str, seconds| {
        let mut merged = merge(number);
        merged.pull_request.repository = identity.map(repository);
        merged.pull_request.repo = repo.to_owned();
        merged.captured_at = at(seconds);
        merged
    };
    let merges = vec![
        merged(1, Some(7), "own/new", 1),
        merged(2, None, "own/old", 1),
        merged(3, None, "own/else", 1),
        merged(4, Some(8), "own/old", 1),
        merged(5, Some(9), "own/nine", 9),
    ];
    for merge in merges {
        append_one(&store, Append::PullRequestMerge, merge);
    }
    let mut opened = revision(11);
    opened.pull_request.repository = Some(repository(7));
    append_one(&store, Append::PullRequestRevision, opened);
    let mut snapshot = store.snapshot_now();
    let (seven, nine) = (
        Lifetime::Identified(repository(7)),
        Lifetime::Identified(repository(9)),
    );
    let named = Lifetime::Named(name("own/old"));
    let (repositories, names) = ([&seven, &nine, &named], [&name("own/old")]);
    let mut found = Vec::new();
    snapshot
        .merges_of_repositories(&repositories, &names, at(8), |merge| {
            found.push(merge.merge_id);
            Ok(())
        })
        .unwrap();
    snapshot
        .revisions_of_repositories(&repositories, &names, at(8), |revision| {
            found.push(revision.revision_id);
            Ok(())
        })
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [id(1), id(2), id(11)]);
}

/// A name that some identity has had, or an identity without a name, leaves open what is meant.
#[rstest]
fn pull_requests_of_repositories_that_may_be_several_are_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let merged = |number: u128, repo: &str, identity: Option<u32>, seconds: i64| {
        let mut merge = merge(number);
        merge.merged_at = at(seconds);
        merge.pull_request.repo = repo.to_owned();
        merge.pull_request.repository = identity.map(repository);
        merge.pull_request.pr_number = i64::try_from(number).unwrap();
        append_one(&store, Append::PullRequestMerge, merge);
    };
    let checked = |number: u128, repo: &str, identity: Option<u32>, pr_number: Option<i64>| {
        let outcome = CiOutcome {
            repo: repo.to_owned(),
            repository: identity.map(repository),
            pr_number,
            ..outcome(number, &number.to_string())
        };
        append_one(&store, Append::CiOutcome, outcome);
    };
    let opened = |number: u128, digit: char, seconds: i64| {
        let mut revision = revision(number);
        revision.pull_request.repo = "own/known".to_owned();
        revision.pull_request.head_sha = commit(digit);
        revision.captured_at = at(seconds);
        append_one(&store, Append::PullRequestRevision, revision);
    };
    merged(1, "own/known", Some(7), 0);
    merged(2, "own/known", None, 2);
    merged(3, "own/other", None, 0);
    merged(4, "own/known", None, 3);
    checked(11, "own/known", None, Some(5));
    checked(12, "own/known", None, Some(5));
    checked(13, "own/known", None, None);
    checked(14, "", Some(7), Some(6));
    checked(15, "", None, Some(8));
    opened(21, 'a', 2);
    opened(22, 'b', 3);
    let mut found = Vec::new();
    let mut snapshot = store.snapshot_now();
    let read = snapshot.unsure_pull_requests(at(2), at(2), |of| {
        found.push((of.repo, of.repository, of.pr_number, of.facts));
        Ok(())
    });
    read.unwrap();
    found.sort_unstable();
    let known = || "own/known".to_owned();
    let number = revision(0).pull_request.pr_number;
    let mut expected = [
        (String::new(), None, 8, 1),
        (String::new(), Some(repository(7)), 6, 1),
        (known(), None, 2, 1),
        (known(), None, 5, 2),
        (known(), None, number, 1),
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}
