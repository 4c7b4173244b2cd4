//! Which repository bore which name, as facts say it.
//!
//! A question costs in proportion to the names it touches and not to the facts behind them, and a
//! quarantined fact stops proving its name.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::id::OrgId;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::StoreError;
use super::claims::{PROVEN, RENAMED_FROM, SOURCES};
use super::column::Columns;
use super::connection::Connection;
use super::value::Value;
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

/// Returns the text that selects the claims of a name.
fn of_name() -> String {
    format!("{PROVEN} AND c.name = $4 LIMIT $3")
}

/// Returns the text that selects the claims of an identity.
fn of_identity() -> String {
    format!(
        "{PROVEN} AND c.repository_provider = $4 AND c.repository_host = $5
            AND c.repository_id = $6 LIMIT $3"
    )
}

/// The statements of this module, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements() -> Vec<String> {
    vec![of_name(), of_identity()]
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
        org_id.as_str().into(),
        boundary.into(),
        i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
    ];
    let mut read = |sql: &str, keys: &[Value<'_>], proven: &mut Proven| {
        connection.each(sql, &[&bounds, keys].concat(), |row| {
            proven.add(&mut Columns::of(row, "repository_claims", &COLUMNS))
        })
    };
    for name in names {
        read(&of_name(), &[name.as_str().into()], &mut proven)?;
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
        read(&of_identity(), &keys, &mut proven)?;
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
