use CiResult::{Cancelled, Failed, Passed, TimedOut};
use proptest::prelude::*;
use svc_engine_fact::testing::builders::{commit, name, outcome, repository};

use super::*;

fn home() -> Lifetime {
    Lifetime::Named(name("own/repo"))
}

fn attempt(number: u128, run_id: &str, attempt: Option<i64>, result: CiResult) -> CiAttempt {
    let mut fact = outcome(number, run_id);
    fact.run_attempt = attempt;
    fact.result = result;
    CiAttempt::of(&fact, Ok(home()))
}

/// Resolves the attempts in every rotation and duplicated; the result never changes.
fn resolve_all(attempts: &[CiAttempt]) -> CiResolution {
    let resolution = CiResolution::new(attempts);
    for turn in 0..attempts.len() {
        let mut other = [attempts, attempts].concat();
        other.rotate_left(turn);
        other.reverse();
        assert_eq!(CiResolution::new(&other), resolution);
    }
    resolution
}

fn verdict(attempts: &[CiAttempt]) -> Option<Verdict> {
    resolve_all(attempts)
        .of(&home(), &commit('c'))
        .unwrap()
        .verdict
}

#[test]
fn the_last_attempt_with_a_verdict_decides_the_run() {
    for (attempts, expected) in [
        (
            vec![(Some(1), Failed), (Some(2), Passed)],
            Some(Verdict::Passed),
        ),
        (
            vec![(Some(1), Passed), (Some(2), Failed)],
            Some(Verdict::Failed),
        ),
        (
            vec![(Some(1), Passed), (Some(2), TimedOut)],
            Some(Verdict::Passed),
        ),
        (
            vec![(None, Failed), (Some(1), Passed)],
            Some(Verdict::Passed),
        ),
        (vec![(Some(1), Cancelled)], None),
    ] {
        let attempts: Vec<CiAttempt> = attempts
            .into_iter()
            .zip(1..)
            .map(|((number, result), id)| attempt(id, "1", number, result))
            .collect();
        assert_eq!(verdict(&attempts), expected, "{attempts:?}");
        let resolution = resolve_all(&attempts);
        let flaky = attempts.iter().any(|attempt| attempt.result == Passed)
            && attempts.iter().any(|attempt| attempt.result == Failed);
        let of = resolution.of(&home(), &commit('c')).unwrap();
        assert_eq!(of.suspected_flake(), flaky);
    }
}

#[test]
fn a_commit_has_a_verdict_only_if_its_runs_agree() {
    let one = attempt(1, "1", None, Passed);
    assert_eq!(
        verdict(&[one.clone(), attempt(2, "2", None, Cancelled)]),
        Some(Verdict::Passed)
    );
    let mixed = resolve_all(&[one, attempt(2, "2", None, Failed)]);
    let of = mixed.of(&home(), &commit('c')).unwrap();
    assert_eq!(
        (of.verdict, of.is_ambiguous, of.runs.len()),
        (None, true, 2)
    );
    assert_eq!(mixed.skipped.commits.get(CiCommitSkip::Ambiguous), 1);
    assert!(mixed.skipped.runs.is_empty());
}

#[test]
fn a_run_whose_attempts_contradict_each_other_counts_for_no_commit() {
    let one = attempt(1, "1", Some(1), Passed);
    let mut branch = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut branch.place).branch = Branch::new("dev").unwrap();
    let mut workflow = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut workflow.workflow).name = Some("Lint".to_owned());
    let mut elsewhere = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut elsewhere.place).commit_sha = commit('d');
    let mut other_repository = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut other_repository.place).repository = Ok(Lifetime::Named(name("own/other")));
    let result = attempt(2, "1", Some(1), Failed);
    for other in [branch, workflow, elsewhere, other_repository, result] {
        let resolution = resolve_all(&[one.clone(), other.clone()]);
        assert_eq!(
            resolution.skipped.runs.get(CiRunSkip::ConflictingIdentity),
            1
        );
        for attempt in [&one, &other] {
            let place = &attempt.place;
            let repository = place.repository.as_ref().unwrap();
            let of = resolution.of(repository, &place.commit_sha).unwrap();
            assert!(of.is_contradicted && of.runs.is_empty() && of.verdict.is_none());
        }
    }
}

#[test]
fn the_workflow_of_a_run_may_come_from_any_attempt() {
    let mut silent = attempt(1, "1", Some(1), Passed);
    silent.workflow = Arc::default();
    let mut known = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut known.workflow).id = Some("9".to_owned());
    let resolution = resolve_all(&[silent, known.clone()]);
    let run = &resolution.of(&home(), &commit('c')).unwrap().runs[0];
    assert_eq!(run.workflow, known.workflow);
}

#[test]
fn equal_run_ids_of_two_systems_or_forges_are_different_runs() {
    let one = attempt(1, "1", None, Passed);
    let mut system = attempt(2, "1", None, Failed);
    system.provider = CiProvider::CiA;
    let mut fact = outcome(3, "1");
    fact.repository = Some(repository(7));
    fact.result = Failed;
    let identified = CiAttempt::of(&fact, Ok(Lifetime::Identified(repository(7))));
    let resolution = resolve_all(&[one, system, identified]);
    assert!(resolution.skipped.runs.is_empty());
    assert_eq!(resolution.of(&home(), &commit('c')).unwrap().runs.len(), 2);
}

#[test]
fn a_run_with_a_declined_outcome_counts_for_no_commit_and_the_outcome_is_skipped() {
    let one = attempt(1, "1", Some(1), Failed);
    let mut declined = attempt(2, "1", Some(2), Passed);
    Arc::make_mut(&mut declined.place).repository = Err(RepositoryDecline::IdentityUnresolved);
    let resolution = resolve_all(&[one, declined]);
    assert_eq!(resolution.of(&home(), &commit('c')), None);
    let skips: Vec<_> = resolution.skipped.source_outcomes.iter().collect();
    assert_eq!(skips, [(RepositoryDecline::IdentityUnresolved, 1)]);
    assert!(resolution.skipped.runs.is_empty());
}

/// In quadratic time, this takes minutes.
#[test]
fn fifty_thousand_runs_of_one_commit_are_resolved() {
    let attempts: Vec<CiAttempt> = (0..50_000_u32)
        .map(|run| attempt(u128::from(run), &run.to_string(), None, Passed))
        .collect();
    let resolution = CiResolution::new(&attempts);
    let of = resolution.of(&home(), &commit('c')).unwrap();
    assert_eq!((of.runs.len(), of.verdict), (50_000, Some(Verdict::Passed)));
}

proptest! {
    #[test]
    fn every_run_is_counted_or_skipped_once_and_every_verdict_was_recorded(
        drawn in proptest::collection::vec(
            (0..6_u8, 0..3_i64, 0..8_usize, 0..3_usize, 0..20_u8),
            0..30,
        ),
    ) {
        let shas = ['1', '2', '3'];
        let attempts: Vec<CiAttempt> = drawn
            .iter()
            .zip(1..)
            .map(|((run, number, result, sha, declined), id)| {
                let mut attempt =
                    attempt(id, &run.to_string(), Some(*number), CiResult::ALL[*result]);
                // Most runs are on one commit; otherwise nearly all would contradict themselves.
                let sha = if *declined < 16 { usize::from(*run) % 3 } else { *sha };
                Arc::make_mut(&mut attempt.place).commit_sha = commit(shas[sha]);
                if *declined == 19 {
                    Arc::make_mut(&mut attempt.place).repository = Err(RepositoryDecline::IdentityAbsent);
                }
                attempt
            })
            .collect();
        let resolution = resolve_all(&attempts);
        let is_declined = |run: &str| {
            attempts.iter().any(|attempt| &*attempt.run_id == run && attempt.place.repository.is_err())
        };
        let runs: BTreeSet<&str> =
            attempts.iter().map(|attempt| &*attempt.run_id).collect();
        let declined = runs.iter().filter(|run| is_declined(run)).count();
        let mut counted = 0;
        for sha in shas {
            let Some(ci) = resolution.of(&home(), &commit(sha)) else {
                continue;
            };
            counted += ci.runs.len();
            for (verdict, result) in [(Verdict::Passed, Passed), (Verdict::Failed, Failed)] {
                let recorded = attempts
                    .iter()
                    .any(|attempt| attempt.place.commit_sha == commit(sha) && attempt.result == result);
                prop_assert!(ci.verdict != Some(verdict) || recorded);
            }
            prop_assert!(ci.verdict.is_none() || !ci.is_ambiguous);
        }
        let conflicting = resolution.skipped.runs.total();
        prop_assert_eq!(counted as u64 + conflicting + declined as u64, runs.len() as u64);
    }
}

#[test]
fn a_run_that_passed_may_be_of_the_workflow_that_failed() {
    let of = |id: Option<&str>, path: Option<&str>, name: Option<&str>| {
        let [id, path, name] = [id, path, name].map(|text| text.map(str::to_owned));
        Arc::new(Workflow { id, path, name })
    };
    let run = |provider, workflow, verdict| CiRun {
        provider,
        workflow,
        verdict: Some(verdict),
        suspected_flake: false,
    };
    let failed = of(Some("7"), Some("ci.yml"), Some("CI"));
    for (provider, passed, fails) in [
        (CiProvider::ForgeActions, of(None, None, Some("CI")), false),
        (CiProvider::ForgeActions, of(None, None, None), false),
        (
            CiProvider::ForgeActions,
            of(Some("8"), None, Some("CI")),
            true,
        ),
        (CiProvider::ForgeActions, of(None, None, Some("lint")), true),
        (CiProvider::Other, of(None, None, Some("CI")), true),
    ] {
        let ci = CommitCi {
            runs: vec![
                run(
                    CiProvider::ForgeActions,
                    Arc::clone(&failed),
                    Verdict::Failed,
                ),
                run(provider, passed, Verdict::Passed),
            ],
            ..CommitCi::default()
        };
        assert_eq!(!ci.failed_workflows().is_empty(), fails, "{ci:?}");
    }
}
