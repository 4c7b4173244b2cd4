//! Which pushes lead to which observations.

use super::*;

#[rstest]
fn the_noted_sessions_of_a_push_become_observations(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let Some(service) = Service::start_with(backend, |_| {}) else {
        return;
    };
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s", "t"]);
    let push = service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(2, 0));
    assert_eq!(service.refresh(), None);
    let observed = |session: &str| {
        (
            head.clone(),
            session.to_owned(),
            push.to_string(),
            NOTES.to_owned(),
        )
    };
    assert_eq!(
        service.observations(),
        [observed("s"), observed("t")].into()
    );
    let session = SessionId::new("t").unwrap();
    let mut snapshot = service.store.snapshot_now();
    assert!(snapshot.session_known(&session).unwrap());
    let counts = snapshot.fact_counts().unwrap();
    assert_eq!(counts.session_commit_observations.visible, 2);
    drop(snapshot);
    let status = service.status();
    assert_eq!(status.state, JobState::Idle);
    assert!(status.last_success_at.is_some());
    assert_eq!((status.last_failure, status.waiting_pushes), (None, 0));
    let mirror = "mirrors/repositories-v1/acme/github/github.com/7/HEAD";
    assert!(service.database.folder().join(mirror).is_file());
}

#[test]
fn a_repeated_observation_keeps_the_first() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.push(&base, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let first = service.observations();
    service.deliver(&base, &head, |_| {});
    assert_eq!(service.refresh(), refreshed(0, 1));
    service.deliver(&base, &head, |push| {
        "refs/heads/other".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh(), refreshed(0, 1));
    assert_eq!(service.observations(), first);
}

#[test]
fn a_forced_push_is_followed_and_earlier_observations_stay() {
    let service = Service::start();
    let base = service.forge.commit("base");
    let first = service.forge.commit("first");
    service.forge.stamp(&first, &["first"]);
    service.push(&base, &first);
    assert_eq!(service.refresh(), refreshed(1, 0));
    service.forge.run(&["reset", "-q", "--hard", &base]);
    let second = service.forge.commit("second");
    service.forge.stamp(&second, &["second"]);
    service.forge.push();
    service.deliver(&first, &second, |push| push.forced = true);
    assert_eq!(service.refresh(), refreshed(1, 0));
    // Gitea does not say that a push was forced, and a new mirror lacks the commit before it.
    service.deliver(&first, &second, |push| {
        "refs/heads/gitea".clone_into(&mut push.r#ref);
    });
    assert_eq!(service.refresh(), refreshed(0, 1));
    // A branch that was reset shows only its head.
    service.forge.run(&["reset", "-q", "--hard", &base]);
    service.forge.stamp(&base, &["base"]);
    service.push(&second, &base);
    assert_eq!(service.refresh(), refreshed(1, 0));
    let expected = [
        pair(&first, "first"),
        pair(&second, "second"),
        pair(&base, "base"),
    ];
    assert_eq!(service.seen(), expected.into());
}

#[test]
fn pushes_that_came_together_share_a_refresh_and_keep_their_commits() {
    let service = Service::start();
    let commits: Vec<String> = (0..4)
        .map(|number| service.forge.commit(&number.to_string()))
        .collect();
    for commit in &commits {
        service.forge.stamp(commit, &["s"]);
    }
    service.forge.push();
    let first = service.deliver(&commits[0], &commits[1], |_| {});
    let second = service.deliver(&commits[1], &commits[3], |_| {});
    assert_eq!(service.refresh(), refreshed(4, 0));
    assert_eq!(service.refresh(), None);
    let sources: Vec<(String, String)> = service
        .observations()
        .into_iter()
        .map(|(commit, _, push, _)| (commit, push))
        .collect();
    for (place, push) in [(0, second), (1, first), (2, second), (3, second)] {
        assert!(
            sources.contains(&pair(&commits[place], &push.to_string())),
            "{place}"
        );
    }
}

#[test]
fn a_repository_without_an_identity_is_mirrored_under_its_name() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    service.forge.push();
    service.deliver(ZEROS, &head, |push| push.repository = None);
    assert_eq!(service.refresh(), refreshed(1, 0));
    assert!(
        service
            .database
            .folder()
            .join("mirrors/acme%2Fown%2Frepo/HEAD")
            .is_file()
    );
}

#[test]
fn a_push_under_a_name_of_two_repositories_is_not_fetched() {
    let service = Service::start();
    let head = service.forge.commit("head");
    let next = service.forge.commit("next");
    service.forge.stamp(&head, &["s"]);
    service.push(ZEROS, &head);
    assert_eq!(service.refresh(), refreshed(1, 0));
    // The name is given up and reused.
    service.deliver(ZEROS, &head, |push| push.repository = Some(repository(8)));
    let ambiguous = RefreshOutcome::Declined(MirrorFailure::NameAmbiguous, String::new());
    assert_eq!(service.refresh(), Some(ambiguous.clone()));
    service.deliver(&head, &next, |_| {});
    assert_eq!(service.refresh(), Some(ambiguous.clone()));
    // Each is followed again under its own name.
    for number in [7, 8] {
        service.deliver(&head, &next, |push| {
            push.repository = Some(repository(number));
            push.repo = format!("own/renamed-{number}");
            push.r#ref = format!("refs/heads/{number}");
        });
        assert!(matches!(
            service.refresh(),
            Some(RefreshOutcome::Refreshed { .. })
        ));
    }
    // Facts without an identity refer to neither.
    service.deliver(ZEROS, &head, |push| push.repository = None);
    assert_eq!(service.refresh(), Some(ambiguous));
    assert_eq!(service.refresh(), None);
}

#[test]
fn a_quarantined_push_is_dropped_without_a_fetch() {
    let service = Service::start();
    let head = service.forge.commit("head");
    service.forge.stamp(&head, &["s"]);
    let push = service.push(ZEROS, &head);
    let hide = svc_engine_store::NewQuarantineEntry {
        quarantine_id: uuid::Uuid::from_u128(1),
        table: svc_model::facts::FactTable::Pushes,
        fact_id: push.to_string(),
        action: svc_engine_store::QuarantineAction::Quarantine,
        reason: "test".to_owned(),
        recorded_at: at(0),
        client_id: "operator".to_owned(),
    };
    service.database.ledger("acme").quarantine(&[hide]).unwrap();
    assert_eq!(service.refresh(), Some(RefreshOutcome::Nothing));
    assert_eq!(service.refresh(), None);
    let status = service.status();
    assert_eq!((status.last_failure, status.state), (None, JobState::Idle));
    assert!(!service.database.folder().join("mirrors").exists());
}
