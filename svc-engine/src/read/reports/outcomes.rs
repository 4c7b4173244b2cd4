//! CI outcomes at commits, remembered between reports.
//!
//! What was read for a commit is valid until an outcome of one of its runs is stored, or something
//! is quarantined or released. Each report asks which outcomes were stored since the last one, and
//! forgets the commits that they concern. Outcomes captured after a report's boundary are left out
//! of it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use svc_engine_store::{CohortOutcome, OutcomesEnd, Snapshot, StoreError};
use svc_model::id::FactId;
use svc_model::ingest::CiProvider;
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::repository::{CommitSha, RepositoryHost, RepositoryProvider};
use svc_model::time::Instant;

use super::halves::look_up;
use super::memory::{Bytes, MemoryUse, MeteredCache};

/// What distinguishes runs.
type RunKey<'o> = (
    CiProvider,
    Option<(RepositoryProvider, &'o RepositoryHost)>,
    &'o str,
);

/// What is known about each of some commits.
type KnownOutcomes = Vec<Option<Arc<CommitOutcomes>>>;

/// All visible outcomes at a commit, and those of the same runs at other commits.
#[derive(Debug, Default)]
pub(super) struct CommitOutcomes {
    pub(super) at: Vec<CohortOutcome>,
    pub(super) beside: Vec<CohortOutcome>,
}

impl Bytes for Arc<CommitOutcomes> {
    fn bytes(&self) -> u64 {
        // With the texts that outcomes at a commit share.
        640 + 152 * (self.at.len() + self.beside.len()) as u64
    }
}

/// The remembered outcomes at commits.
#[derive(Debug)]
pub(super) struct RememberedOutcomes {
    commits: MeteredCache<CommitSha, Arc<CommitOutcomes>>,
    /// The state in which all of them are valid.
    end: Mutex<OutcomesEnd>,
}

impl RememberedOutcomes {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            commits: MeteredCache::new(bytes_max, 2_048),
            end: Mutex::default(),
        }
    }

    pub(super) fn used(&self) -> MemoryUse {
        self.commits.used()
    }

    /// Returns what is known about commits in the state of a snapshot, and that state. This may
    /// include outcomes captured later, if a concurrent report has read them.
    fn recall(
        &self,
        snapshot: &mut Snapshot<'_>,
        commits: &[&CommitSha],
    ) -> Result<(OutcomesEnd, KnownOutcomes), StoreError> {
        let end = snapshot.outcomes_end()?;
        let earlier = self.end().clone();
        let changed = if earlier == end {
            Some(BTreeSet::new())
        } else {
            snapshot.commits_of_outcomes_since(&earlier, &end)?
        };
        let mut current = self.end();
        if *current == earlier {
            match changed {
                Some(changed) => changed
                    .iter()
                    .for_each(|commit| self.commits.remove(commit)),
                None => self.commits.clear(),
            }
            *current = end.clone();
        }
        let known = if *current == end {
            commits
                .iter()
                .map(|commit| self.commits.get(commit))
                .collect()
        } else {
            vec![None; commits.len()]
        };
        Ok((end, known))
    }

    /// Keeps what was read in a state, unless the memory has moved on from that state.
    fn keep(&self, end: &OutcomesEnd, commits: &[&CommitSha], read: &[Arc<CommitOutcomes>]) {
        let current = self.end();
        if *current == *end {
            for (commit, read) in commits.iter().zip(read) {
                self.commits.insert((*commit).clone(), Arc::clone(read));
            }
        }
    }

    fn end(&self) -> MutexGuard<'_, OutcomesEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the outcomes at commits and in their runs, in the order of the commits. They may
    /// include outcomes captured after the boundary.
    pub(super) fn read(
        &self,
        snapshot: &mut Snapshot<'_>,
        commits: &[&CommitSha],
        boundary: Instant,
    ) -> Result<Vec<Arc<CommitOutcomes>>, StoreError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let (end, mut known) = self.recall(snapshot, commits)?;
        let missing = commits.iter().zip(&known);
        let missing = missing.filter(|(_, known)| known.is_none());
        let missing: Vec<&CommitSha> = missing.map(|(commit, _)| *commit).collect();
        if !missing.is_empty() {
            let last = snapshot.boundary(None)?;
            let read = match whole(snapshot, &missing, last) {
                Ok(whole) => {
                    self.keep(&end, &missing, &whole);
                    whole
                }
                // Outcomes captured later do not count.
                Err(StoreError::TooMany) if boundary < last => whole(snapshot, &missing, boundary)?,
                Err(error) => return Err(error),
            };
            let mut read = read.into_iter();
            for known in known.iter_mut().filter(|known| known.is_none()) {
                *known = read.next();
            }
        }
        Ok(known.into_iter().flatten().collect())
    }
}

/// The outcomes of a cohort up to a boundary.
pub(super) struct Outcomes<'o> {
    /// Those at its commits.
    pub(super) at: Vec<&'o CohortOutcome>,
    /// Those at other commits, of the same runs.
    pub(super) beside: Vec<&'o CohortOutcome>,
}

impl<'o> Outcomes<'o> {
    /// Selects the outcomes captured by a boundary that answer for their runs then.
    pub(super) fn of(
        commits: &'o [Arc<CommitOutcomes>],
        boundary: Instant,
    ) -> Result<Self, StoreError> {
        let answers = |outcome: &&CohortOutcome| {
            let is_superseded = outcome.superseded_at.is_some_and(|at| at <= boundary);
            outcome.captured_at <= boundary && !is_superseded
        };
        let at = commits.iter().flat_map(|commit| &commit.at);
        let at: Vec<&CohortOutcome> = at.filter(answers).collect();
        let mut beside: Vec<&CohortOutcome> = Vec::new();
        if commits.iter().any(|commit| !commit.beside.is_empty()) {
            let mut known: HashSet<FactId, RandomState> =
                at.iter().map(|outcome| outcome.outcome_id).collect();
            let runs: HashSet<RunKey<'_>, RandomState> = at.iter().copied().map(run).collect();
            let others = commits.iter().flat_map(|commit| &commit.beside);
            for other in others.filter(answers) {
                if runs.contains(&run(other)) && known.insert(other.outcome_id) {
                    beside.push(other);
                }
            }
        }
        if at.len() + beside.len() > REPORT_FACTS_MAX {
            return Err(StoreError::TooMany);
        }
        Ok(Self { at, beside })
    }
}

/// Reads the outcomes at commits captured by a boundary, and every other outcome of their runs, in
/// the order of the commits.
fn whole(
    snapshot: &mut Snapshot<'_>,
    commits: &[&CommitSha],
    boundary: Instant,
) -> Result<Vec<Arc<CommitOutcomes>>, StoreError> {
    let outcomes = look_up(snapshot, commits, |snapshot, commits, take| {
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
        return Err(StoreError::TooMany);
    }
    let others = others_of_runs(snapshot, boundary, &outcomes)?;
    let places: HashMap<&CommitSha, usize, RandomState> = commits
        .iter()
        .enumerate()
        .map(|(place, commit)| (*commit, place))
        .collect();
    let mut whole: Vec<CommitOutcomes> = Vec::with_capacity(commits.len());
    whole.resize_with(commits.len(), CommitOutcomes::default);
    if !others.is_empty() {
        let mut of_runs: HashMap<RunKey<'_>, HashSet<usize, RandomState>, RandomState> =
            HashMap::default();
        for outcome in &outcomes {
            if let Some(place) = places.get(&outcome.place.commit_sha) {
                of_runs.entry(run(outcome)).or_default().insert(*place);
            }
        }
        for other in &others {
            for place in of_runs.get(&run(other)).into_iter().flatten() {
                whole[*place].beside.push(other.clone());
            }
        }
    }
    for outcome in outcomes {
        if let Some(place) = places.get(&outcome.place.commit_sha) {
            whole[*place].at.push(outcome);
        }
    }
    Ok(whole
        .into_iter()
        .map(|mut commit| {
            commit.at.shrink_to_fit();
            Arc::new(commit)
        })
        .collect())
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
