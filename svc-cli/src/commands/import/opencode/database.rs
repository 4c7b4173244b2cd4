//! `OpenCode`'s database. It is only read, never checkpointed, and only three of its tables are: others
//! have credentials.

use std::env;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use svc_engine::clock::Ids;
use svc_engine::private;
use svc_model::json::{Json, Object};

use super::{LINE_BYTES_MAX, MessagePlace, StoredSession, malformed, message_line, with};

/// The tables that are read.
const TABLES: [&str; 3] = ["session", "message", "part"];
/// The columns of a Session that its line has.
const SESSION: [&str; 6] = [
    "id",
    "parent_id",
    "directory",
    "version",
    "time_created",
    "time_updated",
];
/// How long to wait for whoever holds a lock, before the database is copied.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a copy is begun again that somebody wrote into.
const COPIES_MAX: usize = 5;

const MESSAGES: &str = "SELECT id, time_created FROM message WHERE session_id = ?1";
const MESSAGE: &str = "SELECT session_id, time_created, data FROM message WHERE id = ?1";
const PARTS: &str = "SELECT id, time_created, data FROM part WHERE message_id = ?1 ORDER BY id";
const SIZE: &str = "SELECT (SELECT COALESCE(SUM(OCTET_LENGTH(data)), 0) FROM part
        WHERE message_id = ?1) + (SELECT OCTET_LENGTH(data) FROM message WHERE id = ?1)";

/// A database, or a copy of it.
#[derive(Debug)]
pub(in super::super) struct Database {
    connection: Connection,
    // Last, so that its files are closed before they are removed.
    _copy: Option<PrivateFolder>,
}

/// A folder that is removed in the end.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

impl Database {
    /// Opens a database. One that cannot be read where it is, because somebody holds a lock or its
    /// log cannot be opened, is copied with its log.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let in_place = OpenFlags::SQLITE_OPEN_READ_ONLY;
        match connect(path, in_place) {
            Ok(connection) => Ok(Self {
                connection,
                _copy: None,
            }),
            Err(_) if log_of(path).exists() => {
                let copy = copied(path)?;
                let file = copy.0.join(name(path));
                let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_WRITE);
                Ok(Self {
                    connection: connection.map_err(io::Error::other)?,
                    _copy: Some(copy),
                })
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn sessions(&self) -> io::Result<Vec<StoredSession>> {
        let sessions = || {
            let mut statement = self.connection.prepare("SELECT * FROM session")?;
            let sessions = statement.query_map([], session)?;
            sessions.collect::<rusqlite::Result<Vec<Object>>>()
        };
        let sessions = sessions().map_err(io::Error::other)?;
        Ok(sessions
            .into_iter()
            .filter_map(StoredSession::new)
            .collect())
    }

    pub(super) fn messages(&self, session_id: &str) -> io::Result<Vec<MessagePlace>> {
        let places = || {
            let mut statement = self.connection.prepare_cached(MESSAGES)?;
            let places = statement.query_map([session_id], |row| {
                Ok(MessagePlace {
                    id: row.get(0)?,
                    created_at: row.get(1)?,
                    file: PathBuf::new(),
                })
            })?;
            places.collect::<rusqlite::Result<Vec<MessagePlace>>>()
        };
        places().map_err(io::Error::other)
    }

    /// Returns the line of a message; `None` if it is too long. The line of a message that is gone by
    /// now is empty.
    pub(super) fn message(&self, id: &str) -> io::Result<Option<Vec<u8>>> {
        let read = || {
            // The message and its parts are of one moment.
            let transaction = self.connection.unchecked_transaction()?;
            let line = line(&transaction, id)?;
            transaction.finish()?;
            Ok(line)
        };
        read().map_err(|error: rusqlite::Error| io::Error::other(error))
    }
}

/// Opens a database, and checks that it can be read.
fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.authorizer(Some(allowed))?;
    connection
        .prepare("SELECT id FROM session LIMIT 1")?
        .exists([])?;
    Ok(connection)
}

/// Allows reading of the three tables, and nothing else.
fn allowed(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Read { table_name, .. } if TABLES.contains(&table_name) => Authorization::Allow,
        AuthAction::Select | AuthAction::Function { .. } | AuthAction::Transaction { .. } => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// Returns what the line of a Session says of it.
fn session(row: &Row<'_>) -> rusqlite::Result<Object> {
    let mut session = Object::new();
    for name in SESSION {
        let Ok(value) = row.get_ref(name) else {
            continue;
        };
        match value {
            ValueRef::Integer(number) => drop(session.insert(name, number)),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                session.insert(name, text);
            }
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => {}
        }
    }
    Ok(session)
}

fn line(connection: &Connection, id: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    let size: Option<i64> = connection
        .prepare_cached(SIZE)?
        .query_row([id], |row| row.get(0))?;
    let Some(size) = size else {
        return Ok(Some(Vec::new()));
    };
    if size.unsigned_abs() > LINE_BYTES_MAX {
        return Ok(None);
    }
    let message = connection.prepare_cached(MESSAGE)?.query_row([id], |row| {
        let session_id: String = row.get(0)?;
        let object = object(row, id)?;
        Ok(object.map(|object| with(object, "session_id", Some(&session_id))))
    })?;
    let Some(message) = message else {
        // It is counted as malformed.
        return Ok(Some(b"{".to_vec()));
    };
    let mut statement = connection.prepare_cached(PARTS)?;
    let parts = statement.query_map([id], |row| {
        let id: String = row.get(0)?;
        Ok(object(row, &id)?.map_or_else(malformed, Json::from))
    })?;
    let parts = parts.collect::<rusqlite::Result<Vec<Json>>>()?;
    Ok(Some(message_line(message, parts)))
}

/// Returns the data of a row with its id and its time.
fn object(row: &Row<'_>, id: &str) -> rusqlite::Result<Option<Object>> {
    let time: i64 = row.get(1)?;
    let data = row.get_ref(2)?;
    let data = data.as_bytes().ok().and_then(|data| Json::parse(data).ok());
    let object = data.and_then(Json::into_object);
    Ok(object.map(|mut object| {
        object.insert("time_created", time);
        with(object, "id", Some(id))
    }))
}

/// Copies a database and its log to a folder that only this account can read.
fn copied(path: &Path) -> io::Result<PrivateFolder> {
    let folder = env::temp_dir().join(format!("svc-{}", Ids::random().fresh().simple()));
    private::create_new_folder(&folder)?;
    let folder = PrivateFolder(folder);
    let copy = folder.0.join(name(path));
    for _ in 0..COPIES_MAX {
        let before = states(path)?;
        fs::copy(path, &copy)?;
        fs::copy(log_of(path), log_of(&copy))?;
        if states(path)? == before {
            return Ok(folder);
        }
    }
    let why = format!("{} is written to all the time", path.display());
    Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
}

/// Returns the sizes and times of a database and its log, which tell whether somebody wrote to them.
fn states(path: &Path) -> io::Result<[(u64, i64, i64); 2]> {
    let state = |about: Metadata| (about.len(), about.mtime(), about.mtime_nsec());
    Ok([
        state(fs::metadata(path)?),
        state(fs::metadata(log_of(path))?),
    ])
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

fn name(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}
