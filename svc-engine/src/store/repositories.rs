//! Which repository bore which name, as facts say it.
//!
//! The table holds each distinct claim once: a name, an identity, and the kind of fact that says so.
//! It only tells where to look. What counts is a visible fact received by the boundary, which is
//! found by an index in one step, so a question costs in proportion to the names it touches, and a
//! quarantined fact stops proving its name.

use std::collections::{BTreeMap, BTreeSet};

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::OrgId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::StoreError;
use super::column::Columns;
use super::connection::{Connection, Insert};
use super::quarantine::visible;
use super::table::{NewRow, Table};
use super::value::Value;
use crate::fact::RepositoryClaim;

/// Claims that are known to be stored, kept in memory: about 200 bytes each.
const KNOWN_MAX: usize = 100_000;

/// Where facts of one kind name a repository.
struct Place {
    /// The word for it in the claim.
    source: &'static str,
    table: &'static str,
    name: &'static str,
    repository: [&'static str; 3],
}

/// Declares where facts name repositories: the word for it, the table and its id, and the columns of
/// the name and of the identity.
macro_rules! sources {
    ($($word:literal:
        $table:literal $id:literal, $name:literal, $provider:literal, $host:literal, $repository:literal;)+
    ) => {
        /// Where facts name repositories.
        const SOURCES: &[Place] = &[$(Place {
            source: $word,
            table: $table,
            name: $name,
            repository: [$provider, $host, $repository],
        }),+];

        /// When the latest visible fact that proves claim `c` by the boundary was received.
        macro_rules! proven_at {
            ($boundary:literal) => {
                concat!(
                    "CASE c.source",
                    $(
                        " WHEN '", $word, "' THEN (SELECT f.captured_at_us FROM ", $table,
                        " f WHERE f.org_id = c.org_id AND f.", $name, " = c.name",
                        " AND f.", $provider, " = c.repository_provider",
                        " AND f.", $host, " = c.repository_host",
                        " AND f.", $repository, " = c.repository_id",
                        " AND f.captured_at_us <= ", $boundary, " AND ", visible!($table, $id),
                        " ORDER BY f.captured_at_us DESC LIMIT 1)",
                    )+
                    " END"
                )
            };
        }
    };
}

sources! {
    "pushes": "pushes" "push_id",
        "repo", "repository_provider", "repository_host", "repository_id";
    "ci_outcomes": "ci_outcomes" "outcome_id",
        "repo", "repository_provider", "repository_host", "repository_id";
    "observations": "session_commit_observations" "observation_id",
        "repo", "repository_provider", "repository_host", "repository_id";
    "revisions": "pull_request_revisions" "revision_id",
        "repo", "repository_provider", "repository_host", "repository_id";
    "revision_heads": "pull_request_revisions" "revision_id",
        "head_repo", "head_repository_provider", "head_repository_host", "head_repository_id";
    "merges": "pull_request_merges" "merge_id",
        "repo", "repository_provider", "repository_host", "repository_id";
    "merge_heads": "pull_request_merges" "merge_id",
        "head_repo", "head_repository_provider", "head_repository_host", "head_repository_id";
    "renames_from": "repository_renames" "rename_id",
        "old_repo", "repository_provider", "repository_host", "repository_id";
    "renames_to": "repository_renames" "rename_id",
        "new_repo", "repository_provider", "repository_host", "repository_id";
}

/// The source of the names that repositories gave up.
const RENAMED_FROM: &str = "renames_from";

const INSERT: Insert = Insert {
    into: "INSERT INTO repository_claims
        (org_id, name, repository_provider, repository_host, repository_id, source)",
    columns: 6,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), name",
    unique: 1,
};
const COLUMNS: [&str; 6] = [
    "name",
    "repository_provider",
    "repository_host",
    "repository_id",
    "source",
    "captured_at_us",
];
/// The claims of a name, each with what proves it by the boundary.
const OF_NAME: &str = concat!(
    "SELECT c.name, c.repository_provider, c.repository_host, c.repository_id, c.source, ",
    proven_at!("$3"),
    " FROM repository_claims c WHERE c.org_id = $1 AND c.name = $2 LIMIT $4"
);
/// The claims of an identity, each with what proves it by the boundary.
const OF_IDENTITY: &str = concat!(
    "SELECT c.name, c.repository_provider, c.repository_host, c.repository_id, c.source, ",
    proven_at!("$5"),
    " FROM repository_claims c WHERE c.org_id = $1 AND c.repository_provider = $2
        AND c.repository_host = $3 AND c.repository_id = $4 LIMIT $6"
);

/// The statements of this module, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements() -> Vec<String> {
    vec![INSERT.text(2), OF_NAME.to_owned(), OF_IDENTITY.to_owned()]
}

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
        connection.insert(&INSERT, values.chunks_exact(INSERT.columns))?;
        let known = new.into_iter().map(|claim| KnownClaim {
            name: claim.name.into(),
            repository: claim.repository.map(Box::from),
            source: claim.source,
        });
        Ok(known.collect())
    }
}

/// Returns every proven claim of these names, of the identities that bear them, and of these
/// identities: distinct, by name and identity. When there are more than `claims_max`, one more than
/// that comes back.
pub(super) fn claims(
    connection: &mut Connection,
    org_id: &OrgId,
    names: &BTreeSet<RepositoryName>,
    repositories: &BTreeSet<RepositoryIdentity>,
    boundary: Instant,
    claims_max: usize,
) -> Result<Vec<RepositoryClaim>, StoreError> {
    let mut proven = Proven::default();
    let rows_max = (claims_max + 1).saturating_mul(SOURCES.len());
    let bounds = [
        boundary.into(),
        i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
    ];
    let mut read = |sql, keys: &[Value<'_>], proven: &mut Proven| {
        let keys = [&[org_id.as_str().into()], keys, &bounds].concat();
        connection.each(sql, &keys, |row| {
            proven.add(&mut Columns::of(row, "repository_claims", &COLUMNS))
        })
    };
    for name in names {
        read(OF_NAME, &[name.as_str().into()], &mut proven)?;
    }
    let mut bearers = repositories.clone();
    bearers.extend(proven.0.keys().map(|(_, repository)| repository.clone()));
    for repository in bearers {
        if proven.0.len() > claims_max {
            break;
        }
        let keys = [
            repository.repository_provider.as_str().into(),
            repository.repository_host.as_str().into(),
            repository.repository_id.as_str().into(),
        ];
        read(OF_IDENTITY, &keys, &mut proven)?;
    }
    let claims = proven.0.into_iter().take(claims_max + 1);
    Ok(claims
        .map(|((name, repository), borne_at)| RepositoryClaim {
            name,
            repository,
            borne_at,
        })
        .collect())
}

/// What the claims selected so far prove.
#[derive(Default)]
struct Proven(BTreeMap<(RepositoryName, RepositoryIdentity), Option<Instant>>);

impl Proven {
    fn add(&mut self, columns: &mut Columns<'_>) -> Result<(), StoreError> {
        let claim = (columns.next()?, columns.next()?);
        let source: String = columns.next()?;
        let proven_at: Option<Instant> = columns.next()?;
        if proven_at.is_some() {
            // A receipt of a rename says that the old name was borne, and that it is no longer.
            let borne_at = proven_at.filter(|_| source != RENAMED_FROM);
            let latest = self.0.entry(claim).or_default();
            *latest = borne_at.max(*latest);
        }
        Ok(())
    }
}
