//! One kind of fact as rows of its table: how it is inserted, and what becomes of a fact whose key
//! is taken.

use svc_model::id::{FactId, OrgId};
use svc_model::problem::Code;

use super::StoreError;
use super::append::{Kind, Outcome, Transaction};
use super::column::Columns;
use super::connection::{Connection, Insert};
use super::error::corrupt;
use super::traces::Traces;
use super::value::{Row, Value};

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// The columns of the fact's members, the id first.
    pub(super) members: &'static [&'static str],
    /// Columns that are made from them, to stand in an index.
    pub(super) derived: &'static [&'static str],
    /// The insertion: the organization, the members, and what is made from them.
    pub(super) insert: Insert,
    /// The selection of the members of visible facts, up to its further conditions.
    pub(super) select: &'static str,
}

impl Table {
    /// Returns the place of a column among the inserted ones.
    fn place(&self, column: &str) -> Option<usize> {
        if column == "org_id" {
            return Some(0);
        }
        let mut columns = self.members.iter().chain(self.derived);
        columns.position(|name| *name == column).map(|it| it + 1)
    }
}

/// A kind of fact that is one row. [`table!`](table) implements it.
pub(super) trait Record: Sized {
    const TABLE: &'static Table;

    /// Returns the id of the fact.
    fn id(&self) -> FactId;

    /// Appends the values of its columns.
    fn write(self, row: &mut Vec<Value<'static>>);

    /// Reads its members.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;
}

/// Says in which columns the members of a fact are kept:
/// `table! { Fact in "table", "id" = id_member, "column" = member, … }`.
///
/// A member may take several columns, and another form than its own (`= member as Form`). Columns
/// that are `derived` come last; they are written and not read.
macro_rules! table {
    (
        $fact:ident in $table:literal,
        $id:literal = $id_member:ident,
        $($($column:literal)+ = $member:ident $(as $form:ty)?,)+
        $(derived $derived:literal = $derive:path,)*
    ) => {
        impl $crate::store::table::Record for $fact {
            const TABLE: &'static $crate::store::table::Table = &$crate::store::table::Table {
                name: $table,
                members: &[$id, $($($column),+),+],
                derived: &[$($derived),*],
                insert: $crate::store::connection::Insert {
                    into: concat!(
                        "INSERT INTO ", $table, " (org_id, ", $id,
                        $($(", ", $column),+),+ $(, ", ", $derived)*, ")"
                    ),
                    columns: 2 + [$($($column),+),+].len() + {
                        let derived: &[&str] = &[$($derived),*];
                        derived.len()
                    },
                    then: "ON CONFLICT DO NOTHING",
                    returning: concat!("CAST(0 AS BIGINT), ", $id),
                    unique: 1,
                },
                select: concat!(
                    "SELECT f.", $id, $($(", f.", $column),+),+, " FROM ", $table,
                    " f WHERE f.org_id = $1 AND ", $crate::store::quarantine::visible!($table, $id)
                ),
            };

            fn id(&self) -> svc_model::id::FactId {
                self.$id_member
            }

            fn write(self, row: &mut Vec<$crate::store::value::Value<'static>>) {
                let derived: [$crate::store::value::Value<'static>; Self::TABLE.derived.len()] =
                    [$($derive(&self)),*];
                $crate::store::column::Column::write(self.$id_member, row);
                $(table!(@write self.$member, row $(, $form)?);)+
                row.extend(derived);
            }

            fn read(
                columns: &mut $crate::store::column::Columns<'_>,
            ) -> Result<Self, $crate::store::StoreError> {
                Ok(Self {
                    $id_member: columns.next()?,
                    $($member: table!(@read columns $(, $form)?),)+
                })
            }
        }
    };
    (@write $member:expr, $row:ident) => {
        $crate::store::column::Column::write($member, $row)
    };
    (@write $member:expr, $row:ident, $form:ty) => {
        <$form as $crate::store::column::Form<_>>::write($member, $row)
    };
    (@read $columns:ident) => {
        $columns.next()?
    };
    (@read $columns:ident, $form:ty) => {
        <$form as $crate::store::column::Form<_>>::read($columns)?
    };
}
pub(super) use table;

/// What a kind of fact means to the store beside its row.
pub(super) trait Fact: Record {
    /// Its natural keys. Without one nobody asks which fact was there before.
    const KEYS: &'static [Key] = &[];

    /// The columns beside a key in which a redelivery equals the retained fact, separated by `, `.
    const IDENTITY: &'static str = "";
}

/// A natural key: of the facts with, or without, a value in one column an organization has one with
/// the same others.
#[derive(Debug)]
pub(super) struct Key {
    column: &'static str,
    given: bool,
    /// Separated by `, `.
    others: &'static str,
}

impl Key {
    /// Returns the key of facts with a value in `column`.
    pub(super) const fn with(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: true,
            others,
        }
    }

    /// Returns the key of facts without a value in `column`.
    pub(super) const fn without(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: false,
            others,
        }
    }

    /// Finds the retained fact and compares it with the one that was to be inserted.
    fn retained(
        &self,
        connection: &mut Connection,
        table: &'static Table,
        row: &NewRow,
    ) -> Result<Option<Difference>, StoreError> {
        let keys = ["org_id"].into_iter().chain(self.others.split(", "));
        let keys: Option<Vec<Value<'_>>> = keys
            .map(|column| row.value(table, column).cloned())
            .collect();
        let keys = keys.ok_or(corrupt(table.name, "its key has no such column"))?;
        connection.first(&self.text(table), &keys, |retained| {
            Difference::between(table, retained, row)
        })
    }

    /// Returns the text that finds the retained fact.
    fn text(&self, table: &Table) -> String {
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

/// Columns with the name of a repository. Beside an identity, in the second column, a name says
/// nothing.
const NAMES: [(&str, &str); 2] = [
    ("repo", "repository_id"),
    ("head_repo", "head_repository_id"),
];

/// A redelivery that says otherwise than the retained fact, in columns that do not identify it.
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
            fact_id: FactId::parse(&retained.text(0)?).ok_or(corrupt(table.name, "its id"))?,
            columns: Vec::new(),
        };
        // The id and the moment are those of the delivery, not of what was delivered.
        let members = table.members.iter().enumerate().skip(1);
        for (place, column) in members.filter(|(_, column)| **column != "captured_at_us") {
            let value = row.value(table, column).unwrap_or(&Value::Null);
            if !retained.holds(place, value)? {
                difference.columns.push(*column);
            }
        }
        Ok(difference)
    }

    /// Tells the operator; the retained fact stays as it is.
    pub(super) fn log(&self) {
        tracing::info!(
            table = self.table,
            fact_id = %self.fact_id,
            columns = self.columns.join(","),
            "redelivery_differs"
        );
    }
}

/// The statements of a table, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements<F: Fact>() -> Vec<String> {
    let mut statements = vec![F::TABLE.insert.text(2), by_id(F::TABLE)];
    statements.extend(F::KEYS.iter().map(|key| key.text(F::TABLE)));
    statements
}

/// A row that is to be inserted.
#[derive(Debug)]
pub(super) struct NewRow {
    fact_id: FactId,
    /// The organization, then the columns of the table.
    values: Vec<Value<'static>>,
}

impl NewRow {
    fn value(&self, table: &Table, column: &str) -> Option<&Value<'static>> {
        self.values.get(table.place(column)?)
    }

    /// Returns a column when there is one and it holds a text.
    pub(super) fn text(&self, table: &Table, column: &str) -> Option<&str> {
        match self.value(table, column)? {
            Value::Text(text) => Some(text),
            Value::OwnText(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a column when there is one and it holds an integer.
    pub(super) fn integer(&self, table: &Table, column: &str) -> Option<i64> {
        match self.value(table, column)? {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    fn given(&self, table: &Table, column: &str) -> bool {
        !matches!(self.value(table, column), None | Some(Value::Null))
    }
}

impl<F: Fact> Kind for F {
    type Prepared = NewRow;

    fn prepare(self: Box<Self>, org_id: &OrgId) -> NewRow {
        let fact_id = self.id();
        let mut values = Vec::with_capacity(F::TABLE.insert.columns);
        values.push(Value::OwnText(org_id.as_str().to_owned()));
        (*self).write(&mut values);
        NewRow { fact_id, values }
    }

    fn store(
        transaction: &mut Transaction<'_>,
        rows: &[&NewRow],
    ) -> Result<Vec<Outcome>, StoreError> {
        let values = rows.iter().map(|row| row.values.as_slice());
        let inserted = transaction.connection.insert(&F::TABLE.insert, values)?;
        rows.iter()
            .zip(inserted)
            .map(|(row, inserted)| match inserted {
                Some(_) => Ok(Outcome::Stored(row.fact_id)),
                None => duplicate::<F>(transaction, row),
            })
            .collect()
    }

    fn trace<'a>(row: &'a NewRow, traces: &mut Traces<'a>) {
        traces.row(F::TABLE, row);
    }
}

/// Tells a redelivery from a conflict: the retained fact decides.
fn duplicate<F: Fact>(
    transaction: &mut Transaction<'_>,
    row: &NewRow,
) -> Result<Outcome, StoreError> {
    let table = F::TABLE;
    let mut keys = F::KEYS.iter();
    let Some(key) = keys.find(|key| row.given(table, key.column) == key.given) else {
        return Ok(Outcome::Known);
    };
    let difference = key
        .retained(transaction.connection, table, row)?
        .ok_or(corrupt(table.name, "a retained fact is absent"))?;
    let identifies = |column: &&str| {
        let beside = NAMES.iter().find(|(name, _)| name == column);
        let says_something = beside.is_none_or(|(_, id)| !row.given(table, id));
        says_something && F::IDENTITY.split(", ").any(|it| it == *column)
    };
    if difference.columns.iter().any(identifies) {
        return Ok(Outcome::Conflict(Code::RepositoryIdentityConflict));
    }
    let fact_id = difference.fact_id;
    if !difference.columns.is_empty() {
        transaction.afterwards.differences.push(difference);
    }
    Ok(Outcome::Redelivered(fact_id))
}

fn by_id(table: &Table) -> String {
    format!("{} AND f.{} = $2", table.select, table.members[0])
}

/// Returns a visible fact by its id.
pub(super) fn one<F: Record>(
    connection: &mut Connection,
    org_id: &OrgId,
    fact_id: FactId,
) -> Result<Option<F>, StoreError> {
    let keys = [org_id.as_str().into(), Value::OwnText(fact_id.to_string())];
    connection.first(&by_id(F::TABLE), &keys, |row| {
        F::read(&mut Columns::of(row, F::TABLE.name, F::TABLE.members))
    })
}
