//! What CI says about a commit: attempts form a run, and runs form a verdict.
//!
//! Only `passed` and `failed` are verdicts. The last attempt that has one decides its run. A commit
//! has the verdict that all of its runs with a verdict share, and none if they differ. A run whose
//! outcomes contradict each other counts for no commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};
use svc_engine_fact::{CiOutcome, Lifetime};
use svc_model::id::FactId;
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::Text;
use svc_model::reports::{CiCommitSkip, CiRunSkip, CiSkips};
use svc_model::repository::{
    Branch, CommitSha, RepositoryDecline, RepositoryHost, RepositoryIdentity, RepositoryProvider,
};

/// The number of an attempt reported without one.
pub const ABSENT_ATTEMPT: i64 = 0;

/// The outcome of one attempt of a run, with what reports need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiAttempt {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: CiProvider,
    /// The system's id of the run.
    pub run_id: Arc<str>,
    /// The number of the attempt, or [`ABSENT_ATTEMPT`].
    pub number: i64,
    /// Where it was run; shared by many attempts.
    pub place: Arc<AttemptPlace>,
    /// What was run; shared by many attempts.
    pub workflow: Arc<Workflow>,
    /// The result.
    pub result: CiResult,
}

/// Where an attempt was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptPlace {
    /// The forge of the fact; `None` if the fact has no repository identity.
    pub forge: Option<Forge>,
    /// The repository, or why it cannot be determined.
    pub repository: Result<Lifetime, RepositoryDecline>,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The branch.
    pub branch: Branch,
}

/// What was run. Unknown members are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Workflow {
    /// The CI system's id of it.
    pub id: Option<String>,
    /// Where it is defined.
    pub path: Option<String>,
    /// Its name.
    pub name: Option<String>,
}

impl Workflow {
    /// Builds it from the members of an outcome. Empty ones are unknown.
    pub fn of(id: Option<String>, path: Option<String>, name: &Text) -> Self {
        let known = |text: Option<String>| text.filter(|text| !text.is_empty());
        Self {
            id: known(id),
            path: known(path),
            name: known(Some(name.to_string_lossy().into_owned())),
        }
    }

    /// Returns whether the two may be one: what is known of both is equal.
    fn may_be(&self, other: &Self) -> bool {
        let own = [&self.id, &self.path, &self.name];
        let mut both = own.into_iter().zip([&other.id, &other.path, &other.name]);
        both.all(|(one, other)| one.is_none() || other.is_none() || one == other)
    }
}

/// The forge of a run, by its provider and host.
pub type Forge = (RepositoryProvider, RepositoryHost);

/// Returns the forge of a repository.
pub fn forge(repository: &RepositoryIdentity) -> Forge {
    (
        repository.repository_provider,
        repository.repository_host.clone(),
    )
}

impl CiAttempt {
    /// Builds it from an outcome, whose repository is given.
    pub fn of(outcome: &CiOutcome, repository: Result<Lifetime, RepositoryDecline>) -> Self {
        Self {
            outcome_id: outcome.outcome_id,
            provider: outcome.provider,
            run_id: outcome.run_id.as_str().into(),
            number: outcome.run_attempt.unwrap_or(ABSENT_ATTEMPT),
            place: Arc::new(AttemptPlace {
                forge: outcome.repository.as_ref().map(forge),
                repository,
                commit_sha: outcome.commit_sha.clone(),
                branch: outcome.branch.clone(),
            }),
            workflow: Arc::new(Workflow::of(
                outcome.workflow_id.clone(),
                outcome.workflow_path.clone(),
                &outcome.workflow_name,
            )),
            result: outcome.result,
        }
    }

    /// Returns what distinguishes runs. The repository's id is left out, so that a run that names
    /// two repositories is recognised as contradicting itself.
    fn run(&self) -> (CiProvider, &Option<Forge>, &str) {
        (self.provider, &self.place.forge, &self.run_id)
    }
}

/// Passed or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

/// A run at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiRun {
    /// The CI system.
    pub provider: CiProvider,
    /// What was run.
    pub workflow: Arc<Workflow>,
    /// The result of the last attempt with a verdict, if any.
    pub verdict: Option<Verdict>,
    /// Whether some attempts passed and some failed.
    pub suspected_flake: bool,
}

/// What CI says about a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitCi {
    /// The runs that count, in a fixed order. If empty, the commit has no CI evidence that counts.
    pub runs: Vec<CiRun>,
    /// The verdict that all runs with a verdict share.
    pub verdict: Option<Verdict>,
    /// Whether runs have different verdicts.
    pub is_ambiguous: bool,
    /// Whether a run that contradicts itself names the commit.
    pub is_contradicted: bool,
}

impl CommitCi {
    /// Returns whether any run has attempts that passed and attempts that failed.
    pub fn suspected_flake(&self) -> bool {
        self.runs.iter().any(|run| run.suspected_flake)
    }

    /// Returns whether any run has a verdict.
    pub fn has_verdicts(&self) -> bool {
        self.verdict.is_some() || self.is_ambiguous
    }

    /// Returns the workflows that failed, and of which no run passed. If a workflow ran several
    /// times and its runs differ, nobody can tell which of them was the last.
    pub fn failed_workflows(&self) -> BTreeSet<&Workflow> {
        let of = |verdict| -> BTreeSet<(CiProvider, &Workflow)> {
            let runs = self.runs.iter();
            let runs = runs.filter(|run| run.verdict == Some(verdict));
            runs.map(|run| (run.provider, &*run.workflow)).collect()
        };
        let passed = of(Verdict::Passed);
        let failed = of(Verdict::Failed).into_iter();
        let failed = failed.filter(|(provider, workflow)| {
            let mut others = passed.iter();
            !others.any(|(other, passed)| other == provider && passed.may_be(workflow))
        });
        failed.map(|(_, workflow)| workflow).collect()
    }

    fn decide(&mut self) {
        let mut verdicts = self.runs.iter().filter_map(|run| run.verdict);
        let first = verdicts.next();
        self.is_ambiguous = verdicts.any(|verdict| Some(verdict) != first);
        self.verdict = first.filter(|_| !self.is_ambiguous);
    }
}

/// What CI says about commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiResolution {
    commits: BTreeMap<Lifetime, HashMap<CommitSha, CommitCi, RandomState>>,
    /// What was not counted.
    pub skipped: CiSkips,
}

impl CiResolution {
    /// Resolves attempts. If any attempt of a run is given, all must be. Takes as long as sorting.
    pub fn new(attempts: &[CiAttempt]) -> Self {
        // Groups the attempts of each run, in an order of runs that is always the same. Hashes are
        // compared first because they are cheaper than the texts that distinguish runs.
        let hasher = FixedState::default();
        let hash = |attempt: &CiAttempt| hasher.hash_one(attempt.run());
        let mut hashed: Vec<(u64, &CiAttempt)> = attempts
            .iter()
            .map(|attempt| (hash(attempt), attempt))
            .collect();
        hashed.sort_unstable_by(|(hash, first), (other, second)| {
            let place = |attempt: &CiAttempt| (attempt.number, attempt.outcome_id);
            hash.cmp(other)
                .then_with(|| first.run().cmp(&second.run()))
                .then_with(|| place(first).cmp(&place(second)))
        });
        let mut attempts: Vec<&CiAttempt> =
            hashed.into_iter().map(|(_, attempt)| attempt).collect();
        attempts.dedup_by_key(|attempt| attempt.outcome_id);
        let mut resolution = Self::default();
        for run in attempts.chunk_by(|first, second| first.run() == second.run()) {
            resolution.add(run);
        }
        for commit in resolution
            .commits
            .values_mut()
            .flat_map(HashMap::values_mut)
        {
            commit.decide();
            let ambiguous = u64::from(commit.is_ambiguous);
            resolution
                .skipped
                .commits
                .add(CiCommitSkip::Ambiguous, ambiguous);
        }
        resolution
    }

    /// Returns what CI says about a commit; `None` if no run names it.
    pub fn of(&self, repository: &Lifetime, commit_sha: &CommitSha) -> Option<&CommitCi> {
        self.commits.get(repository)?.get(commit_sha)
    }

    fn add(&mut self, attempts: &[&CiAttempt]) {
        let mut is_declined = false;
        for decline in attempts
            .iter()
            .filter_map(|attempt| attempt.place.repository.as_ref().err())
        {
            self.skipped.source_outcomes.add(*decline, 1);
            is_declined = true;
        }
        if is_declined {
            return;
        }
        let Some(run) = resolve(attempts) else {
            self.skipped.runs.add(CiRunSkip::ConflictingIdentity, 1);
            for attempt in attempts {
                if let Some(commit) = self.commit(&attempt.place) {
                    commit.is_contradicted = true;
                }
            }
            return;
        };
        if let Some(commit) = attempts
            .first()
            .and_then(|attempt| self.commit(&attempt.place))
        {
            commit.runs.push(run);
        }
    }

    fn commit(&mut self, place: &AttemptPlace) -> Option<&mut CommitCi> {
        let repository = place.repository.as_ref().ok()?;
        if !self.commits.contains_key(repository) {
            self.commits.insert(repository.clone(), HashMap::default());
        }
        let commits = self.commits.get_mut(repository)?;
        Some(commits.entry(place.commit_sha.clone()).or_default())
    }
}

/// Returns the run formed by attempts sorted by number; `None` if they contradict each other.
fn resolve(attempts: &[&CiAttempt]) -> Option<CiRun> {
    let first = *attempts.first()?;
    let mut workflow = Arc::clone(&first.workflow);
    let mut last: Option<&CiAttempt> = None;
    let mut verdict = None;
    let (mut passed, mut failed) = (false, false);
    for attempt in attempts {
        let same_place = attempt.place == first.place;
        let same_result =
            last.is_none_or(|last| last.number != attempt.number || last.result == attempt.result);
        let same_workflow = workflow == attempt.workflow || {
            let (known, other) = (Arc::make_mut(&mut workflow), &attempt.workflow);
            agree(&mut known.id, other.id.as_ref())
                && agree(&mut known.path, other.path.as_ref())
                && agree(&mut known.name, other.name.as_ref())
        };
        if !(same_place && same_result && same_workflow) {
            return None;
        }
        let own = verdict_of(attempt.result);
        passed |= own == Some(Verdict::Passed);
        failed |= own == Some(Verdict::Failed);
        verdict = own.or(verdict);
        last = Some(attempt);
    }
    Some(CiRun {
        provider: first.provider,
        workflow,
        verdict,
        suspected_flake: passed && failed,
    })
}

/// Adopts `other` if nothing is known yet. Returns whether the two agree.
fn agree(known: &mut Option<String>, other: Option<&String>) -> bool {
    match (&known, other) {
        (_, None) => true,
        (None, Some(other)) => {
            *known = Some(other.clone());
            true
        }
        (Some(known), Some(other)) => known == other,
    }
}

/// Returns the verdict for a result, if it is one.
pub(super) const fn verdict_of(result: CiResult) -> Option<Verdict> {
    match result {
        CiResult::Passed => Some(Verdict::Passed),
        CiResult::Failed => Some(Verdict::Failed),
        CiResult::Error
        | CiResult::TimedOut
        | CiResult::Cancelled
        | CiResult::Skipped
        | CiResult::Neutral
        | CiResult::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
