//! A signed outcome answers in place of a report that differs, wherever outcomes are shown.

use svc_model::query::SupersededOutcome;

use super::*;

/// Returns the ids of the outcomes that answer, by question, and whether each names what it
/// supersedes.
fn answers(stage: &Stage, as_of: i64) -> Vec<(&'static str, FactId, Option<SupersededOutcome>)> {
    let as_of = Some(at(as_of));
    let mut found = Vec::new();
    let outcome = stage.outcome(&CiOutcomeRequest {
        provider: CiProvider::Other,
        run_id: RunId::new("r").unwrap(),
        run_attempt: None,
        latest: false,
        repository: RepositorySelector::default(),
        as_of,
    });
    let outcome = outcome.unwrap().expect("an outcome");
    found.push(("outcome", outcome.outcome_id, outcome.superseded));
    for result in [CiResult::Failed, CiResult::Passed] {
        let page = stage.failures(&CiFailuresRequest {
            result,
            as_of,
            ..CiFailuresRequest::new(by_identity(7), at(0), at(1_000))
        });
        let of_page = page.unwrap().outcomes.into_iter();
        found.extend(of_page.map(|shown| ("failures", shown.outcome_id, shown.superseded)));
    }
    for name in [
        RunName::Id(RunId::new("r").unwrap()),
        RunName::Url(RunUrl::new("https://ci.example/r").unwrap()),
    ] {
        let request = CiRunsRequest {
            name,
            provider: None,
            repository: RepositorySelector::default(),
            as_of,
        };
        let runs = ci_runs(&mut stage.snapshot(), &request).unwrap().runs;
        let runs = runs.into_iter().map(|run| run.outcome);
        found.extend(runs.map(|shown| ("runs", shown.outcome_id, shown.superseded)));
    }
    let commit = stage.commit(CommitRequest {
        commit_sha: commit('c'),
        repository: by_identity(7),
        as_of,
        explain: false,
    });
    let repos = commit.unwrap().repos.into_iter().flatten();
    let of_commit = repos.flat_map(|repository| repository.ci_outcomes);
    found.extend(of_commit.map(|shown| ("commit", shown.outcome_id, shown.superseded)));
    found
}

#[rstest]
fn a_signed_outcome_answers_from_its_capture_until_it_is_quarantined(
    #[values(Backend::Sqlite, Backend::Postgres)] backend: Backend,
) {
    let stage = stage!(backend);
    let said = |number, signed, result, seconds| {
        ci(CiOutcome {
            commit_sha: commit('c'),
            run_url: Some("https://ci.example/r".into()),
            signed,
            result,
            ..checked(number, "r", Some(7), seconds)
        })
    };
    let (push, observation) = delivered(20, Some(7));
    stage.add([pushed(push), observed(observation)]);
    stage.add([said(1, false, CiResult::Passed, 10)]);
    stage.add([said(2, true, CiResult::Failed, 20)]);
    let superseded = SupersededOutcome {
        outcome_id: id(1),
        result: CiResult::Passed.into(),
    };
    let all = |fact_id, superseded: Option<SupersededOutcome>| {
        ["outcome", "failures", "runs", "runs", "commit"]
            .map(|question| (question, fact_id, superseded.clone()))
            .to_vec()
    };
    let of_session = || {
        let outcomes = stage.dossier("s").ci_outcomes.into_iter();
        outcomes
            .map(|shown| (shown.outcome_id, shown.superseded))
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(&stage, 19), all(id(1), None), "before");
    assert_eq!(answers(&stage, 20), all(id(2), Some(superseded.clone())));
    assert_eq!(of_session(), [(id(2), Some(superseded))]);
    stage.quarantine(FactTable::CiOutcomes, id(1));
    assert_eq!(
        answers(&stage, 30),
        all(id(2), None),
        "the report is hidden"
    );
    stage.release(FactTable::CiOutcomes, id(1));
    stage.quarantine(FactTable::CiOutcomes, id(2));
    assert_eq!(answers(&stage, 30), all(id(1), None), "the signed one is");
    assert_eq!(of_session(), [(id(1), None)]);
}
