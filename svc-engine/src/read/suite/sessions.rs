//! Dossiers.

use svc_engine_fact::{DeveloperDecision, EditObservation};
use svc_model::open::Open;
use svc_model::query::{Gap, TimelineEvent};

use super::*;

#[rstest]
fn a_session_that_no_fact_named_is_unknown(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.calls("s", 1..2);
    assert_eq!(stage.session("t").unwrap(), SessionAnswer::UNKNOWN);
    stage.quarantine(FactTable::InferenceCalls, id(1));
    let dossier = stage.dossier("s");
    assert_eq!((dossier.omitted_events, dossier.timeline.len()), (1, 0));
}

#[rstest]
fn the_timeline_holds_every_kind_of_event_in_order(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let call = call(7).model_call("m").observed(3).build();
    stage.add([
        Append::InferenceCall(Box::new(stage.store.encode(call, at(3)))),
        Append::DeveloperDecision(Box::new(DeveloperDecision {
            file_path: String::new(),
            occurred_at: at(2),
            ..decision(5)
        })),
        Append::EditObservation(Box::new(EditObservation {
            external_lines_removed: Some(0),
            occurred_at: at(2),
            ..edit(4, "t1")
        })),
        Append::RejectedEdit(Box::new(svc_engine_fact::RejectedEdit {
            occurred_at: at(1),
            ..rejection(3, "t2")
        })),
        Append::RetryLinkage(Box::new(svc_engine_fact::RetryLinkage {
            occurred_at: at(4),
            ..linkage(2, "t2", "t3")
        })),
    ]);
    let dossier = stage.dossier("s");
    let kinds: Vec<_> = dossier
        .timeline
        .iter()
        .map(|event| (event.as_str(), event.known().unwrap().fact_id()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("rejected_edit", id(3)),
            ("developer_decision", id(5)),
            ("edit_observation", id(4)),
            ("inference_call", id(7)),
            ("retry_linkage", id(2)),
        ]
    );
    let Open::Known(TimelineEvent::DeveloperDecision { has_file_path, .. }) = dossier.timeline[1]
    else {
        panic!("a decision");
    };
    assert!(!has_file_path);
    let Open::Known(TimelineEvent::EditObservation {
        has_file_path,
        external_lines_added_present,
        external_lines_removed_present,
        external_lines_removed,
        ..
    }) = dossier.timeline[2]
    else {
        panic!("an edit");
    };
    assert!(has_file_path && !external_lines_added_present && external_lines_removed_present);
    assert_eq!(external_lines_removed, Some(0));
    assert_eq!(dossier.gaps, [Gap::NoCommit]);
    // A call is placed by its own time, the others by their time of receipt.
    assert_eq!(
        (dossier.first_observed_at, dossier.last_observed_at),
        (at(1), at(3))
    );
}

#[rstest]
fn a_session_spans_every_fact_that_names_it_including_quarantined_ones(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let call = call(1).observed(10).build();
    let facts = [
        (
            FactTable::InferenceCalls,
            Append::InferenceCall(Box::new(stage.store.encode(call, at(50)))),
        ),
        (
            FactTable::DeveloperDecisions,
            Append::DeveloperDecision(Box::new(DeveloperDecision {
                captured_at: at(11),
                ..decision(2)
            })),
        ),
        (
            FactTable::EditObservations,
            Append::EditObservation(Box::new(EditObservation {
                captured_at: at(12),
                ..edit(3, "t")
            })),
        ),
        (
            FactTable::RejectedEdits,
            Append::RejectedEdit(Box::new(svc_engine_fact::RejectedEdit {
                captured_at: at(13),
                ..rejection(4, "t")
            })),
        ),
        (
            FactTable::RetryLinkages,
            Append::RetryLinkage(Box::new(svc_engine_fact::RetryLinkage {
                captured_at: at(14),
                ..linkage(5, "t", "u")
            })),
        ),
        (
            FactTable::SessionCommitObservations,
            observed(SessionCommitObservation {
                captured_at: at(15),
                ..observation(6, id(99))
            }),
        ),
    ];
    for (last, (number, (table, fact))) in (10..).zip((1..).zip(facts)) {
        stage.add([fact]);
        let span = || {
            let dossier = stage.dossier("s");
            (dossier.first_observed_at, dossier.last_observed_at)
        };
        assert_eq!(span(), (at(10), at(last)), "{table}");
        stage.quarantine(table, id(number));
        assert_eq!(span(), (at(10), at(last)), "{table}");
    }
}

#[rstest]
fn five_hundred_events_are_served_and_one_more_is_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.calls("s", 1..500);
    stage.add([Append::DeveloperDecision(Box::new(decision(1_000)))]);
    assert_eq!(stage.dossier("s").timeline.len(), 500);
    stage.calls("s", 500..501);
    is_bounded(&stage.session("s"), SessionBound::Dossier);
    stage.quarantine(FactTable::InferenceCalls, id(3));
    let dossier = stage.dossier("s");
    assert_eq!((dossier.timeline.len(), dossier.omitted_events), (500, 1));
}

#[rstest]
fn five_hundred_observations_are_served_and_one_more_is_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let sha = |number: u128| CommitSha::new(&format!("{number:040x}")).unwrap();
    let seen = |number: u128| {
        observed(SessionCommitObservation {
            commit_sha: sha(number),
            ..observation(number, id(9_999))
        })
    };
    stage.add((1..=500).map(seen));
    assert_eq!(stage.dossier("s").attributed_commits.len(), 500);
    stage.add([seen(501)]);
    is_declined(&stage.session("s"), &Decline::RepositoryEvidenceLimit);
    stage.quarantine(FactTable::SessionCommitObservations, id(7));
    assert_eq!(stage.dossier("s").attributed_commits.len(), 500);
}

#[rstest]
fn five_hundred_outcomes_or_pushes_are_served_and_one_more_is_not(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    stage.add([pushed(sent), observed(seen)]);
    let outcome = |number: u128| ci(checked(number, &format!("r{number}"), Some(7), 1));
    stage.add((1_000..1_500).map(outcome));
    // Facts of another repository about the commit do not count.
    stage.add([ci(checked(5_000, "other", Some(8), 1))]);
    let dossier = stage.dossier("s");
    assert_eq!((dossier.ci_outcomes.len(), dossier.pushes.len()), (500, 1));
    stage.add([outcome(1_500)]);
    is_bounded(&stage.session("s"), SessionBound::Delivery);
    stage.quarantine(FactTable::CiOutcomes, id(1_500));
    assert_eq!(stage.dossier("s").ci_outcomes.len(), 500);

    let again = |number: u128| {
        let (sent, _) = delivered(number, Some(7));
        pushed(Push {
            r#ref: format!("refs/heads/{number}"),
            ..sent
        })
    };
    stage.add((2_000..2_499).map(again));
    assert_eq!(stage.dossier("s").pushes.len(), 500);
    stage.add([again(2_499)]);
    is_bounded(&stage.session("s"), SessionBound::Delivery);
}

#[rstest]
fn deliveries_match_by_repository_and_commit(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    let fork = Push {
        repository: Some(repository(8)),
        repo: "fork/repo".to_owned(),
        ..sent.clone()
    };
    let elsewhere = Push {
        push_id: id(11),
        after_sha: commit('d'),
        ..sent.clone()
    };
    let fork = Push {
        push_id: id(10),
        ..fork
    };
    stage.add([
        pushed(sent),
        observed(seen),
        pushed(fork),
        pushed(elsewhere),
    ]);
    let nameless = CiOutcome {
        repo: String::new(),
        ..checked(21, "nameless", Some(7), 1)
    };
    let other_commit = CiOutcome {
        commit_sha: commit('d'),
        ..checked(23, "other commit", Some(7), 1)
    };
    stage.add([
        ci(checked(20, "same", Some(7), 1)),
        ci(nameless),
        ci(checked(22, "fork", Some(8), 1)),
        ci(other_commit),
        ci(checked(24, "without an identity", None, 1)),
    ]);
    let dossier = stage.dossier("s");
    let pushes: Vec<_> = dossier.pushes.iter().map(|push| push.push_id).collect();
    let outcomes: Vec<_> = dossier
        .ci_outcomes
        .iter()
        .map(|ci_outcome| ci_outcome.outcome_id)
        .collect();
    assert_eq!((pushes, outcomes), (vec![id(1)], vec![id(20)]));
    assert_eq!(dossier.session_commit_unobserved, 0);
    assert_eq!(
        dossier.attributed_commits[0].repository_identity,
        Some(LifetimeIdentity::from(repository(7)))
    );
    let linked = |now| {
        let request = SessionDossierRequest::new(SessionId::new("s").unwrap());
        let answer = session_dossier(&mut stage.snapshot(), request, at(now)).unwrap();
        let outcomes = answer.dossier().unwrap().ci_outcomes;
        let link = outcomes[0].commit_query.request().unwrap();
        assert_eq!(link.repository, by_identity(7));
        link.as_of
    };
    assert_eq!(linked(1), Some(at(1)), "the last stored fact");
    assert_eq!(linked(7), Some(at(7)), "the time of the request");
    assert_eq!(linked(0), Some(at(1)), "the clock was set back");
}

#[rstest]
fn a_repository_known_only_by_name_has_no_identity_member(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, None);
    stage.add([pushed(sent), observed(seen), ci(checked(20, "r", None, 1))]);
    let dossier = stage.dossier("s");
    let commit = &dossier.attributed_commits[0];
    assert_eq!(
        (commit.repo.as_str(), &commit.repository_identity),
        ("own/repo", &None)
    );
    assert_eq!(dossier.pushes[0].repository_identity, None);
    assert_eq!(dossier.ci_outcomes[0].repository_identity, None);
    let written = svc_model::json::to_vec(&dossier, usize::MAX).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(
        !written.contains("null") && !written.contains("repository_identity"),
        "{written}"
    );
    // Another repository takes the name: it is not assumed to be the same one.
    stage.add([ci(checked(30, "claim", Some(7), 2))]);
    let dossier = stage.dossier("s");
    assert_eq!(dossier.attributed_commits, []);
    assert_eq!(
        dossier.repository_skipped,
        [(RepositoryDecline::IdentityUnresolved.into(), 1)].into()
    );
}

#[rstest]
fn an_observation_with_an_undetermined_repository_is_counted(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    let conflicting = SessionCommitObservation {
        observation_id: id(12),
        repository: Some(repository(8)),
        ..seen.clone()
    };
    stage.add([pushed(sent), observed(seen), observed(conflicting)]);
    let skipped = |stage: &Stage| {
        let dossier = stage.dossier("s");
        (dossier.attributed_commits.len(), dossier.repository_skipped)
    };
    let conflict = || (RepositoryDecline::IdentityConflict.into(), 1);
    assert_eq!(skipped(&stage), (1, [conflict()].into()));
    stage.quarantine(FactTable::Pushes, id(1));
    let dossier = stage.dossier("s");
    assert_eq!(dossier.attributed_commits, []);
    assert_eq!(dossier.session_commit_unobserved, 1);
    assert!(dossier.gaps.contains(&Gap::NoCommit.into()));
    assert_eq!(
        dossier.repository_skipped,
        [(RepositoryDecline::SourceAbsent.into(), 2)].into()
    );
    stage.release(FactTable::Pushes, id(1));
    assert_eq!(skipped(&stage), (1, [conflict()].into()));
    // A quarantined observation does not exist at all.
    stage.quarantine(FactTable::SessionCommitObservations, id(2));
    assert_eq!(skipped(&stage), (0, [conflict()].into()));
}

#[rstest]
fn quarantined_deliveries_are_gaps(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let stage = stage!(backend);
    let (sent, seen) = delivered(1, Some(7));
    let again = Push {
        push_id: id(5),
        r#ref: "refs/heads/again".to_owned(),
        ..sent.clone()
    };
    stage.calls("s", 100..101);
    stage.add([
        pushed(sent),
        pushed(again),
        observed(seen),
        ci(checked(20, "r", Some(7), 1)),
    ]);
    let delivery_gaps = || {
        let gaps = stage.dossier("s").gaps;
        let of_delivery = |gap: &Gap| matches!(gap, Gap::NoPushes | Gap::NoCiOutcomes);
        gaps.into_iter()
            .filter_map(Open::into_known)
            .filter(of_delivery)
            .collect::<Vec<_>>()
    };
    assert_eq!(delivery_gaps(), []);
    stage.quarantine(FactTable::CiOutcomes, id(20));
    assert_eq!(delivery_gaps(), [Gap::NoCiOutcomes]);
    stage.quarantine(FactTable::Pushes, id(5));
    assert_eq!(stage.dossier("s").pushes.len(), 1);
    stage.release(FactTable::CiOutcomes, id(20));
    assert_eq!(delivery_gaps(), []);
}

#[rstest]
fn pushes_and_outcomes_at_a_commit_are_explained_on_request(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    // The push leaves its branch one commit further on, and CI checks that commit.
    let (push, observation) = delivered(1, Some(7));
    let observation = SessionCommitObservation {
        commit_sha: commit('b'),
        ..observation
    };
    let run = CiOutcome {
        commit_sha: commit('c'),
        ..checked(3, "r", Some(7), 1)
    };
    stage.add([
        pushed(push),
        observed(observation),
        ci(run),
        Append::DeveloperDecision(Box::new(decision(4))),
    ]);
    let path = |dossier: &SessionDossier| {
        let event = dossier.timeline[0].known();
        event.and_then(TimelineEvent::file_path).map(str::to_owned)
    };
    let plain = stage.dossier("s");
    assert_eq!(path(&plain), None);
    assert_eq!((plain.pushes.len(), plain.delivering_pushes), (0, None));
    assert_eq!(plain.attributed_commits[0].delivered_by_push_ids, None);

    let explained = || {
        let request = SessionDossierRequest::new(SessionId::new("s").unwrap());
        let answer = session_dossier(&mut stage.snapshot(), request, at(9)).unwrap();
        answer.dossier().unwrap()
    };
    let dossier = explained();
    assert_eq!(path(&dossier).as_deref(), Some("src/a.rs"));
    let attributed = &dossier.attributed_commits[0];
    assert_eq!(attributed.delivered_by_push_ids, Some(vec![id(1)]));
    let pushes = dossier.delivering_pushes.unwrap();
    assert_eq!(
        (
            pushes[0].push_id,
            &pushes[0].after_sha,
            pushes[0].match_kind.clone()
        ),
        (
            id(1),
            &commit('c'),
            svc_model::query::PushMatch::Brought.into()
        )
    );
    assert_eq!(dossier.delivering_ci_outcomes.unwrap()[0].outcome_id, id(3));
    assert_eq!(dossier.gaps, plain.gaps, "the explanation changes no gap");

    // Quarantined facts deliver nothing.
    stage.quarantine(FactTable::CiOutcomes, id(3));
    assert_eq!(explained().delivering_ci_outcomes, Some(Vec::new()));
    stage.quarantine(FactTable::Pushes, id(1));
    assert_eq!(explained().delivering_pushes, Some(Vec::new()));
}
