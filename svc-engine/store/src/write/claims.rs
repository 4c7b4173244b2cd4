//! Claims: facts of a kind give a repository a name. Each claim is stored once.
//!
//! The table only tells where to look. What counts is a visible fact, which an index by repository
//! finds in one step ([`crate::read::repositories`]). So a claim is written with its first fact, and
//! never changed or removed.

use std::collections::BTreeSet;

use quick_cache::Equivalent;
use quick_cache::unsync::Cache;
use svc_model::id::OrgId;

use crate::sql::connection::{Connection, Insert};
use crate::sql::error::StoreError;
use crate::sql::value::Value;
use crate::table::record::Table;
use crate::table::row::NewRow;

/// The maximum claims remembered as stored, about 200 bytes each.
const KNOWN_MAX: usize = 100_000;

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
pub(crate) struct KnownClaim {
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
pub(crate) struct KnownClaims(Cache<KnownClaim, ()>);

impl Default for KnownClaims {
    fn default() -> Self {
        Self(Cache::new(KNOWN_MAX))
    }
}

impl KnownClaims {
    /// Adds what a committed transaction stored.
    pub(crate) fn remember(&mut self, claim: KnownClaim) {
        self.0.insert(claim, ());
    }
}

/// The claims of one transaction's facts. They are sorted, so that servers that store the same
/// claims at once cannot deadlock.
#[derive(Debug, Default)]
pub(crate) struct Claims<'a>(BTreeSet<Claim<'a>>);

impl<'a> Claims<'a> {
    /// Adds the claims of a stored row. Without a name or an identity, there is none.
    pub(crate) fn row(&mut self, table: &Table, row: &'a NewRow) {
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
    pub(crate) fn keys(&self) -> impl Iterator<Item = [&'a str; 5]> {
        self.0.iter().map(|claim| {
            let [provider, host, id] = claim.repository;
            [claim.name, provider, host, id, claim.source]
        })
    }

    /// Stores the claims that are not remembered as stored, and returns them.
    pub(crate) fn write(
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
