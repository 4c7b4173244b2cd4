//! What a token may read, decided in the snapshot of a query.

use svc_engine_store::testing::plan_check;
use svc_engine_store::{GrantChange, GrantTarget};
use svc_model::evidence::InventoryRequest;
use svc_model::grant::{GrantAction, GrantExplanationRequest, GrantRequest, TokenName};
use svc_model::id::UserId;
use svc_model::quarantine::QuarantineReason;

use super::*;

fn token() -> TokenName {
    TokenName::new("ci").unwrap()
}

fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn ask() -> GrantRequest {
    GrantRequest {
        token: token(),
        session_id: None,
        user_id: None,
        agent_harness: None,
        repo: None,
        repository: None,
        since: None,
        reason: QuarantineReason::new("because").unwrap(),
    }
}

impl Stage {
    fn change(&self) -> GrantChange {
        let number = self.entries.replace(self.entries.get() + 1);
        GrantChange {
            grant_id: Uuid::from_u128(number),
            reason: "because".to_owned(),
            recorded_at: at(0),
            client_id: "operator".to_owned(),
        }
    }

    fn target(&self, request: &GrantRequest) -> Result<GrantTarget, Error> {
        grant_target(&mut self.snapshot(), request)
    }

    fn grant(&self, request: &GrantRequest) -> String {
        let target = self.target(request).unwrap();
        let added = self.ledger.add_grant(&token(), &target, &self.change());
        added.unwrap().unwrap().row.grant_id
    }

    fn set(&self, action: GrantAction) {
        let changed = self.ledger.change_token(&token(), action, &self.change());
        changed.unwrap().unwrap();
    }

    /// Returns the grants, as read when a token is checked.
    fn granted(&self, seen: &SeenGrants) -> Result<Reach, Error> {
        let grants = token_grants(&mut self.snapshot(), seen, &token())?;
        Ok(Reach::Granted(grants))
    }

    /// Returns the Sessions that a discovery searches, and how many statements it takes to find
    /// them.
    fn reached_sessions(&self, seen: &SeenGrants, reach: &Reach) -> (Vec<SessionId>, u64) {
        let mut snapshot = self.snapshot();
        let before = plan_check::statements();
        let sessions = reached(&mut snapshot, seen, reach).unwrap().into_owned();
        (sessions, plan_check::statements() - before)
    }

    /// Returns how many statements a check takes.
    fn statements(&self, seen: &SeenGrants, reach: &Reach, name: &str) -> u64 {
        let mut snapshot = self.snapshot();
        let before = plan_check::statements();
        check_reach(&mut snapshot, seen, reach, &session_id(name)).unwrap();
        plan_check::statements() - before
    }

    fn check(&self, seen: &SeenGrants, reach: &Reach, name: &str) -> Result<(), Error> {
        let checked = check_reach(&mut self.snapshot(), seen, reach, &session_id(name));
        // An operator gets the same explanation.
        let request = GrantExplanationRequest {
            token: token(),
            session_id: session_id(name),
        };
        let explained = explain_grant(&mut self.snapshot(), request).unwrap();
        if matches!(reach, Reach::Granted(_)) {
            assert_eq!(explained.granted, checked.is_ok(), "{name}");
        }
        checked
    }
}

#[rstest]
fn a_question_is_decided_by_the_grants_of_its_snapshot(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    for (number, name, user) in [(1, "a", "ann"), (2, "b", "bob")] {
        let call = call(number).session(name).user(user).build();
        stage.add([Append::InferenceCall(Box::new(
            stage.store.encode(call, at(0)),
        ))]);
    }
    let by_session = GrantRequest {
        session_id: Some(session_id("b")),
        ..ask()
    };
    let by_rule = GrantRequest {
        user_id: UserId::new("ann").ok(),
        ..ask()
    };
    let before = stage.granted(&seen).unwrap();
    assert!(matches!(
        stage.check(&seen, &before, "a"),
        Err(Error::OutsideGrant)
    ));
    // Between the check of the token and the query.
    let rule = stage.grant(&by_rule);
    stage.grant(&by_session);
    stage.check(&seen, &before, "a").unwrap();
    stage.check(&seen, &before, "b").unwrap();
    let mut snapshot = stage.snapshot();
    let all = reached(&mut snapshot, &seen, &before).unwrap().into_owned();
    assert_eq!(all, [session_id("a"), session_id("b")]);
    drop(snapshot);

    let both = stage.granted(&seen).unwrap();
    let removed = stage.ledger.remove_grant(&rule, &stage.change());
    removed.unwrap().unwrap();
    assert!(matches!(
        stage.check(&seen, &both, "a"),
        Err(Error::OutsideGrant)
    ));
    stage.check(&seen, &both, "b").unwrap();
    stage.set(GrantAction::Revoke);
    assert!(matches!(
        stage.check(&seen, &both, "b"),
        Err(Error::TokenRevoked)
    ));
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
    stage.set(GrantAction::Restore);
    stage.check(&seen, &both, "b").unwrap();
    let configured = Reach::Configured([session_id("a")].into());
    assert!(stage.check(&seen, &configured, "a").is_ok());
    assert!(stage.check(&seen, &configured, "b").is_err());
    assert!(stage.check(&seen, &Reach::All, "b").is_ok());
}

/// A remembered verdict of a token's rules is dropped as soon as it may have changed.
#[rstest]
fn the_decision_of_a_rule_is_remembered_while_it_holds(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    let add = |number: u128, user: &str| {
        let call = call(number).session("a").user(user).build();
        let encoded = stage.store.encode(call, at(0));
        stage.add([Append::InferenceCall(Box::new(encoded))]);
    };
    let ann = GrantRequest {
        user_id: UserId::new("ann").ok(),
        ..ask()
    };
    let rule = stage.grant(&ann);
    let reach = stage.granted(&seen).unwrap();
    let seen_by_discovery = SeenGrants::default();
    let is_reached = || {
        // As first decided, as remembered, and as decided by a process that has seen nothing.
        let anew = SeenGrants::default();
        let checked = [&seen, &seen, &anew].map(|grants| stage.check(grants, &reach, "a").is_ok());
        let anew = SeenGrants::default();
        let found = [&seen_by_discovery, &seen_by_discovery, &anew, &seen]
            .map(|grants| stage.reached_sessions(grants, &reach).0 == [session_id("a")]);
        assert_eq!(checked, [checked[2]; 3]);
        assert_eq!(found, [checked[2]; 4]);
        checked[0]
    };
    assert!(!is_reached(), "no fact names the Session");
    add(1, "ann");
    assert!(is_reached());
    let anew = SeenGrants::default();
    let reached_now = stage.granted(&anew).unwrap();
    let statements = [(); 2].map(|()| stage.statements(&anew, &reached_now, "a"));
    assert_eq!(statements, [2, 1], "decided and then remembered");
    let anew = SeenGrants::default();
    let statements = [(); 2].map(|()| stage.reached_sessions(&anew, &reached_now).1);
    assert_eq!(statements, [2, 1], "decided and then remembered");
    stage.quarantine(FactTable::InferenceCalls, id(1));
    assert!(!is_reached(), "no visible fact says so");
    stage.release(FactTable::InferenceCalls, id(1));
    assert!(is_reached());
    add(2, "bob");
    assert!(!is_reached(), "even somebody else's");
    stage.quarantine(FactTable::InferenceCalls, id(2));
    assert!(is_reached());
    let removed = stage.ledger.remove_grant(&rule, &stage.change());
    removed.unwrap().unwrap();
    assert!(!is_reached());
    stage.grant(&ann);
    assert!(is_reached());
}

/// After a set-back, a Session may have as many facts as before, but different ones.
#[rstest]
fn the_decision_of_a_rule_about_a_lost_state_is_not_remembered(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    stage.grant(&GrantRequest {
        user_id: UserId::new("ann").ok(),
        ..ask()
    });
    let add = |store: &Store, number: u128, user: &str| {
        let call = call(number).session("a").user(user).build();
        let encoded = store.encode(call, at(0));
        let appended = store.append_now(vec![Append::InferenceCall(Box::new(encoded))]);
        appended.unwrap();
    };
    let reach = stage.granted(&seen).unwrap();
    let seen_by_discovery = SeenGrants::default();
    stage.database.back_up();
    add(&stage.store, 1, "ann");
    stage.check(&seen, &reach, "a").unwrap();
    let (found, _) = stage.reached_sessions(&seen_by_discovery, &reach);
    assert_eq!(found, [session_id("a")]);
    stage.database.restore();
    // The same number of facts, transactions and grants, but for somebody else.
    let other = stage.database.open("acme");
    add(&other, 1, "bob");
    assert!(matches!(
        stage.check(&seen, &reach, "a"),
        Err(Error::OutsideGrant)
    ));
    assert_eq!(stage.reached_sessions(&seen_by_discovery, &reach).0, []);
}

/// Only Sessions that have changed are looked up again.
#[rstest]
fn a_discovery_applies_the_rules_again_to_changed_sessions(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    let add = |number: u128, name: &str, user: &str| {
        let call = call(number).session(name).user(user).build();
        let encoded = stage.store.encode(call, at(0));
        stage.add([Append::InferenceCall(Box::new(encoded))]);
    };
    let sessions = |names: &[&str]| {
        names
            .iter()
            .map(|name| session_id(name))
            .collect::<Vec<_>>()
    };
    stage.grant(&GrantRequest {
        user_id: UserId::new("ann").ok(),
        ..ask()
    });
    stage.grant(&GrantRequest {
        session_id: Some(session_id("named")),
        ..ask()
    });
    let reach = stage.granted(&seen).unwrap();
    for (number, name) in (1..).zip(["a", "b", "c"]) {
        add(number, name, "ann");
    }
    let all = sessions(&["a", "b", "c", "named"]);
    assert_eq!(stage.reached_sessions(&seen, &reach), (all.clone(), 2));
    assert_eq!(stage.reached_sessions(&seen, &reach), (all, 1));
    add(4, "b", "bob");
    let without = sessions(&["a", "c", "named"]);
    assert_eq!(stage.reached_sessions(&seen, &reach), (without.clone(), 2));
    assert_eq!(stage.reached_sessions(&seen, &reach), (without, 1));
    // A check of one Session uses what the discovery decided.
    assert_eq!(stage.statements(&seen, &reach, "c"), 1);
    // Another Session of the user, and one of somebody else.
    add(5, "d", "ann");
    add(6, "e", "bob");
    let more = sessions(&["a", "c", "d", "named"]);
    assert_eq!(stage.reached_sessions(&seen, &reach), (more.clone(), 2));
    assert_eq!(stage.reached_sessions(&seen, &reach), (more, 1));
}

#[rstest]
fn a_request_begun_before_a_revocation_is_answered_and_none_after_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    for number in 1..4 {
        let call = call(number).session("a").user("ann").build();
        let encoded = stage.store.encode(call, at(0));
        stage.add([Append::InferenceCall(Box::new(encoded))]);
    }
    stage.grant(&GrantRequest {
        user_id: UserId::new("ann").ok(),
        ..ask()
    });
    stage.grant(&GrantRequest {
        session_id: Some(session_id("b")),
        ..ask()
    });
    let reach = stage.granted(&seen).unwrap();
    let mut early = stage.snapshot();
    let whole = |snapshot: &mut Snapshot<'_>| -> Result<_, Error> {
        check_reach(snapshot, &seen, &reach, &session_id("b"))?;
        let sessions = reached(snapshot, &seen, &reach)?.into_owned();
        let session_id = session_id("a");
        let inventory = inventory(snapshot, InventoryRequest { session_id })?;
        Ok((sessions, inventory.calls.len()))
    };
    // It has begun to read.
    let before = whole(&mut early).unwrap();
    assert_eq!(before.1, 3);
    stage.set(GrantAction::Revoke);
    assert!(matches!(
        whole(&mut stage.snapshot()),
        Err(Error::TokenRevoked)
    ));
    assert_eq!(whole(&mut early).unwrap(), before, "of its own snapshot");
    // The answer is not withdrawn, even when others have seen the revocation.
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
    assert_eq!(whole(&mut early).unwrap(), before);
    drop(early);
    assert!(matches!(
        whole(&mut stage.snapshot()),
        Err(Error::TokenRevoked)
    ));
}

#[rstest]
fn a_revocation_recorded_by_this_server_holds_after_the_store_is_set_back(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    let target = GrantTarget::Session(session_id("a"));
    let added = stage.ledger.add_grant(&token(), &target, &stage.change());
    added.unwrap().unwrap();
    stage.database.back_up();
    let revoked = stage
        .ledger
        .change_token(&token(), GrantAction::Revoke, &stage.change());
    // A process knows a revocation that it recorded without checking the token.
    seen.recorded(&revoked.unwrap().unwrap().row);
    stage.database.restore();
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
}

#[rstest]
fn a_revocation_seen_by_this_server_holds_after_the_store_is_set_back(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    stage.grant(&GrantRequest {
        session_id: Some(session_id("a")),
        ..ask()
    });
    stage.database.back_up();
    stage.set(GrantAction::Revoke);
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
    stage.database.restore();
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
    let anew = SeenGrants::default();
    assert!(
        stage.granted(&anew).is_ok(),
        "a restarted process has seen no revocation"
    );
    let explained = |seen: &SeenGrants| {
        let request = GrantExplanationRequest {
            token: token(),
            session_id: session_id("a"),
        };
        let explained = explain_enforced_grant(&mut stage.snapshot(), seen, request).unwrap();
        (explained.granted, explained.revocation.is_some())
    };
    assert_eq!(explained(&seen), (false, true), "the same as enforced");
    assert_eq!(explained(&anew), (true, false));
    // Revoking and then restoring the token is unambiguous, even for a server that was not asked
    // meanwhile.
    stage.set(GrantAction::Revoke);
    stage.set(GrantAction::Restore);
    assert!(stage.granted(&seen).is_ok());
    // But a restoration from before the revocation does not count.
    stage.database.back_up();
    stage.set(GrantAction::Revoke);
    assert!(stage.granted(&seen).is_err());
    stage.database.restore();
    assert!(matches!(stage.granted(&seen), Err(Error::TokenRevoked)));
}

/// A store that was set back gives the number of a lost grant to another one.
#[rstest]
fn a_lost_grant_is_not_confused_with_a_later_one_of_the_same_number(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let seen = SeenGrants::default();
    let to = |name: &str| GrantRequest {
        session_id: Some(session_id(name)),
        ..ask()
    };
    stage.database.back_up();
    stage.grant(&to("lost"));
    let before = stage.granted(&seen).unwrap();
    stage.database.restore();
    stage.grant(&to("kept"));
    let latest = Reach::Granted(seen.latest_grants(&token()).unwrap());
    for reach in [&before, &latest] {
        assert!(matches!(
            stage.check(&seen, reach, "lost"),
            Err(Error::OutsideGrant)
        ));
        stage.check(&seen, reach, "kept").unwrap();
        let mut snapshot = stage.snapshot();
        let all = reached(&mut snapshot, &seen, reach).unwrap().into_owned();
        assert_eq!(all, [session_id("kept")]);
    }
}

#[rstest]
fn a_granted_repository_name_is_resolved_to_its_identity(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let named = |text: &str| GrantRequest {
        repo: Some(name(text)),
        ..ask()
    };
    let lookup = |request: &GrantRequest| stage.target(request);
    is_faulted(&lookup(&named("own/repo")), QueryFault::RepositoryAbsent);
    let identified = GrantRequest {
        repository: Some(repository(7)),
        ..ask()
    };
    assert!(lookup(&identified).is_ok(), "even before any fact names it");
    let (push, observed_at) = delivered(1, Some(7));
    stage.add([pushed(push)]);
    stage.add([observed(observed_at)]);
    let Ok(GrantTarget::Rule(rule)) = lookup(&named("own/repo")) else {
        panic!("a rule");
    };
    assert_eq!(rule.repository, Some(repository(7)));
    assert_eq!(rule.repo, Some(name("own/repo")));
    let other = GrantRequest {
        repository: Some(repository(8)),
        ..named("own/repo")
    };
    is_faulted(&lookup(&other), QueryFault::RepositoryAbsent);
    let (push, _) = delivered(11, Some(8));
    stage.add([pushed(Push {
        after_sha: commit('d'),
        ..push
    })]);
    is_declined(
        &lookup(&named("own/repo")),
        &Decline::RepositorySelectorAmbiguous,
    );
}
