//! Many grants for many tokens, with frequent changes.

use svc_model::facts::AgentHarness;
use svc_model::id::UserId;
use svc_model::limit::{QUARANTINE_LOG_MAX, TOKEN_GRANTS_MAX};

use super::*;

const TOKENS: u64 = 400;
const GRANTS: u64 = 10_000;

fn token(name: &str) -> TokenName {
    TokenName::new(name).unwrap()
}

fn because(number: u128) -> GrantChange {
    GrantChange {
        grant_id: Uuid::from_u128((9 << 120) | number),
        reason: "because".to_owned(),
        recorded_at: at(9),
        client_id: "rae".to_owned(),
    }
}

/// Gives other tokens many grants, of Sessions and of rules.
fn grant_others(database: &TestStore) {
    let log = format!(
        "INSERT INTO grant_log (grant_id, org_id, token, action, session_id, user_id, agent_harness, \
         since_us, reason, recorded_at_us, client_id) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {GRANTS}) \
         SELECT 'other-' || i, 'acme', 'token-' || (i % {TOKENS}), 'add', \
         CASE WHEN i % 2 = 0 THEN 's' || i END, CASE WHEN i % 2 = 1 THEN 'u' || i END, \
         CASE WHEN i % 4 = 1 THEN 'codex' END, CASE WHEN i % 8 = 1 THEN i END, 'r', i, 'rae' FROM n"
    );
    assert_eq!(database.change(&log), GRANTS);
    let in_force = "INSERT INTO grants_in_force (token, org_id, grant_revision) \
        SELECT token, org_id, grant_revision FROM grant_log WHERE grant_id LIKE 'other-%'";
    assert_eq!(database.change(in_force), GRANTS);
}

/// Returns the result of a read, and the number of its statements.
fn counting<T>(read: impl FnOnce() -> T) -> (T, u64) {
    let before = plan_check::statements();
    let found = read();
    (found, plan_check::statements() - before)
}

fn user(name: &str) -> GrantRule {
    GrantRule {
        user_id: UserId::new(name).ok(),
        ..GrantRule::default()
    }
}

#[rstest]
fn grants_of_other_tokens_add_no_statements_to_a_question(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    let ledger = database.ledger("acme");
    append(&store, vec![call(1).session("a").user("ann").build()]);
    let mine = token("mine");
    let rule = GrantTarget::Rule(user("ann"));
    let named = GrantTarget::Session(session("b"));
    for (number, target) in [(1, &rule), (2, &named)] {
        let added = ledger.add_grant(&mine, target, &because(number));
        added.unwrap().unwrap();
    }
    let ask = || {
        let mut snapshot = store.snapshot_now();
        let (rows, first) = counting(|| snapshot.grants_of(&mine).unwrap());
        let rules = [&user("ann")];
        let (obstacles, second) = counting(|| {
            let obstacles = snapshot.grant_obstacles(&rules, &session("a"));
            obstacles.unwrap()
        });
        let (reached, third) = counting(|| snapshot.grant_reach(&rules, &[]).unwrap());
        let (mark, fourth) = counting(|| snapshot.grant_mark(&session("a")).unwrap());
        assert!(mark.is_session_known());
        let (candidates, fifth) = counting(|| snapshot.grant_candidates(&rules).unwrap());
        assert_eq!(candidates.grants, mark.grants);
        assert_eq!(candidates.sessions, [(session("a"), mark)]);
        assert_eq!([first, second, third, fourth, fifth], [1; 5], "statements");
        (rows, obstacles, reached)
    };
    let alone = ask();
    assert_eq!(alone.0.len(), 2);
    assert_eq!(alone.2.sessions, [session("a")]);
    grant_others(&database);
    assert_eq!(ask(), alone);
    // The rows of a token are found by the token.
    let mut snapshot = store.snapshot_now();
    let connection = snapshot.connection().unwrap();
    let plans = plan_check::of(connection, "WHERE g.token = $1 AND g.org_id = $2");
    assert!(!plans.is_empty());
    for (sql, plan) in plans {
        let by_token = ["(token=? AND org_id=?", "grants_in_force_pkey"];
        assert!(
            by_token.iter().any(|condition| plan.contains(condition)),
            "{sql}\n{plan}"
        );
    }
}

#[rstest]
fn a_page_of_grants_is_bounded_for_any_number_of_grants(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    grant_others(&database);
    let mut snapshot = store.snapshot_now();
    for history in [false, true] {
        let mut seen = Vec::new();
        let mut before = None;
        loop {
            let page = snapshot.grant_rows(None, history, QUARANTINE_LOG_MAX, before);
            let page = page.unwrap();
            assert!(page.len() as u64 <= QUARANTINE_LOG_MAX);
            let Some(first) = page.first() else { break };
            before = Some(first.revision);
            seen.extend(page.iter().rev().map(|row| row.revision));
        }
        assert_eq!(seen.len() as u64, GRANTS, "each once");
        assert!(seen.is_sorted_by(|later, earlier| later > earlier));
    }
    let of_one = snapshot.grant_rows(Some(&token("token-7")), false, QUARANTINE_LOG_MAX, None);
    assert_eq!(of_one.unwrap().len() as u64, GRANTS / TOKENS);
}

#[rstest]
fn as_many_rules_as_a_token_may_have_are_one_statement(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    append(&store, vec![call(1).session("a").user("ann").build()]);
    let every = |number: usize| GrantRule {
        user_id: UserId::new(&format!("u{number}")).ok(),
        agent_harness: Some(AgentHarness::Codex),
        repo: Some(name("own/repo")),
        repository: Some(repository(7)),
        since: Some(at(1)),
    };
    let mut rules: Vec<GrantRule> = (1..TOKEN_GRANTS_MAX).map(every).collect();
    rules.push(user("ann"));
    let rules: Vec<&GrantRule> = rules.iter().collect();
    let mut snapshot = store.snapshot_now();
    let (reached, statements) = counting(|| snapshot.grant_reach(&rules, &[]).unwrap());
    assert_eq!((reached.sessions, statements), (vec![session("a")], 1));
    let (candidates, statements) = counting(|| snapshot.grant_candidates(&rules).unwrap());
    assert_eq!((candidates.sessions.len(), statements), (1, 1));
    let (obstacles, statements) = counting(|| {
        let obstacles = snapshot.grant_obstacles(&rules, &session("a"));
        obstacles.unwrap().unwrap()
    });
    assert_eq!((obstacles.len(), statements), (TOKEN_GRANTS_MAX, 1));
    let without = obstacles.iter().filter(|of_rule| of_rule.is_empty());
    assert_eq!(without.count(), 1);
}

/// Many operators revoke and restore a token at once, and grant it things meanwhile.
#[rstest]
fn many_concurrent_revocations_leave_what_the_last_row_says(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let database = database!(backend);
    let store = database.open("acme");
    std::thread::scope(|scope| {
        for thread in 0..4_u128 {
            let database = &database;
            scope.spawn(move || {
                let ledger = database.ledger("acme");
                for step in 0..8_u128 {
                    let change = because(thread * 100 + step);
                    if step == 3 {
                        let target = GrantTarget::Session(session("s"));
                        let added = ledger.add_grant(&token("ci"), &target, &change);
                        added.unwrap().unwrap();
                        continue;
                    }
                    let action = if (thread + step) % 2 == 0 {
                        GrantAction::Revoke
                    } else {
                        GrantAction::Restore
                    };
                    // The first change may try to restore a token that was never revoked.
                    let changed = ledger.change_token(&token("ci"), action, &change).unwrap();
                    assert!(changed.is_ok() || action == GrantAction::Restore);
                }
            });
        }
    });
    let mut snapshot = store.snapshot_now();
    let log = snapshot.grant_rows(None, true, 1_000, None).unwrap();
    let of_token: Vec<&GrantRow> = log
        .iter()
        .filter(|row| row.action != GrantAction::Add)
        .collect();
    for pair in of_token.windows(2) {
        assert_ne!(pair[0].action, pair[1].action, "each row changes something");
    }
    assert_eq!(log.len() - of_token.len(), 1, "granted once");
    let in_force = snapshot.grants_of(&token("ci")).unwrap();
    let is_revoked = in_force.iter().any(|row| row.action == GrantAction::Revoke);
    let last = of_token.last().unwrap();
    assert_eq!(is_revoked, last.action == GrantAction::Revoke);
    assert_eq!(in_force.len(), 1 + usize::from(is_revoked));
}
