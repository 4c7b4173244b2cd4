//! What CI says of the commits of a cohort.

use std::collections::{BTreeSet, HashSet};

use svc_model::ingest::CiProvider;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::Counts;
use svc_model::repository::{CommitSha, RepositoryDecline};
use svc_model::time::Instant;

use super::population::up_to;
use super::resolving::{Resolving, of_outcome};
use crate::derive::ci::{ABSENT_ATTEMPT, CiAttempt, CiResolution, Forge, Workflow, forge};
use crate::error::Error;
use crate::store::{CohortOutcome, Snapshot, StoreError};

/// The outcomes at the commits of a cohort and in their runs, and what they make.
pub(super) struct CohortCi {
    pub(super) resolution: CiResolution,
    /// The outcomes at the attributed commits.
    pub(super) outcomes: Vec<CohortOutcome>,
    /// Those of them whose repository cannot be told.
    pub(super) declined: Counts<RepositoryDecline>,
}

/// What tells one run from another.
type RunKey = (CiProvider, Option<Forge>, String);

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

    let known: HashSet<_> = outcomes.iter().map(|outcome| outcome.outcome_id).collect();
    let runs: HashSet<RunKey> = outcomes.iter().map(run).collect();
    let run_ids: BTreeSet<&str> = runs.iter().map(|(_, _, run_id)| run_id.as_str()).collect();
    let run_ids: Vec<&str> = run_ids.into_iter().collect();
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
    for outcome in outcomes.iter().chain(&others) {
        resolving.touch(of_outcome(outcome));
    }
    resolving.read(snapshot, boundary)?;

    let attempts = outcomes.iter().chain(&others);
    let attempts = attempts
        .map(|outcome| attempt(outcome, resolving))
        .collect();
    outcomes.retain(|outcome| attributed.contains(&outcome.commit_sha));
    let declined = outcomes
        .iter()
        .filter_map(|outcome| resolving.of(of_outcome(outcome)).err());
    Ok(CohortCi {
        resolution: CiResolution::new(attempts),
        declined: declined.map(|decline| (decline, 1)).collect(),
        outcomes,
    })
}

fn forge_of(outcome: &CohortOutcome) -> Option<Forge> {
    outcome.repository.as_ref().map(forge)
}

fn run(outcome: &CohortOutcome) -> RunKey {
    (outcome.provider, forge_of(outcome), outcome.run_id.clone())
}

fn attempt(outcome: &CohortOutcome, resolving: &Resolving) -> CiAttempt {
    CiAttempt {
        outcome_id: outcome.outcome_id,
        provider: outcome.provider,
        forge: forge_of(outcome),
        run_id: outcome.run_id.clone(),
        number: outcome.run_attempt.unwrap_or(ABSENT_ATTEMPT),
        repository: resolving.of(of_outcome(outcome)),
        commit_sha: outcome.commit_sha.clone(),
        branch: outcome.branch.clone(),
        workflow: Workflow::of(
            outcome.workflow_id.as_deref(),
            outcome.workflow_path.as_deref(),
            &outcome.workflow_name,
        ),
        result: outcome.result,
    }
}
