//! Claims: facts of a kind give a repository a name. Each claim is stored once.
//!
//! The table only tells where to look. What counts is a visible fact, which an index by repository
//! finds in one step ([`super::repositories`]). So a claim is written with its first fact, and
//! never changed or removed.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::OrgId;

use super::StoreError;
use super::connection::{Connection, Insert};
use super::kind;
use super::row::NewRow;
use super::table::Table;
use super::value::Value;

/// The maximum claims remembered as stored, about 200 bytes each.
const KNOWN_MAX: usize = 100_000;

/// Where facts of one kind name a repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The claim's word for this place.
    source: &'static str,
    /// The columns of the name and of the identity.
    name: &'static str,
    repository: [&'static str; 3],
    /// If given, only facts with this value in this column count.
    only: Option<(&'static str, &'static str)>,
    /// Whether the repository gave up the name.
    is_given_up: bool,
}

impl Place {
    /// Returns the place of the name of a fact's repository.
    pub(super) const fn of_repository(source: &'static str) -> Self {
        Self::named(source, "repo")
    }

    /// Returns the place of the name of a pull request's head repository.
    pub(super) const fn of_head(source: &'static str) -> Self {
        Self {
            repository: [
                "head_repository_provider",
                "head_repository_host",
                "head_repository_id",
            ],
            ..Self::named(source, "head_repo")
        }
    }

    /// Returns the place of a name of a fact's repository in another column.
    pub(super) const fn named(source: &'static str, name: &'static str) -> Self {
        Self {
            source,
            name,
            repository: ["repository_provider", "repository_host", "repository_id"],
            only: None,
            is_given_up: false,
        }
    }

    /// Returns the place of a name that a fact's repository gave up.
    pub(super) const fn given_up(source: &'static str, name: &'static str) -> Self {
        Self {
            is_given_up: true,
            ..Self::named(source, name)
        }
    }

    /// Restricts the place to facts with this value in a column.
    pub(super) const fn only(self, column: &'static str, value: &'static str) -> Self {
        Self {
            only: Some((column, value)),
            ..self
        }
    }

    /// Returns the statement for when the latest visible fact that proves a claim `c` was received,
    /// up to $2.
    fn proof(&self, table: &Table) -> String {
        let [provider, host, id] = self.repository;
        let only = self
            .only
            .map(|(column, value)| format!(" AND f.{column} = '{value}'"));
        format!(
            "SELECT f.captured_at_us FROM visible_{} f WHERE f.org_id = c.org_id \
            AND f.{} = c.name AND f.{provider} = c.repository_provider \
            AND f.{host} = c.repository_host AND f.{id} = c.repository_id{} \
            AND f.captured_at_us <= $2 ORDER BY f.captured_at_us DESC LIMIT 1",
            table.name,
            self.name,
            only.unwrap_or_default(),
        )
    }
}

/// Returns every place where facts name repositories, with the table of the facts.
fn places() -> impl Iterator<Item = (&'static Table, &'static Place)> {
    kind::tables().flat_map(|table| table.names.iter().map(move |place| (table, place)))
}

/// Selects claims, each with when the latest visible fact that proves it was received, up to $2.
/// Further conditions follow.
pub(super) static PROVEN: LazyLock<String> = LazyLock::new(|| {
    let mut text = "SELECT c.name, c.repository_provider, c.repository_host, c.repository_id, \
        c.source, CASE c.source"
        .to_owned();
    for (table, place) in places() {
        let proof = place.proof(table);
        text.push_str(&[" WHEN '", place.source, "' THEN (", &proof, ")"].concat());
    }
    text.push_str(" END FROM repository_claims c WHERE c.org_id = $1");
    text
});

/// Returns the number of places.
pub(super) fn place_count() -> usize {
    places().count()
}

/// Returns whether a claim is about a name that its repository gave up.
pub(super) fn is_given_up(source: &str) -> bool {
    places().any(|(_, place)| place.is_given_up && place.source == source)
}

const INSERT: Insert = Insert {
    into: "INSERT INTO repository_claims
        (org_id, name, repository_provider, repository_host, repository_id, source)",
    columns: 6,
    then: "ON CONFLICT DO NOTHING",
    returning: "CAST(0 AS BIGINT), name",
    unique: 1,
    is_row_number: true,
};

/// A claim: a fact gives a repository a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Claim<'a> {
    name: &'a str,
    repository: [&'a str; 3],
    source: &'static str,
}

/// A claim that is stored.
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
            && self.repository == known.repository.each_ref().map(|text| &**text)
    }
}

/// The claims that this process has found stored. A claim is never removed, so this stays true
/// whoever else writes.
#[derive(Debug)]
pub(super) struct KnownClaims(Cache<KnownClaim, ()>);

impl Default for KnownClaims {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl KnownClaims {
    /// Adds what a committed transaction stored.
    pub(super) fn remember(&mut self, claim: KnownClaim) {
        self.0.insert(claim, ());
    }
}

/// The claims of one transaction's facts. They are sorted, so that servers that store the same
/// claims at once cannot deadlock.
#[derive(Debug, Default)]
pub(super) struct Claims<'a>(BTreeSet<Claim<'a>>);

impl<'a> Claims<'a> {
    /// Adds the claims of a stored row. Without a name or an identity, there is none.
    pub(super) fn row(&mut self, table: &Table, row: &'a NewRow) {
        for place in table.names {
            let given = |(column, value)| row.text(table, column) == Some(value);
            if !place.only.is_none_or(given) {
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

    /// Returns the columns of each claim besides the organization: name, identity and place.
    pub(super) fn keys(&self) -> impl Iterator<Item = [&'a str; 5]> {
        self.0.iter().map(|claim| {
            let [provider, host, id] = claim.repository;
            [claim.name, provider, host, id, claim.source]
        })
    }

    /// Stores the claims that are not remembered as stored, and returns them.
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
