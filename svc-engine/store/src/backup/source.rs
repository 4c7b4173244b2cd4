//! Where a verification gets its rows: a database or a backup.

use std::path::Path;

use svc_engine_fact::deadline::Deadline;

use super::TableFile;
use super::block::{BlockReader, NextRows};
use super::finding::{Damage, Findings, error_text, is_of_rows};
use super::shape::{ColumnShape, TableShape};
use crate::sql::connection::Connection;
use crate::sql::driver::EachRow;
use crate::sql::error::{StoreError, corrupt};
use crate::sql::value::{self, Row, Value};

/// Where a verification gets its rows.
pub(crate) trait Source {
    /// Calls `each` with some columns of every row of a table. Rows that cannot be read become
    /// findings.
    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        findings: &mut Findings,
        each: EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Returns the names of the tables.
    fn tables(&self) -> Vec<String>;

    /// Returns the columns of a table.
    fn columns(&self, table: &str) -> Vec<ColumnShape>;
}

/// A database, read in one snapshot.
pub(crate) struct LiveDatabase {
    pub(crate) connection: Connection,
    pub(crate) shapes: Vec<TableShape>,
    pub(crate) deadline: Deadline,
}

impl Source for LiveDatabase {
    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        findings: &mut Findings,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let Some(shape) = self.shapes.iter().find(|shape| shape.table == table) else {
            return Err(corrupt("the schema", "a table is absent"));
        };
        let sql = shape.selection(columns);
        match self.connection.each(&sql, &[], each) {
            Err(error) if is_of_rows(&error) => {
                findings.add(table, None, Damage::RowsUnreadable, error_text(&error));
                // On PostgreSQL, an error ends the use of the transaction.
                drop(self.connection.rollback());
                self.connection.begin_read(&self.deadline)
            }
            other => other,
        }
    }

    fn tables(&self) -> Vec<String> {
        self.shapes
            .iter()
            .map(|shape| shape.table.clone())
            .collect()
    }

    fn columns(&self, table: &str) -> Vec<ColumnShape> {
        let shape = self.shapes.iter().find(|shape| shape.table == table);
        shape.map_or_else(Vec::new, |shape| shape.columns.clone())
    }
}

/// The tables of a backup.
pub(crate) struct BackupTables<'k> {
    pub(crate) folder: &'k Path,
    pub(crate) tables: &'k [TableFile],
}

impl Source for BackupTables<'_> {
    fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        findings: &mut Findings,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let Some(kept) = self.tables.iter().find(|file| file.table == table) else {
            findings.add(table, None, Damage::FileDamaged, "there is no file of it");
            return Ok(());
        };
        let places = columns.iter().map(|name| {
            let place = kept.columns.iter().position(|column| column.name == **name);
            place.ok_or(corrupt("a table of a backup", "a column is absent"))
        });
        let places = places.collect::<Result<Vec<usize>, _>>()?;
        let mut reader = match BlockReader::open(&self.folder.join(&kept.file)) {
            Ok(reader) => reader,
            Err(error) => {
                let detail = format!("{}: {error}", kept.file);
                findings.add(table, None, Damage::FileDamaged, detail);
                return Ok(());
            }
        };
        let key = if columns.is_empty() { 0 } else { places[0] };
        let (mut values, mut some, mut rows) = (Vec::new(), Vec::new(), 0);
        let mut last = None;
        loop {
            match reader.next()? {
                NextRows::End => break,
                NextRows::Damaged(lost) => {
                    let after = last.as_deref().map_or_else(
                        || "the first rows".to_owned(),
                        |last| format!("rows after {last}"),
                    );
                    let lost = lost.map_or_else(|| after.clone(), |lost| format!("{lost} {after}"));
                    findings.add(table, last.as_deref(), Damage::RowsUnreadable, lost);
                }
                NextRows::Rows(mut block) => {
                    while block.row(kept.columns.len(), &mut values).is_some() {
                        rows += 1;
                        some.clear();
                        some.extend(places.iter().map(|place| values[*place].clone()));
                        each(&Row::Kept(&some))?;
                    }
                    last = values.get(key).map(shown);
                    if !block.is_read() {
                        findings.add(table, last.as_deref(), Damage::RowsUnreadable, "");
                    }
                }
            }
        }
        let (bytes, sha256) = reader.finish()?;
        if (rows, bytes, &sha256) != (kept.rows, kept.bytes, &kept.sha256) {
            let detail = format!(
                "{} has {rows} rows of {}, {bytes} bytes of {}",
                kept.file, kept.rows, kept.bytes
            );
            findings.add(table, None, Damage::FileDamaged, detail);
        }
        Ok(())
    }

    fn tables(&self) -> Vec<String> {
        self.tables
            .iter()
            .map(|table| table.table.clone())
            .collect()
    }

    fn columns(&self, table: &str) -> Vec<ColumnShape> {
        let kept = self.tables.iter().find(|file| file.table == table);
        kept.map_or_else(Vec::new, |kept| kept.columns.clone())
    }
}

/// Returns the key of a row in readable form.
fn shown(value: &Value<'static>) -> String {
    match value {
        Value::Integer(integer) => integer.to_string(),
        Value::OwnBlob(bytes) => value::fact_id(bytes)
            .map(|id| id.to_string())
            .unwrap_or_default(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
