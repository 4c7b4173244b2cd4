//! The outcome of one run.

use svc_model::json::Text;

use super::*;

fn run(run_id: &str) -> CiOutcomeRequest {
    CiOutcomeRequest {
        provider: CiProvider::Other,
        run_id: RunId::new(run_id).unwrap(),
        run_attempt: None,
        latest: false,
        repository: RepositorySelector::default(),
        as_of: None,
    }
}

fn found(stage: &Stage, repository: RepositorySelector) -> Option<FactId> {
    let request = CiOutcomeRequest {
        repository,
        ..run("r")
    };
    stage
        .outcome(&request)
        .unwrap()
        .map(|outcome| outcome.outcome_id)
}

#[rstest]
fn a_run_id_of_several_forges_needs_a_selector(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    assert_eq!(stage.outcome(&run("r")).unwrap(), None, "nothing is stored");
    let mut elsewhere = checked(3, "r", Some(8), 3);
    elsewhere.repo = "ghe/x".to_owned();
    if let Some(identity) = &mut elsewhere.repository {
        identity.repository_host =
            svc_model::repository::RepositoryHost::new("ghe.example").unwrap();
    }
    let other = elsewhere.repository.clone().unwrap();
    stage.add([ci(checked(1, "r", None, 1)), ci(elsewhere)]);
    is_declined(
        &stage.outcome(&run("r")),
        &Decline::RepositorySelectorAmbiguous,
    );
    assert_eq!(found(&stage, by_name("own/repo")), Some(id(1)));
    assert_eq!(found(&stage, by_name("ghe/x")), Some(id(3)));
    assert_eq!(
        found(&stage, RepositorySelector::identified(other.clone())),
        Some(id(3))
    );
    assert_eq!(found(&stage, by_name("no/body")), None);
    assert_eq!(found(&stage, by_identity(8)), None, "of another host");
    is_faulted(
        &stage.outcome(&CiOutcomeRequest {
            repository: RepositorySelector {
                repo: Some(name("own/repo")),
                identity: Some(other),
            },
            ..run("r")
        }),
        QueryFault::SelectorConflict,
    );
}

#[rstest]
fn asking_without_an_attempt_finds_only_the_outcome_without_one(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let second = CiOutcome {
        run_attempt: Some(2),
        ..checked(2, "r", None, 1)
    };
    stage.add([ci(second)]);
    assert_eq!(found(&stage, RepositorySelector::default()), None);
    let attempt = |run_attempt| {
        let request = CiOutcomeRequest {
            run_attempt,
            ..run("r")
        };
        stage
            .outcome(&request)
            .unwrap()
            .map(|outcome| outcome.outcome_id)
    };
    assert_eq!(attempt(Some(2)), Some(id(2)));
    assert_eq!(attempt(Some(1)), None);
    stage.add([ci(checked(1, "r", None, 1))]);
    assert_eq!(attempt(None), Some(id(1)));
}

#[rstest]
fn a_name_of_several_repositories_is_ambiguous_for_any_run(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([
        ci(checked(1, "a", Some(7), 1)),
        ci(checked(2, "b", Some(8), 1)),
    ]);
    for run_id in ["a", "b", "none"] {
        let request = CiOutcomeRequest {
            repository: by_name("own/repo"),
            ..run(run_id)
        };
        is_declined(
            &stage.outcome(&request),
            &Decline::RepositorySelectorAmbiguous,
        );
    }
}

#[rstest]
fn the_boundary_is_the_latest_visible_fact_that_names_a_repository(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    stage.add([ci(checked(1, "r", Some(7), 1))]);
    let (sent, seen) = delivered(20, Some(7));
    let later: [(Append, FactTable, FactId, i64); 5] = [
        (
            pushed(Push {
                captured_at: at(2),
                ..sent
            }),
            FactTable::Pushes,
            id(20),
            2,
        ),
        (
            observed(SessionCommitObservation {
                captured_at: at(3),
                ..seen
            }),
            FactTable::SessionCommitObservations,
            id(21),
            3,
        ),
        (
            Append::PullRequestRevision(Box::new(svc_engine_fact::PullRequestRevision {
                captured_at: at(4),
                ..revision(22)
            })),
            FactTable::PullRequestRevisions,
            id(22),
            4,
        ),
        (
            Append::PullRequestMerge(Box::new(svc_engine_fact::PullRequestMerge {
                captured_at: at(5),
                ..merge(23)
            })),
            FactTable::PullRequestMerges,
            id(23),
            5,
        ),
        (
            Append::RepositoryRename(Box::new(svc_engine_fact::RepositoryRename {
                captured_at: at(6),
                ..rename(24, repository(9))
            })),
            FactTable::RepositoryRenames,
            id(24),
            6,
        ),
    ];
    let boundary = || {
        let link = stage.outcome(&run("r")).unwrap().unwrap().commit_query;
        link.request().unwrap().as_of.unwrap()
    };
    assert_eq!(boundary(), at(1));
    let mut marked = Vec::new();
    for (fact, table, fact_id, seconds) in later {
        stage.add([fact]);
        assert_eq!(boundary(), at(seconds), "{table}");
        marked.push((table, fact_id, seconds));
    }
    // From the end of each table, quarantined facts are skipped.
    for (table, fact_id, seconds) in marked.into_iter().rev() {
        stage.quarantine(table, fact_id);
        assert_eq!(boundary(), at(seconds - 1), "{table}");
    }
    stage.quarantine(FactTable::CiOutcomes, id(1));
    assert_eq!(stage.outcome(&run("r")).unwrap(), None);
}

#[rstest]
fn a_link_selects_the_repository_of_the_run_if_it_is_known(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let selector = |run_id: &str| {
        let found = stage.outcome(&run(run_id)).unwrap().unwrap();
        found.commit_query.request().unwrap().repository
    };
    stage.add([ci(checked(1, "named", None, 1))]);
    assert_eq!(selector("named"), by_name("own/repo"));
    let nameless = CiOutcome {
        repo: String::new(),
        ..checked(2, "nameless", Some(8), 1)
    };
    stage.add([ci(checked(3, "identified", Some(7), 1)), ci(nameless)]);
    assert_eq!(selector("identified"), by_identity(7));
    assert_eq!(selector("nameless"), by_identity(8));
    // It belongs to no repository, so the link leads to all that have the commit.
    assert_eq!(
        selector("named"),
        RepositorySelector::default(),
        "another repository has the name now"
    );
}

#[rstest]
fn as_of_is_inclusive(#[values(Backend::Sqlite, Backend::Postgres)] backend: Backend) {
    let stage = stage!(backend);
    stage.add([ci(checked(1, "r", None, 5))]);
    let at_moment = |as_of| {
        let request = CiOutcomeRequest {
            as_of: Some(as_of),
            ..run("r")
        };
        stage.outcome(&request).unwrap()
    };
    let before = Instant::from_microseconds(at(5).microseconds() - 1).unwrap();
    assert_eq!(at_moment(before), None);
    let found = at_moment(at(5)).unwrap();
    assert_eq!(found.outcome_id, id(1));
    assert_eq!(found.commit_query.request().unwrap().as_of, Some(at(5)));
    let later = at_moment(at(3_600)).unwrap();
    assert_eq!(later.outcome_id, id(1));
    let link = later.commit_query.request().unwrap();
    assert_eq!(link.as_of, Some(at(3_600)), "what was asked for");
}

/// The forge sent the id of the repository but never its name: the id is enough.
#[rstest]
fn an_outcome_without_a_name_is_found_by_the_identity_of_its_repository(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let nameless = |number, run: &str, identity| {
        ci(CiOutcome {
            repo: String::new(),
            ..checked(number, run, identity, 1)
        })
    };
    let seen = || {
        let failures = stage.failures(&CiFailuresRequest::new(by_identity(7), at(0), at(9)));
        let failures = failures.unwrap().outcomes;
        let request = CommitRequest {
            repository: by_identity(7),
            ..CommitRequest::new(commit('c'))
        };
        let evidence = stage.commit(request).unwrap();
        let repos = evidence.repos.unwrap_or_default();
        let of_commit = repos.iter().flat_map(|repo| &repo.ci_outcomes);
        (
            found(&stage, by_identity(7)),
            failures
                .iter()
                .map(|failure| failure.outcome_id)
                .collect::<Vec<_>>(),
            of_commit
                .map(|outcome| outcome.outcome_id)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(seen(), (None, vec![], vec![]));
    stage.add([nameless(1, "r", Some(7)), nameless(2, "other", None)]);
    assert_eq!(seen(), (Some(id(1)), vec![id(1)], vec![id(1)]));
    // A missing name does not show whose it is.
    assert_eq!(found(&stage, by_identity(8)), None);
    let both = RepositorySelector {
        repo: Some(name("own/repo")),
        ..by_identity(7)
    };
    assert_eq!(found(&stage, both.clone()), None);
    stage.quarantine(FactTable::CiOutcomes, id(1));
    assert_eq!(seen(), (None, vec![], vec![]));
    stage.release(FactTable::CiOutcomes, id(1));

    // With a name, the repository is found by the name too.
    stage.add([ci(checked(3, "named", Some(7), 2))]);
    assert_eq!(seen().1, [id(3), id(1)]);
    assert_eq!(found(&stage, by_name("own/repo")), Some(id(1)));
    assert_eq!(found(&stage, both), Some(id(1)));
}

/// Wherever an outcome without a name is listed, its link leads to a commit that lists it too.
#[rstest]
fn the_link_of_an_outcome_without_a_name_leads_back_to_it(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let nameless = CiOutcome {
        repo: String::new(),
        ..checked(2, "nameless", Some(7), 2)
    };
    let elsewhere = CiOutcome {
        commit_sha: commit('d'),
        ..checked(1, "named", Some(7), 1)
    };
    stage.add([ci(elsewhere), ci(nameless)]);
    let mut links = vec![
        stage
            .outcome(&run("nameless"))
            .unwrap()
            .unwrap()
            .commit_query,
    ];
    for selector in [by_identity(7), by_name("own/repo")] {
        let page = stage.failures(&CiFailuresRequest::new(selector, at(0), at(9)));
        let listed = page.unwrap().outcomes;
        let nameless = listed
            .into_iter()
            .find(|failure| failure.outcome_id == id(2));
        links.push(nameless.unwrap().commit_query);
    }
    for link in links {
        let request = link.request().unwrap();
        assert_eq!(request.repository, by_identity(7));
        let evidence = stage.commit(request).unwrap();
        assert_eq!(evidence.repository_skipped, None);
        let repos = evidence.repos.unwrap();
        let outcomes = repos.iter().flat_map(|repo| &repo.ci_outcomes);
        let found: Vec<_> = outcomes.map(|outcome| outcome.outcome_id).collect();
        assert_eq!(found, [id(2)]);
    }
}

fn attempt(number: u128, run_id: &str, run_attempt: i64) -> Append {
    ci(CiOutcome {
        run_attempt: Some(run_attempt),
        ..checked(number, run_id, Some(7), 1)
    })
}

#[rstest]
fn the_latest_attempt_is_that_of_the_greatest_number(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    // The last attempt arrives first.
    stage.add([
        attempt(3, "r", 10),
        attempt(2, "r", 9),
        ci(checked(1, "r", Some(7), 1)),
    ]);
    let request = CiOutcomeRequest {
        latest: true,
        ..run("r")
    };
    let answer = ci_outcome(&mut stage.snapshot(), &request).unwrap();
    assert_eq!(answer.outcome.unwrap().outcome_id, id(3));
    assert_eq!(answer.attempts, Some(vec![None, Some(9), Some(10)]));
    let plain = ci_outcome(&mut stage.snapshot(), &run("r")).unwrap();
    assert_eq!(
        (plain.outcome.unwrap().outcome_id, plain.attempts),
        (id(1), None)
    );
    stage.quarantine(FactTable::CiOutcomes, id(3));
    let answer = ci_outcome(&mut stage.snapshot(), &request).unwrap();
    assert_eq!(answer.attempts, Some(vec![None, Some(9)]));
    let none = CiOutcomeRequest {
        latest: true,
        ..run("none")
    };
    let answer = ci_outcome(&mut stage.snapshot(), &none).unwrap();
    assert_eq!((answer.found, answer.attempts), (false, None));
}

fn named(stage: &Stage, name: RunName) -> CiRuns {
    let request = CiRunsRequest {
        name,
        provider: None,
        repository: RepositorySelector::default(),
        as_of: None,
    };
    ci_runs(&mut stage.snapshot(), &request).unwrap()
}

#[rstest]
fn runs_are_found_by_run_id_pipeline_id_and_url(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let page = "https://ci.example/job/shop/7";
    let at_page = |number, run_id: &str| {
        ci(CiOutcome {
            run_url: Some(Text::from(format!("{page}/"))),
            ..checked(number, run_id, Some(7), 1)
        })
    };
    stage.add([
        attempt(1, "500/test", 1),
        attempt(2, "500/test", 2),
        attempt(3, "500", 1),
        attempt(4, "5000", 1),
        attempt(5, "500-x", 1),
        at_page(6, "shop/7"),
    ]);
    let ids = |found: &CiRuns| -> Vec<FactId> {
        found
            .runs
            .iter()
            .map(|run| run.outcome.outcome_id)
            .collect()
    };
    let by_id = |text: &str| named(&stage, RunName::Id(RunId::new(text).unwrap()));
    let found = by_id("500");
    assert_eq!(ids(&found), [id(3), id(2)]);
    assert_eq!(found.runs[1].attempts, [Some(1), Some(2)]);
    assert!(!found.more);
    assert_eq!(ids(&by_id("500/test")), [id(2)]);
    assert_eq!(ids(&by_id("50")), []);
    let by_url = |text: &str| ids(&named(&stage, RunName::Url(RunUrl::new(text).unwrap())));
    for same in [
        page.to_owned(),
        format!("{page}/"),
        format!("{page}/?x=1#L3"),
    ] {
        assert_eq!(by_url(&same), [id(6)], "{same}");
    }
    assert_eq!(by_url("https://ci.example/job/shop/8"), []);
    assert_eq!(by_url("https://ci.example/job/shop"), []);
}

#[rstest]
fn commits_pushed_together_with_a_runs_commit_are_found(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    for identity in [Some(7), None] {
        let stage = stage!(backend);
        let repository = identity.map(repository);
        let pushed = |number, after| {
            Append::Push(Box::new(Push {
                repository: repository.clone(),
                after_sha: commit(after),
                ..push(number)
            }))
        };
        let opened = |number, head| {
            let mut revision = revision(number);
            revision.pull_request.repository.clone_from(&repository);
            revision
                .pull_request
                .head_repository
                .clone_from(&repository);
            revision.pull_request.head_repo = Some("own/repo".to_owned());
            revision.pull_request.head_sha = commit(head);
            Append::PullRequestRevision(Box::new(revision))
        };
        let seen = |number, push, session: &str, at| {
            Append::SessionCommitObservation(Box::new(SessionCommitObservation {
                repository: repository.clone(),
                session_id: SessionId::new(session).unwrap(),
                commit_sha: commit(at),
                ..observation(number, id(push))
            }))
        };
        stage.add([
            pushed(1, '1'),
            pushed(2, '2'),
            pushed(3, '9'),
            opened(4, '1'),
            opened(5, '2'),
            seen(6, 1, "a", '0'),
            seen(7, 2, "b", '2'),
            seen(8, 3, "c", '9'),
            ci(CiOutcome {
                commit_sha: commit('2'),
                ..checked(9, "r", identity, 1)
            }),
        ]);
        let delivery = |stage: &Stage| {
            named(stage, RunName::Id(RunId::new("r").unwrap()))
                .delivery
                .unwrap()
        };
        let found = delivery(&stage);
        assert_eq!(found.push_ids, [id(1), id(2)], "{identity:?}");
        assert_eq!(found.pull_requests.len(), 1);
        let commits: Vec<_> = found
            .commits
            .iter()
            .map(|commit| (commit.commit_sha.clone(), commit.session_ids.len()))
            .collect();
        assert_eq!(commits, [(commit('0'), 1), (commit('2'), 1)]);
        assert!(!found.more);
        stage.quarantine(FactTable::SessionCommitObservations, id(6));
        assert_eq!(delivery(&stage).commits.len(), 1);
        stage.quarantine(FactTable::Pushes, id(2));
        assert_eq!(delivery(&stage).commits.len(), 0);
    }
}
