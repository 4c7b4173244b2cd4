//! What reports look up for the calls of their cohort: where Sessions were observed, what CI says
//! of commits and runs, and the pull requests of repositories. Rows are passed on as they arrive,
//! in no particular order.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_fact::{Lifetime, PullRequestMerge, PullRequestRevision};
use svc_model::facts::FactTable;
use svc_model::id::{FactId, SessionId};
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::Text;
use svc_model::repository::{Branch, CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::cohort::{CohortCall, calls};
use super::deliveries::{ObservationRow, observed};
use super::snapshot::Snapshot;
use crate::pack::column::{ColumnForm as _, Columns, OrZero};
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record;

/// Calls of Sessions in a range of time. Few Sessions have many.
const CALLS: Lookup<'_> = Lookup {
    select: calls!(
        "f.observed_at_us + 0 >= $2 AND f.observed_at_us + 0 < $3
            AND f.session_number IN (SELECT n.session_number FROM sessions n
                WHERE n.org_id = $1 AND n.session_id"
    ),
    then: ")",
};

const OBSERVED_OF_SESSIONS: Lookup<'_> = Lookup {
    select: observed!("$2", "f.session_id"),
    then: "",
};
const OBSERVED_OF_COMMITS: Lookup<'_> = Lookup {
    select: observed!("$2", "f.commit_sha"),
    then: "",
};

/// A CI outcome as reports count it. Values that many outcomes share are kept once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortOutcome {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: CiProvider,
    /// The system's id of the run.
    pub run_id: Arc<str>,
    /// The attempt.
    pub run_attempt: Option<i64>,
    /// The repository, commit and branch of the run.
    pub place: Arc<OutcomePlace>,
    /// The workflow of the run.
    pub workflow: Arc<OutcomeWorkflow>,
    /// The normalised result.
    pub result: CiResult,
    /// The pull request of the run.
    pub pr_number: Option<i64>,
    /// When another outcome that a signature proves was captured, which answers since then.
    pub superseded_at: Option<Instant>,
}

/// The repository, commit and branch that the run of an outcome was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomePlace {
    /// The name of the repository in the fact. It may be empty.
    pub repo: String,
    /// The identity of the repository.
    pub repository: Option<RepositoryIdentity>,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The branch.
    pub branch: Branch,
}

/// The workflow that an outcome names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeWorkflow {
    /// Its name. It may be empty.
    pub name: Text,
    /// Its id in the CI system.
    pub id: Option<String>,
    /// The path of its definition.
    pub path: Option<String>,
}

/// The shared values of the outcomes that were read so far.
#[derive(Default)]
struct InternedOutcomes {
    places: SharedValues<OutcomePlace>,
    workflows: SharedValues<OutcomeWorkflow>,
}

/// The values of some columns, by their bytes.
struct SharedValues<T> {
    known: HashMap<Vec<u8>, Arc<T>, RandomState>,
    key: Vec<u8>,
}

impl<T> Default for SharedValues<T> {
    fn default() -> Self {
        Self {
            known: HashMap::default(),
            key: Vec::new(),
        }
    }
}

impl<T> SharedValues<T> {
    /// Returns the value of some text columns. It is read only if it is not known yet.
    fn read(
        &mut self,
        row: &Row<'_>,
        places: Range<usize>,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        self.key.clear();
        for place in places {
            if row.holds(place, &Value::Null)? {
                self.key.push(0);
                continue;
            }
            row.with_text(place, |text| {
                self.key.push(1);
                self.key.extend_from_slice(&text.len().to_ne_bytes());
                self.key.extend_from_slice(text.as_bytes());
            })?;
        }
        if let Some(known) = self.known.get(&self.key) {
            return Ok(Arc::clone(known));
        }
        let shared = Arc::new(read()?);
        self.known.insert(self.key.clone(), Arc::clone(&shared));
        Ok(shared)
    }
}

const OUTCOME_COLUMNS: [&str; 16] = [
    "outcome_id",
    "provider",
    "run_id",
    "run_attempt",
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "commit_sha",
    "branch",
    "workflow_name",
    "workflow_id",
    "workflow_path",
    "result",
    "pr_number",
    "superseded_at_us",
];

/// The organization is an expression that no index has. Otherwise PostgreSQL, while it has no
/// statistics, may use an index that ends with the organization, and read all outcomes for each
/// group of keys.
macro_rules! outcomes {
    ($key:literal) => {
        Lookup {
            select: concat!(
                "SELECT f.outcome_id, f.provider, f.run_id, f.run_attempt, f.repo,
                f.repository_provider, f.repository_host, f.repository_id, f.commit_sha, f.branch,
                f.workflow_name, f.workflow_id, f.workflow_path, f.result, f.pr_number,
                f.superseded_at_us
                FROM ci_answers f
                WHERE COALESCE(f.org_id, '') = $1 AND f.captured_at_us + 0 <= $2 AND ",
                $key
            ),
            then: "",
        }
    };
}

/// Quarantined outcomes count too: the index does not know about quarantine, and the number only
/// tells whether anything is left to read.
const OUTCOMES_STORED: Lookup<'_> = Lookup {
    select: "SELECT o.run_id, COUNT(*) FROM ci_outcomes o
        WHERE COALESCE(o.org_id, '') = $1 AND o.run_id",
    then: " GROUP BY o.run_id",
};
const OUTCOMES_OF_COMMITS: Lookup<'_> = outcomes!("f.commit_sha");
const OUTCOMES_OF_RUNS: Lookup<'_> = outcomes!("f.run_id");

/// Where the columns of a place and of a workflow are.
const PLACE: Range<usize> = 4..10;
const WORKFLOW: Range<usize> = 10..13;

impl CohortOutcome {
    fn read(row: &Row<'_>, interned: &mut InternedOutcomes) -> Result<Self, StoreError> {
        let columns_from = |place| Columns::of(row, "ci_outcomes", &OUTCOME_COLUMNS).behind(place);
        let mut columns = columns_from(0);
        let mut last = columns_from(WORKFLOW.end);
        Ok(Self {
            outcome_id: columns.next()?,
            provider: columns.next()?,
            run_id: columns.next()?,
            run_attempt: OrZero::read(&mut columns)?,
            place: interned.places.read(row, PLACE, || {
                Ok(OutcomePlace {
                    repo: columns.next()?,
                    repository: columns.next()?,
                    commit_sha: columns.next()?,
                    branch: columns.next()?,
                })
            })?,
            workflow: interned.workflows.read(row, WORKFLOW, || {
                let mut columns = columns_from(WORKFLOW.start);
                Ok(OutcomeWorkflow {
                    name: columns.next()?,
                    id: columns.next()?,
                    path: columns.next()?,
                })
            })?,
            result: last.next()?,
            pr_number: last.next()?,
            superseded_at: last.next()?,
        })
    }
}

/// Facts of a repository, appended to a selection of visible facts. They are found by the forge's
/// id, or by the name if they have no id.
const IDENTIFIED: &str = " AND f.captured_at_us + 0 <= $2 AND f.repository_id";
const NAMED: &str = " AND f.captured_at_us + 0 <= $2 AND f.repository_id IS NULL AND f.repo";

/// Facts about a pull request, of a kind, that name its repository by a name without an identity
/// that some repository has had, or by an identity without a name. Nothing else may leave open
/// which repository a fact means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsurePullRequest {
    /// The name of the repository in the facts. It may be empty.
    pub repo: String,
    /// Its identity.
    pub repository: Option<RepositoryIdentity>,
    /// The number of the pull request.
    pub pr_number: i64,
    /// The number of facts.
    pub facts: u64,
}

const UNSURE_COLUMNS: [&str; 5] = [
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "pr_number",
];

/// The facts whose repository may be unclear. A repository that no fact names is no candidate.
const UNSURE: [&str; 2] = [
    "f.repository_id IS NULL AND f.repository_host IS NULL AND f.repo IN
        (SELECT n.name FROM repository_claims n WHERE n.org_id = $1 UNION ALL SELECT '')",
    "f.repo = '' AND f.repository_host IN
        (SELECT n.repository_host FROM repository_claims n WHERE n.org_id = $1)
        AND f.repository_id IN
        (SELECT n.repository_id FROM repository_claims n WHERE n.org_id = $1)",
];

/// The kinds of facts that may name a pull request, and when they were true.
const OF_PULL_REQUESTS: [(FactTable, &str); 3] = [
    (FactTable::PullRequestMerges, "merged_at_us"),
    (FactTable::PullRequestRevisions, "captured_at_us"),
    (FactTable::CiOutcomes, "captured_at_us"),
];

impl Snapshot<'_> {
    /// Passes on the pull requests of visible facts that were received by the boundary and that may
    /// leave open which repository they mean: merges until a moment, revisions, and CI outcomes
    /// that name a pull request. The cost depends on the number of such facts, and of names.
    pub fn unsure_pull_requests(
        &mut self,
        boundary: Instant,
        until: Instant,
        mut each: impl FnMut(UnsurePullRequest) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let org_id = self.org_id.clone();
        let keys = [org_id.as_str().into(), boundary.into(), until.into()];
        for (table, moment) in OF_PULL_REQUESTS {
            for condition in UNSURE {
                let select = format!(
                    "SELECT f.repo, f.repository_provider, f.repository_host, f.repository_id,
                    f.pr_number, COUNT(*) FROM visible_{table} f
                    WHERE COALESCE(f.org_id, '') = $1 AND f.captured_at_us + 0 <= $2
                    AND f.{moment} + 0 <= $3 AND f.pr_number IS NOT NULL AND {condition}
                    GROUP BY f.repo, f.repository_provider, f.repository_host, f.repository_id,
                    f.pr_number"
                );
                self.connection()?.each(&select, &keys, |row| {
                    let mut columns = Columns::of(row, table.as_str(), &UNSURE_COLUMNS);
                    each(UnsurePullRequest {
                        repo: columns.next()?,
                        repository: columns.next()?,
                        pr_number: columns.next()?,
                        facts: row.count(5)?,
                    })
                })?;
            }
        }
        Ok(())
    }

    /// Passes on the visible calls of Sessions that were observed in a range.
    pub fn calls_of_sessions(
        &mut self,
        sessions: &[SessionId],
        observed: Range<Instant>,
        mut each: impl FnMut(CohortCall) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [
            self.org_id.as_str().into(),
            observed.start.into(),
            observed.end.into(),
        ];
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        self.connection()?
            .lookup_many(&CALLS, &shared, &keys, |row| each(CohortCall::read(row)?))
    }

    /// Passes on the visible links of Sessions to commits that were received by the boundary.
    pub fn commits_of_sessions(
        &mut self,
        sessions: &[SessionId],
        boundary: Instant,
        mut each: impl FnMut(ObservationRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let keys: Vec<Value<'_>> = sessions
            .iter()
            .map(|session| session.as_str().into())
            .collect();
        self.connection()?
            .lookup_many(&OBSERVED_OF_SESSIONS, &shared, &keys, |row| {
                each(ObservationRow::read(row)?)
            })
    }

    /// Passes on the visible links of Sessions to these commits that were received by the boundary,
    /// in any repository.
    pub fn sessions_of_commits(
        &mut self,
        commits: &[&CommitSha],
        boundary: Instant,
        mut each: impl FnMut(ObservationRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let keys: Vec<Value<'_>> = commits
            .iter()
            .map(|commit| commit.as_str().into())
            .collect();
        self.connection()?
            .lookup_many(&OBSERVED_OF_COMMITS, &shared, &keys, |row| {
                each(ObservationRow::read(row)?)
            })
    }

    /// Passes on the visible outcomes at these commits that were received by the boundary, in any
    /// repository, also those that are superseded.
    pub fn ci_outcomes_of_commits(
        &mut self,
        commits: &[&CommitSha],
        boundary: Instant,
        mut each: impl FnMut(CohortOutcome) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let keys: Vec<Value<'_>> = commits
            .iter()
            .map(|commit| commit.as_str().into())
            .collect();
        let mut interned = InternedOutcomes::default();
        self.connection()?
            .lookup(&OUTCOMES_OF_COMMITS, &shared, &keys, |row| {
                each(CohortOutcome::read(row, &mut interned)?)
            })
    }

    /// Passes on how many outcomes, visible or not, are stored for the runs with each of these ids,
    /// from any system and forge.
    pub fn ci_outcomes_stored(
        &mut self,
        run_ids: &[&str],
        mut each: impl FnMut(&str, u64),
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into()];
        let keys: Vec<Value<'_>> = run_ids.iter().map(|id| Value::Text(id)).collect();
        self.connection()?
            .lookup(&OUTCOMES_STORED, &shared, &keys, |row| {
                let count = row.count(1)?;
                row.with_text(0, |run_id| each(run_id, count))
            })
    }

    /// Passes on the visible outcomes of runs with these ids that were received by the boundary,
    /// from any system and forge, also those that are superseded. Outcomes that are already known are
    /// left out.
    pub fn ci_outcomes_of_runs(
        &mut self,
        run_ids: &[&str],
        boundary: Instant,
        known: &HashSet<FactId, RandomState>,
        mut each: impl FnMut(CohortOutcome) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let keys: Vec<Value<'_>> = run_ids.iter().map(|id| Value::Text(id)).collect();
        let mut interned = InternedOutcomes::default();
        self.connection()?
            .lookup(&OUTCOMES_OF_RUNS, &shared, &keys, |row| {
                let mut columns = Columns::of(row, "ci_outcomes", &OUTCOME_COLUMNS);
                if known.contains(&columns.next()?) {
                    return Ok(());
                }
                each(CohortOutcome::read(row, &mut interned)?)
            })
    }

    /// Passes on the visible merges that were received by the boundary and have the forge's id of
    /// one of these repositories, or no id and one of these names. Another forge may use the same
    /// id.
    pub fn merges_of_repositories(
        &mut self,
        repositories: &[&Lifetime],
        names: &[&RepositoryName],
        boundary: Instant,
        mut each: impl FnMut(PullRequestMerge) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_repositories::<PullRequestMerge>(repositories, names, boundary, &mut each)
    }

    /// Passes on the visible revisions, in the same way as
    /// [`merges_of_repositories`](Self::merges_of_repositories).
    pub fn revisions_of_repositories(
        &mut self,
        repositories: &[&Lifetime],
        names: &[&RepositoryName],
        boundary: Instant,
        mut each: impl FnMut(PullRequestRevision) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.of_repositories::<PullRequestRevision>(repositories, names, boundary, &mut each)
    }

    fn of_repositories<F: Record>(
        &mut self,
        repositories: &[&Lifetime],
        names: &[&RepositoryName],
        boundary: Instant,
        each: &mut dyn FnMut(F) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shared = [self.org_id.as_str().into(), boundary.into()];
        let mut ids: Vec<&str> = repositories
            .iter()
            .filter_map(|repository| Some(repository.identity()?.repository_id.as_str()))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let ids: Vec<Value<'_>> = ids.into_iter().map(Value::from).collect();
        let names: Vec<Value<'_>> = names.iter().map(|name| name.as_str().into()).collect();
        for (condition, keys) in [(IDENTIFIED, &ids), (NAMED, &names)] {
            let select = format!("{}{condition}", F::TABLE.select);
            let lookup = Lookup {
                select: &select,
                then: "",
            };
            self.connection()?.lookup(&lookup, &shared, keys, |row| {
                let mut columns = Columns::of(row, F::TABLE.name, F::TABLE.members);
                each(F::read(&mut columns)?)
            })?;
        }
        Ok(())
    }
}
