//! CI outcomes for an investigation: those of a run, of a repository page by page, or of a commit.
//! Their stored payloads are never read here.

use svc_engine_fact::Lifetime;
use svc_model::id::FactId;
use svc_model::ingest::{CiProvider, CiResult};
use svc_model::json::Text;
use svc_model::limit::CI_RUN_OUTCOMES_MAX;
use svc_model::query::{RunName, SupersededOutcome};
use svc_model::repository::{Branch, CommitSha, RepositoryIdentity};
use svc_model::time::Instant;

use super::deliveries::{OfCommits, identity_keys};
use super::snapshot::Snapshot;
use crate::pack::column::{ColumnForm as _, Columns, OrZero};
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::ci;

/// A CI outcome without its stored payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiOutcomeRow {
    /// The id of the fact.
    pub outcome_id: FactId,
    /// The CI system.
    pub provider: CiProvider,
    /// The system's id of the run.
    pub run_id: String,
    /// The attempt.
    pub run_attempt: Option<i64>,
    /// The name of the repository in this fact. It may be empty.
    pub repo: String,
    /// The identity of the repository.
    pub repository: Option<RepositoryIdentity>,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The branch.
    pub branch: Branch,
    /// The name of the workflow. It may be empty.
    pub workflow_name: Text,
    /// The system's id of the workflow.
    pub workflow_id: Option<String>,
    /// The path of the workflow's definition.
    pub workflow_path: Option<String>,
    /// The normalised result.
    pub result: CiResult,
    /// The URL of the run's page.
    pub run_url: Option<Text>,
    /// The system's own word for the result.
    pub provider_result: Option<Text>,
    /// The kind of failure.
    pub error_type: Option<Text>,
    /// Free text about the failure.
    pub reason: Option<Text>,
    /// The type of the event that the outcome was taken from.
    pub source_event_type: Option<Text>,
    /// The version of that event's specification.
    pub source_spec_version: Option<Text>,
    /// The id of that event.
    pub source_event_id: Option<String>,
    /// The pull request of the run.
    pub pr_number: Option<i64>,
    /// When the service received it.
    pub captured_at: Instant,
    /// The outcome that a token reported for the run, if this one is proven and differs.
    pub superseded: Option<SupersededOutcome>,
}

const COLUMNS: [&str; 25] = [
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
    "run_url",
    "provider_result",
    "error_type",
    "reason",
    "source_event_type",
    "source_spec_version",
    "source_event_id",
    "pr_number",
    "captured_at_us",
    "superseded_outcome_id",
    "superseded_result",
];

impl CiOutcomeRow {
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let mut columns = Columns::of(row, "ci_outcomes", &COLUMNS);
        Ok(Self {
            outcome_id: columns.next()?,
            provider: columns.next()?,
            run_id: columns.next()?,
            run_attempt: OrZero::read(&mut columns)?,
            repo: columns.next()?,
            repository: columns.next()?,
            commit_sha: columns.next()?,
            branch: columns.next()?,
            workflow_name: columns.next()?,
            workflow_id: columns.next()?,
            workflow_path: columns.next()?,
            result: columns.next()?,
            run_url: columns.next()?,
            provider_result: columns.next()?,
            error_type: columns.next()?,
            reason: columns.next()?,
            source_event_type: columns.next()?,
            source_spec_version: columns.next()?,
            source_event_id: columns.next()?,
            pr_number: columns.next()?,
            captured_at: columns.next()?,
            superseded: {
                let outcome_id: Option<FactId> = columns.next()?;
                let result: Option<CiResult> = columns.next()?;
                let both = outcome_id.zip(result);
                both.map(|(outcome_id, result)| SupersededOutcome {
                    outcome_id,
                    result: result.into(),
                })
            },
        })
    }

    /// Returns the number of bytes in its texts, which every form of it contains.
    fn text_bytes(&self) -> usize {
        let texts = [
            &self.run_url,
            &self.provider_result,
            &self.error_type,
            &self.reason,
            &self.source_event_type,
            &self.source_spec_version,
        ];
        let strings = [
            &self.workflow_id,
            &self.workflow_path,
            &self.source_event_id,
        ];
        self.run_id.len()
            + self.repo.len()
            + self.branch.as_str().len()
            + self.workflow_name.len()
            + texts.into_iter().flatten().map(Text::len).sum::<usize>()
            + strings
                .into_iter()
                .flatten()
                .map(String::len)
                .sum::<usize>()
    }
}

macro_rules! outcomes {
    ($($condition:expr),+) => {
        concat!(
            "SELECT f.outcome_id, f.provider, f.run_id, f.run_attempt, f.repo,
            f.repository_provider, f.repository_host, f.repository_id, f.commit_sha, f.branch,
            f.workflow_name, f.workflow_id, f.workflow_path, f.result, f.run_url,
            f.provider_result, f.error_type, f.reason, f.source_event_type,
            f.source_spec_version, f.source_event_id, f.pr_number, f.captured_at_us,
            f.superseded_outcome_id, f.superseded_result FROM ci_answers f",
            $($condition),+
        )
    };
}

macro_rules! not_superseded {
    ($boundary:literal) => {
        concat!(
            " AND COALESCE(f.superseded_at_us, 9223372036854775807) > ",
            $boundary
        )
    };
}
/// Restricts outcomes to those that were received by a boundary and answer for their run then.
macro_rules! answering {
    ($boundary:literal) => {
        concat!(
            " AND f.captured_at_us <= ",
            $boundary,
            not_superseded!($boundary)
        )
    };
}

const OF_RUN: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.provider = $2 AND f.run_id = $3 AND f.run_attempt = $4",
    answering!("$5")
);
const OF_ATTEMPTS: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.provider = $2 AND f.run_id = $3",
    answering!("$4"),
    " LIMIT $5"
);
const OF_ID: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.run_id = $2",
    answering!("$3"),
    " LIMIT $4"
);
const OF_JOBS: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.run_id >= $2 AND f.run_id < $5",
    answering!("$3"),
    " LIMIT $4"
);
const OF_URL: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.run_url_hash = $2",
    answering!("$3"),
    " LIMIT $4"
);
const OF_COMMIT: &str = outcomes!(
    " WHERE f.org_id = $1 AND f.commit_sha = $2",
    answering!("$3")
);
/// Finds outcomes by the commit that CI checked.
const OF_COMMITS: OfCommits = OfCommits {
    select: outcomes!(" WHERE COALESCE(f.org_id, '') = $1", not_superseded!("$2")),
    commit: "commit_sha",
};

macro_rules! of_page {
    ($repository:literal) => {
        concat!(
            " WHERE f.org_id = $1",
            $repository,
            " AND f.repo = $2 AND f.result = $3 AND f.captured_at_us >= $4
            AND (f.captured_at_us, f.outcome_id) < ($5, $6)
            AND (CAST($7 AS TEXT) IS NULL OR f.workflow_name = $7)
            AND (CAST($8 AS BIGINT) IS NULL OR f.pr_number = $8)",
            answering!("$9")
        )
    };
}
/// The latest come first. PostgreSQL does not know that rows with a NULL in a column are sorted.
macro_rules! page {
    ($repository:literal) => {
        outcomes!(
            of_page!($repository),
            " ORDER BY f.captured_at_us DESC, f.outcome_id DESC LIMIT $10"
        )
    };
}
const PAGE_IDENTIFIED: &str =
    page!(" AND f.repository_provider = $11 AND f.repository_host = $12 AND f.repository_id = $13");
const PAGE_NAMED: &str = page!(
    " AND f.repository_provider IS NULL AND f.repository_host IS NULL AND f.repository_id IS NULL"
);
const COUNT_NAMED: &str = concat!(
    "SELECT COUNT(*) FROM ci_answers f",
    of_page!(
        " AND f.repository_provider IS NULL AND f.repository_host IS NULL
        AND f.repository_id IS NULL"
    )
);

const NAMELESS: &str =
    "SELECT 1 FROM visible_ci_outcomes f WHERE f.org_id = $1 AND f.captured_at_us <= $2
    AND f.repository_provider = $3 AND f.repository_host = $4 AND f.repository_id = $5
    AND f.repo = '' LIMIT 1";

/// The number of rows read for the runs of one name: one more than are examined.
#[expect(clippy::cast_possible_wrap, reason = "a thousand")]
const ROWS_OF_RUNS: i64 = CI_RUN_OUTCOMES_MAX as i64 + 1;

/// Which outcomes of a repository are wanted. The latest come first.
#[derive(Clone, Copy, Debug)]
pub struct CiOutcomePage<'a> {
    /// The identity of the repository, if it has one.
    pub identity: Option<&'a RepositoryIdentity>,
    /// Every name under which it may have outcomes; an empty one is not a name.
    pub names: &'a [&'a str],
    /// The result.
    pub result: CiResult,
    /// The earliest capture time.
    pub captured_from: Instant,
    /// The outcomes come before this place in the order, which is by moment and then by id. A place
    /// without an id is before every outcome of that moment.
    pub before: (Instant, Option<FactId>),
    /// The exact name of the workflow.
    pub workflow_name: Option<&'a str>,
    /// The pull request.
    pub pr_number: Option<i64>,
    /// The outcomes answered for their runs at this moment.
    pub boundary: Instant,
    /// The maximum number of outcomes.
    pub rows_max: u64,
}

/// Returns the name of a workflow in the form of its column.
fn written_workflow(name: &str) -> String {
    let mut escaped = Vec::new();
    Text::from(name).write_escaped(&mut escaped);
    String::from_utf8(escaped).expect("escaped JSON is ASCII")
}

/// Returns the values for a page of one name. The maximum number of rows comes last.
fn page_keys<'v>(
    org_id: &'v str,
    page: &CiOutcomePage<'v>,
    workflow_name: Option<&'v str>,
    name: &'v str,
) -> Vec<Value<'v>> {
    vec![
        org_id.into(),
        Value::Text(name),
        page.result.as_str().into(),
        page.captured_from.microseconds().into(),
        page.before.0.microseconds().into(),
        // No id sorts before the empty blob.
        page.before.1.map_or(Value::Blob(&[]), Value::from),
        workflow_name.into(),
        page.pr_number.into(),
        page.boundary.microseconds().into(),
        i64::try_from(page.rows_max).unwrap_or(i64::MAX).into(),
    ]
}

impl Snapshot<'_> {
    /// Returns the visible outcomes of one run that were received by the boundary: one for each
    /// forge that has the run, and one without an identity.
    pub fn ci_outcomes_of_run(
        &mut self,
        provider: CiProvider,
        run_id: &str,
        run_attempt: Option<i64>,
        boundary: Instant,
    ) -> Result<Vec<CiOutcomeRow>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            provider.as_str().into(),
            run_id.into(),
            run_attempt.unwrap_or(0).into(),
            boundary.microseconds().into(),
        ];
        self.connection()?.all(OF_RUN, &keys, CiOutcomeRow::read)
    }

    /// Returns the visible outcomes of every attempt of a run, as
    /// [`ci_outcomes_of_run`](Self::ci_outcomes_of_run) returns those of one attempt, in no
    /// particular order.
    pub fn ci_outcomes_of_attempts(
        &mut self,
        provider: CiProvider,
        run_id: &str,
        boundary: Instant,
    ) -> Result<Vec<CiOutcomeRow>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            provider.as_str().into(),
            run_id.into(),
            boundary.microseconds().into(),
            ROWS_OF_RUNS.into(),
        ];
        self.connection()?
            .all(OF_ATTEMPTS, &keys, CiOutcomeRow::read)
    }

    /// Returns the visible outcomes of the runs with this name that were received by the boundary,
    /// from every system and of every attempt, in no particular order. If there are more than
    /// [`CI_RUN_OUTCOMES_MAX`], more than that are returned, but not necessarily all.
    pub fn ci_outcomes_named(
        &mut self,
        name: &RunName,
        boundary: Instant,
    ) -> Result<Vec<CiOutcomeRow>, StoreError> {
        let org_id = self.org_id;
        let of = |key| {
            [
                Value::Text(org_id.as_str()),
                key,
                boundary.microseconds().into(),
                ROWS_OF_RUNS.into(),
            ]
        };
        let run_id = match name {
            RunName::Url(url) => {
                let keys = of(ci::url_hash(url.as_str()));
                return self.connection()?.all(OF_URL, &keys, CiOutcomeRow::read);
            }
            RunName::Id(run_id) => run_id.as_str(),
        };
        let keys = of(run_id.into());
        let mut rows = self.connection()?.all(OF_ID, &keys, CiOutcomeRow::read)?;
        // `0` is the character after `/`, so this range holds every id that begins with `run_id/`.
        let (first, end) = (format!("{run_id}/"), format!("{run_id}0"));
        let mut keys = of(Value::Text(&first)).to_vec();
        keys.push(Value::Text(&end));
        rows.extend(self.connection()?.all(OF_JOBS, &keys, CiOutcomeRow::read)?);
        Ok(rows)
    }

    /// Returns whether a visible outcome that was received by the boundary has this identity and no
    /// name.
    pub fn has_nameless_outcome(
        &mut self,
        identity: &RepositoryIdentity,
        boundary: Instant,
    ) -> Result<bool, StoreError> {
        let mut keys = vec![self.org_id.as_str().into(), boundary.microseconds().into()];
        keys.extend(identity_keys(identity));
        let found = self.connection()?.first(NAMELESS, &keys, |_| Ok(()))?;
        Ok(found.is_some())
    }

    /// Returns, for each name of a page, how many visible outcomes without an identity meet the
    /// page's conditions. It ignores the maximum number of rows, and reads nothing outside the
    /// range.
    pub fn ci_outcomes_without_identity(
        &mut self,
        page: &CiOutcomePage<'_>,
    ) -> Result<Vec<u64>, StoreError> {
        let org_id = self.org_id;
        let workflow_name = page.workflow_name.map(written_workflow);
        let mut counts = Vec::with_capacity(page.names.len());
        for name in page.names {
            let mut keys = page_keys(org_id.as_str(), page, workflow_name.as_deref(), name);
            keys.pop();
            let count = self
                .connection()?
                .first(COUNT_NAMED, &keys, |row| row.count(0))?;
            counts.push(count.unwrap_or_default());
        }
        Ok(counts)
    }

    /// Returns a page of the visible outcomes of a repository, latest first, then by descending id.
    pub fn ci_outcome_page(
        &mut self,
        page: &CiOutcomePage<'_>,
    ) -> Result<Vec<CiOutcomeRow>, StoreError> {
        let org_id = self.org_id;
        let workflow_name = page.workflow_name.map(written_workflow);
        let mut rows = Vec::new();
        for name in page.names {
            let mut keys = page_keys(org_id.as_str(), page, workflow_name.as_deref(), name);
            let sql = match page.identity {
                Some(identity) => {
                    keys.extend(identity_keys(identity));
                    PAGE_IDENTIFIED
                }
                None => PAGE_NAMED,
            };
            rows.extend(self.connection()?.all(sql, &keys, CiOutcomeRow::read)?);
        }
        rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.captured_at, row.outcome_id)));
        rows.truncate(usize::try_from(page.rows_max).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Returns the visible outcomes of a commit that were received by the boundary, in any
    /// repository, by capture time, then id; `None` if they do not fit into a reply of this many
    /// bytes.
    pub fn ci_outcomes_of_commit(
        &mut self,
        commit_sha: &CommitSha,
        boundary: Instant,
        bytes_max: usize,
    ) -> Result<Option<Vec<CiOutcomeRow>>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            commit_sha.as_str().into(),
            boundary.microseconds().into(),
        ];
        let mut rows = Vec::new();
        let mut bytes = 0_usize;
        self.connection()?.each(OF_COMMIT, &keys, |row| {
            // Once the reply is too long, no more rows are kept.
            if bytes <= bytes_max {
                let row = CiOutcomeRow::read(row)?;
                bytes += row.text_bytes() + MEMBER_BYTES;
                rows.push(row);
            }
            Ok(())
        })?;
        rows.sort_unstable_by_key(|row| (row.captured_at, row.outcome_id));
        Ok((bytes <= bytes_max).then_some(rows))
    }

    /// Returns the visible outcomes of these commits in one repository that were received by the
    /// boundary, in no particular order. If there are more than `rows_max`, it returns that many.
    pub fn ci_outcomes_of_delivery<'c>(
        &mut self,
        repository: &Lifetime,
        commits: impl Iterator<Item = &'c CommitSha>,
        boundary: Instant,
        rows_max: usize,
    ) -> Result<Vec<CiOutcomeRow>, StoreError> {
        let read = CiOutcomeRow::read;
        self.of_commits(OF_COMMITS, repository, commits, boundary, rows_max, read)
    }
}

/// The minimum number of bytes that the member names, ids and commit of one outcome take.
const MEMBER_BYTES: usize = 400;
