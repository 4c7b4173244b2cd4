//! Which repository bore which name, as facts say it.
//!
//! A question costs in proportion to the names it touches and not to the facts behind them, and a
//! quarantined fact stops proving its name.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::id::OrgId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::StoreError;
use super::claims::{self, PROVEN};
use super::column::Columns;
use super::connection::{Connection, Lookup};
use super::value::{Row, Value};
use crate::fact::RepositoryClaim;

/// What is selected of a claim.
const COLUMNS: [&str; 6] = [
    "name",
    "repository_provider",
    "repository_host",
    "repository_id",
    "source",
    "captured_at_us",
];

/// Returns the text that selects the claims of names, up to the names.
fn of_names() -> String {
    format!("{} AND c.name", *PROVEN)
}

/// Returns the text that selects the claims of identities, up to the forge's ids: few forges have a
/// repository of the same one.
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

/// Identities whose claims are read at once.
const IDENTITIES_AT_ONCE: usize = 64;

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
    let ids: BTreeSet<&str> = bearers.iter().map(|it| it.repository_id.as_str()).collect();
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

/// What the claims selected so far prove.
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
            // A receipt of a rename says that the old name was borne, and that it is no longer.
            let borne_at = proven_at.filter(|_| !claims::is_given_up(&source));
            let latest = self.0.entry(claim).or_default();
            *latest = borne_at.max(*latest);
        }
        Ok(())
    }
}
