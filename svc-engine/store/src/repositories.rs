//! Which repository had which name, according to the facts.
//!
//! The cost of a question is proportional to the names that it touches, not to the facts behind
//! them. A fact that is quarantined no longer proves its name.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::RepositoryClaim;
use svc_model::facts::FactTable;
use svc_model::id::OrgId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::StoreError;
use super::claims::{self, PROVEN};
use super::column::Columns;
use super::connection::{Connection, Lookup};
use super::value::{Row, Value};

/// Where facts name their repository, except for rename receipts, which always have an identity.
const OF_REPOSITORIES: [FactTable; 5] = [
    FactTable::CiOutcomes,
    FactTable::Pushes,
    FactTable::SessionCommitObservations,
    FactTable::PullRequestRevisions,
    FactTable::PullRequestMerges,
];

/// The selected columns of a claim.
const COLUMNS: [&str; 6] = [
    "name",
    "repository_provider",
    "repository_host",
    "repository_id",
    "source",
    "captured_at_us",
];

/// Returns the beginning of the statement that selects claims by name, up to the names.
fn of_names() -> String {
    format!("{} AND c.name", *PROVEN)
}

/// Returns the beginning of the statement that selects claims by identity, up to the forge's ids.
/// Few forges have a repository with the same id.
fn of_identities() -> String {
    format!("{} AND c.repository_id", *PROVEN)
}

/// Returns the look-up of claims that a selection finds.
const fn lookup(select: &str) -> Lookup<'_> {
    Lookup {
        select,
        then: " LIMIT $3",
    }
}

/// The number of identities whose claims are read at once.
const IDENTITIES_AT_ONCE: usize = 64;

/// Returns every proven claim on these names, of the identities that have one of these names, and
/// of these identities. The claims are distinct, by name and identity. If there are more than
/// `claims_max`, one more than that is returned.
pub(super) fn claims(
    connection: &mut Connection,
    org_id: &OrgId,
    names: &BTreeSet<RepositoryName>,
    repositories: &BTreeSet<RepositoryIdentity>,
    boundary: Instant,
    claims_max: usize,
) -> Result<Vec<RepositoryClaim>, StoreError> {
    let mut proven = Proven::default();
    let rows_max = (claims_max + 1).saturating_mul(claims::place_count());
    let shared = [
        org_id.as_str().into(),
        boundary.into(),
        i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
    ];
    let keys: Vec<Value<'_>> = names.iter().map(|name| name.as_str().into()).collect();
    let select = of_names();
    connection.lookup(&lookup(&select), &shared, &keys, |row| {
        proven.add(row, |_| true)
    })?;
    let mut bearers = repositories.clone();
    bearers.extend(proven.0.keys().map(|(_, repository)| repository.clone()));
    let ids: BTreeSet<&str> = bearers
        .iter()
        .map(|bearer| bearer.repository_id.as_str())
        .collect();
    let ids: Vec<Value<'_>> = ids.into_iter().map(Value::from).collect();
    let select = of_identities();
    for ids in ids.chunks(IDENTITIES_AT_ONCE) {
        if proven.0.len() > claims_max {
            break;
        }
        connection.lookup(&lookup(&select), &shared, ids, |row| {
            proven.add(row, |repository| bearers.contains(repository))
        })?;
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

/// Returns whether a visible fact that was received by the boundary has this name and no identity.
pub(super) fn is_named(
    connection: &mut Connection,
    org_id: &OrgId,
    name: &RepositoryName,
    boundary: Instant,
) -> Result<bool, StoreError> {
    let keys = [
        org_id.as_str().into(),
        name.as_str().into(),
        boundary.into(),
    ];
    for table in OF_REPOSITORIES {
        let found = connection.first(&naming(table), &keys, |_| Ok(()))?;
        if found.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the statement that finds a fact of a kind that has a name but no identity.
fn naming(table: FactTable) -> String {
    format!(
        "SELECT 1 FROM visible_{table} f WHERE f.org_id = $1 AND f.repository_provider IS NULL
        AND f.repository_host IS NULL AND f.repository_id IS NULL AND f.repo = $2
        AND f.captured_at_us <= $3 LIMIT 1"
    )
}

/// What the claims that were selected so far prove.
#[derive(Default)]
struct Proven(BTreeMap<(RepositoryName, RepositoryIdentity), Option<Instant>>);

impl Proven {
    /// Adds a claim of a wanted repository.
    fn add(
        &mut self,
        row: &Row<'_>,
        is_wanted: impl Fn(&RepositoryIdentity) -> bool,
    ) -> Result<(), StoreError> {
        let mut columns = Columns::of(row, "repository_claims", &COLUMNS);
        let claim: (RepositoryName, RepositoryIdentity) = (columns.next()?, columns.next()?);
        let source: String = columns.next()?;
        let proven_at: Option<Instant> = columns.next()?;
        if proven_at.is_some() && is_wanted(&claim.1) {
            // A rename receipt says that the repository had the old name, and no longer has it.
            let borne_at = proven_at.filter(|_| !claims::is_given_up(&source));
            let latest = self.0.entry(claim).or_default();
            *latest = borne_at.max(*latest);
        }
        Ok(())
    }
}
