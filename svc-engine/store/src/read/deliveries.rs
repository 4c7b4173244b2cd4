//! How a Session's work was delivered: the commits that it was linked to, and their pushes.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::{Lifetime, Push};
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::query::ObservationSource;
use svc_model::repository::{CommitSha, RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::{Connection, Lookup};
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record as _;

/// A link between a Session and a commit, with what its push says of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservationRow {
    /// The id of the fact.
    pub observation_id: FactId,
    /// The Session.
    pub session_id: SessionId,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The name of the repository on the observation.
    pub repo: RepositoryName,
    /// The identity of the repository on the observation.
    pub repository: Option<RepositoryIdentity>,
    /// Where the link comes from, if not from a note.
    pub source: Option<ObservationSource>,
    /// The name and the identity on the push, if it is visible and was received by the boundary.
    pub push: Option<(String, Option<RepositoryIdentity>)>,
}

impl ObservationRow {
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let mut columns = Columns::of(row, "session_commit_observations", &COLUMNS);
        Ok(Self {
            observation_id: columns.next()?,
            session_id: columns.next()?,
            commit_sha: columns.next()?,
            repo: columns.next()?,
            repository: columns.next()?,
            source: columns.next()?,
            push: {
                let name: Option<String> = columns.next()?;
                let identity = columns.next()?;
                name.map(|name| (name, identity))
            },
        })
    }
}

/// The names of the columns in errors.
const COLUMNS: [&str; 12] = [
    "observation_id",
    "session_id",
    "commit_sha",
    "repo",
    "repository_provider",
    "repository_host",
    "repository_id",
    "source",
    "the repo of its push",
    "the repository_provider of its push",
    "the repository_host of its push",
    "the repository_id of its push",
];

/// Selects the links that were received by a boundary and meet a condition, with what their pushes
/// say.
macro_rules! observed {
    ($boundary:literal, $condition:literal) => {
        concat!(
            "SELECT f.observation_id, f.session_id, f.commit_sha, f.repo, f.repository_provider,
            f.repository_host, f.repository_id, f.source, p.repo, p.repository_provider, p.repository_host,
            p.repository_id
            FROM visible_session_commit_observations f
            LEFT JOIN visible_pushes p ON p.push_id = f.source_push_id AND p.org_id = f.org_id
                AND p.captured_at_us <= ",
            $boundary,
            // No index has these expressions, so links are found by the condition: a commit or a
            // Session has few.
            " WHERE COALESCE(f.org_id, '') = $1 AND f.captured_at_us + 0 <= ",
            $boundary,
            " AND ",
            $condition
        )
    };
}
pub(crate) use observed;

const OF_SESSION: &str = observed!("$3", "f.session_id = $2 LIMIT $4");
const OF_COMMIT: &str = observed!("$3", "f.commit_sha = $2 LIMIT $4");
const OF_PUSH: &str = observed!("$3", "f.source_push_id = $2 LIMIT $4");

/// The links of a Session, each with the push that it was made for.
const SOURCES: &str = "SELECT f.observation_id, f.source_push_id
    FROM visible_session_commit_observations f WHERE COALESCE(f.org_id, '') = $1
    AND f.session_id = $2 AND f.captured_at_us + 0 <= $3 LIMIT $4";
const SOURCE_COLUMNS: [&str; 2] = ["observation_id", "source_push_id"];

macro_rules! revisions {
    ($condition:literal) => {
        concat!(
            "SELECT f.repository_provider, f.repository_host, f.repository_id, f.repo, f.pr_number,
            f.head_repository_provider, f.head_repository_host, f.head_repository_id, f.head_repo,
            f.head_sha FROM visible_pull_request_revisions f
            WHERE f.org_id = $1 AND f.captured_at_us <= $2",
            $condition,
            " LIMIT $3"
        )
    };
}

const BY_HEAD: &str = revisions!(" AND f.head_sha = $4");
const OF_IDENTIFIED: &str = revisions!(
    " AND f.pr_number = $4 AND f.repository_provider = $5 AND f.repository_host = $6
    AND f.repository_id = $7"
);
const OF_NAMED: &str =
    revisions!(" AND f.pr_number = $4 AND f.repository_id IS NULL AND f.repo = $5");

const REVISION_COLUMNS: [&str; 10] = [
    "repository_provider",
    "repository_host",
    "repository_id",
    "repo",
    "pr_number",
    "head_repository_provider",
    "head_repository_host",
    "head_repository_id",
    "head_repo",
    "head_sha",
];

/// The head of a pull request at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestHead {
    /// The identity of the pull request's repository.
    pub repository: Option<RepositoryIdentity>,
    /// Its name on this fact.
    pub repo: String,
    /// The number of the pull request.
    pub pr_number: i64,
    /// The identity of the branch's repository.
    pub head_repository: Option<RepositoryIdentity>,
    /// Its name on this fact.
    pub head_repo: Option<String>,
    /// The commit.
    pub head_sha: CommitSha,
}

impl PullRequestHead {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let mut columns = Columns::of(row, "pull_request_revisions", &REVISION_COLUMNS);
        Ok(Self {
            repository: columns.next()?,
            repo: columns.next()?,
            pr_number: columns.next()?,
            head_repository: columns.next()?,
            head_repo: columns.next()?,
            head_sha: columns.next()?,
        })
    }
}

/// How a fact of a delivery names its repository: with this identity and any name, or with this
/// name and no identity. No index has these expressions, so facts are found by their commit: a
/// repository may have any number of facts.
const IDENTIFIED: &str = " AND f.captured_at_us + 0 <= $2
    AND f.repository_provider || '' = $4 AND f.repository_host || '' = $5
    AND f.repository_id || '' = $6 AND f.repo <> ''";
const NAMED: &str = " AND f.captured_at_us + 0 <= $2
    AND COALESCE(f.repository_id, '') = '' AND COALESCE(f.repo, '') = $4";

/// Returns the keys of an identity, in the order of its columns.
pub(crate) fn identity_keys(identity: &RepositoryIdentity) -> [Value<'_>; 3] {
    [
        identity.repository_provider.as_str().into(),
        identity.repository_host.as_str().into(),
        identity.repository_id.as_str().into(),
    ]
}

/// The newest visible push of a repository.
const NEWEST_IDENTIFIED: &str = "SELECT f.push_id, f.repo, f.clone_url FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_provider = $2 AND f.repository_host = $3
        AND f.repository_id = $4
    ORDER BY f.captured_at_us DESC, f.push_id DESC LIMIT 1";
const NEWEST_NAMED: &str = "SELECT f.push_id, f.repo, f.clone_url FROM visible_pushes f
    WHERE f.org_id = $1 AND f.repository_id IS NULL AND f.repo = $2
    ORDER BY f.captured_at_us DESC, f.push_id DESC LIMIT 1";

/// The newest visible push of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestPush {
    /// The id of the fact.
    pub push_id: FactId,
    /// The name of the repository on the push.
    pub repo: String,
    /// Where the repository was to be fetched from.
    pub clone_url: String,
}

/// Returns the newest visible push of a repository.
pub(crate) fn newest_push(
    connection: &mut Connection,
    org_id: &OrgId,
    lifetime: &Lifetime,
) -> Result<Option<NewestPush>, StoreError> {
    let mut keys: Vec<Value<'_>> = vec![org_id.as_str().into()];
    let select = match lifetime {
        Lifetime::Identified(repository) => {
            keys.extend(identity_keys(repository));
            NEWEST_IDENTIFIED
        }
        Lifetime::Named(name) => {
            keys.push(name.as_str().into());
            NEWEST_NAMED
        }
    };
    connection.first(select, &keys, |row| {
        Ok(NewestPush {
            push_id: row.fact_id(0)?,
            repo: row.text(1)?,
            clone_url: row.text(2)?,
        })
    })
}

/// Facts that are looked up by commits of one repository.
#[derive(Clone, Copy)]
pub(crate) struct OfCommits {
    /// The selection of the visible facts of an organization.
    pub(crate) select: &'static str,
    /// The column of the commit.
    pub(crate) commit: &'static str,
}

impl OfCommits {
    /// Returns the selection, up to the commits.
    fn select(self, repository: &str) -> String {
        format!("{}{repository} AND f.{}", self.select, self.commit)
    }

    /// Returns the look-up for such a selection.
    const fn lookup(select: &str) -> Lookup<'_> {
        Lookup {
            select,
            then: " LIMIT $3",
        }
    }
}

/// Pushes that left a branch at a commit.
const PUSHES: OfCommits = OfCommits {
    select: Push::TABLE.select,
    commit: "after_sha",
};

impl Snapshot<'_> {
    /// Returns the visible links of a Session to commits, received by the boundary.
    pub fn commits_of_session(
        &mut self,
        session_id: &SessionId,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<ObservationRow>, StoreError> {
        self.observed(OF_SESSION, session_id.as_str().into(), boundary, rows_max)
    }

    /// Returns the visible links of Sessions to a commit, received by the boundary.
    pub fn sessions_of_commit(
        &mut self,
        commit_sha: &CommitSha,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<ObservationRow>, StoreError> {
        self.observed(OF_COMMIT, commit_sha.as_str().into(), boundary, rows_max)
    }

    /// Returns the visible links of Sessions to commits that were checked for a push, received by
    /// the boundary.
    pub fn sessions_of_push(
        &mut self,
        push_id: FactId,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<ObservationRow>, StoreError> {
        self.observed(OF_PUSH, push_id.into(), boundary, rows_max)
    }

    /// Returns the pull requests with a commit as their head, according to visible facts received
    /// by the boundary.
    pub fn pull_requests_at(
        &mut self,
        head_sha: &CommitSha,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<PullRequestHead>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            boundary.microseconds().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
            head_sha.as_str().into(),
        ];
        self.connection()?
            .all(BY_HEAD, &keys, PullRequestHead::read)
    }

    /// Returns every head of a pull request, according to visible facts received by the boundary.
    pub fn heads_of_pull_request(
        &mut self,
        of: &PullRequestHead,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<PullRequestHead>, StoreError> {
        let mut keys = vec![
            self.org_id.as_str().into(),
            boundary.microseconds().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
            of.pr_number.into(),
        ];
        let sql = if let Some(identity) = &of.repository {
            keys.extend(identity_keys(identity));
            OF_IDENTIFIED
        } else {
            keys.push(of.repo.as_str().into());
            OF_NAMED
        };
        self.connection()?.all(sql, &keys, PullRequestHead::read)
    }

    /// Returns the visible pushes that led to the visible links of a Session to commits, by link,
    /// if both were received by the boundary.
    pub fn pushes_behind_session(
        &mut self,
        session_id: &SessionId,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<BTreeMap<FactId, Push>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            session_id.as_str().into(),
            boundary.microseconds().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let links: Vec<(FactId, FactId)> = self.connection()?.all(SOURCES, &keys, |row| {
            let mut columns = Columns::of(row, "session_commit_observations", &SOURCE_COLUMNS);
            Ok((columns.next()?, columns.next()?))
        })?;
        let ids: BTreeSet<FactId> = links.iter().map(|(_, push)| *push).collect();
        let ids: Vec<Value<'_>> = ids.into_iter().map(Value::from).collect();
        let select = format!(
            "{} AND f.captured_at_us + 0 <= $2 AND f.push_id",
            Push::TABLE.select
        );
        let lookup = Lookup {
            select: &select,
            then: "",
        };
        let shared = [self.org_id.as_str().into(), boundary.microseconds().into()];
        let mut pushes = BTreeMap::new();
        self.connection()?.lookup(&lookup, &shared, &ids, |row| {
            let push = Push::read(&mut Columns::of(row, Push::TABLE.name, Push::TABLE.members))?;
            pushes.insert(push.push_id, push);
            Ok(())
        })?;
        let links = links.into_iter();
        Ok(links
            .filter_map(|(observation, push)| Some((observation, pushes.get(&push)?.clone())))
            .collect())
    }

    /// Returns the newest visible push of a repository.
    pub fn newest_push(&mut self, lifetime: &Lifetime) -> Result<Option<NewestPush>, StoreError> {
        let org_id = self.org_id;
        newest_push(self.connection()?, org_id, lifetime)
    }

    fn observed(
        &mut self,
        sql: &str,
        key: Value<'_>,
        boundary: Instant,
        rows_max: u64,
    ) -> Result<Vec<ObservationRow>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            key,
            boundary.microseconds().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        self.connection()?.all(sql, &keys, ObservationRow::read)
    }

    /// Returns the visible pushes that left a branch of a repository at one of these commits,
    /// received by the boundary, in any order. If there are more than `rows_max`, it returns that
    /// many.
    pub fn pushes_of_delivery<'c>(
        &mut self,
        repository: &Lifetime,
        commits: impl Iterator<Item = &'c CommitSha>,
        boundary: Instant,
        rows_max: usize,
    ) -> Result<Vec<Push>, StoreError> {
        self.of_commits(PUSHES, repository, commits, boundary, rows_max, |row| {
            Push::read(&mut Columns::of(row, Push::TABLE.name, Push::TABLE.members))
        })
    }

    /// Returns the visible facts at these commits of one repository, received by the boundary, in
    /// any order. If there are more than `rows_max`, it returns that many.
    pub(crate) fn of_commits<'c, T>(
        &mut self,
        facts: OfCommits,
        repository: &Lifetime,
        commits: impl Iterator<Item = &'c CommitSha>,
        boundary: Instant,
        rows_max: usize,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut shared = vec![
            self.org_id.as_str().into(),
            boundary.microseconds().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let condition = match repository {
            Lifetime::Identified(identity) => {
                shared.extend(identity_keys(identity));
                IDENTIFIED
            }
            Lifetime::Named(name) => {
                shared.push(name.as_str().into());
                NAMED
            }
        };
        let commits: Vec<Value<'_>> = commits.map(|commit| commit.as_str().into()).collect();
        let select = facts.select(condition);
        let mut found = Vec::new();
        self.connection()?
            .lookup(&OfCommits::lookup(&select), &shared, &commits, |row| {
                if found.len() < rows_max {
                    found.push(read(row)?);
                }
                Ok(())
            })?;
        Ok(found)
    }
}
