//! Tables of facts: which column holds which member.

use svc_model::id::FactId;

use super::StoreError;
use super::claims::Place;
use super::column::Columns;
use super::connection::Insert;
use super::value::Value;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// The columns of the fact's members, the id first.
    pub(super) members: &'static [&'static str],
    /// Columns that are computed from the members, for use in an index.
    pub(super) derived: &'static [&'static str],
    /// The insertion: the organization, the members, and the computed columns.
    pub(super) insert: Insert,
    /// Selects the members of visible facts, up to further conditions. The organization is an
    /// expression, so that no index is used for the organization alone.
    pub(super) select: &'static str,
    /// Where its facts name repositories.
    pub(super) names: &'static [Place],
}

impl Table {
    /// Returns the column of the fact's id.
    pub(super) const fn id(&self) -> &'static str {
        self.members[0]
    }

    /// Returns the position of a column in the insertion.
    pub(super) fn place(&self, column: &str) -> Option<usize> {
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
pub(super) trait Record: Sized {
    const TABLE: &'static Table;

    /// Returns the id of the fact.
    fn id(&self) -> FactId;

    /// Appends the values of its columns.
    fn write(self, row: &mut Vec<Value<'static>>);

    /// Reads its members.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;
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
        impl $crate::table::Record for $fact {
            const TABLE: &'static $crate::table::Table = &$crate::table::Table {
                name: $table,
                members: &[$id, $($($column),+),+],
                derived: &[$($derived),*],
                insert: $crate::connection::Insert {
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
                names: <$fact as $crate::fact::Fact>::NAMES,
            };

            fn id(&self) -> svc_model::id::FactId {
                self.$id_member
            }

            fn write(self, row: &mut Vec<$crate::value::Value<'static>>) {
                let derived: [$crate::value::Value<'static>; Self::TABLE.derived.len()] =
                    [$($derive(&self)),*];
                $crate::column::Column::write(self.$id_member, row);
                $(table!(@write self.$member, row $(, $form)?);)+
                row.extend(derived);
            }

            fn read(
                columns: &mut $crate::column::Columns<'_>,
            ) -> Result<Self, $crate::StoreError> {
                Ok(Self {
                    $id_member: columns.next()?,
                    $($member: table!(@read columns $(, $form)?),)+
                })
            }
        }
    };
    (@write $member:expr, $row:ident) => {
        $crate::column::Column::write($member, $row)
    };
    (@write $member:expr, $row:ident, $form:ty) => {
        <$form as $crate::column::Form<_>>::write($member, $row)
    };
    (@read $columns:ident) => {
        $columns.next()?
    };
    (@read $columns:ident, $form:ty) => {
        <$form as $crate::column::Form<_>>::read($columns)?
    };
}
pub(super) use table;
