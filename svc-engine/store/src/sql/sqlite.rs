//! SQLite: one file, one writing connection, read-only readers, write-ahead log.
//!
//! The file is refused once its path names another file or none: what is written there would be
//! lost. Each connection has a page cache of its own (`.cargo/config.toml`), so two readers do not
//! wait for each other.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection as Driver, OpenFlags};
use sqlx::migrate::Migrator;
use svc_engine_fact::deadline::Deadline;
use svc_engine_fact::private;

use super::driver::{Compaction, EachRow, STATEMENTS_MAX};
use super::error::{Obstacle, StoreError};
use super::turn::{Turn, WritingTurn};
use super::value::{Row, Value};

/// What tells files of this service from those of others: "svc1".
const APPLICATION: i32 = i32::from_be_bytes(*b"svc1");
/// Virtual machine steps between two checks of the deadline: some tens of microseconds.
const STEPS_PER_LOOK: i32 = 10_000;
/// How long a statement waits for another process that is writing.
const BUSY: Duration = Duration::from_secs(5);
/// How long rewriting the file waits for writers, and emptying its log for readers.
const COMPACTING: Duration = Duration::from_mins(1);
/// How often two connections try to see the same state. There is time enough between two commits.
const SHARING_TRIES: usize = 8;
/// How long opening waits for other processes that open the same new file.
const OPENING: Duration = Duration::from_secs(20);

pub(crate) struct SqliteConnection {
    driver: Driver,
    file: File,
    /// The deadline of running statements.
    deadline: Arc<Stop>,
    /// The turn that a writing connection shares with the thread that copies the log back.
    turn: Option<Turn>,
    writing: Option<WritingTurn>,
}

impl SqliteConnection {
    /// Opens the file for writing. If it is absent, it is created with its folder.
    pub(crate) fn writing(path: &Path) -> Result<Self, StoreError> {
        make(path)?;
        // `synchronous = FULL`: an acknowledged fact has reached the disk. A separate thread copies
        // the log back. The writer does so only when that thread is far behind. The log is cut to
        // 128 MiB when it starts from the beginning. SQLite searches its whole cache at each
        // commit, so a larger cache would cost more than it saves; the operating system caches the
        // pages too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open(
            path,
            flags,
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 131072;
             PRAGMA journal_size_limit = 134217728;
             PRAGMA cache_size = -16384;
             PRAGMA temp_store = MEMORY;",
            Some(Turn::default()),
        )
    }

    /// Opens the file for copying its log back.
    pub(crate) fn checkpointing(path: &Path) -> Result<Self, StoreError> {
        let settings = "PRAGMA synchronous = FULL; PRAGMA cache_size = -1024;";
        let opened = Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, settings, None)?;
        // A reader that blocks the log must not block the writer as well.
        opened.driver.busy_timeout(Duration::from_millis(50))?;
        Ok(opened)
    }

    /// Opens the file for reading only. The file is not mapped into memory, so that a file that is
    /// cut short under the service is an error and does not end the process.
    pub(crate) fn reading(path: &Path) -> Result<Self, StoreError> {
        let settings = "PRAGMA cache_size = -8192;";
        Self::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, settings, None)
    }

    fn open(
        path: &Path,
        flags: OpenFlags,
        settings: &str,
        turn: Option<Turn>,
    ) -> Result<Self, StoreError> {
        let until = Instant::now() + OPENING;
        let driver = loop {
            // When several processes enable the log of a new file at once, SQLite refuses all but
            // one without waiting.
            match connect(path, flags, settings) {
                Err(error) if error.is_busy() && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        let deadline = Arc::new(Stop::default());
        let looked_at = Arc::clone(&deadline);
        driver.progress_handler(STEPS_PER_LOOK, Some(move || looked_at.has_passed()))?;
        Ok(Self {
            driver,
            file: File::at(path)?,
            deadline,
            turn,
            writing: None,
        })
    }

    /// Copies the log back as far as other connections allow. Returns how many pages the log has
    /// and how many of them are copied.
    pub(crate) fn checkpoint(&mut self) -> Result<(i64, i64), StoreError> {
        let mut pages = (0, 0);
        self.run("PRAGMA wal_checkpoint(PASSIVE)", [].iter(), &mut |row| {
            pages = (row.integer(1)?, row.integer(2)?);
            Ok(())
        })?;
        Ok(pages)
    }

    /// Begins a write transaction. The writer holds its turn until the transaction ends.
    pub(crate) fn begin_write(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.file.check()?;
        self.writing = self.turn.as_ref().map(Turn::write);
        self.deadline.set(Some(deadline));
        // When a deferred transaction starts to write after another process has written, it fails
        // at once, whatever the busy timeout.
        let begun = self.statement("BEGIN IMMEDIATE");
        if begun.is_err() {
            self.ended();
        }
        begun
    }

    /// Begins a read snapshot whose statements are stopped at the deadline.
    pub(crate) fn begin_read(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.deadline.set(Some(deadline));
        self.statement("BEGIN")
    }

    /// Begins the read snapshot again until another connection sees the same state. That connection
    /// has begun a snapshot and has read nothing yet. Returns whether both see the same state.
    ///
    /// A connection reports a number that changes with every commit of others. If the number is the
    /// same before and after the other connection began to read, nobody committed in between.
    pub(crate) fn share_snapshot(
        &mut self,
        other: &mut Self,
        deadline: &Deadline,
    ) -> Result<bool, StoreError> {
        let mut before = self.data_version()?;
        for _ in 0..SHARING_TRIES {
            other.data_version()?;
            self.end("COMMIT")?;
            self.begin_read(deadline)?;
            let after = self.data_version()?;
            if after == before {
                return Ok(true);
            }
            before = after;
            other.end("COMMIT")?;
            other.begin_read(deadline)?;
        }
        Ok(false)
    }

    /// Returns the number of the visible state. This is a read, so it starts a snapshot.
    fn data_version(&mut self) -> Result<i64, StoreError> {
        let mut version = 0;
        self.run("PRAGMA data_version", [].iter(), &mut |row| {
            version = row.integer(0)?;
            Ok(())
        })?;
        Ok(version)
    }

    /// Ends a transaction.
    pub(crate) fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        // The end of a transaction must not be stopped half-way by the remaining deadline of its
        // statements.
        self.deadline.set(None);
        let ended = self.statement(how);
        self.ended();
        ended
    }

    fn ended(&mut self) {
        self.deadline.set(None);
        self.writing = None;
    }

    fn statement(&mut self, sql: &str) -> Result<(), StoreError> {
        self.run(sql, [].iter(), &mut |_| Ok(())).map(drop)
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        Ok(self.driver.execute_batch(sql)?)
    }

    /// Runs one statement and returns how many rows it changed. The number is 0 for a statement
    /// that returns rows.
    pub(crate) fn run<'v>(
        &mut self,
        sql: &str,
        values: impl Iterator<Item = &'v Value<'v>>,
        each: EachRow<'_>,
    ) -> Result<u64, StoreError> {
        if self.deadline.has_passed() {
            return Err(StoreError::Deadline);
        }
        let mut statement = self.driver.prepare_cached(sql)?;
        // SQLite numbers placeholders in the order of their first use, whatever their names.
        if statement.parameter_name(1).is_none() {
            for (place, value) in (1..).zip(values) {
                statement.raw_bind_parameter(place, value)?;
            }
        } else {
            let values: Vec<&Value<'_>> = values.collect();
            for place in 1..=statement.parameter_count() {
                let number = statement.parameter_name(place);
                let number = number.and_then(|name| name.get(1..)?.parse::<usize>().ok());
                let value = number.and_then(|number| values.get(number.checked_sub(1)?));
                statement.raw_bind_parameter(place, value.copied().unwrap_or(&Value::Null))?;
            }
        }
        if statement.column_count() == 0 {
            return Ok(statement.raw_execute()? as u64);
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            each(&Row::Sqlite(row))?;
        }
        Ok(0)
    }

    /// Inserts rows with a statement for one row, whose placeholders have no names. Returns the
    /// number of each row that was inserted.
    pub(crate) fn insert<'v>(
        &mut self,
        sql: &str,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Vec<Option<i64>>, StoreError> {
        let mut statement = self.driver.prepare_cached(sql)?;
        rows.map(|row| {
            if self.deadline.has_passed() {
                return Err(StoreError::Deadline);
            }
            for (place, value) in (1..).zip(row) {
                statement.raw_bind_parameter(place, value)?;
            }
            let is_inserted = statement.raw_execute()? > 0;
            Ok(is_inserted.then(|| self.driver.last_insert_rowid()))
        })
        .collect()
    }

    /// Brings the schema to head. Several processes may start at once, so everything is one write
    /// transaction. It may take long, but nobody else could write in the meantime anyway.
    pub(crate) fn migrate(&mut self, migrator: &Migrator) -> Result<(), StoreError> {
        let transaction = rusqlite::Transaction::new_unchecked(
            &self.driver,
            rusqlite::TransactionBehavior::Immediate,
        )?;
        // The same table as sqlx's migrator keeps on PostgreSQL.
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS _sqlx_migrations (
                version BIGINT PRIMARY KEY,
                description TEXT NOT NULL,
                installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
                success BOOLEAN NOT NULL,
                checksum BLOB NOT NULL,
                execution_time BIGINT NOT NULL
            )",
        )?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        for migration in migrator.iter() {
            let applied = "SELECT checksum FROM _sqlx_migrations WHERE version = $1";
            let mut applied = transaction.prepare(applied)?;
            let checksum = applied.query_row([migration.version], |row| row.get::<_, Vec<u8>>(0));
            match checksum {
                Ok(checksum) if checksum == *migration.checksum => continue,
                Ok(_) => return Err(StoreError::MigrationChanged(migration.version)),
                Err(rusqlite::Error::QueryReturnedNoRows) => {}
                Err(error) => return Err(error.into()),
            }
            let started = Instant::now();
            transaction.execute_batch(migration.sql.as_str())?;
            let nanoseconds = i64::try_from(started.elapsed().as_nanos()).unwrap_or(i64::MAX);
            transaction.execute(
                "INSERT INTO _sqlx_migrations
                    (version, description, success, checksum, execution_time)
                    VALUES ($1, $2, 1, $3, $4)",
                (
                    migration.version,
                    &*migration.description,
                    &*migration.checksum,
                    nanoseconds,
                ),
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// Rewrites the file without deleted content, and truncates its log, which still holds the old
    /// pages.
    pub(crate) fn compact(&mut self) -> Result<Compaction, StoreError> {
        self.file.check()?;
        self.driver.busy_timeout(COMPACTING)?;
        // A large file does not fit into memory twice.
        self.batch("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE; VACUUM;")?;
        self.driver.busy_timeout(BUSY)?;
        let until = Instant::now() + COMPACTING;
        loop {
            let mut is_held = false;
            self.run("PRAGMA wal_checkpoint(TRUNCATE)", [].iter(), &mut |row| {
                is_held = row.integer(0)? != 0;
                Ok(())
            })?;
            if !is_held {
                return Ok(Compaction::Done);
            }
            if Instant::now() >= until {
                return Ok(Compaction::InUse);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn reopen(&mut self) -> Result<(), StoreError> {
        let path = self.file.path.clone();
        let mut opened = Self::writing(&path)?;
        opened.check_writing()?;
        opened.turn = self.turn.take();
        *self = opened;
        Ok(())
    }

    /// Refuses a connection that can only read. SQLite opens such a connection silently if the file
    /// or one of those beside it cannot be written, and the connection stays read-only even if they
    /// become writable again.
    pub(crate) fn check_writing(&mut self) -> Result<(), StoreError> {
        if self.driver.is_readonly("main")? {
            return Err(self.only_read());
        }
        // Taking the write lock shows what the flag of the file does not: the files of the log are
        // separate, and keep the mode that the database had when they were made.
        match self.statement("BEGIN IMMEDIATE") {
            Ok(()) => self.statement("ROLLBACK"),
            // If somebody else is writing, the database can be written.
            Err(error) if error.is_busy() => Ok(()),
            Err(error) if error.obstacle() == Some(Obstacle::ReadOnly) => Err(self.only_read()),
            Err(error) => Err(error),
        }
    }

    /// Returns the error of a connection that can only read, with the file that is the cause.
    fn only_read(&self) -> StoreError {
        StoreError::ReadOnly(unwritable(&self.file.path))
    }

    pub(crate) fn turn(&self) -> Option<Turn> {
        self.turn.clone()
    }
}

impl fmt::Debug for SqliteConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteConnection")
    }
}

fn connect(path: &Path, flags: OpenFlags, settings: &str) -> Result<Driver, StoreError> {
    let driver = Driver::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    driver.busy_timeout(BUSY)?;
    check_application(&driver, path)?;
    driver.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this, a statement is planned again whenever a value is bound to its LIMIT.
    driver.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    driver.execute_batch(settings)?;
    Ok(driver)
}

/// Refuses the file of another application, before anything in it is changed. A file without tables
/// is anybody's.
fn check_application(driver: &Driver, path: &Path) -> Result<(), StoreError> {
    let (application, tables, own): (i32, i64, i64) = driver.query_row(
        "SELECT (SELECT application_id FROM pragma_application_id), COUNT(*),
            COUNT(CASE WHEN name = 'organizations' THEN 1 END)
        FROM sqlite_master",
        (),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    // Another version of this service is told apart by its migrations.
    if application == APPLICATION || (application == 0 && (tables == 0 || own > 0)) {
        return Ok(());
    }
    Err(StoreError::AnotherApplication(path.to_owned()))
}

/// Returns the file of a database that this user cannot write. The files are not opened to find
/// out, because closing one would drop SQLite's locks on it.
fn unwritable(path: &Path) -> Option<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let files = [path.to_owned(), beside("-wal"), beside("-shm")];
    files.into_iter().find(|file| {
        file.exists() && rustix::fs::access(file, rustix::fs::Access::WRITE_OK).is_err()
    })
}

/// Creates the file and its folder if they are absent. The content is as private as what the agents
/// saw. SQLite gives its log files the mode of the database.
fn make(path: &Path) -> Result<(), StoreError> {
    private::create_folder_of(path)?;
    match private::create_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The file that a service has opened.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl File {
    /// Returns the file at the path.
    pub(crate) fn at(path: &Path) -> Result<Self, StoreError> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Fails if the path names another file than the one that is open, or none: otherwise, writes
    /// would be acknowledged and lost.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match std::fs::metadata(&self.path) {
            Ok(now) if (now.dev(), now.ino()) == (self.device, self.inode) => Ok(()),
            Ok(_) => Err(StoreError::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(StoreError::Replaced),
            Err(error) => Err(error.into()),
        }
    }
}

/// When running statements are stopped. SQLite checks it while they run.
#[derive(Default)]
struct Stop(Mutex<Option<Deadline>>);

impl Stop {
    fn set(&self, deadline: Option<&Deadline>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline.cloned();
    }

    fn has_passed(&self) -> bool {
        let deadline = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline
            .as_ref()
            .is_some_and(|deadline| deadline.check().is_err())
    }
}
