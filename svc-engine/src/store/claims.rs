//! Claims: that a kind of fact gives a repository a name, each kept once.
//!
//! The table only tells where to look. What counts is a visible fact, which an index by repository
//! finds in one step ([`super::repositories`]). So a claim is written when its first fact is, never
//! changed, and never removed.

use std::collections::BTreeSet;

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::OrgId;

use super::StoreError;
use super::connection::{Connection, Insert};
use super::row::NewRow;
use super::table::Table;
use super::value::Value;

/// Claims that are known to be stored, kept in memory: about 200 bytes each.
const KNOWN_MAX: usize = 100_000;

/// Where facts of one kind name a repository.
pub(super) struct Place {
    /// The word for it in the claim.
    source: &'static str,
    table: &'static str,
    name: &'static str,
    repository: [&'static str; 3],
    /// Which facts of the kind: those with this value in a column.
    only: &'static [(&'static str, &'static str)],
}

/// Declares where facts name repositories: the word for it, the table, the columns of the
/// name and of the identity, and which facts of the kind.
macro_rules! sources {
    ($($word:literal:
        $table:literal, $name:literal, $provider:literal, $host:literal, $repository:literal
        $(, only $column:literal = $value:literal)?;)+
    ) => {
        /// Where facts name repositories.
        pub(super) const SOURCES: &[Place] = &[$(Place {
            source: $word,
            table: $table,
            name: $name,
            repository: [$provider, $host, $repository],
            only: &[$(($column, $value))?],
        }),+];

        /// The selection of claims, up to its conditions, each with when the latest visible fact
        /// that proves it was received: by the moment $2.
        pub(super) const PROVEN: &str = concat!(
            "SELECT c.name, c.repository_provider, c.repository_host, c.repository_id, c.source,",
            " CASE c.source",
            $(
                " WHEN '", $word, "' THEN (SELECT f.captured_at_us FROM visible_", $table,
                " f WHERE f.org_id = c.org_id AND f.", $name, " = c.name",
                " AND f.", $provider, " = c.repository_provider",
                " AND f.", $host, " = c.repository_host",
                " AND f.", $repository, " = c.repository_id",
                $(" AND f.", $column, " = '", $value, "'",)?
                " AND f.captured_at_us <= $2 ORDER BY f.captured_at_us DESC LIMIT 1)",
            )+
            " END FROM repository_claims c WHERE c.org_id = $1"
        );
    };
}

sources! {
    "pushes": "pushes",
        "repo", "repository_provider", "repository_host", "repository_id";
    // By result: their index by repository has the result before the moment, for the pages that go
    // by it, and a second one would cost more than eight steps in it.
    "ci_outcomes.passed": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "passed";
    "ci_outcomes.failed": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "failed";
    "ci_outcomes.error": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "error";
    "ci_outcomes.timed_out": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "timed_out";
    "ci_outcomes.cancelled": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "cancelled";
    "ci_outcomes.skipped": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "skipped";
    "ci_outcomes.neutral": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "neutral";
    "ci_outcomes.unknown": "ci_outcomes",
        "repo", "repository_provider", "repository_host", "repository_id", only "result" = "unknown";
    "observations": "session_commit_observations",
        "repo", "repository_provider", "repository_host", "repository_id";
    "revisions": "pull_request_revisions",
        "repo", "repository_provider", "repository_host", "repository_id";
    "revision_heads": "pull_request_revisions",
        "head_repo", "head_repository_provider", "head_repository_host", "head_repository_id";
    "merges": "pull_request_merges",
        "repo", "repository_provider", "repository_host", "repository_id";
    "merge_heads": "pull_request_merges",
        "head_repo", "head_repository_provider", "head_repository_host", "head_repository_id";
    "renames_from": "repository_renames",
        "old_repo", "repository_provider", "repository_host", "repository_id";
    "renames_to": "repository_renames",
        "new_repo", "repository_provider", "repository_host", "repository_id";
}

/// The source of the names that repositories gave up.
pub(super) const RENAMED_FROM: &str = "renames_from";

const INSERT: Insert = Insert {
    into: "INSERT INTO repository_claims
        (org_id, name, repository_provider, repository_host, repository_id, source)",
    columns: 6,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), name",
    unique: 1,
};

/// That a fact gives a repository a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Claim<'a> {
    name: &'a str,
    repository: [&'a str; 3],
    source: &'static str,
}

/// A claim that is known to be stored.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownClaim {
    name: Box<str>,
    repository: [Box<str>; 3],
    source: &'static str,
}

impl Equivalent<KnownClaim> for Claim<'_> {
    fn equivalent(&self, known: &KnownClaim) -> bool {
        self.source == known.source
            && self.name == &*known.name
            && self.repository == known.repository.each_ref().map(|it| &**it)
    }
}

/// The claims that this process knows to be stored. A claim is never removed, so what is known stays
/// true, whoever else writes.
#[derive(Debug)]
pub(super) struct KnownClaims(Cache<KnownClaim, ()>);

impl Default for KnownClaims {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl KnownClaims {
    /// Remembers what a committed transaction stored.
    pub(super) fn remember(&mut self, claim: KnownClaim) {
        self.0.insert(claim, ());
    }
}

/// The claims of the facts of one transaction, in one order: servers that store the same ones at
/// once wait for each other and never in a circle.
#[derive(Debug, Default)]
pub(super) struct Claims<'a>(BTreeSet<Claim<'a>>);

impl<'a> Claims<'a> {
    /// Adds what a stored row claims. Without a name or an identity that is nothing.
    pub(super) fn row(&mut self, table: &Table, row: &'a NewRow) {
        for place in SOURCES.iter().filter(|place| place.table == table.name) {
            let given = |(column, value): &(&str, &str)| row.text(table, column) == Some(*value);
            if !place.only.iter().all(given) {
                continue;
            }
            let name = row.text(table, place.name).filter(|name| !name.is_empty());
            let repository = place.repository.map(|column| row.text(table, column));
            if let (Some(name), [Some(provider), Some(host), Some(id)]) = (name, repository) {
                self.0.insert(Claim {
                    name,
                    repository: [provider, host, id],
                    source: place.source,
                });
            }
        }
    }

    /// Stores the claims that are not known to be stored, and returns them.
    pub(super) fn write(
        &self,
        connection: &mut Connection,
        org_id: &OrgId,
        known: &KnownClaims,
    ) -> Result<Vec<KnownClaim>, StoreError> {
        let new = self.0.iter().filter(|claim| known.0.peek(*claim).is_none());
        let new: Vec<&Claim<'_>> = new.collect();
        let mut values = Vec::with_capacity(new.len() * INSERT.columns);
        for claim in &new {
            values.extend([org_id.as_str().into(), claim.name.into()]);
            values.extend(claim.repository.map(Value::from));
            values.push(claim.source.into());
        }
        connection.put(&INSERT, values.chunks_exact(INSERT.columns))?;
        let known = new.into_iter().map(|claim| KnownClaim {
            name: claim.name.into(),
            repository: claim.repository.map(Box::from),
            source: claim.source,
        });
        Ok(known.collect())
    }
}
