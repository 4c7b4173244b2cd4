//! What named retrieval tokens may read.

use svc_engine_fact::{DeveloperDecision, SessionCommitObservation};
use svc_model::facts::AgentHarness;
use svc_model::grant::GrantObstacle::{
    self, BeforeSince, HarnessNotNamed, NothingVisible, OtherHarness, OtherRepository, OtherUser,
    RepositoryNotNamed, UserNotNamed,
};
use svc_model::id::UserId;
use svc_model::limit::{GRANT_RULE_ROWS_MAX, TOKEN_GRANTS_MAX};

use super::*;

fn token(name: &str) -> TokenName {
    TokenName::new(name).unwrap()
}

fn because(reason: &str) -> GrantChange {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    GrantChange {
        grant_id: Uuid::from_u128((7 << 120) | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))),
        reason: reason.to_owned(),
        recorded_at: at(9),
        client_id: "rae".to_owned(),
    }
}

fn of_session(name: &str) -> GrantTarget {
    GrantTarget::Session(session(name))
}

fn user(name: &str) -> GrantRule {
    GrantRule {
        user_id: UserId::new(name).ok(),
        ..GrantRule::default()
    }
}

fn harness(agent_harness: AgentHarness) -> GrantRule {
    GrantRule {
        agent_harness: Some(agent_harness),
        ..GrantRule::default()
    }
}

fn since(seconds: i64) -> GrantRule {
    GrantRule {
        since: Some(at(seconds)),
        ..GrantRule::default()
    }
}

fn in_repository(number: u32) -> GrantRule {
    GrantRule {
        repository: Some(repository(number)),
        ..GrantRule::default()
    }
}

/// Returns the ids of the rows of a token that are in force.
fn in_force(store: &Store, name: &str) -> Vec<String> {
    let rows = store.snapshot_now().grants_of(&token(name)).unwrap();
    assert!(rows.iter().all(|row| row.is_in_force));
    rows.into_iter().map(|row| row.grant_id).collect()
}

/// Returns the Sessions that a rule reaches. Checks that, of the named Sessions, exactly those
/// without an obstacle are among them.
fn reached(store: &Store, rule: &GrantRule) -> Vec<String> {
    let mut snapshot = store.snapshot_now();
    let found = snapshot.grant_reach(&[rule], &[]).unwrap();
    assert!(!found.is_over);
    let names: Vec<String> = found.sessions.into_iter().map(Into::into).collect();
    for name in ["a", "b", "c", "d", "e", "nobody's"] {
        let obstacles = snapshot.grant_obstacles(&[rule], &session(name)).unwrap();
        let is_reached = obstacles == Some(vec![Vec::new()]);
        assert_eq!(
            is_reached,
            names.iter().any(|session_id| session_id == name),
            "{name} {rule:?}"
        );
    }
    names
}

fn obstacles(store: &Store, rule: &GrantRule, name: &str) -> Vec<GrantObstacle> {
    let mut snapshot = store.snapshot_now();
    let obstacles = snapshot.grant_obstacles(&[rule], &session(name));
    obstacles.unwrap().unwrap().remove(0)
}

#[rstest]
fn grants_are_appended_and_ended_by_rows_of_their_own(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    let add = |name: &str, target: &GrantTarget, reason: &str| {
        let added = ledger.add_grant(&token(name), target, &because(reason));
        added.unwrap().unwrap()
    };
    let first = add("ci", &of_session("s"), " why\n");
    assert!(!first.unchanged && first.row.is_in_force);
    let again = add("ci", &of_session("s"), "once more");
    assert!(again.unchanged);
    assert_eq!(
        again.row, first.row,
        "it is already granted, so nothing is appended"
    );
    let rule = GrantTarget::Rule(GrantRule {
        repo: Some(name("own/repo")),
        agent_harness: Some(AgentHarness::Codex),
        since: Some(at(5)),
        ..in_repository(7)
    });
    let second = add("ci", &rule, "a rule");
    assert_eq!(second.row.target, Some(rule), "it is read back unchanged");
    let other = add("review", &of_session("s"), "another token");
    let elsewhere = database.ledger("other");
    let foreign = elsewhere.add_grant(&token("ci"), &of_session("x"), &because("x"));
    let foreign = foreign.unwrap().unwrap().row.grant_id;

    let remove = |id: &str| ledger.remove_grant(id, &because("done")).unwrap();
    assert_eq!(
        remove(&foreign),
        Err(NoGrant::Absent),
        "it belongs to another organization"
    );
    assert_eq!(remove("0123"), Err(NoGrant::Absent));
    assert_eq!(remove(&first.row.grant_id[..8]), Err(NoGrant::Ambiguous));
    let removed = remove(&first.row.grant_id.to_uppercase()).unwrap();
    assert_eq!(
        removed.row.removed_grant_id,
        Some(first.row.grant_id.clone())
    );
    assert_eq!(removed.row.target, first.row.target);
    assert!(!removed.unchanged && !removed.row.is_in_force);
    let again = remove(&first.row.grant_id).unwrap();
    assert!(again.unchanged);
    assert_eq!(again.row, removed.row);
    assert_eq!(
        remove(&removed.row.grant_id),
        Err(NoGrant::Absent),
        "a removal is not a grant"
    );
    assert_eq!(in_force(&store, "ci"), [&*second.row.grant_id]);
    assert_eq!(in_force(&store, "review"), [&*other.row.grant_id]);
    let anew = add("ci", &of_session("s"), "after all");
    assert!(!anew.unchanged);

    let mut snapshot = store.snapshot_now();
    let ci = token("ci");
    let ids =
        |rows: Vec<GrantRow>| -> Vec<String> { rows.into_iter().map(|row| row.grant_id).collect() };
    let log = snapshot.grant_rows(None, true, 100, None).unwrap();
    let ended = GrantRow {
        is_in_force: false,
        ..first.row.clone()
    };
    assert_eq!(
        log,
        [
            ended,
            second.row.clone(),
            other.row.clone(),
            removed.row.clone(),
            anew.row.clone()
        ]
    );
    assert_eq!(log[0].reason, " why\n");
    let page = snapshot.grant_rows(Some(&ci), true, 2, Some(anew.row.revision));
    assert_eq!(
        ids(page.unwrap()),
        [&*second.row.grant_id, &*removed.row.grant_id]
    );
    let now = snapshot.grant_rows(None, false, 100, None).unwrap();
    assert_eq!(
        ids(now),
        [
            &*second.row.grant_id,
            &*other.row.grant_id,
            &*anew.row.grant_id
        ]
    );
    let now = snapshot.grant_rows(Some(&ci), false, 1, None).unwrap();
    assert_eq!(ids(now), [&*anew.row.grant_id]);
    assert_eq!(snapshot.grant_revision().unwrap(), anew.row.revision);
}

#[rstest]
fn a_token_is_revoked_and_restored_and_keeps_its_grants(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    let change = |action| {
        ledger
            .change_token(&token("ci"), action, &because("r"))
            .unwrap()
    };
    assert_eq!(change(GrantAction::Restore), Err(NoGrant::NotRevoked));
    let grant = ledger.add_grant(&token("ci"), &of_session("s"), &because("r"));
    let grant = grant.unwrap().unwrap().row.grant_id;
    let revoked = change(GrantAction::Revoke).unwrap();
    assert!(!revoked.unchanged && revoked.row.is_in_force);
    let again = change(GrantAction::Revoke).unwrap();
    assert!(again.unchanged && again.row == revoked.row);
    assert_eq!(in_force(&store, "ci"), [&*grant, &*revoked.row.grant_id]);
    assert_eq!(in_force(&store, "other"), [""; 0]);
    let restored = change(GrantAction::Restore).unwrap();
    assert!(!restored.unchanged && !restored.row.is_in_force);
    let again = change(GrantAction::Restore).unwrap();
    assert!(again.unchanged && again.row == restored.row);
    assert_eq!(in_force(&store, "ci"), [&*grant]);
    assert!(
        store
            .snapshot_now()
            .has_grant_row(&revoked.row.grant_id)
            .unwrap()
    );
}

#[rstest]
fn a_token_has_a_bounded_number_of_grants(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    drop(database.open("acme"));
    let ledger = database.ledger("acme");
    let add = |number: usize| {
        let target = of_session(&format!("s{number}"));
        ledger
            .add_grant(&token("ci"), &target, &because("r"))
            .unwrap()
    };
    let mut ids = Vec::new();
    for number in 0..TOKEN_GRANTS_MAX {
        ids.push(add(number).unwrap().row.grant_id);
    }
    assert_eq!(add(TOKEN_GRANTS_MAX), Err(NoGrant::Full));
    assert!(
        add(0).unwrap().unchanged,
        "a granted Session may be granted again"
    );
    ledger
        .remove_grant(&ids[3], &because("r"))
        .unwrap()
        .unwrap();
    assert!(add(TOKEN_GRANTS_MAX).is_ok());
}

/// What is in force follows from the log, even with concurrent changes.
#[rstest]
fn concurrent_grant_changes_leave_what_the_log_says(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let database = &database;
            scope.spawn(move || {
                let ledger = database.ledger("acme");
                for step in 0..6 {
                    let name = format!("s{}", (thread + step) % 3);
                    let added = ledger.add_grant(&token("ci"), &of_session(&name), &because("r"));
                    let added = added.unwrap().unwrap().row.grant_id;
                    if step % 2 == thread % 2 {
                        ledger.remove_grant(&added, &because("r")).unwrap().unwrap();
                    }
                }
            });
        }
    });
    let log = store
        .snapshot_now()
        .grant_rows(None, true, 1_000, None)
        .unwrap();
    assert!(log.is_sorted_by_key(|row| row.revision));
    let mut expected: Vec<&GrantRow> = Vec::new();
    for row in &log {
        match &row.removed_grant_id {
            None => {
                assert!(
                    expected
                        .iter()
                        .all(|candidate| candidate.target != row.target),
                    "granted once"
                );
                expected.push(row);
            }
            Some(id) => {
                let place = expected
                    .iter()
                    .position(|candidate| candidate.grant_id == *id);
                expected.remove(place.expect("removed once, after it was granted"));
            }
        }
    }
    let expected: Vec<&str> = expected.iter().map(|row| &*row.grant_id).collect();
    assert_eq!(in_force(&store, "ci"), expected);
}

fn decided(
    number: u128,
    name: &str,
    agent_harness: AgentHarness,
    user: Option<&str>,
) -> DeveloperDecision {
    DeveloperDecision {
        session_id: session(name),
        agent_harness,
        user_id: user.and_then(|user| UserId::new(user).ok()),
        occurred_at: at(i64::try_from(number).unwrap()),
        ..decision(number)
    }
}

#[rstest]
fn a_rule_grants_exactly_the_sessions_whose_facts_match(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    for (number, name, user_id) in [
        (1, "a", Some("ann")),
        (2, "b", Some("bob")),
        (3, "c", Some("ann")),
        (4, "d", None),
    ] {
        let call = call(number).session(name);
        let call = match user_id {
            Some(user_id) => call.user(user_id).build(),
            None => call.build(),
        };
        let received = at(i64::try_from(number).unwrap());
        let encoded = store.encode(call, received);
        store
            .append_now(vec![Append::InferenceCall(Box::new(encoded))])
            .unwrap();
    }
    let decisions = vec![
        decided(11, "a", AgentHarness::Codex, None),
        decided(12, "b", AgentHarness::Codex, None),
        decided(13, "b", AgentHarness::Cursor, None),
        // Another sender claims that a Session was Ann's.
        decided(14, "b", AgentHarness::Codex, Some("ann")),
    ];
    append_all(&store, Append::DeveloperDecision, decisions);

    assert_eq!(reached(&store, &user("ann")), ["a", "c"]);
    assert_eq!(reached(&store, &user("bob")), [""; 0]);
    assert_eq!(reached(&store, &harness(AgentHarness::Codex)), ["a"]);
    assert_eq!(reached(&store, &since(3)), ["c", "d"]);
    let both = GrantRule {
        since: Some(at(2)),
        ..user("ann")
    };
    assert_eq!(reached(&store, &both), ["c"]);
    let both = GrantRule {
        agent_harness: Some(AgentHarness::Codex),
        ..user("ann")
    };
    assert_eq!(reached(&store, &both), ["a"]);
    assert_eq!(reached(&store, &harness(AgentHarness::Pi)), [""; 0]);

    assert_eq!(obstacles(&store, &user("ann"), "b"), [OtherUser]);
    assert_eq!(
        obstacles(&store, &user("eve"), "a"),
        [UserNotNamed, OtherUser]
    );
    assert_eq!(obstacles(&store, &user("ann"), "d"), [UserNotNamed]);
    assert_eq!(
        obstacles(&store, &harness(AgentHarness::Codex), "b"),
        [OtherHarness]
    );
    assert_eq!(
        obstacles(&store, &harness(AgentHarness::Codex), "c"),
        [HarnessNotNamed]
    );
    assert_eq!(obstacles(&store, &since(3), "b"), [BeforeSince]);

    // A quarantined fact counts neither for a rule nor against it.
    set(
        &database,
        FactTable::DeveloperDecisions,
        id(14),
        QuarantineAction::Quarantine,
    );
    assert_eq!(reached(&store, &user("bob")), ["b"]);
    set(
        &database,
        FactTable::InferenceCalls,
        id(3),
        QuarantineAction::Quarantine,
    );
    assert_eq!(reached(&store, &user("ann")), ["a"]);
    assert_eq!(reached(&store, &since(3)), ["d"]);
    assert_eq!(obstacles(&store, &since(3), "c"), [NothingVisible]);
    set(
        &database,
        FactTable::InferenceCalls,
        id(3),
        QuarantineAction::Release,
    );
    assert_eq!(reached(&store, &user("ann")), ["a", "c"]);

    let foreign = database.open("other");
    assert_eq!(
        reached(&foreign, &user("ann")),
        [""; 0],
        "it belongs to another organization"
    );
}

#[rstest]
fn a_rule_about_a_repository_matches_under_all_its_names(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let pushed = |number, text: &str, identity: Option<u32>| svc_engine_fact::Push {
        repo: text.to_owned(),
        repository: identity.map(repository),
        after_sha: commit(char::from_digit(u32::try_from(number).unwrap() % 16, 16).unwrap()),
        ..push(number)
    };
    let pushes = vec![
        pushed(1, "own/repo", Some(7)),
        pushed(2, "own/new", Some(7)),
        // The name was given up, and another repository took it.
        pushed(3, "own/repo", Some(8)),
        pushed(4, "bare/repo", None),
    ];
    append_all(&store, Append::Push, pushes);
    let observed =
        |number, name: &str, text: &str, identity: Option<u32>, push| SessionCommitObservation {
            session_id: session(name),
            repo: super::name(text),
            repository: identity.map(repository),
            commit_sha: commit(char::from_digit(u32::try_from(number).unwrap() % 16, 16).unwrap()),
            ..observation(number, id(push))
        };
    let observations = vec![
        observed(11, "a", "own/repo", Some(7), 1),
        observed(12, "b", "own/new", Some(7), 2),
        observed(13, "c", "own/repo", Some(8), 3),
        observed(14, "d", "bare/repo", None, 4),
        // Observed in two repositories.
        observed(15, "e", "own/new", Some(7), 2),
        observed(16, "e", "own/repo", Some(8), 3),
    ];
    append_all(&store, Append::SessionCommitObservation, observations);

    assert_eq!(reached(&store, &in_repository(7)), ["a", "b"]);
    assert_eq!(reached(&store, &in_repository(8)), ["c"]);
    let named = |text: &str| GrantRule {
        repo: Some(super::name(text)),
        ..GrantRule::default()
    };
    assert_eq!(reached(&store, &named("bare/repo")), ["d"]);
    assert_eq!(
        reached(&store, &named("own/repo")),
        [""; 0],
        "it has an identity"
    );
    assert_eq!(obstacles(&store, &in_repository(7), "e"), [OtherRepository]);
    assert_eq!(
        obstacles(&store, &in_repository(7), "d"),
        [RepositoryNotNamed, OtherRepository]
    );
    // Without its push, the repository of an observation is unknown.
    set(
        &database,
        FactTable::Pushes,
        id(1),
        QuarantineAction::Quarantine,
    );
    assert_eq!(reached(&store, &in_repository(7)), ["b"]);
    set(
        &database,
        FactTable::SessionCommitObservations,
        id(16),
        QuarantineAction::Quarantine,
    );
    assert_eq!(reached(&store, &in_repository(7)), ["b", "e"]);
}

#[rstest]
fn a_rule_examines_a_bounded_number_of_sessions_and_reports_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let sessions = u128::from(GRANT_RULE_ROWS_MAX) + 1;
    let calls: Vec<_> = (0..sessions)
        .map(|number| {
            let name = format!("s{number:04}");
            call(number + 1).session(&name).user("ann").build()
        })
        .collect();
    for calls in calls.chunks(512) {
        append(&store, calls.to_vec());
    }
    let mut snapshot = store.snapshot_now();
    let (ann, codex) = (user("ann"), harness(AgentHarness::Codex));
    let all = snapshot.grant_reach(&[&codex, &ann], &[]).unwrap();
    assert!(all.is_over);
    let none = GrantRule {
        agent_harness: Some(AgentHarness::Codex),
        ..ann
    };
    let all = snapshot.grant_reach(&[&none], &[]).unwrap();
    assert!(all.is_over, "even if it matches none of them");
    assert_eq!(all.sessions, []);
    for (rule, is_over) in [(since(0), true), (since(9), false)] {
        assert_eq!(
            snapshot.grant_reach(&[&rule], &[]).unwrap().is_over,
            is_over
        );
        assert_eq!(
            snapshot.grant_candidates(&[&rule]).unwrap().is_over,
            is_over
        );
    }
    // Only a few Sessions are looked up.
    let some = [session("s0001"), session("s0900")];
    let reached = snapshot.grant_reach(&[&user("ann")], &some).unwrap();
    assert_eq!(
        (reached.sessions.as_slice(), reached.is_over),
        (&some[..], false)
    );
}

/// The cost of a question depends on the Sessions of its rules. An index finds them.
#[rstest]
fn the_cost_of_a_rule_depends_only_on_its_sessions(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let rules = [
        user("plan-ann"),
        harness(AgentHarness::Pi),
        in_repository(4),
        since(1),
    ];
    let mut snapshot = store.snapshot_now();
    let rules: Vec<&GrantRule> = rules.iter().collect();
    let reached = snapshot.grant_reach(&rules, &[]).unwrap();
    assert_eq!(reached.sessions, []);
    let obstacles = snapshot.grant_obstacles(&rules, &session("s"));
    assert_eq!(obstacles.unwrap(), None);
    let candidates = snapshot.grant_candidates(&rules).unwrap();
    assert_eq!(candidates.sessions, []);
    for statement in ["AS BIGINT), candidates.", "AS BIGINT) AS rule"] {
        let plans = plan_check::of(snapshot.connection().unwrap(), statement);
        assert!(!plans.is_empty());
        let all = plans
            .iter()
            .map(|(_, plan)| &**plan)
            .collect::<Vec<_>>()
            .join("\n");
        for index in ["sessions_by_capture", "repository_claims_by_identity"] {
            assert!(all.contains(index), "{index} in {all}");
        }
        let by_value = ["PRIMARY KEY (value=?", "session_claims_pkey"];
        assert!(by_value.iter().any(|value| all.contains(value)), "{all}");
    }
}
