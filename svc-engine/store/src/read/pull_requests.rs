//! Pull requests: which were merged as a commit, and the heads that each has had.

use svc_engine_fact::{Lifetime, PullRequest, PullRequestMerge, PullRequestRevision};
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::deliveries::identity_keys;
use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record;

/// These follow the selection of an organization's visible facts. The time is an expression, so
/// that the index by commit or by pull request is used.
const MERGED_AS: &str = " AND f.captured_at_us + 0 <= $2 AND f.merge_commit_sha";
const OF_IDENTIFIED: &str = " AND f.captured_at_us + 0 <= $2 AND f.pr_number = $4
    AND f.repository_provider = $5 AND f.repository_host = $6 AND f.repository_id = $7
    AND f.org_id = $1 LIMIT $3";
const OF_NAMED: &str = " AND f.captured_at_us + 0 <= $2 AND f.pr_number = $4
    AND f.repository_id IS NULL AND f.repo = $5 AND f.provider = $6 AND f.org_id = $1 LIMIT $3";

impl Snapshot<'_> {
    /// Returns the visible merges of pull requests that became one of these commits, in any
    /// repository, received by the boundary, in any order. If there are more than `rows_max`, it
    /// returns at least that many.
    pub fn merges_at(
        &mut self,
        commits: &[&CommitSha],
        boundary: Instant,
        rows_max: usize,
    ) -> Result<Vec<PullRequestMerge>, StoreError> {
        let shared = [
            self.org_id.as_str().into(),
            boundary.into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let commits: Vec<Value<'_>> = commits
            .iter()
            .map(|commit| commit.as_str().into())
            .collect();
        let select = format!("{}{MERGED_AS}", PullRequestMerge::TABLE.select);
        let lookup = Lookup {
            select: &select,
            then: " LIMIT $3",
        };
        let mut merges = Vec::new();
        self.connection()?
            .lookup(&lookup, &shared, &commits, |row| {
                merges.push(read(row)?);
                Ok(())
            })?;
        Ok(merges)
    }

    /// Returns the visible merge of a pull request of a repository that has an identity, received by
    /// the boundary.
    pub fn merge_of(
        &mut self,
        repository: &Lifetime,
        pr_number: i64,
        boundary: Instant,
    ) -> Result<Option<PullRequestMerge>, StoreError> {
        let Some(identity) = repository.identity() else {
            return Ok(None);
        };
        let mut keys: Vec<Value<'_>> = vec![
            self.org_id.as_str().into(),
            boundary.into(),
            1_i64.into(),
            pr_number.into(),
        ];
        keys.extend(identity_keys(identity));
        let sql = format!("{}{OF_IDENTIFIED}", PullRequestMerge::TABLE.select);
        let merges = self.connection()?.all(&sql, &keys, read)?;
        Ok(merges.into_iter().next())
    }

    /// Returns the visible revisions of a pull request, received by the boundary, in any order. If
    /// there are more than `rows_max`, it returns that many.
    pub fn revisions_of(
        &mut self,
        pull_request: &PullRequest,
        boundary: Instant,
        rows_max: usize,
    ) -> Result<Vec<PullRequestRevision>, StoreError> {
        let mut keys: Vec<Value<'_>> = vec![
            self.org_id.as_str().into(),
            boundary.into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
            pull_request.pr_number.into(),
        ];
        let condition = if let Some(identity) = &pull_request.repository {
            keys.extend(identity_keys(identity));
            OF_IDENTIFIED
        } else {
            keys.push(pull_request.repo.as_str().into());
            keys.push(pull_request.provider.as_str().into());
            OF_NAMED
        };
        let sql = format!("{}{condition}", PullRequestRevision::TABLE.select);
        self.connection()?.all(&sql, &keys, read)
    }
}

fn read<F: Record>(row: &Row<'_>) -> Result<F, StoreError> {
    F::read(&mut Columns::of(row, F::TABLE.name, F::TABLE.members))
}
