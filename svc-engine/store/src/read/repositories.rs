//! Which repository had which name, according to the facts.
//!
//! The cost of a question is proportional to the names that it touches, not to the facts behind
//! them. A fact that is quarantined no longer proves its name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use svc_engine_fact::RepositoryClaim;
use svc_model::limit::REPOSITORY_CLAIMS_MAX;
use svc_model::repository::{RepositoryIdentity, RepositoryName};
use svc_model::time::Instant;

use super::snapshot::Snapshot;
use crate::pack::column::Columns;
use crate::sql::connection::Lookup;
use crate::sql::error::StoreError;
use crate::sql::value::{Row, Value};
use crate::table::kind;
use crate::table::record::{NamingColumns, Table};

/// The selected columns of a claim.
const COLUMNS: [&str; 6] = [
    "name",
    "repository_provider",
    "repository_host",
    "repository_id",
    "source",
    "captured_at_us",
];

/// Returns every place where facts name repositories, with the table of the facts.
fn places() -> impl Iterator<Item = (&'static Table, &'static NamingColumns)> {
    kind::tables().flat_map(|table| table.names.iter().map(move |place| (table, place)))
}

/// Selects claims, each with when the latest visible fact that proves it was received, up to $2.
/// Further conditions follow.
static PROVEN: LazyLock<String> = LazyLock::new(|| {
    let mut text = "SELECT c.name, c.repository_provider, c.repository_host, c.repository_id, \
        c.source, CASE c.source"
        .to_owned();
    for (table, place) in places() {
        let proof = proof(place, table);
        text.push_str(&[" WHEN '", place.source, "' THEN (", &proof, ")"].concat());
    }
    text.push_str(" END FROM repository_claims c WHERE c.org_id = $1");
    text
});

/// Returns the number of places.
fn place_count() -> usize {
    places().count()
}

/// Returns whether a claim is about a name that its repository gave up.
fn is_given_up(source: &str) -> bool {
    places().any(|(_, place)| place.is_given_up && place.source == source)
}

/// Returns the statement for when the latest visible fact that proves a claim `c` was received,
/// up to $2.
fn proof(place: &NamingColumns, table: &Table) -> String {
    let [provider, host, id] = place.repository;
    let only = place
        .only
        .map(|(column, value)| format!(" AND f.{column} = '{value}'"));
    format!(
        "SELECT f.captured_at_us FROM visible_{} f WHERE f.org_id = c.org_id \
        AND f.{} = c.name AND f.{provider} = c.repository_provider \
        AND f.{host} = c.repository_host AND f.{id} = c.repository_id{} \
        AND f.captured_at_us <= $2 ORDER BY f.captured_at_us DESC LIMIT 1",
        table.name,
        place.name,
        only.unwrap_or_default(),
    )
}

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

impl Snapshot<'_> {
    /// Returns the claims that visible facts received by the boundary prove: those on these names,
    /// those of the repositories that have one of these names, and those of these repositories.
    /// They are distinct and sorted. If there are more than [`REPOSITORY_CLAIMS_MAX`], one more
    /// than that is returned.
    pub fn repository_claims(
        &mut self,
        names: &BTreeSet<RepositoryName>,
        repositories: &BTreeSet<RepositoryIdentity>,
        boundary: Instant,
    ) -> Result<Vec<RepositoryClaim>, StoreError> {
        self.claims_up_to(names, repositories, boundary, REPOSITORY_CLAIMS_MAX)
    }

    /// Does what [`repository_claims`](Self::repository_claims) does, with another limit.
    pub(crate) fn claims_up_to(
        &mut self,
        names: &BTreeSet<RepositoryName>,
        repositories: &BTreeSet<RepositoryIdentity>,
        boundary: Instant,
        claims_max: usize,
    ) -> Result<Vec<RepositoryClaim>, StoreError> {
        let mut proven = ProvenNames::default();
        let rows_max = (claims_max + 1).saturating_mul(place_count());
        let shared = [
            self.org_id.as_str().into(),
            boundary.into(),
            i64::try_from(rows_max).unwrap_or(i64::MAX).into(),
        ];
        let keys: Vec<Value<'_>> = names.iter().map(|name| name.as_str().into()).collect();
        let select = of_names();
        self.connection()?
            .lookup(&lookup(&select), &shared, &keys, |row| {
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
            self.connection()?
                .lookup(&lookup(&select), &shared, ids, |row| {
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

    /// Returns whether a visible fact that was received by the boundary has this repository name
    /// and no identity.
    pub fn is_repository_named(
        &mut self,
        name: &RepositoryName,
        boundary: Instant,
    ) -> Result<bool, StoreError> {
        let keys = [
            self.org_id.as_str().into(),
            name.as_str().into(),
            boundary.into(),
        ];
        // A rename receipt has no such column: its repository always has an identity.
        for table in kind::tables().filter(|table| table.has("repo")) {
            let found = self
                .connection()?
                .first(&naming(table), &keys, |_| Ok(()))?;
            if found.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the statement that finds a fact of a kind that has a name but no identity.
fn naming(table: &Table) -> String {
    format!(
        "SELECT 1 FROM visible_{} f WHERE f.org_id = $1 AND f.repository_provider IS NULL
        AND f.repository_host IS NULL AND f.repository_id IS NULL AND f.repo = $2
        AND f.captured_at_us <= $3 LIMIT 1",
        table.name
    )
}

/// What the claims that were selected so far prove.
#[derive(Default)]
struct ProvenNames(BTreeMap<(RepositoryName, RepositoryIdentity), Option<Instant>>);

impl ProvenNames {
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
            let borne_at = proven_at.filter(|_| !is_given_up(&source));
            let latest = self.0.entry(claim).or_default();
            *latest = borne_at.max(*latest);
        }
        Ok(())
    }
}
