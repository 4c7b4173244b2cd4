//! The tables of a database and what their columns hold. Both backends have the same tables, so a
//! copy from one can be loaded into the other.

use serde::{Deserialize, Serialize};

use crate::sql::connection::{Connection, Sql};
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{Row, Value};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// A 64-bit integer.
    Integer,
    /// A 64-bit floating-point number.
    Real,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

impl CellKind {
    /// Returns what a column of a type holds. The type is named as in either SQL dialect.
    fn of(declared: &str) -> Option<Self> {
        Some(match declared.to_ascii_lowercase().as_str() {
            "integer" | "bigint" => Self::Integer,
            "double" | "double precision" => Self::Real,
            "text" => Self::Text,
            "blob" | "bytea" => Self::Bytes,
            _ => return None,
        })
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnShape {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: CellKind,
}

/// A table: its columns, the order of its rows, and the numbers that the database draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub(crate) table: String,
    pub(crate) columns: Vec<ColumnShape>,
    key: Vec<String>,
    /// The column whose values PostgreSQL draws from a sequence.
    drawn: Option<String>,
}

/// For each column: its name, type, place in the primary key, and whether its value is drawn.
const COLUMNS: Sql = Sql {
    sqlite: "SELECT t.name, c.name, c.type, c.pk, 0
        FROM sqlite_master t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%' ESCAPE '!'
            AND t.name <> '_sqlx_migrations' ORDER BY t.name, c.cid",
    postgres: "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT),
            format_type(a.atttypid, NULL),
            CAST(COALESCE(array_position(CAST(i.indkey AS SMALLINT[]), a.attnum) + 1, 0) AS BIGINT),
            CAST(CASE WHEN a.attidentity = '' THEN 0 ELSE 1 END AS BIGINT)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
            LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
        WHERE n.nspname = current_schema() AND c.relkind = 'r' AND a.attnum > 0
            AND NOT a.attisdropped AND c.relname <> '_sqlx_migrations'
        ORDER BY c.relname, a.attnum",
};

/// Returns the tables of a database, sorted by name.
pub(crate) fn shapes(connection: &mut Connection) -> Result<Vec<TableShape>, StoreError> {
    let mut shapes: Vec<TableShape> = Vec::new();
    let mut keys: Vec<(i64, String)> = Vec::new();
    let sql = connection.text(COLUMNS);
    connection.each(sql, &[], |row| {
        let (table, name) = (row.text(0)?, row.text(1)?);
        if shapes.last().is_none_or(|shape| shape.table != table) {
            finish(&mut shapes, &mut keys);
            shapes.push(TableShape {
                table,
                columns: Vec::new(),
                key: Vec::new(),
                drawn: None,
            });
        }
        let kind = CellKind::of(&row.text(2)?).ok_or(corrupt("a table", "the type of a column"))?;
        if row.integer(3)? > 0 {
            keys.push((row.integer(3)?, name.clone()));
        }
        if let Some(shape) = shapes.last_mut() {
            if row.integer(4)? > 0 {
                shape.drawn = Some(name.clone());
            }
            shape.columns.push(ColumnShape { name, kind });
        }
        Ok(())
    })?;
    finish(&mut shapes, &mut keys);
    Ok(shapes)
}

fn finish(shapes: &mut [TableShape], keys: &mut Vec<(i64, String)>) {
    keys.sort();
    let key: Vec<String> = keys.drain(..).map(|(_, name)| name).collect();
    if let Some(shape) = shapes.last_mut() {
        // On PostgreSQL, the number of a call has no index. Its id has one on both backends.
        shape.key = match shape.table.as_str() {
            "inference_calls" => vec!["inference_call_id".to_owned()],
            _ => key,
        };
    }
}

impl TableShape {
    /// Returns the statement that selects some columns of every row, in the order of the key.
    pub(crate) fn selection(&self, columns: &[&str]) -> String {
        [
            "SELECT /* every row */ ",
            &columns.join(", "),
            " FROM ",
            &self.table,
            " ORDER BY ",
            &self.key.join(", "),
        ]
        .concat()
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| &*column.name).collect()
    }

    /// Returns the statement that makes PostgreSQL draw numbers after those that were loaded.
    pub(crate) fn drawing(&self) -> Option<String> {
        let (table, column) = (&self.table, self.drawn.as_ref()?);
        Some(format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), \
            COALESCE(MAX({column}), 1), MAX({column}) IS NOT NULL) FROM {table}"
        ))
    }

    /// Reads a row with all columns.
    pub(crate) fn read(
        &self,
        row: &Row<'_>,
        values: &mut Vec<Value<'static>>,
    ) -> Result<(), StoreError> {
        values.clear();
        for (place, column) in self.columns.iter().enumerate() {
            values.push(if row.holds(place, &Value::Null)? {
                Value::Null
            } else {
                match column.kind {
                    CellKind::Integer => Value::Integer(row.integer(place)?),
                    CellKind::Real => Value::Real(row.real(place)?),
                    CellKind::Text => Value::OwnText(row.text(place)?),
                    CellKind::Bytes => Value::OwnBlob(row.blob(place)?),
                }
            });
        }
        Ok(())
    }
}
