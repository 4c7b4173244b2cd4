//! Copies all data of a database to files that do not depend on the backend, and back.
//!
//! All tables are read in one snapshot, so the copy is consistent while servers write, and nobody
//! waits for it. A row is stored as its values, so a copy from either backend can be loaded into
//! either. The checks ([`verify_store`]) recompute what facts leave in other tables, so this folder
//! stands above all others and uses what writing uses; nothing but the caller uses it.

mod archive;
mod block;
mod call_laws;
mod claim_laws;
mod erasure_laws;
mod finding;
mod grant_laws;
mod half_laws;
mod known;
mod laws;
mod price_laws;
mod put;
mod scan;
mod shape;
mod source;
mod undone;
mod verify;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use svc_model::facts::{FactTable, FactTables};
use svc_model::id::OrgId;
use svc_model::time::Instant;

pub use self::archive::{ArchiveWriter, read_archive};
use self::block::BlockWriter;
pub use self::block::WrittenFile;
pub use self::block::hexadecimal;
pub use self::finding::{Damage, FINDINGS_MAX, Finding, Findings};
pub use self::put::{LoadRequest, LoadResult};
use self::shape::shapes;
pub use self::shape::{CellKind, ColumnShape};
pub use self::undone::{OperatorDecisions, Undone, UndoneDecision};
pub use self::verify::{verify_store, verify_tables};
use crate::read::organizations;
use crate::sql::check::opened;
use crate::sql::error::{SchemaState, StoreError};
use crate::sql::url::DatabaseUrl;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::private;

/// Number of rows between two checks of the deadline and two reports of progress.
const ROWS_PER_LOOK: u64 = 4_096;

const FETCHED: &str = "SELECT /* every row */ mirror, repo FROM mirror_jobs
    WHERE org_id = $1 AND last_success_at_us IS NOT NULL ORDER BY mirror";

/// The deadline of a long task, and where it reports its progress.
pub struct Watch<'w> {
    /// When the task must stop.
    pub deadline: Deadline,
    /// Called with a table, or another part of the task, and the number of rows that are done.
    pub progress: &'w mut dyn FnMut(&str, u64),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watch").field(&self.deadline).finish()
    }
}

impl Watch<'_> {
    /// Counts a row. Now and then checks the deadline and reports progress.
    pub(crate) fn row(&mut self, what: &str, rows: u64) -> Result<(), StoreError> {
        if rows.is_multiple_of(ROWS_PER_LOOK) {
            self.deadline.check()?;
            (self.progress)(what, rows);
        }
        Ok(())
    }
}

/// Why a database cannot be copied to files, or restored from them.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The store did not answer, or has data that cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written or read.
    #[error("cannot read or write a file of the backup")]
    File(#[from] io::Error),
    /// A file is not as it was written.
    #[error("{file} of the backup is damaged")]
    Damaged {
        /// The name of the file.
        file: String,
    },
    /// The backup has the tables of another version.
    #[error("the backup has other tables than this version: {what}")]
    OtherTables {
        /// What differs.
        what: String,
    },
    /// The database to restore into is not empty.
    #[error("{place} is not empty")]
    NotEmpty {
        /// Which database, without its password.
        place: String,
    },
}

/// An organization at the moment of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOrganization {
    /// The organization.
    pub org_id: OrgId,
    /// When its last fact was captured: questions are answered up to this boundary.
    pub boundary: Instant,
    /// The number of known Sessions.
    pub sessions: u64,
    /// The number of facts of each kind.
    pub facts: FactTables,
}

/// A table in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    /// Its name.
    pub table: String,
    /// Its columns, in the order of the values in each row.
    pub columns: Vec<ColumnShape>,
    /// The path of the file in the backup's folder.
    pub file: String,
    /// The number of rows.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// What was copied from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseCopy {
    /// The revision of the schema.
    pub schema_revision: i64,
    /// Its organizations.
    pub organizations: Vec<KeptOrganization>,
    /// Its tables.
    pub tables: Vec<TableFile>,
    /// The mirrors that had been fetched.
    pub mirrors: Vec<FetchedMirror>,
}

/// A mirror that was fetched at least once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedMirror {
    /// The organization.
    pub org_id: OrgId,
    /// The repository: PROVIDER/HOST/ID, or OWNER/NAME.
    pub repository: String,
    /// The name of the repository in the latest delivery.
    pub repo: String,
}

/// The folder of the tables in a backup.
const TABLES: &str = "tables";

/// Copies all tables of a database to a folder, in one snapshot.
///
/// # Errors
///
/// If the schema is not at head, the store or the folder cannot be used, or the deadline passes.
pub fn take(
    url: &DatabaseUrl,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<DatabaseCopy, CopyError> {
    let mut connection = opened(url)?;
    connection.begin_read(&watch.deadline)?;
    let (mut organizations, mut mirrors) = (Vec::new(), Vec::new());
    for org_id in organizations::all(&mut connection)? {
        // A row that cannot be read is copied as it is, and does not prevent the backup.
        let fetched = connection.all(FETCHED, &[org_id.as_str().into()], |row| {
            Ok(row.text(0).ok().zip(row.text(1).ok()))
        })?;
        let fetched = fetched.into_iter().flatten();
        mirrors.extend(fetched.map(|(repository, repo)| FetchedMirror {
            org_id: org_id.clone(),
            repository,
            repo,
        }));
        let (sessions, facts) = organizations::counts(&mut connection, &org_id, FactTable::ALL)?;
        organizations.push(KeptOrganization {
            boundary: organizations::captured_at(&mut connection, &org_id)?,
            org_id,
            sessions,
            facts,
        });
    }
    private::create_folder(&folder.join(TABLES))?;
    let mut tables = Vec::new();
    for shape in shapes(&mut connection)? {
        let file = format!("{TABLES}/{}.rows", shape.table);
        let mut writer = BlockWriter::create(&folder.join(&file))?;
        let mut values = Vec::with_capacity(shape.columns.len());
        let (mut rows, mut unwritten) = (0, Ok(()));
        (watch.progress)(&shape.table, 0);
        let read = connection.each(&shape.selection(&shape.names()), &[], |row| {
            shape.read(row, &mut values)?;
            unwritten = writer.row(&values);
            if unwritten.is_err() {
                return Err(StoreError::Closed);
            }
            rows += 1;
            watch.row(&shape.table, rows)
        });
        unwritten?;
        read?;
        let written = writer.finish()?;
        tables.push(TableFile {
            table: shape.table,
            columns: shape.columns,
            file,
            rows: written.rows,
            bytes: written.bytes,
            sha256: written.sha256,
        });
    }
    connection.end_read()?;
    Ok(DatabaseCopy {
        schema_revision: SchemaState::head(),
        organizations,
        tables,
        mirrors,
    })
}
