//! What CI says about the commits of a cohort.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::ci::{
    ABSENT_ATTEMPT, AttemptPlace, CiAttempt, CiResolution, Workflow, forge,
};
use svc_engine_derive::merge_retention::CiMembership;
use svc_engine_store::{CohortOutcome, OutcomePlace, Snapshot};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::outcomes::Outcomes;
use super::resolving::{Resolving, of_place};
use crate::error::Error;

/// The outcomes at the commits of a cohort and in their runs, and their resolution.
pub(super) struct CohortCi {
    pub(super) resolution: CiResolution,
    /// The pull requests that outcomes of known repositories name for the commits.
    pub(super) pull_requests: Vec<CiMembership>,
}

/// Reads the outcomes at commits, and every other outcome of their runs.
pub(super) fn read(
    snapshot: &mut Snapshot<'_>,
    resolving: &mut Resolving,
    boundary: Instant,
    of: &BTreeSet<&CommitSha>,
) -> Result<CohortCi, Error> {
    let commits: Vec<&CommitSha> = of.iter().copied().collect();
    let Outcomes { at, beside } = Outcomes::read(snapshot, &commits, boundary)?;
    // Many outcomes share a place, so each place is looked at once.
    let mut touched: HashSet<*const OutcomePlace, RandomState> = HashSet::default();
    for outcome in at.iter().chain(&beside) {
        if touched.insert(Arc::as_ptr(&outcome.place)) {
            resolving.touch(of_place(&outcome.place));
        }
    }
    resolving.read(snapshot, boundary)?;

    let mut places = Made::default();
    let mut place = |outcome: &CohortOutcome| {
        places.of(&outcome.place, |place| AttemptPlace {
            forge: place.repository.as_ref().map(forge),
            repository: resolving.of(of_place(place)),
            commit_sha: place.commit_sha.clone(),
            branch: place.branch.clone(),
        })
    };
    let mut named: HashSet<(*const OutcomePlace, i64), RandomState> = HashSet::default();
    let mut pull_requests = Vec::new();
    for outcome in &at {
        let key = Arc::as_ptr(&outcome.place);
        let Some(pr_number) = outcome.pr_number else {
            continue;
        };
        if !named.insert((key, pr_number)) {
            continue;
        }
        // Nobody knows whose commit and pull request it is if the repository is unknown.
        if let Ok(repository) = &place(outcome).repository {
            pull_requests.push(CiMembership {
                repository: repository.clone(),
                pr_number,
                commit_sha: outcome.place.commit_sha.clone(),
            });
        }
    }
    let mut workflows = Made::default();
    let attempts: Vec<CiAttempt> = at
        .iter()
        .chain(&beside)
        .map(|outcome| CiAttempt {
            outcome_id: outcome.outcome_id,
            provider: outcome.provider,
            run_id: Arc::clone(&outcome.run_id),
            number: outcome.run_attempt.unwrap_or(ABSENT_ATTEMPT),
            place: place(outcome),
            workflow: workflows.of(&outcome.workflow, |workflow| {
                Workflow::of(workflow.id.clone(), workflow.path.clone(), &workflow.name)
            }),
            result: outcome.result,
        })
        .collect();
    Ok(CohortCi {
        resolution: CiResolution::new(&attempts),
        pull_requests,
    })
}

/// What was made from each value that many outcomes share.
struct Made<T, M>(HashMap<*const T, Arc<M>, RandomState>);

impl<T, M> Default for Made<T, M> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T, M> Made<T, M> {
    /// Returns what is made from a value. The value must outlive `self`, because values are
    /// identified by their addresses.
    fn of(&mut self, shared: &Arc<T>, make: impl FnOnce(&T) -> M) -> Arc<M> {
        let made = self.0.entry(Arc::as_ptr(shared));
        Arc::clone(made.or_insert_with(|| Arc::new(make(shared))))
    }
}
