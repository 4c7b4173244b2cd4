//! Tables of facts: which column holds which member.
//!
//! A fact is made ready for its row ([`super::row`]) on the sender's thread, so that the writer
//! only inserts.

use svc_model::id::{FactId, SessionId};
use svc_model::json::Json;

use super::event::Event;
use crate::pack::column::Columns;
use crate::sql::connection::Insert;
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: &'static str,
    /// The columns of the fact's members, the id first.
    pub(crate) members: &'static [&'static str],
    /// Columns that are computed from the members, for use in an index.
    pub(crate) derived: &'static [&'static str],
    /// The insertion: the organization, the members, and the computed columns.
    pub(crate) insert: Insert,
    /// Selects the members of visible facts, up to further conditions. The organization is an
    /// expression, so that no index is used for the organization alone.
    pub(crate) select: &'static str,
    /// Where its facts name repositories.
    pub(crate) names: &'static [NamingColumns],
    /// Its columns of captured content, which an erasure empties.
    pub(crate) content: &'static [&'static str],
    /// How its facts are read as events of their Session, if they are.
    pub(crate) event: Option<&'static Event>,
}

impl Table {
    /// Returns whether it has a column for a member of the fact.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.members.contains(&column)
    }

    /// Returns whether its facts belong to a Session.
    pub(crate) fn is_of_session(&self) -> bool {
        self.has("session_id")
    }

    /// Returns the column of the fact's id.
    pub(crate) const fn id(&self) -> &'static str {
        self.members[0]
    }

    /// Returns the position of a column in the insertion.
    pub(crate) fn place(&self, column: &str) -> Option<usize> {
        if column == "org_id" {
            return Some(0);
        }
        let mut columns = self.members.iter().chain(self.derived);
        columns
            .position(|name| *name == column)
            .map(|index| index + 1)
    }
}

/// A kind of fact that is one row. The macro [`table!`](table) implements the trait.
pub(crate) trait Record: Sized {
    const TABLE: &'static Table;

    /// Returns the id of the fact.
    fn id(&self) -> FactId;

    /// Returns the Session that the fact belongs to, if any.
    fn session_id(&self) -> Option<&SessionId>;

    /// Returns the payload of the sender, if it is kept.
    fn raw(&self) -> Option<&Json>;

    /// Appends the values of its columns.
    fn write(self, row: &mut Vec<Value<'static>>);

    /// Reads its members.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;
}

/// Where facts of one kind name a repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamingColumns {
    /// The claim's word for this place.
    pub(crate) source: &'static str,
    /// The columns of the name and of the identity.
    pub(crate) name: &'static str,
    pub(crate) repository: [&'static str; 3],
    /// If given, only facts with this value in this column count.
    pub(crate) only: Option<(&'static str, &'static str)>,
    /// Whether the repository gave up the name.
    pub(crate) is_given_up: bool,
}

impl NamingColumns {
    /// Returns the place of the name of a fact's repository.
    pub(crate) const fn of_repository(source: &'static str) -> Self {
        Self::named(source, "repo")
    }

    /// Returns the place of the name of a pull request's head repository.
    pub(crate) const fn of_head(source: &'static str) -> Self {
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
    pub(crate) const fn named(source: &'static str, name: &'static str) -> Self {
        Self {
            source,
            name,
            repository: ["repository_provider", "repository_host", "repository_id"],
            only: None,
            is_given_up: false,
        }
    }

    /// Returns the place of a name that a fact's repository gave up.
    pub(crate) const fn given_up(source: &'static str, name: &'static str) -> Self {
        Self {
            is_given_up: true,
            ..Self::named(source, name)
        }
    }

    /// Restricts the place to facts with this value in a column.
    pub(crate) const fn only(self, column: &'static str, value: &'static str) -> Self {
        Self {
            only: Some((column, value)),
            ..self
        }
    }
}

/// A natural key. It covers the facts that have, or lack, a value in one column. Among these, an
/// organization has at most one fact with the same values in the other columns.
#[derive(Debug)]
pub(crate) struct NaturalKey {
    pub(crate) column: &'static str,
    pub(crate) given: bool,
    /// Separated by `, `.
    pub(crate) others: &'static str,
}

impl NaturalKey {
    /// Returns the key of the facts that have a value in `column`.
    pub(crate) const fn with(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: true,
            others,
        }
    }

    /// Returns the key of the facts that have no value in `column`.
    pub(crate) const fn without(column: &'static str, others: &'static str) -> Self {
        Self {
            column,
            given: false,
            others,
        }
    }

    /// Returns the statement that finds the retained fact.
    pub(crate) fn text(&self, table: &Table) -> String {
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

/// A kind of fact with one row per fact, and how to tell its redeliveries from conflicts.
pub(crate) trait Fact: Record {
    /// Its natural keys. For a fact without one, nobody needs to know which fact existed before.
    const KEYS: &'static [NaturalKey] = &[];

    /// Where its facts name repositories.
    const NAMES: &'static [NamingColumns] = &[];

    /// The columns besides a key that must be equal in a redelivery, separated by `, `.
    const IDENTITY: &'static str = "";

    /// Its columns of captured content of a Session, which an erasure empties.
    const CONTENT: &'static [&'static str];

    /// How its facts are read as events of their Session, if they are.
    const EVENT: Option<&'static Event>;

    /// Whether what the forge signed may stand beside what a token reported of the same.
    const SIGNED: bool = false;
}

/// Declares which columns hold the members of a fact: `table! { Fact in "table", "id" = id_member,
/// "column" = member, … }`.
///
/// A member may take several columns, and a form other than its own (`= member as Form`). `derived`
/// columns come last. They are written but not read.
macro_rules! table {
    (
        $fact:ident in $table:literal,
        $id:literal = $id_member:ident,
        $($($column:literal)+ = $member:ident $(as $form:ty)?,)+
        $(derived $derived:literal = $derive:path,)*
    ) => {
        impl $crate::table::record::Record for $fact {
            const TABLE: &'static $crate::table::record::Table = &$crate::table::record::Table {
                name: $table,
                members: &[$id, $($($column),+),+],
                derived: &[$($derived),*],
                insert: $crate::sql::connection::Insert {
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
                    is_row_number: true,
                },
                select: concat!(
                    "SELECT f.", $id, $($(", f.", $column),+),+, " FROM visible_", $table,
                    " f WHERE COALESCE(f.org_id, '') = $1"
                ),
                names: <$fact as $crate::table::record::Fact>::NAMES,
                content: <$fact as $crate::table::record::Fact>::CONTENT,
                event: <$fact as $crate::table::record::Fact>::EVENT,
            };

            fn id(&self) -> svc_model::id::FactId {
                self.$id_member
            }

            fn session_id(&self) -> Option<&svc_model::id::SessionId> {
                None$(.or(table!(@session_id self $member)))+
            }

            fn raw(&self) -> Option<&svc_model::json::Json> {
                None$(.or(table!(@raw self $member)))+
            }

            fn write(self, row: &mut Vec<$crate::sql::value::Value<'static>>) {
                let derived: [$crate::sql::value::Value<'static>; Self::TABLE.derived.len()] =
                    [$($derive(&self)),*];
                $crate::pack::column::Column::write(self.$id_member, row);
                $(table!(@write self.$member, row $(, $form)?);)+
                row.extend(derived);
            }

            fn read(
                columns: &mut $crate::pack::column::Columns<'_>,
            ) -> Result<Self, $crate::sql::error::StoreError> {
                Ok(Self {
                    $id_member: columns.next()?,
                    $($member: table!(@read columns $(, $form)?),)+
                })
            }
        }
    };
    (@session_id $fact:ident session_id) => {
        Some(&$fact.session_id)
    };
    (@session_id $fact:ident $member:ident) => {
        None
    };
    (@raw $fact:ident raw) => {
        Some(&$fact.raw)
    };
    (@raw $fact:ident $member:ident) => {
        None
    };
    (@write $member:expr, $row:ident) => {
        $crate::pack::column::Column::write($member, $row)
    };
    (@write $member:expr, $row:ident, $form:ty) => {
        <$form as $crate::pack::column::ColumnForm<_>>::write($member, $row)
    };
    (@read $columns:ident) => {
        $columns.next()?
    };
    (@read $columns:ident, $form:ty) => {
        <$form as $crate::pack::column::ColumnForm<_>>::read($columns)?
    };
}
pub(crate) use table;
