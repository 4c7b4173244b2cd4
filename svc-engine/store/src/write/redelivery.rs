//! What happens to a fact whose natural key is taken: it is a redelivery of the retained fact, or
//! it conflicts with the retained fact. The first fact is never changed.

use svc_model::id::FactId;
use svc_model::problem::Code;

use super::outcome::Outcome;
use super::redelivery;
use crate::sql::connection::Connection;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};
use crate::table::record::{Fact, NaturalKey, Table};
use crate::table::row::NewRow;

/// Returns whether this key applies to a row.
fn is_of(key: &NaturalKey, table: &Table, row: &NewRow) -> bool {
    row.given(table, key.column) == key.given
}

/// Finds the retained fact and compares it with the fact to be inserted. If given, it has
/// another value in one column.
fn retained(
    key: &NaturalKey,
    connection: &mut Connection,
    table: &'static Table,
    row: &NewRow,
    but: Option<(&str, &Value<'static>)>,
) -> Result<Option<Difference>, StoreError> {
    let keys = ["org_id"].into_iter().chain(key.others.split(", "));
    let keys: Option<Vec<Value<'_>>> = keys
        .map(|column| match but {
            Some((other, value)) if other == column => Some(value.clone()),
            _ => row.value(table, column).cloned(),
        })
        .collect();
    let keys = keys.ok_or(corrupt(table.name, "its key has no such column"))?;
    connection.first(&key.text(table), &keys, |retained| {
        Difference::between(table, retained, row)
    })
}

/// Columns with the name of a repository, each with the column of its identity. If there is an
/// identity, the name does not matter.
const NAMES: [(&str, &str); 2] = [
    ("repo", "repository_id"),
    ("head_repo", "head_repository_id"),
];

/// A redelivery that differs from the retained fact in columns that do not identify it.
#[derive(Debug)]
pub(crate) struct Difference {
    table: &'static str,
    fact_id: FactId,
    columns: Vec<&'static str>,
}

impl Difference {
    fn between(
        table: &'static Table,
        retained: &Row<'_>,
        row: &NewRow,
    ) -> Result<Self, StoreError> {
        let mut difference = Self {
            table: table.name,
            fact_id: retained.fact_id(0)?,
            columns: Vec::new(),
        };
        // The id and the moment belong to the delivery, not to what was delivered.
        let members = table.members.iter().enumerate().skip(1);
        for (place, column) in members.filter(|(_, column)| **column != "captured_at_us") {
            let value = row.value(table, column).unwrap_or(&Value::Null);
            if !retained.holds(place, value)? {
                difference.columns.push(*column);
            }
        }
        Ok(difference)
    }

    /// Returns the difference between a redelivered call and the retained one: these columns.
    pub(crate) fn of_call(fact_id: FactId, columns: Vec<&'static str>) -> Self {
        Self {
            table: "inference_calls",
            fact_id,
            columns,
        }
    }

    /// Returns the id of the retained fact.
    pub(crate) const fn fact_id(&self) -> FactId {
        self.fact_id
    }

    /// Returns the columns that differ.
    pub(crate) fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    /// Returns whether the row, whose identifying columns are given, is about something else than the
    /// retained fact.
    pub(crate) fn is_conflict(&self, table: &Table, identity: &str, row: &NewRow) -> bool {
        self.columns.iter().any(|column| {
            let beside = NAMES.iter().find(|(name, _)| name == column);
            let is_decisive = beside.is_none_or(|(_, id)| !row.given(table, id));
            is_decisive && identity.split(", ").any(|name| name == *column)
        })
    }

    /// Tells the operator. The retained fact is not changed.
    pub(crate) fn log(&self) {
        tracing::info!(
            table = self.table,
            fact_id = %self.fact_id,
            columns = self.columns.join(","),
            "redelivery.differs"
        );
    }
}

/// Finds the retained fact whose key is that of a row but for the value of one column, and compares
/// it with the row.
pub(crate) fn counterpart(
    connection: &mut Connection,
    table: &'static Table,
    keys: &[NaturalKey],
    row: &NewRow,
    but: (&str, &Value<'static>),
) -> Result<Option<Difference>, StoreError> {
    match keys.iter().find(|key| is_of(key, table, row)) {
        Some(key) => retained(key, connection, table, row, Some(but)),
        None => Ok(None),
    }
}

/// Tells a redelivery from a conflict by comparing with the retained fact. A row that no key
/// applies to is merely known.
pub(crate) fn judge(
    connection: &mut Connection,
    differences: &mut Vec<Difference>,
    table: &'static Table,
    keys: &[NaturalKey],
    identity: &str,
    row: &NewRow,
) -> Result<Outcome, StoreError> {
    let Some(key) = keys.iter().find(|key| is_of(key, table, row)) else {
        return Ok(Outcome::Known);
    };
    let difference = retained(key, connection, table, row, None)?
        .ok_or(corrupt(table.name, "a retained fact is absent"))?;
    if difference.is_conflict(table, identity, row) {
        return Ok(Outcome::Conflict(Code::RepositoryIdentityConflict));
    }
    let fact_id = difference.fact_id;
    if !difference.columns.is_empty() {
        differences.push(difference);
    }
    Ok(Outcome::Redelivered(fact_id))
}

/// Inserts rows. Where the key of one is taken, the stored fact tells what it is.
pub(crate) fn insert<F: Fact>(
    connection: &mut Connection,
    differences: &mut Vec<Difference>,
    rows: &[&NewRow],
) -> Result<Vec<Outcome>, StoreError> {
    let values = rows.iter().map(|row| row.values.as_slice());
    let inserted = connection.insert(&F::TABLE.insert, values)?;
    rows.iter()
        .zip(inserted)
        .map(|(row, inserted)| match inserted {
            Some(_) => Ok(Outcome::Stored(row.fact_id)),
            None => redelivery::judge(connection, differences, F::TABLE, F::KEYS, F::IDENTITY, row),
        })
        .collect()
}
