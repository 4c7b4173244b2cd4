//! Loads the tables of a backup into a database, as a whole or not at all.
//!
//! SQLite is restored into a new file that takes the place of the old one, PostgreSQL in one
//! transaction with `COPY`.

use std::io;
use std::path::{Path, PathBuf};

use super::block::{Block, BlockReader, NextRows};
use super::shape::{TableShape, shapes};
use super::{CopyError, TableFile, Watch};
use crate::sql::connection::Connection;
use crate::sql::driver::Compaction;
use crate::sql::error::{SchemaState, StoreError};
use crate::sql::migrate;
use crate::sql::url::DatabaseUrl;
use crate::sql::value::Value;
use crate::write::erasure::{self, ErasedAgain, KeptErasures};

/// Maximum number of replaced databases beside a database.
const REPLACED_MAX: u32 = 10_000;

/// What SQLite adds to the name of a database's file, its log and the index of the log.
const FILES: [&str; 3] = ["", "-wal", "-shm"];

/// A backup to load.
#[derive(Debug)]
pub struct LoadRequest<'b> {
    /// The folder of the backup.
    pub folder: &'b Path,
    /// Its tables.
    pub tables: &'b [TableFile],
    /// Whether to replace a database that has rows.
    pub replace: bool,
    /// What had been erased from the replaced database, to be erased again.
    pub erasures: &'b KeptErasures,
}

/// The result of loading a backup.
#[derive(Debug)]
pub struct LoadResult {
    /// Where the replaced SQLite file is now.
    pub replaced: Option<PathBuf>,
    /// What was erased again.
    pub erased_again: ErasedAgain,
    /// Whether the files of the database still hold the bytes of what was erased again.
    pub compaction: Result<Compaction, StoreError>,
}

impl LoadRequest<'_> {
    /// Loads the tables of a backup and erases again what had been erased, all of it or nothing.
    ///
    /// SQLite: into a new file beside the database, which takes its place at the end. PostgreSQL:
    /// into the database, in one transaction.
    ///
    /// # Errors
    ///
    /// If the database has rows and may not be replaced, a file is damaged, or the store cannot be
    /// used.
    pub fn load(&self, url: &DatabaseUrl, watch: &mut Watch<'_>) -> Result<LoadResult, CopyError> {
        match url {
            DatabaseUrl::Sqlite(path) => self.load_beside(path, watch),
            DatabaseUrl::Postgres(_) => self.load_in_place(url, watch),
        }
    }

    fn load_in_place(
        &self,
        url: &DatabaseUrl,
        watch: &mut Watch<'_>,
    ) -> Result<LoadResult, CopyError> {
        let mut connection = Connection::open(url)?;
        migrate::upgrade(&mut connection)?;
        match migrate::state(&mut connection)? {
            SchemaState::AtHead(_) => {}
            state => return Err(StoreError::Schema(state).into()),
        }
        if self.erasures.has_facts() {
            erasure::check_compaction(&mut connection)?;
        }
        connection.begin_load(&watch.deadline)?;
        let shapes = shapes(&mut connection)?;
        // Others may read meanwhile: they see the old rows or the new ones. Nobody else writes.
        let names: Vec<&str> = shapes.iter().map(|shape| &*shape.table).collect();
        connection.batch(&format!(
            "SET LOCAL lock_timeout = '30s'; LOCK TABLE {} IN EXCLUSIVE MODE",
            names.join(", ")
        ))?;
        for table in names {
            let any = format!("SELECT /* every row */ CAST(1 AS BIGINT) FROM {table} LIMIT 1");
            if connection.first(&any, &[], |_| Ok(()))?.is_none() {
                continue;
            }
            if !self.replace {
                return Err(CopyError::NotEmpty { place: url.shown() });
            }
            connection.execute(&format!("DELETE /* every row */ FROM {table}"), &[])?;
        }
        self.load_tables(&mut connection, &shapes, watch)?;
        for sql in shapes.iter().filter_map(TableShape::drawing) {
            connection.execute(&sql, &[])?;
        }
        let erased_again = self.erase_again(&mut connection, watch)?;
        connection.commit()?;
        Ok(LoadResult {
            replaced: None,
            compaction: compacted(&mut connection, &erased_again),
            erased_again,
        })
    }

    fn load_beside(&self, path: &Path, watch: &mut Watch<'_>) -> Result<LoadResult, CopyError> {
        let is_there = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
        if is_there && !self.replace {
            return Err(CopyError::NotEmpty {
                place: path.display().to_string(),
            });
        }
        // A link stays a link: the new file, and the log, must be where it leads. If that is
        // nowhere, its disk may not be mounted.
        let path = match std::fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if path.is_symlink() => {
                let text = format!("{} is a link that leads nowhere: {error}", path.display());
                return Err(io::Error::new(error.kind(), text).into());
            }
            Err(_) => path.to_owned(),
        };
        // From here on, dropping this removes the new file unless it was placed.
        let beside = NewDatabaseFile {
            new: named_beside(&path, &format!(".restoring-{}", std::process::id())),
            path,
            is_there,
            is_placed: false,
        };
        let mut connection = Connection::open(&DatabaseUrl::sqlite(&beside.new))?;
        migrate::upgrade(&mut connection)?;
        // Nobody else knows the file, and an incomplete one is removed, so it need not survive a
        // crash.
        connection.batch(
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;",
        )?;
        let shapes = shapes(&mut connection)?;
        connection.begin_load(&watch.deadline)?;
        self.load_tables(&mut connection, &shapes, watch)?;
        let erased_again = self.erase_again(&mut connection, watch)?;
        connection.commit()?;
        connection.batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        let compaction = compacted(&mut connection, &erased_again)?;
        drop(connection);
        Ok(LoadResult {
            replaced: beside.place()?,
            erased_again,
            compaction: Ok(compaction),
        })
    }

    fn erase_again(
        &self,
        connection: &mut Connection,
        watch: &mut Watch<'_>,
    ) -> Result<ErasedAgain, StoreError> {
        (watch.progress)("erased_facts", 0);
        self.erasures.erase_again(connection, &watch.deadline)
    }

    /// Loads the rows of all files into the tables, which are empty.
    fn load_tables(
        &self,
        connection: &mut Connection,
        shapes: &[TableShape],
        watch: &mut Watch<'_>,
    ) -> Result<(), CopyError> {
        let differ = |what: &str| CopyError::OtherTables {
            what: what.to_owned(),
        };
        if let Some(shape) = shapes
            .iter()
            .find(|shape| self.tables.iter().all(|table| table.table != shape.table))
        {
            return Err(differ(&shape.table));
        }
        for table in self.tables {
            let shape = shapes.iter().find(|shape| shape.table == table.table);
            let shape = shape.ok_or_else(|| differ(&table.table))?;
            if shape.columns != table.columns {
                return Err(differ(&table.table));
            }
            let mut reading = TableRows::open(self.folder, table)?;
            let mut damaged = None;
            let loaded = connection.load(&table.table, &shape.names(), &mut |values| match reading
                .next(values, watch)
            {
                Ok(more) => Ok(more),
                Err(CopyError::Store(error)) => Err(error),
                Err(error) => {
                    damaged = Some(error);
                    Err(StoreError::Closed)
                }
            });
            if let Some(error) = damaged {
                return Err(error);
            }
            loaded?;
            reading.finish()?;
        }
        Ok(())
    }
}

/// Rewrites the files if something was erased.
fn compacted(connection: &mut Connection, erased: &ErasedAgain) -> Result<Compaction, StoreError> {
    if erased.facts == 0 {
        return Ok(Compaction::Done);
    }
    erasure::compact(connection)
}

/// Returns the path with a suffix added to the file's name.
fn named_beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

/// A new SQLite file, beside the database that it is to replace.
#[derive(Debug)]
struct NewDatabaseFile {
    new: PathBuf,
    path: PathBuf,
    /// Whether there is a database to replace.
    is_there: bool,
    is_placed: bool,
}

impl NewDatabaseFile {
    fn place(mut self) -> Result<Option<PathBuf>, CopyError> {
        // The last connection that may write copies the log back into the file and removes the log.
        drop(Connection::open(&DatabaseUrl::sqlite(&self.new))?);
        std::fs::File::open(&self.new)?.sync_all()?;
        let path = &self.path;
        let kept = (1..=REPLACED_MAX)
            .map(|number| named_beside(path, &format!(".replaced-{number}")))
            .find(|kept| FILES.iter().all(|end| !named_beside(kept, end).exists()));
        let kept = kept.ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))?;
        // The log belongs to its file: SQLite would apply one that is left, even by a file that is
        // gone, to the new file. The file goes first, so that nobody opens it without its log.
        // An empty file is not worth keeping.
        let worth = |end: &&&str| self.is_there || !end.is_empty();
        for end in FILES.iter().filter(worth) {
            match std::fs::rename(named_beside(path, end), named_beside(&kept, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        let old = self.is_there.then_some(kept);
        std::fs::rename(&self.new, path)?;
        self.is_placed = true;
        if let Some(parent) = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            std::fs::File::open(parent)?.sync_all()?;
        }
        Ok(old)
    }
}

impl Drop for NewDatabaseFile {
    fn drop(&mut self) {
        if self.is_placed {
            return;
        }
        for end in FILES.into_iter().chain(["-journal"]) {
            drop(std::fs::remove_file(named_beside(&self.new, end)));
        }
    }
}

/// The rows of a table in a backup, up to the first damage.
struct TableRows<'t> {
    table: &'t TableFile,
    reader: BlockReader,
    block: Option<Block>,
    rows: u64,
}

impl<'t> TableRows<'t> {
    fn open(folder: &Path, table: &'t TableFile) -> Result<Self, CopyError> {
        let damaged = |_| CopyError::Damaged {
            file: table.file.clone(),
        };
        Ok(Self {
            reader: BlockReader::open(&folder.join(&table.file)).map_err(damaged)?,
            table,
            block: None,
            rows: 0,
        })
    }

    fn damaged(&self) -> CopyError {
        CopyError::Damaged {
            file: self.table.file.clone(),
        }
    }

    /// Reads the next row and returns whether there is one.
    fn next(
        &mut self,
        values: &mut Vec<Value<'static>>,
        watch: &mut Watch<'_>,
    ) -> Result<bool, CopyError> {
        loop {
            if let Some(block) = &mut self.block {
                if block.row(self.table.columns.len(), values).is_some() {
                    self.rows += 1;
                    watch.row(&self.table.table, self.rows)?;
                    return Ok(true);
                }
                if !block.is_read() {
                    return Err(self.damaged());
                }
            }
            match self.reader.next()? {
                NextRows::Rows(block) => self.block = Some(block),
                NextRows::Damaged(_) => return Err(self.damaged()),
                NextRows::End => return Ok(false),
            }
        }
    }

    /// Checks that the file is as it was written.
    fn finish(self) -> Result<(), CopyError> {
        let damaged = self.damaged();
        let (bytes, sha256) = self.reader.finish()?;
        let (table, rows) = (self.table, self.rows);
        if (rows, bytes, &sha256) == (table.rows, table.bytes, &table.sha256) {
            Ok(())
        } else {
            Err(damaged)
        }
    }
}
