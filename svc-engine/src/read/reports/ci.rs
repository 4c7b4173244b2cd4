//! What CI says of the commits of a cohort.

use std::collections::{BTreeSet, HashMap, HashSet};

use svc_model::ingest::CiProvider;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::Counts;
use svc_model::repository::{
    CommitSha, RepositoryDecline, RepositoryHost, RepositoryIdentity, RepositoryProvider,
};
use svc_model::time::Instant;

use super::halves::of_halves;
use super::population::up_to;
use super::resolving::{Resolving, of_outcome};
use crate::derive::ci::{ABSENT_ATTEMPT, CiAttempt, CiResolution, Workflow, forge};
use crate::derive::repository::Mention;
use crate::error::Error;
use crate::fact::Lifetime;
use crate::store::{CohortOutcome, Snapshot, StoreError};

/// The outcomes at the commits of a cohort and in their runs, and what they make.
pub(super) struct CohortCi {
    pub(super) resolution: CiResolution,
    /// What the outcomes at the attributed commits say of pull requests.
    pub(super) pull_requests: Vec<CommitPullRequest>,
    /// The outcomes at the attributed commits whose repository cannot be determined.
    pub(super) declined: Counts<RepositoryDecline>,
}

/// The pull request that outcomes at a commit name, if they do, and what they say of their repository.
pub(super) struct CommitPullRequest {
    repo: String,
    repository: Option<RepositoryIdentity>,
    pub(super) commit_sha: CommitSha,
    pub(super) pr_number: Option<i64>,
}

impl CommitPullRequest {
    pub(super) fn mention(&self) -> Mention<'_> {
        Mention {
            name: &self.repo,
            identity: self.repository.as_ref(),
        }
    }
}

/// What tells one run from another.
type RunKey<'o> = (
    CiProvider,
    Option<(RepositoryProvider, &'o RepositoryHost)>,
    &'o str,
);

/// Reads the outcomes at attributed commits and at those where the cohort's Sessions were observed, and
/// every other outcome of their runs.
pub(super) fn read<'c>(
    snapshot: &mut Snapshot<'_>,
    resolving: &mut Resolving,
    boundary: Instant,
    attributed: &BTreeSet<&'c CommitSha>,
    observed: impl Iterator<Item = &'c CommitSha>,
) -> Result<CohortCi, Error> {
    let commits: BTreeSet<&CommitSha> = attributed.iter().copied().chain(observed).collect();
    let commits: Vec<&CommitSha> = commits.into_iter().collect();
    let mut outcomes = Vec::new();
    snapshot.ci_outcomes_of_commits(&commits, boundary, up_to(&mut outcomes, REPORT_FACTS_MAX))?;
    let others = others_of_runs(snapshot, boundary, &outcomes)?;
    for outcome in outcomes.iter().chain(&others) {
        resolving.touch(of_outcome(outcome));
    }
    resolving.read(snapshot, boundary)?;

    let mut told = Told::new(resolving);
    let mut declined = Counts::default();
    let mut pull_requests: HashSet<(Mention<'_>, &CommitSha, Option<i64>)> = HashSet::new();
    for outcome in &outcomes {
        if !attributed.contains(&outcome.commit_sha) {
            continue;
        }
        let mention = of_outcome(outcome);
        if let Err(decline) = told.of(mention) {
            declined.add(*decline, 1);
        }
        pull_requests.insert((mention, &outcome.commit_sha, outcome.pr_number));
    }
    let pull_requests = pull_requests.into_iter();
    let pull_requests = pull_requests
        .map(|(mention, commit_sha, pr_number)| CommitPullRequest {
            repo: mention.name.to_owned(),
            repository: mention.identity.cloned(),
            commit_sha: commit_sha.clone(),
            pr_number,
        })
        .collect();
    let repositories: Vec<Result<Lifetime, RepositoryDecline>> = outcomes
        .iter()
        .chain(&others)
        .map(|outcome| told.of(of_outcome(outcome)).clone())
        .collect();
    let attempts = outcomes.into_iter().chain(others).zip(repositories);
    let attempts: Vec<CiAttempt> = attempts.map(attempt).collect();
    Ok(CohortCi {
        resolution: CiResolution::new(&attempts),
        declined,
        pull_requests,
    })
}

/// Reads the outcomes of the same runs that are not known yet.
fn others_of_runs(
    snapshot: &mut Snapshot<'_>,
    boundary: Instant,
    outcomes: &[CohortOutcome],
) -> Result<Vec<CohortOutcome>, Error> {
    let runs: HashSet<RunKey<'_>> = outcomes.iter().map(run).collect();
    let mut known: HashMap<&str, u64> = HashMap::with_capacity(runs.len());
    for outcome in outcomes {
        *known.entry(&outcome.run_id).or_default() += 1;
    }
    // Few runs say anything of another commit: all of the others are known.
    let mut run_ids: Vec<&str> = known.keys().copied().collect();
    run_ids.sort_unstable();
    let (mut open, others) = of_halves(snapshot, &run_ids, |snapshot, run_ids| {
        let mut open: HashSet<String> = HashSet::new();
        snapshot.ci_outcomes_stored(run_ids, |run_id, stored| {
            if known.get(run_id).is_some_and(|known| *known < stored) {
                open.insert(run_id.to_owned());
            }
        })?;
        Ok::<_, StoreError>(open)
    })?;
    open.extend(others);
    run_ids.retain(|run_id| open.contains(*run_id));

    let known: HashSet<_> = outcomes.iter().map(|outcome| outcome.outcome_id).collect();
    let mut others = Vec::new();
    let others_max = REPORT_FACTS_MAX - outcomes.len();
    snapshot.ci_outcomes_of_runs(&run_ids, boundary, &known, |outcome| {
        if !runs.contains(&run(&outcome)) {
            return Ok(());
        }
        if others.len() == others_max {
            return Err(StoreError::TooMany);
        }
        others.push(outcome);
        Ok(())
    })?;
    Ok(others)
}

/// To which repository each mention leads, of which there are few.
struct Told<'t> {
    resolving: &'t Resolving,
    told: HashMap<Mention<'t>, Result<Lifetime, RepositoryDecline>>,
}

impl<'t> Told<'t> {
    fn new(resolving: &'t Resolving) -> Self {
        Self {
            resolving,
            told: HashMap::new(),
        }
    }

    fn of(&mut self, mention: Mention<'t>) -> &Result<Lifetime, RepositoryDecline> {
        let told = self.told.entry(mention);
        told.or_insert_with(|| self.resolving.of(mention))
    }
}

fn run(outcome: &CohortOutcome) -> RunKey<'_> {
    let forge = outcome.repository.as_ref();
    let forge = forge.map(|it| (it.repository_provider, &it.repository_host));
    (outcome.provider, forge, &outcome.run_id)
}

fn attempt(
    (outcome, repository): (CohortOutcome, Result<Lifetime, RepositoryDecline>),
) -> CiAttempt {
    CiAttempt {
        outcome_id: outcome.outcome_id,
        provider: outcome.provider,
        forge: outcome.repository.as_ref().map(forge),
        number: outcome.run_attempt.unwrap_or(ABSENT_ATTEMPT),
        repository,
        workflow: Workflow::of(
            outcome.workflow_id,
            outcome.workflow_path,
            &outcome.workflow_name,
        ),
        run_id: outcome.run_id,
        commit_sha: outcome.commit_sha,
        branch: outcome.branch,
        result: outcome.result,
    }
}
