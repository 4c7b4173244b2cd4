//! Verifies all data of a store or a backup.

use std::path::Path;

use super::finding::{Damage, Findings, error_text, is_of_rows};
use super::scan::Laws;
use super::shape::shapes;
use super::source::{BackupTables, LiveDatabase};
use super::{TableFile, Watch};
use crate::sql::check::opened;
use crate::sql::error::StoreError;
use crate::sql::url::DatabaseUrl;

/// Verifies all data of a database, in one snapshot.
///
/// # Errors
///
/// If the schema is not at head, the store cannot be reached, or the deadline passes.
pub fn verify_store(url: &DatabaseUrl, watch: &mut Watch<'_>) -> Result<Findings, StoreError> {
    let mut connection = opened(url)?;
    connection.begin_read(&watch.deadline)?;
    let mut findings = Findings::default();
    if matches!(url, DatabaseUrl::Sqlite(_)) {
        (watch.progress)("pages", 0);
        let checked = connection.all("PRAGMA integrity_check(100)", &[], |row| row.text(0));
        match checked {
            Ok(lines) if lines == ["ok"] => {}
            Ok(lines) => {
                for line in lines {
                    findings.add("pages", None, Damage::Structure, line);
                }
            }
            Err(error) if is_of_rows(&error) => {
                findings.add("pages", None, Damage::Structure, error_text(&error));
            }
            Err(error) => return Err(error),
        }
    }
    let mut source = LiveDatabase {
        shapes: shapes(&mut connection)?,
        connection,
        deadline: watch.deadline.clone(),
    };
    Laws::new(&mut source, watch, findings).run()
}

/// Verifies all data in the tables of a backup.
///
/// # Errors
///
/// If the files cannot be read, or the deadline passes.
pub fn verify_tables(
    folder: &Path,
    tables: &[TableFile],
    watch: &mut Watch<'_>,
) -> Result<Findings, StoreError> {
    let mut source = BackupTables { folder, tables };
    Laws::new(&mut source, watch, Findings::default()).run()
}
