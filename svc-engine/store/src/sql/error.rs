use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use svc_engine_fact::deadline::Passed;

use super::clock_fault::ClockFault;

/// Why the store does not answer. The drivers' texts are kept as sources, for the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// PostgreSQL refused a statement, or cannot be reached.
    #[error("the database returned an error")]
    Postgres(#[source] DriverError),
    /// SQLite refused a statement.
    #[error("the database returned an error")]
    Sqlite(#[source] rusqlite::Error),
    /// PostgreSQL did not answer a connection attempt.
    #[error("the database server gives no answer")]
    Unreachable,
    /// The folder or the file of the database cannot be used.
    #[error("cannot use the database file")]
    File(#[source] std::io::Error),
    /// The database file was deleted or replaced while it was open.
    #[error("the database file was deleted or replaced under the service; restart the service")]
    Replaced,
    /// The database can only be read. If a file that cannot be written is the cause, this is its
    /// path.
    #[error("{}", only_read(.0.as_deref()))]
    ReadOnly(Option<PathBuf>),
    /// The database is a standby, which can only be read.
    #[error("the database is a standby, which can only be read")]
    Standby,
    /// The clock of this server cannot be believed, so nothing is captured.
    #[error("{0}, so nothing is captured")]
    Clock(ClockFault),
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// There are more rows than the reader accepts.
    #[error("the result has too many rows")]
    TooMany,
    /// The schema is not at head.
    #[error("the schema is {0}, this service needs its head revision")]
    Schema(SchemaState),
    /// A migration was changed after it was applied.
    #[error("migration {0} was changed after it had been applied")]
    MigrationChanged(i64),
    /// A row does not contain what its table should contain.
    #[error("cannot read a row of {table}: {what}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// The database was set back to an earlier state since it was last written. Caches of it are
    /// dropped.
    #[error("the database was set back to an earlier state")]
    SetBack,
    /// Content was erased since the writer's epoch began. Caches of it are dropped.
    #[error("content was erased at the same time")]
    Erased,
    /// Another server stored the same call, from another source, at the same time.
    #[error("another server stored the same call at the same time")]
    SameCall,
    /// Another erasure ran since this one was planned.
    #[error("another erasure ran at the same time")]
    ErasedByAnother,
    /// Halves of calls came or went since it was decided which belong together.
    #[error("other halves of the Session's calls arrived or were settled at the same time")]
    HalvesChanged,
    /// A pooler in transaction mode stands before PostgreSQL.
    #[error("a pooler in transaction mode stands before the database, and keeps no sessions")]
    Pooler,
    /// The database is in another encoding than UTF-8.
    #[error(
        "the encoding of the database is {0}, and it must be UTF8: CREATE DATABASE svc \
         ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding(String),
    /// The SQLite file is another application's.
    #[error("{} is the file of another application", .0.display())]
    AnotherApplication(PathBuf),
    /// This role of PostgreSQL may not rewrite the tables of captured content.
    #[error(
        "the tables of captured content are {owner}'s, so PostgreSQL does not let {role} rewrite \
         them, and erased bytes would stay in their files"
    )]
    NotOwner {
        /// The owner of the tables.
        owner: String,
        /// The role of this connection.
        role: String,
    },
    /// PostgreSQL did not rewrite a table, without saying why.
    #[error("PostgreSQL did not rewrite the table {0}; its log says why")]
    NotRewritten(&'static str),
    /// A delivery relies on content that was lost when the database was set back, or that was
    /// erased. The same delivery can be stored after it is prepared again.
    #[error("stored content is missing")]
    ContentLost,
    /// The writer has stopped.
    #[error("the writer has stopped")]
    Closed,
    /// The writer failed to store one delivery; the cause is in the log.
    #[error("the delivery was not stored")]
    NotStored,
    /// The writer failed to store the deliveries of a transaction, all for one cause.
    #[error("the delivery was not stored")]
    TransactionFailed(#[source] Arc<Self>),
}

/// An error of the driver for PostgreSQL. It says what PostgreSQL says, with the SQLSTATE, and leaves
/// out the place in PostgreSQL's own source.
#[derive(Debug)]
pub struct DriverError(pub(crate) sqlx::Error);

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match of_server(&self.0) {
            Some(error) => write!(f, "{} (SQLSTATE {})", error.message(), error.code()),
            None => self.0.fmt(f),
        }
    }
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match of_server(&self.0) {
            Some(_) => None,
            None => self.0.source(),
        }
    }
}

fn of_server(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

fn only_read(file: Option<&Path>) -> String {
    match file {
        None => "the database can only be read".to_owned(),
        Some(file) => format!(
            "the database can only be read: this user cannot write {}",
            file.display()
        ),
    }
}

/// Why a database cannot be used, if only its operator can change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Its disk is full, or its quota is used up.
    DiskFull,
    /// It can only be read, because of a setting, a file system or something unknown.
    ReadOnly,
    /// It is a standby, which can only be read until it is promoted.
    Standby,
    /// Its file cannot be opened.
    NotOpened,
    /// Its file is damaged, or is not a database.
    Damaged,
    /// Its file was deleted or replaced while it was open.
    Replaced,
    /// Its disk fails to read or write.
    DiskError,
    /// It accepts no more connections.
    ConnectionsUsedUp,
    /// Its server refuses the user, the password or the action, or has no such database.
    Refused,
    /// Its server and this one agree on no secure connection.
    Tls,
    /// Its server is not running, is still starting, or cannot be reached.
    NoAnswer,
    /// The clock of this server differs from its server's, or was set while the service ran.
    Clock,
    /// A pooler before it keeps no sessions.
    Pooler,
    /// Anything else that its server answers with an error.
    Other,
}

impl Obstacle {
    /// Every obstacle.
    pub const ALL: [Self; 14] = [
        Self::DiskFull,
        Self::ReadOnly,
        Self::Standby,
        Self::NotOpened,
        Self::Damaged,
        Self::Replaced,
        Self::DiskError,
        Self::ConnectionsUsedUp,
        Self::Refused,
        Self::Tls,
        Self::NoAnswer,
        Self::Clock,
        Self::Pooler,
        Self::Other,
    ];

    /// Returns the word for the obstacle.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
            Self::Standby => "standby",
            Self::NotOpened => "not_opened",
            Self::Damaged => "damaged",
            Self::Replaced => "replaced",
            Self::DiskError => "disk_error",
            Self::ConnectionsUsedUp => "connections_used_up",
            Self::Refused => "refused",
            Self::Tls => "tls",
            Self::NoAnswer => "no_answer",
            Self::Clock => "clock",
            Self::Pooler => "pooler",
            Self::Other => "other",
        }
    }

    /// Returns what the operator can do. Once the database is mended, servers continue by
    /// themselves.
    pub const fn mend(self) -> &'static str {
        match self {
            Self::DiskFull => "the disk of the database is full: free some space there",
            Self::ReadOnly => {
                "the database can only be read: is it a standby, set to read only, on a read-only disk, \
                 another user's file, or one with a mode that allows no writing (SQLite: chmod 600 \
                 svc.db*)?"
            }
            Self::Standby => {
                "the database is a standby: promote it, or name the primary in SVC_DATABASE_URL"
            }
            Self::NotOpened => {
                "this user must be able to write the database file and its folder; to read one on a \
                 read-only disk, copy it elsewhere"
            }
            Self::Damaged => {
                "the database file is damaged, or no database: name the right one in SVC_DATABASE_URL, or \
                 restore a backup with svc restore"
            }
            Self::Replaced => {
                "the database file was deleted or replaced while it was open: restart the service"
            }
            Self::DiskError => {
                "the disk of the database fails to read or write: see the system's log; if the disk is \
                 lost, restore a backup to another one with svc restore"
            }
            Self::ConnectionsUsedUp => {
                "the database takes no more connections: raise its max_connections, or lower SVC_READ_SLOTS"
            }
            Self::Refused => {
                "the database server refuses this user, has no such database, or accepts no connections \
                 to it: correct SVC_DATABASE_URL and start the servers anew, or give the user what is \
                 missing at the database"
            }
            Self::Tls => {
                "no secure connection to the database server: compare sslmode and sslrootcert in \
                 SVC_DATABASE_URL with its certificate"
            }
            Self::NoAnswer => {
                "the database server gives no answer: is it running where SVC_DATABASE_URL says? if it has \
                 ended or is recovering, its own log says why, a full disk for one"
            }
            Self::Clock => {
                "set the clocks of this machine and of the database's by NTP: timedatectl set-ntp true; \
                 storing goes on by itself once they are right; if this one was set and is right now, \
                 within ten minutes, or at once after a restart of the service"
            }
            Self::Pooler => {
                "what SVC_DATABASE_URL names is a pooler in transaction mode, which keeps no prepared \
                 statements: name the PostgreSQL server itself, or a pool in session mode"
            }
            Self::Other => {
                "the database server answers with an error that it should not: look up its SQLSTATE in \
                 PostgreSQL's list of error codes, and see the server's own log"
            }
        }
    }
}

impl StoreError {
    /// Returns the obstacle that is the cause, if only the database's operator can remove it.
    pub fn obstacle(&self) -> Option<Obstacle> {
        let of_file = |error: &std::io::Error| match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(Obstacle::DiskFull),
            ErrorKind::ReadOnlyFilesystem => Some(Obstacle::ReadOnly),
            ErrorKind::PermissionDenied => Some(Obstacle::NotOpened),
            _ => None,
        };
        match self {
            Self::TransactionFailed(cause) => cause.obstacle(),
            Self::ReadOnly(_) => Some(Obstacle::ReadOnly),
            Self::Standby => Some(Obstacle::Standby),
            Self::Replaced => Some(Obstacle::Replaced),
            Self::Clock(_) => Some(Obstacle::Clock),
            Self::Pooler => Some(Obstacle::Pooler),
            Self::Postgres(DriverError(sqlx::Error::Tls(_))) => Some(Obstacle::Tls),
            // Of any kind: an unknown host name, for one, has no kind of its own.
            Self::Unreachable | Self::Postgres(DriverError(sqlx::Error::Io(_))) => {
                Some(Obstacle::NoAnswer)
            }
            Self::File(error) => of_file(error),
            Self::Sqlite(_) => match self.sqlite_code()? {
                ErrorCode::DiskFull => Some(Obstacle::DiskFull),
                ErrorCode::ReadOnly => Some(Obstacle::ReadOnly),
                ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Some(Obstacle::NotOpened),
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(Obstacle::Damaged),
                ErrorCode::SystemIoFailure => Some(Obstacle::DiskError),
                _ => None,
            },
            _ if self.is_of_data() || self.is_given_up() || self.is_busy() => None,
            Self::Postgres(_) => match self.sqlstate().unwrap_or_default() {
                "53100" => Some(Obstacle::DiskFull),
                "58030" => Some(Obstacle::DiskError),
                "25006" => Some(Obstacle::ReadOnly),
                "53300" => Some(Obstacle::ConnectionsUsedUp),
                // The user or the password, the database, a privilege, its connections.
                "28000" | "28P01" | "3D000" | "42501" | "55000" => Some(Obstacle::Refused),
                "26000" | "42P05" => Some(Obstacle::Pooler),
                "XX001" | "XX002" => Some(Obstacle::Damaged),
                // It is starting, recovering or stopping, or it ended the connection.
                "25P03" | "57P01" | "57P02" | "57P03" => Some(Obstacle::NoAnswer),
                code if code.starts_with("08") => Some(Obstacle::NoAnswer),
                _ => Some(Obstacle::Other),
            },
            _ => None,
        }
    }

    /// Returns whether the database aborted one of several transactions that waited for each other.
    /// The same transaction may succeed when it is repeated.
    pub(crate) fn is_given_up(&self) -> bool {
        // A serialization failure, and a deadlock.
        self.sqlstate()
            .is_some_and(|code| matches!(code, "40001" | "40P01"))
    }

    /// Returns whether the database server does not know the snapshot, because it is another
    /// server's.
    pub(crate) fn is_of_unknown_snapshot(&self) -> bool {
        self.sqlstate()
            .is_some_and(|code| matches!(code, "22023" | "42704"))
    }

    /// Returns whether another process holds a needed lock for longer than the statement waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.sqlite_code()
            .is_some_and(|code| matches!(code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
            || self.sqlstate() == Some("55P03")
    }

    /// Returns whether the connection cannot be used any more.
    pub(crate) fn is_connection_lost(&self) -> bool {
        let Self::Postgres(DriverError(error)) = self else {
            return false;
        };
        match error {
            // Shutdowns, crashes and the like; connection exceptions; the server's time limits that
            // end a connection. A read-only connection stays so even if the database becomes
            // writable.
            sqlx::Error::Database(error) => {
                let error = error.try_downcast_ref::<PgDatabaseError>();
                error.is_some_and(|error| {
                    let code = error.code();
                    // For any reason, such as a full disk for the write-ahead log.
                    matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
                        || code.starts_with("57P")
                        || code.starts_with("08")
                        || code.starts_with("25P03")
                        || code == "25006"
                })
            }
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
            _ => false,
        }
    }

    /// Returns whether the data of one delivery is the cause, so that others can be stored without
    /// it. Anything else affects every attempt.
    pub(crate) fn is_of_data(&self) -> bool {
        match self {
            Self::Corrupt { .. }
            | Self::ContentLost
            | Self::HalvesChanged
            | Self::Postgres(DriverError(sqlx::Error::Encode(_))) => true,
            // A value that its column does not accept, a violated constraint, too much data.
            Self::Sqlite(_) => self.sqlite_code().is_some_and(|code| {
                matches!(
                    code,
                    ErrorCode::TooBig
                        | ErrorCode::ConstraintViolation
                        | ErrorCode::TypeMismatch
                        | ErrorCode::ParameterOutOfRange
                )
            }),
            Self::Postgres(_) => self.sqlstate().is_some_and(|code| {
                ["22", "23", "54"]
                    .iter()
                    .any(|class| code.starts_with(class))
            }),
            _ => false,
        }
    }

    fn sqlite_code(&self) -> Option<ErrorCode> {
        let Self::Sqlite(error) = self else {
            return None;
        };
        error.sqlite_error_code()
    }

    /// Returns the code of PostgreSQL's answer (SQLSTATE), if it is the cause.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::TransactionFailed(cause) => cause.sqlstate(),
            Self::Postgres(DriverError(error)) => of_server(error).map(PgDatabaseError::code),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // A statement that was stopped at its deadline.
            Some(ErrorCode::OperationInterrupted) => Self::Deadline,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        // A statement that was stopped at its deadline.
        match of_server(&error) {
            Some(error) if error.code() == "57014" => return Self::Deadline,
            // PgBouncer, unless it is told to ignore it.
            Some(error) if error.message().contains("unsupported startup parameter") => {
                return Self::Pooler;
            }
            _ => {}
        }
        Self::Postgres(DriverError(error))
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            MigrateError::VersionMismatch(revision) => Self::MigrationChanged(revision),
            MigrateError::VersionMissing(revision) => Self::Schema(SchemaState::Ahead(revision)),
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::Postgres(DriverError(sqlx::Error::Migrate(Box::new(other)))),
        }
    }
}

impl From<Passed> for StoreError {
    /// Cancelled work counts as well: nobody waits for its answer.
    fn from(_: Passed) -> Self {
        Self::Deadline
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

/// Returns the error for a row that cannot be read.
pub(crate) const fn corrupt(table: &'static str, what: &'static str) -> StoreError {
    StoreError::Corrupt { table, what }
}

/// The stored schema, compared with the one that this service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is no schema.
    Absent,
    /// It is of an earlier version.
    Behind(i64),
    /// It is current.
    AtHead(i64),
    /// It is of a later version.
    Ahead(i64),
}

impl SchemaState {
    /// Returns the word for the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Behind(_) => "behind",
            Self::AtHead(_) => "at_head",
            Self::Ahead(_) => "ahead",
        }
    }
}

impl fmt::Display for SchemaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
