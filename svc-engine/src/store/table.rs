//! One kind of fact as rows of its table: how it is inserted, and what becomes of a fact whose key
//! is taken.

use svc_model::id::FactId;
use svc_model::problem::Code;
use svc_model::repository::RepositoryIdentity;

use super::StoreError;
use super::connection::Insert;
use super::error::corrupt;
use super::sessions::Touch;
use super::value::Value;
use super::writer::{Kind, Outcome, Transaction};

/// A table: its name and its columns, of which the first is the fact's id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) insert: Insert,
}

/// Declares a [`Table`]: `table!("name": id, column, …)`.
macro_rules! table {
    ($name:literal: $id:ident $(, $column:ident)+ $(,)?) => {
        $crate::store::table::Table {
            name: $name,
            columns: &[stringify!($id), $(stringify!($column)),+],
            insert: $crate::store::connection::Insert {
                into: concat!(
                    "INSERT INTO ", $name, " (", stringify!($id), $(", ", stringify!($column),)+ ")"
                ),
                columns: [stringify!($id), $(stringify!($column)),+].len(),
                then: "ON CONFLICT DO NOTHING",
                returning: concat!("CAST(0 AS BIGINT), ", stringify!($id)),
                unique: 0,
            },
        }
    };
}
pub(super) use table;

/// A natural key: at most one fact of an organization has these columns, among those of which the
/// condition holds.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) condition: &'static str,
    pub(super) columns: &'static [&'static str],
}

/// Facts of a repository whose identity the forge sent.
pub(super) const IDENTIFIED: &str = "repository_id IS NOT NULL";
/// Facts of a repository that is only known by its name.
pub(super) const NAMED: &str = "repository_id IS NULL";

/// A redelivery that says otherwise than the retained fact, in columns that do not identify it.
#[derive(Debug)]
pub(super) struct Difference {
    table: &'static str,
    fact_id: FactId,
    columns: Vec<&'static str>,
}

impl Difference {
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

/// A kind of fact that is one row.
pub(super) trait Fact {
    /// Its table.
    const TABLE: Table;
    /// Its natural keys, where a redelivery is told from a conflict by the retained fact.
    const KEYS: &'static [Key] = &[];

    /// Returns the id of the fact.
    fn id(&self) -> FactId;

    /// Appends the values of its columns, in their order.
    fn write<'a>(&'a self, org_id: &'a str, row: &mut Vec<Value<'a>>);

    /// Returns the natural key of this fact. Without one nobody asks which fact was there before.
    fn key(&self) -> Option<&'static Key> {
        None
    }

    /// Returns the columns beside the key in which a redelivery equals the retained fact.
    fn identity(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns what the fact says of its Session.
    fn touch(&self) -> Option<Touch<'_>> {
        None
    }
}

/// Returns the columns of an identity.
pub(super) fn triple(repository: Option<&RepositoryIdentity>) -> [Value<'_>; 3] {
    [
        repository.map(|it| it.repository_provider.as_str()).into(),
        repository.map(|it| it.repository_host.as_str()).into(),
        repository.map(|it| it.repository_id.as_str()).into(),
    ]
}

/// The statements of a table, for the test that prepares each of them.
#[cfg(test)]
pub(super) fn statements<F: Fact>() -> Vec<String> {
    let mut statements = vec![F::TABLE.insert.text(2)];
    statements.extend(F::KEYS.iter().map(|key| key.text(&F::TABLE)));
    statements
}

impl<F: Fact> Kind for F {
    fn store(
        transaction: &mut Transaction<'_>,
        facts: &[&Self],
    ) -> Result<Vec<Outcome>, StoreError> {
        let insert = &F::TABLE.insert;
        let mut values = Vec::with_capacity(facts.len() * insert.columns);
        let org_id = transaction.org_id;
        for fact in facts {
            fact.write(org_id.as_str(), &mut values);
        }
        let inserted = transaction.connection.insert(insert, &values)?;
        facts
            .iter()
            .zip(values.chunks_exact(insert.columns))
            .zip(inserted)
            .map(|((fact, row), inserted)| match (inserted, fact.key()) {
                (Some(_), _) => Ok(Outcome::Stored(fact.id())),
                (None, None) => Ok(Outcome::Known),
                (None, Some(key)) => retained(transaction, &F::TABLE, key, fact.identity(), row),
            })
            .collect()
    }

    fn touch(&self) -> Option<Touch<'_>> {
        Fact::touch(self)
    }
}

/// Tells a redelivery from a conflict: the retained fact decides.
fn retained(
    transaction: &mut Transaction<'_>,
    table: &Table,
    key: &Key,
    identity: &[&str],
    row: &[Value<'_>],
) -> Result<Outcome, StoreError> {
    let column = |name: &str| {
        let place = table.columns.iter().position(|column| *column == name);
        place.ok_or(corrupt(table.name, "it has no such column"))
    };
    let keys = ["org_id"]
        .iter()
        .chain(key.columns)
        .map(|name| Ok(row[column(name)?].clone()))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let found = transaction
        .connection
        .first(&key.text(table), &keys, |retained| {
            let mut differing = Vec::new();
            for (place, name) in table.columns.iter().enumerate() {
                // Its id and its moment are those of the delivery, not of what was delivered.
                let own = place == 0 || *name == "captured_at_us";
                if !own && !retained.holds(place, &row[place])? {
                    differing.push(*name);
                }
            }
            let id = FactId::parse(&retained.text(0)?).ok_or(corrupt(table.name, "its id"))?;
            Ok((id, differing))
        })?;
    let (id, differing) = found.ok_or(corrupt(table.name, "a retained fact is absent"))?;
    if differing.iter().any(|name| identity.contains(name)) {
        return Ok(Outcome::Conflict(Code::RepositoryIdentityConflict));
    }
    if !differing.is_empty() {
        transaction.differences.push(Difference {
            table: table.name,
            fact_id: id,
            columns: differing,
        });
    }
    Ok(Outcome::Redelivered(id))
}

impl Key {
    /// Returns the text that finds the retained fact.
    fn text(&self, table: &Table) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "SELECT {} FROM {} WHERE org_id = $1 AND {}",
            table.columns.join(", "),
            table.name,
            self.condition
        );
        for (number, column) in (2..).zip(self.columns) {
            write!(text, " AND {column} = ${number}").expect("writing to a string cannot fail");
        }
        text
    }
}
