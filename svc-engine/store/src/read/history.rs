//! The pushes and merges of one repository from a time on, in order of receipt, and the pushes that
//! left a branch at a commit. The cost does not grow with the repository's age.

use svc_engine_fact::{Lifetime, PullRequestMerge, Push};
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::time::Instant;

use super::deliveries::identity_keys;
use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::record::Record;

/// These follow the selection of an organization's visible facts. The index contains the name, so
/// each name of a repository is looked up separately.
const IDENTIFIED: &str = " AND f.repo = $2 AND f.org_id = $1 AND f.captured_at_us >= $3
    AND f.captured_at_us <= $4 AND f.repository_provider = $6 AND f.repository_host = $7
    AND f.repository_id = $8 ORDER BY f.captured_at_us LIMIT $5";
const NAMED: &str = " AND f.repository_id IS NULL AND f.repository_host IS NULL
    AND f.repo = $2 AND f.org_id = $1 AND f.captured_at_us >= $3 AND f.captured_at_us <= $4
    ORDER BY f.captured_at_us LIMIT $5";
/// The organization and the time are expressions, so that the index by commit is used.
const AT_COMMIT: &str = " AND f.captured_at_us + 0 <= $2 AND f.after_sha = $3 LIMIT $4";

impl Snapshot<'_> {
    /// Returns the first visible pushes of a repository under these names, received between two
    /// times, both included, in order of receipt.
    pub fn first_pushes(
        &mut self,
        repository: &Lifetime,
        names: &[RepositoryName],
        received: (Instant, Instant),
        rows_max: usize,
    ) -> Result<Vec<Push>, StoreError> {
        let mut pushes: Vec<Push> = self.first_of(repository, names, received, rows_max)?;
        pushes.sort_by_key(|push| (push.captured_at, push.push_id));
        pushes.truncate(rows_max);
        Ok(pushes)
    }

    /// Returns the first visible merges, as [`first_pushes`](Self::first_pushes) does for pushes.
    pub fn first_merges(
        &mut self,
        repository: &Lifetime,
        names: &[RepositoryName],
        received: (Instant, Instant),
        rows_max: usize,
    ) -> Result<Vec<PullRequestMerge>, StoreError> {
        let mut merges: Vec<PullRequestMerge> =
            self.first_of(repository, names, received, rows_max)?;
        merges.sort_by_key(|merge| (merge.captured_at, merge.merge_id));
        merges.truncate(rows_max);
        Ok(merges)
    }

    /// Returns visible pushes that left a branch of any repository at a commit, received by the
    /// boundary, in any order. If there are more than `rows_max`, it returns that many.
    pub fn pushes_at(
        &mut self,
        commit: &CommitSha,
        boundary: Instant,
        rows_max: usize,
    ) -> Result<Vec<Push>, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            boundary.into(),
            commit.as_str().into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let sql = format!("{}{AT_COMMIT}", Push::TABLE.select);
        self.connection()?.all(&sql, &keys, read)
    }

    fn first_of<F: Record>(
        &mut self,
        repository: &Lifetime,
        names: &[RepositoryName],
        (from, to): (Instant, Instant),
        rows_max: usize,
    ) -> Result<Vec<F>, StoreError> {
        let mut facts = Vec::new();
        for name in names {
            let mut keys: Vec<Value<'_>> = vec![
                self.org_id.as_str().into(),
                name.as_str().into(),
                from.into(),
                to.into(),
                i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
            ];
            let condition = match repository {
                Lifetime::Identified(identity) => {
                    keys.extend(identity_keys(identity));
                    IDENTIFIED
                }
                Lifetime::Named(_) => NAMED,
            };
            let sql = format!("{}{condition}", F::TABLE.select);
            facts.extend(self.connection()?.all(&sql, &keys, read)?);
        }
        Ok(facts)
    }
}

fn read<F: Record>(row: &Row<'_>) -> Result<F, StoreError> {
    F::read(&mut Columns::of(row, F::TABLE.name, F::TABLE.members))
}
