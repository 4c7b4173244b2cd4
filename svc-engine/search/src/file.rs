//! The file of the index: its place, its lock, its tables and what it says of itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use svc_engine_store::ErasureEnd;
use svc_model::id::{FactId, OrgId};
use svc_model::time::Instant;
use uuid::Uuid;

use crate::directory::{Directory, PartFlags, PartSession};
use crate::error::{IndexError, SearchPathError};

/// The revision of the words, the tables and the ranking. A file with another one is built anew.
const REVISION: i64 = 1;

/// A part is known by the row of its first passage; its other passages have the rows that follow.
/// `session` is 0 if the part is in several Sessions. An occurrence is a part of a message in a
/// Session, with the first call that shows it.
const TABLES: &str = "
    CREATE VIRTUAL TABLE passages USING fts5(words, content='', contentless_delete=1,
        detail='none', tokenize='ascii');
    CREATE TABLE parts (
        part INTEGER PRIMARY KEY,
        digest INTEGER NOT NULL,
        flags INTEGER NOT NULL,
        session INTEGER NOT NULL,
        lengths BLOB NOT NULL
    );
    CREATE UNIQUE INDEX parts_by_digest ON parts (digest);
    CREATE TABLE occurrences (
        session INTEGER NOT NULL,
        content INTEGER NOT NULL,
        part_index INTEGER NOT NULL,
        part INTEGER NOT NULL,
        call INTEGER NOT NULL,
        observed INTEGER NOT NULL,
        side INTEGER NOT NULL,
        message_index INTEGER NOT NULL,
        PRIMARY KEY (session, content, part_index)
    ) WITHOUT ROWID;
    CREATE INDEX occurrences_by_part ON occurrences (part, session);
    CREATE TABLE files (
        name TEXT NOT NULL,
        session INTEGER NOT NULL,
        path TEXT NOT NULL,
        part INTEGER NOT NULL,
        PRIMARY KEY (name, session, path, part)
    ) WITHOUT ROWID;
    CREATE INDEX files_by_session ON files (session);
    CREATE TABLE followed_facts (fact_table TEXT PRIMARY KEY, fact_id BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE state (
        org_id TEXT NOT NULL,
        call_number INTEGER NOT NULL,
        call_id BLOB,
        quarantine_revision INTEGER NOT NULL,
        quarantine_id BLOB,
        erasure_revision INTEGER NOT NULL,
        erasure_id BLOB,
        indexed_up_to INTEGER,
        next_part INTEGER NOT NULL
    );";

/// The memory for pages of the file, in KiB, for each connection.
const CACHE_KIB: i64 = 8 * 1_024;
/// Bytes of the log of changes beside the file, once they are in the file.
const LOG_BYTES: i64 = 16 * 1_024 * 1_024;
/// Pages of the log after which they are written to the file.
const LOG_PAGES: i64 = 4_000;
/// Bytes of new lists of words that are kept in memory before they are written.
const LISTS_BYTES: i64 = 8 * 1_024 * 1_024;

/// The file of an index, which only this process uses.
#[derive(Debug)]
pub struct SearchFile {
    path: PathBuf,
    /// The lock, for as long as it is open.
    _lock: File,
}

impl SearchFile {
    /// Locks the file of an index, which need not exist yet.
    ///
    /// # Errors
    ///
    /// If another process uses it, or its folder cannot be used.
    pub fn lock(path: &Path) -> Result<Self, SearchPathError> {
        let failed = |source| SearchPathError::Lock {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = private().open(beside(path, ".lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(SearchPathError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of the file and its log.
    pub fn bytes(&self) -> u64 {
        let files = [self.path.clone(), beside(&self.path, "-wal")];
        let sizes = files.iter().filter_map(|file| fs::metadata(file).ok());
        sizes.map(|file| file.len()).sum()
    }

    /// Removes the file.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        for end in ["", "-wal", "-shm", "-journal"] {
            remove(&beside(&self.path, end))?;
        }
        Ok(())
    }

    /// Returns whether somebody asked for a new index, which this forgets.
    pub(crate) fn take_request(&self) -> bool {
        let request = beside(&self.path, REQUEST);
        fs::exists(&request).unwrap_or_default() && remove(&request).is_ok()
    }
}

const REQUEST: &str = ".rebuild";

/// Asks the server that uses the file of an index to delete and build it. If none uses it, the next
/// one will.
///
/// # Errors
///
/// If the folder of the file cannot be written.
pub fn request_rebuild(path: &Path) -> io::Result<()> {
    private().open(beside(path, REQUEST)).map(drop)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How far an index has followed the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexState {
    /// The last call, by its number.
    pub(crate) call_number: i64,
    /// Its id.
    pub(crate) call_id: Option<FactId>,
    /// The last row of the quarantine log.
    pub(crate) quarantine_revision: u64,
    /// Its id.
    pub(crate) quarantine_id: Option<Uuid>,
    /// The end of the erasure log.
    pub(crate) erasure: ErasureEnd,
    /// Every fact captured by this moment is in the index; `None` before all were once.
    pub indexed_up_to: Option<Instant>,
    /// The row of the next part.
    pub(crate) next_part: i64,
}

impl IndexState {
    /// Returns the revision of the erasure log that the index has followed.
    pub const fn erasure_revision(&self) -> u64 {
        self.erasure.revision
    }

    /// Returns whether no byte of the index holds a word of what was erased up to a revision.
    pub const fn has_erased(&self, revision: u64) -> bool {
        self.erasure.revision >= revision
    }

    /// Returns the revision of the quarantine log that the index has followed.
    pub const fn quarantine_revision(&self) -> u64 {
        self.quarantine_revision
    }
}

/// Opens a file for writing, and makes it anew unless it holds an index of this revision and of
/// this organization.
pub(crate) fn open(
    file: &SearchFile,
    org_id: &OrgId,
) -> Result<(Connection, IndexState, Directory), IndexError> {
    if file.take_request() {
        tracing::info!("search.rebuild_asked");
        file.remove()?;
    }
    match opened(file, org_id) {
        Ok(Some(opened)) => return Ok(opened),
        Ok(None) => tracing::info!("search.index_is_of_another_kind"),
        Err(error) if error.is_damage() => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "search.index_is_damaged");
        }
        Err(error) => return Err(error),
    }
    file.remove()?;
    opened(file, org_id)?.ok_or(IndexError::Closed)
}

fn opened(
    file: &SearchFile,
    org_id: &OrgId,
) -> Result<Option<(Connection, IndexState, Directory)>, IndexError> {
    drop(private().open(file.path())?);
    let connection = Connection::open_with_flags(
        file.path(),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    let revision: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0))?;
    if revision == 0 && tables == 0 {
        connection.execute_batch("BEGIN")?;
        connection.execute_batch(TABLES)?;
        connection.execute(
            "INSERT INTO passages (passages, rank) VALUES ('hashsize', ?1)",
            [LISTS_BYTES],
        )?;
        connection.execute(
            "INSERT INTO state (org_id, call_number, quarantine_revision, erasure_revision, \
            next_part) VALUES (?1, 0, 0, 0, 1)",
            [org_id.as_str()],
        )?;
        connection.pragma_update(None, "user_version", REVISION)?;
        connection.execute_batch("COMMIT")?;
    } else if revision != REVISION {
        return Ok(None);
    }
    let Some(state) = state(&connection, org_id)? else {
        return Ok(None);
    };
    let directory = directory(&connection)?;
    Ok(Some((connection, state, directory)))
}

/// Opens a file for reading.
pub(crate) fn open_reading(path: &Path) -> Result<Connection, IndexError> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), IndexError> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Reads what the index in a file has followed, without using the file.
///
/// # Errors
///
/// If it cannot be read.
pub fn state_of(path: &Path, org_id: &OrgId) -> Result<Option<IndexState>, IndexError> {
    if !fs::exists(path)? {
        return Ok(None);
    }
    state(&open_reading(path)?, org_id)
}

fn state(connection: &Connection, org_id: &OrgId) -> Result<Option<IndexState>, IndexError> {
    let uuid = |bytes: Option<[u8; 16]>| bytes.map(Uuid::from_bytes);
    let found = connection
        .query_row(
            "SELECT call_number, call_id, quarantine_revision, quarantine_id, erasure_revision, \
            erasure_id, indexed_up_to, next_part FROM state WHERE org_id = ?1",
            [org_id.as_str()],
            |row| {
                let indexed_up_to: Option<i64> = row.get(6)?;
                Ok(IndexState {
                    call_number: row.get(0)?,
                    call_id: uuid(row.get(1)?).map(FactId::new),
                    quarantine_revision: row.get::<_, i64>(2)?.unsigned_abs(),
                    quarantine_id: uuid(row.get(3)?),
                    erasure: ErasureEnd {
                        revision: row.get::<_, i64>(4)?.unsigned_abs(),
                        erasure_id: uuid(row.get(5)?),
                    },
                    indexed_up_to: indexed_up_to.and_then(Instant::from_microseconds),
                    next_part: row.get(7)?,
                })
            },
        )
        .optional()?;
    Ok(found)
}

/// Writes what the index has followed.
pub(crate) fn write_state(connection: &Connection, state: &IndexState) -> Result<(), IndexError> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "UPDATE state SET call_number = ?1, call_id = ?2, quarantine_revision = ?3, \
        quarantine_id = ?4, erasure_revision = ?5, erasure_id = ?6, indexed_up_to = ?7, \
        next_part = ?8",
    )?;
    statement.execute(params![
        state.call_number,
        state.call_id.map(|id| *id.uuid().as_bytes()),
        number(state.quarantine_revision),
        state.quarantine_id.map(|id| *id.as_bytes()),
        number(state.erasure.revision),
        state.erasure.erasure_id.map(|id| *id.as_bytes()),
        state.indexed_up_to.map(Instant::microseconds),
        state.next_part,
    ])?;
    Ok(())
}

fn directory(connection: &Connection) -> Result<Directory, IndexError> {
    let mut directory = Directory::default();
    let mut statement =
        connection.prepare("SELECT part, flags, session, lengths FROM parts ORDER BY part")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let session = match row.get(2)? {
            0 => PartSession::Several,
            number => PartSession::One(number),
        };
        let lengths: Vec<u8> = row.get(3)?;
        let (lengths, _) = lengths.as_chunks();
        let lengths: Vec<u16> = lengths
            .iter()
            .map(|bytes| u16::from_le_bytes(*bytes))
            .collect();
        directory.add(
            row.get(0)?,
            PartFlags::of_byte(row.get(1)?),
            session,
            &lengths,
        );
    }
    Ok(directory)
}
