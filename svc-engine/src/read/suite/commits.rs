//! Commits.

use super::*;

fn ask(digit: char) -> CommitRequest {
    CommitRequest::new(commit(digit))
}

fn within(repository: RepositorySelector) -> CommitRequest {
    CommitRequest {
        repository,
        ..ask('c')
    }
}

/// Returns the name, the number of Sessions and the outcomes of each repository.
fn entries(evidence: &CommitEvidence) -> Vec<(String, usize, Vec<FactId>)> {
    let repositories = evidence.repos.iter().flatten();
    repositories
        .map(|repository| {
            let outcomes = repository
                .ci_outcomes
                .iter()
                .map(|ci_outcome| ci_outcome.outcome_id)
                .collect();
            (
                repository.repo.clone(),
                repository.observed_sessions.len(),
                outcomes,
            )
        })
        .collect()
}

#[rstest]
fn a_commit_without_evidence_has_an_empty_answer(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([ci(checked(1, "r", Some(7), 1))]);
    for request in [
        ask('d'),
        within(by_identity(9)),
        within(by_name("no/body")),
        CommitRequest {
            as_of: Some(at(0)),
            ..ask('c')
        },
    ] {
        let expected = CommitEvidence::none(request.commit_sha.clone());
        assert_eq!(stage.commit(request).unwrap(), expected);
    }
}

#[rstest]
fn evidence_is_grouped_by_repository_identified_ones_first(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(96_947_219));
    let twice = SessionCommitObservation {
        observation_id: id(3),
        session_id: SessionId::new("a").unwrap(),
        ..seen.clone()
    };
    let legacy = CiOutcome {
        repo: "a/a".to_owned(),
        ..checked(10, "legacy", None, 2)
    };
    let fork = CiOutcome {
        repo: "fork/repo".to_owned(),
        ..checked(11, "fork", Some(1_096_947_210), 2)
    };
    stage.add([
        pushed(sent),
        observed(seen),
        observed(twice),
        ci(legacy),
        ci(fork),
        ci(checked(13, "late", Some(96_947_219), 3)),
        ci(checked(12, "early", Some(96_947_219), 1)),
    ]);
    let evidence = stage.commit(ask('c')).unwrap();
    assert!(evidence.attributed);
    assert_eq!(
        entries(&evidence),
        [
            // Ids compare as text.
            ("fork/repo".to_owned(), 0, vec![id(11)]),
            ("own/repo".to_owned(), 2, vec![id(12), id(13)]),
            ("a/a".to_owned(), 0, vec![id(10)]),
        ]
    );
    let own = &evidence.repos.as_ref().unwrap()[1];
    let sessions: Vec<_> = own
        .observed_sessions
        .iter()
        .map(|observed_session| observed_session.session_id.as_str())
        .collect();
    assert_eq!(sessions, ["a", "s"]);
    assert_eq!(
        own.observed_sessions[1].session_commit_observation_ids,
        [id(2)]
    );
    assert_eq!((own.inference_calls.len(), own.decisions), (0, 0));
    assert_eq!(
        (
            &evidence.repository_skipped,
            &evidence.unresolved_ci_outcomes
        ),
        (&None, &None)
    );

    let fork = stage.commit(within(by_identity(1_096_947_210))).unwrap();
    assert!(!fork.attributed, "outcomes alone are not enough");
    assert_eq!(entries(&fork).len(), 1);
    assert!(
        stage
            .commit(within(by_name("own/repo")))
            .unwrap()
            .attributed
    );
}

#[rstest]
fn a_renamed_repository_shows_every_name_it_had(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let under = |number, run: &str, repo: &str, seconds| {
        ci(CiOutcome {
            repo: repo.to_owned(),
            ..checked(number, run, Some(7), seconds)
        })
    };
    let receipt = svc_engine_fact::RepositoryRename {
        captured_at: at(2),
        ..rename(5, repository(7))
    };
    stage.add([
        under(1, "a", "own/old", 1),
        Append::RepositoryRename(Box::new(receipt)),
        under(2, "b", "own/a-later-name", 3),
    ]);
    let names = |as_of| {
        let request = CommitRequest {
            as_of: Some(at(as_of)),
            ..ask('c')
        };
        let evidence = stage.commit(request).unwrap();
        let entry = evidence.repos.unwrap().remove(0);
        (
            entry.repo,
            entry.current_repo.unwrap(),
            entry.observed_repo_slugs,
        )
    };
    let own = |name: &str| format!("own/{name}");
    assert_eq!(names(1), (own("old"), own("old"), vec![own("old")]));
    assert_eq!(
        names(2),
        (own("new"), own("new"), vec![own("new"), own("old")])
    );
    assert_eq!(
        names(3),
        (
            own("a-later-name"),
            own("a-later-name"),
            vec![own("a-later-name"), own("new"), own("old")]
        )
    );
    stage.quarantine(FactTable::RepositoryRenames, id(5));
    assert_eq!(
        names(3),
        (
            own("a-later-name"),
            own("a-later-name"),
            vec![own("a-later-name"), own("old")]
        ),
        "a quarantined receipt proves nothing"
    );
}

#[rstest]
fn facts_with_an_undetermined_repository_are_listed_separately(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    let nameless = CiOutcome {
        repo: String::new(),
        ..checked(10, "nameless", Some(7), 2)
    };
    stage.add([
        pushed(sent),
        observed(seen),
        ci(nameless),
        ci(checked(11, "unresolved", None, 1)),
        ci(checked(12, "own", Some(7), 3)),
    ]);
    let skipped: std::collections::BTreeMap<_, _> = [
        (RepositoryDecline::IdentityAbsent.into(), 1),
        (RepositoryDecline::IdentityUnresolved.into(), 1),
    ]
    .into();
    let evidence = stage.commit(ask('c')).unwrap();
    assert_eq!(evidence.repository_skipped.as_ref(), Some(&skipped));
    let unresolved: Vec<_> = evidence
        .unresolved_ci_outcomes
        .iter()
        .flatten()
        .map(|outcome| outcome.outcome_id)
        .collect();
    assert_eq!(unresolved, [id(11), id(10)]);
    assert_eq!(entries(&evidence).len(), 1);

    // A selector that matches nothing keeps the counts, and the list is empty, not absent.
    let elsewhere = stage.commit(within(by_name("no/body"))).unwrap();
    assert_eq!(elsewhere.repos, Some(Vec::new()));
    assert_eq!(elsewhere.repository_skipped, Some(skipped));
    assert_eq!(elsewhere.unresolved_ci_outcomes, None);
    assert!(!elsewhere.attributed);

    stage.quarantine(FactTable::Pushes, id(1));
    let evidence = stage.commit(ask('c')).unwrap();
    assert!(!evidence.attributed);
    let skipped = evidence.repository_skipped.unwrap();
    assert_eq!(
        skipped.get(&RepositoryDecline::SourceAbsent.into()),
        Some(&1)
    );
}

#[rstest]
fn every_fact_of_an_answer_is_visible_and_within_the_boundary(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    let seen = SessionCommitObservation {
        captured_at: at(5),
        ..seen
    };
    stage.add([
        pushed(sent),
        observed(seen),
        ci(checked(10, "r", Some(7), 6)),
    ]);
    let at_moment = |seconds| {
        let request = CommitRequest {
            as_of: Some(at(seconds)),
            ..ask('c')
        };
        let evidence = stage.commit(request).unwrap();
        (
            evidence.attributed,
            entries(&evidence).iter().map(|entry| entry.2.len()).sum(),
        )
    };
    assert_eq!(at_moment(4), (false, 0));
    assert_eq!(at_moment(5), (true, 0));
    assert_eq!(at_moment(6), (true, 1));
    for (table, fact_id, expected) in [
        (FactTable::CiOutcomes, id(10), (true, 0)),
        (FactTable::SessionCommitObservations, id(2), (false, 1)),
        (FactTable::Pushes, id(1), (false, 1)),
    ] {
        stage.quarantine(table, fact_id);
        assert_eq!(at_moment(9), expected, "{table}");
        stage.release(table, fact_id);
        assert_eq!(at_moment(9), (true, 1), "{table}");
    }
}

#[rstest]
fn a_selector_that_cannot_be_answered_is_refused(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(checked(1, "a", Some(7), 1)),
        ci(checked(2, "b", Some(8), 1)),
    ]);
    is_declined(
        &stage.commit(within(by_name("own/repo"))),
        &Decline::RepositorySelectorAmbiguous,
    );
    is_faulted(
        &stage.commit(within(RepositorySelector {
            repo: Some(name("own/other")),
            identity: Some(repository(7)),
        })),
        QueryFault::SelectorConflict,
    );
}

#[rstest]
fn outcomes_too_large_for_any_reply_are_refused(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add((1..4).map(|number| ci(checked(number, &format!("r{number}"), None, 1))));
    let read = |bytes_max| {
        let mut snapshot = stage.snapshot();
        let rows = snapshot.ci_outcomes_of_commit(&commit('c'), at(9), bytes_max);
        rows.unwrap().map(|rows| rows.len())
    };
    assert_eq!(read(100_000), Some(3));
    assert_eq!(read(1_000), None);
}
