//! CI outcomes at commits, and the others of their runs.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use svc_engine_store::{CohortOutcome, Snapshot, StoreError};
use svc_model::id::FactId;
use svc_model::ingest::CiProvider;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::repository::{CommitSha, RepositoryHost, RepositoryProvider};
use svc_model::time::Instant;

use super::halves::look_up;

/// What distinguishes runs.
type RunKey<'o> = (
    CiProvider,
    Option<(RepositoryProvider, &'o RepositoryHost)>,
    &'o str,
);

/// The outcomes of a cohort.
pub(super) struct Outcomes {
    /// Those at its commits.
    pub(super) at: Vec<CohortOutcome>,
    /// Those at other commits, of the same runs.
    pub(super) beside: Vec<CohortOutcome>,
}

impl Outcomes {
    /// Reads the outcomes at commits, and every other outcome of their runs, that were captured by
    /// a boundary and answer for their runs then.
    pub(super) fn read(
        snapshot: &mut Snapshot<'_>,
        commits: &[&CommitSha],
        boundary: Instant,
    ) -> Result<Self, StoreError> {
        let mut at = look_up(snapshot, commits, |snapshot, commits, take| {
            let mut count = 0;
            snapshot.ci_outcomes_of_commits(commits, boundary, |outcome| {
                count += 1;
                if count > REPORT_FACTS_MAX {
                    return Err(StoreError::TooMany);
                }
                take(outcome)
            })
        })?;
        if at.len() > REPORT_FACTS_MAX {
            return Err(StoreError::TooMany);
        }
        let mut beside = others_of_runs(snapshot, boundary, &at)?;
        let answers = |outcome: &CohortOutcome| {
            let superseded_at = outcome.superseded_at;
            superseded_at.is_none_or(|superseded_at| superseded_at > boundary)
        };
        at.retain(answers);
        let runs: HashSet<RunKey<'_>, RandomState> = at.iter().map(run).collect();
        beside.retain(|other| answers(other) && runs.contains(&run(other)));
        Ok(Self { at, beside })
    }
}

/// Reads the outcomes of the same runs that are not known yet.
fn others_of_runs(
    snapshot: &mut Snapshot<'_>,
    boundary: Instant,
    outcomes: &[CohortOutcome],
) -> Result<Vec<CohortOutcome>, StoreError> {
    let runs: HashSet<RunKey<'_>, RandomState> = outcomes.iter().map(run).collect();
    let mut known: HashMap<&str, u64, RandomState> =
        HashMap::with_capacity_and_hasher(runs.len(), RandomState::default());
    for outcome in outcomes {
        *known.entry(&outcome.run_id).or_default() += 1;
    }
    // Most runs concern only known commits, so all of their outcomes are known already.
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

fn run(outcome: &CohortOutcome) -> RunKey<'_> {
    let forge = outcome.place.repository.as_ref();
    let forge = forge.map(|identity| (identity.repository_provider, &identity.repository_host));
    (outcome.provider, forge, &outcome.run_id)
}
