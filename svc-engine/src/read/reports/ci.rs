//! What CI says of the commits of a cohort.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_model::id::FactId;
use svc_model::ingest::CiProvider;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::Counts;
use svc_model::repository::{CommitSha, RepositoryDecline, RepositoryHost, RepositoryProvider};
use svc_model::time::Instant;

use super::halves::look_up;
use super::resolving::{Resolving, of_place};
use crate::derive::ci::{ABSENT_ATTEMPT, AttemptPlace, CiAttempt, CiResolution, Workflow, forge};
use crate::derive::repository::Mention;
use crate::error::Error;
use crate::store::{CohortOutcome, OutcomePlace, Snapshot, StoreError};

/// The outcomes at the commits of a cohort and in their runs, and what they make.
pub(super) struct CohortCi {
    pub(super) resolution: CiResolution,
    /// What the outcomes at the attributed commits say of pull requests.
    pub(super) pull_requests: Vec<CommitPullRequest>,
    /// The outcomes at the attributed commits whose repository cannot be determined.
    pub(super) declined: Counts<RepositoryDecline>,
}

/// The pull request that outcomes at a commit name, if they do.
pub(super) struct CommitPullRequest {
    place: Arc<OutcomePlace>,
    pub(super) pr_number: Option<i64>,
}

impl CommitPullRequest {
    pub(super) fn mention(&self) -> Mention<'_> {
        of_place(&self.place)
    }

    pub(super) fn commit_sha(&self) -> &CommitSha {
        &self.place.commit_sha
    }
}

/// The repository, the commit and the pull request that an outcome names.
type NamedAt<'o> = (Mention<'o>, &'o CommitSha, Option<i64>);

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
    let outcomes = look_up(snapshot, &commits, |snapshot, commits, take| {
        let mut count = 0;
        snapshot.ci_outcomes_of_commits(commits, boundary, |outcome| {
            count += 1;
            if count > REPORT_FACTS_MAX {
                return Err(StoreError::TooMany);
            }
            take(outcome)
        })
    })?;
    if outcomes.len() > REPORT_FACTS_MAX {
        return Err(StoreError::TooMany.into());
    }
    let others = others_of_runs(snapshot, boundary, &outcomes)?;
    for outcome in outcomes.iter().chain(&others) {
        resolving.touch(of_place(&outcome.place));
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
    let mut declined = Counts::default();
    let mut pull_requests: HashMap<NamedAt<'_>, CommitPullRequest, RandomState> =
        HashMap::default();
    for outcome in &outcomes {
        if !attributed.contains(&outcome.place.commit_sha) {
            continue;
        }
        if let Err(decline) = &place(outcome).repository {
            declined.add(*decline, 1);
        }
        let named = CommitPullRequest {
            place: Arc::clone(&outcome.place),
            pr_number: outcome.pr_number,
        };
        let mention = of_place(&outcome.place);
        let key = (mention, &outcome.place.commit_sha, outcome.pr_number);
        pull_requests.entry(key).or_insert(named);
    }
    let pull_requests = pull_requests.into_values().collect();
    let mut workflows = Made::default();
    let attempts: Vec<CiAttempt> = outcomes
        .iter()
        .chain(&others)
        .map(|outcome| CiAttempt {
            outcome_id: outcome.outcome_id,
            provider: outcome.provider,
            run_id: outcome.run_id.clone(),
            number: outcome.run_attempt.unwrap_or(ABSENT_ATTEMPT),
            place: place(outcome),
            workflow: workflows.of(&outcome.workflow, |it| {
                Workflow::of(it.id.clone(), it.path.clone(), &it.name)
            }),
            result: outcome.result,
        })
        .collect();
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
    let runs: HashSet<RunKey<'_>, RandomState> = outcomes.iter().map(run).collect();
    let mut known: HashMap<&str, u64, RandomState> =
        HashMap::with_capacity_and_hasher(runs.len(), RandomState::default());
    for outcome in outcomes {
        *known.entry(&outcome.run_id).or_default() += 1;
    }
    // Few runs say anything of another commit: all of the others are known.
    let mut run_ids: Vec<&str> = known.keys().copied().collect();
    run_ids.sort_unstable();
    let open = look_up(snapshot, &run_ids, |snapshot, run_ids, take| {
        let mut open = Vec::new();
        snapshot.ci_outcomes_stored(run_ids, |run_id, stored| {
            if known.get(run_id).is_some_and(|known| *known < stored) {
                open.push(run_id.to_owned());
            }
        })?;
        open.into_iter().try_for_each(take)
    })?;
    let open: HashSet<String, RandomState> = open.into_iter().collect();
    run_ids.retain(|run_id| open.contains(*run_id));

    let known: HashSet<FactId, RandomState> =
        outcomes.iter().map(|outcome| outcome.outcome_id).collect();
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

/// What is made of each thing that many outcomes share.
struct Made<T, M>(HashMap<*const T, Arc<M>, RandomState>);

impl<T, M> Default for Made<T, M> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T, M> Made<T, M> {
    /// Returns what is made of a thing. It must live as long as this: things are told apart by where they
    /// lie.
    fn of(&mut self, thing: &Arc<T>, make: impl FnOnce(&T) -> M) -> Arc<M> {
        let made = self.0.entry(Arc::as_ptr(thing));
        Arc::clone(made.or_insert_with(|| Arc::new(make(thing))))
    }
}

fn run(outcome: &CohortOutcome) -> RunKey<'_> {
    let forge = outcome.place.repository.as_ref();
    let forge = forge.map(|it| (it.repository_provider, &it.repository_host));
    (outcome.provider, forge, &outcome.run_id)
}
