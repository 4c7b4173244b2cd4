//! What happens to a fact whose natural key is taken: it is a redelivery of the retained fact, or
//! it conflicts with the retained fact. The first fact is never changed.

use svc_model::id::FactId;
use svc_model::problem::Code;

use super::StoreError;
use super::append::{Appending, Outcome};
use super::connection::Connection;
use super::error::corrupt;
use super::row::NewRow;
use super::table::Table;
use super::value::{Row, Value};

/// A natural key. It covers the facts that have, or lack, a value in one column. Among these, an
/// organization has at most one fact with the same values in the other columns.
#[derive(Debug)]
pub(super) struct Key {
    column: &'static str,
    given: bool,
    /// Separated by `, `.
    others: &'static str,
}

impl Key {
    /// Returns the key of the facts that have a value in `column`.
    pub(super) const fn with(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: true,
            others,
        }
    }

    /// Returns the key of the facts that have no value in `column`.
    pub(super) const fn without(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: false,
            others,
        }
    }

    /// Returns whether this key applies to a row.
    fn is_of(&self, table: &Table, row: &NewRow) -> bool {
        row.given(table, self.column) == self.given
    }

    /// Finds the retained fact and compares it with the fact to be inserted. If given, it has
    /// another value in one column.
    fn retained(
        &self,
        connection: &mut Connection,
        table: &'static Table,
        row: &NewRow,
        but: Option<(&str, &Value<'static>)>,
    ) -> Result<Option<Difference>, StoreError> {
        let keys = ["org_id"].into_iter().chain(self.others.split(", "));
        let keys: Option<Vec<Value<'_>>> = keys
            .map(|column| match but {
                Some((other, value)) if other == column => Some(value.clone()),
                _ => row.value(table, column).cloned(),
            })
            .collect();
        let keys = keys.ok_or(corrupt(table.name, "its key has no such column"))?;
        connection.first(&self.text(table), &keys, |retained| {
            Difference::between(table, retained, row)
        })
    }

    /// Returns the statement that finds the retained fact.
    pub(super) fn text(&self, table: &Table) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "SELECT {} FROM {} WHERE org_id = $1 AND {} IS {}",
            table.members.join(", "),
            table.name,
            self.column,
            if self.given { "NOT NULL" } else { "NULL" }
        );
        for (number, column) in (2..).zip(self.others.split(", ")) {
            write!(text, " AND {column} = ${number}").expect("writing to a string cannot fail");
        }
        text
    }
}

/// Columns with the name of a repository, each with the column of its identity. If there is an
/// identity, the name does not matter.
const NAMES: [(&str, &str); 2] = [
    ("repo", "repository_id"),
    ("head_repo", "head_repository_id"),
];

/// A redelivery that differs from the retained fact in columns that do not identify it.
#[derive(Debug)]
pub(super) struct Difference {
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
    pub(super) fn of_call(fact_id: FactId, columns: Vec<&'static str>) -> Self {
        Self {
            table: "inference_calls",
            fact_id,
            columns,
        }
    }

    /// Returns the id of the retained fact.
    pub(super) const fn fact_id(&self) -> FactId {
        self.fact_id
    }

    /// Returns the columns that differ.
    pub(super) fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    /// Returns whether the row, whose identifying columns are given, is about something else than the
    /// retained fact.
    pub(super) fn is_conflict(&self, table: &Table, identity: &str, row: &NewRow) -> bool {
        self.columns.iter().any(|column| {
            let beside = NAMES.iter().find(|(name, _)| name == column);
            let is_decisive = beside.is_none_or(|(_, id)| !row.given(table, id));
            is_decisive && identity.split(", ").any(|name| name == *column)
        })
    }

    /// Tells the operator. The retained fact is not changed.
    pub(super) fn log(&self) {
        tracing::info!(
            table = self.table,
            fact_id = %self.fact_id,
            columns = self.columns.join(","),
            "redelivery_differs"
        );
    }
}

/// Finds the retained fact whose key is that of a row but for the value of one column, and compares
/// it with the row.
pub(super) fn counterpart(
    connection: &mut Connection,
    table: &'static Table,
    keys: &[Key],
    row: &NewRow,
    but: (&str, &Value<'static>),
) -> Result<Option<Difference>, StoreError> {
    match keys.iter().find(|key| key.is_of(table, row)) {
        Some(key) => key.retained(connection, table, row, Some(but)),
        None => Ok(None),
    }
}

/// Tells a redelivery from a conflict by comparing with the retained fact. A row that no key
/// applies to is merely known.
pub(super) fn judge(
    appending: &mut Appending<'_, '_>,
    table: &'static Table,
    keys: &[Key],
    identity: &str,
    row: &NewRow,
) -> Result<Outcome, StoreError> {
    let Some(key) = keys.iter().find(|key| key.is_of(table, row)) else {
        return Ok(Outcome::Known);
    };
    let difference = key
        .retained(appending.transaction.connection, table, row, None)?
        .ok_or(corrupt(table.name, "a retained fact is absent"))?;
    if difference.is_conflict(table, identity, row) {
        return Ok(Outcome::Conflict(Code::RepositoryIdentityConflict));
    }
    let fact_id = difference.fact_id;
    if !difference.columns.is_empty() {
        appending.afterwards.differences.push(difference);
    }
    Ok(Outcome::Redelivered(fact_id))
}
