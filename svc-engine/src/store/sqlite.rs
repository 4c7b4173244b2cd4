//! SQLite: one file, one writing connection, read-only readers, write-ahead log.

use std::fmt;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection as Driver, SqliteJournalMode,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Either, Executor as _, SqlStr};

use super::StoreError;
use super::checkpoint::{Turn, Writing};
use super::connection::{EachRow, STATEMENTS_MAX};
use super::migrate;
use super::runtime::wait;
use super::value::{Row, Value};
use crate::deadline::Deadline;

/// Virtual machine steps between two looks at the deadline: some tens of microseconds.
const STEPS_PER_LOOK: i32 = 10_000;
/// How long a statement waits for another process that writes.
const BUSY_SECONDS: u64 = 5;
/// How long opening waits for other processes that open the same new file.
const OPENING_SECONDS: u64 = 20;
/// How long a statement outside a transaction may take.
const ALONE_SECONDS: u64 = 30;
/// Rows that wait between the driver's thread and the reader's.
const ROWS_WAITING: usize = 128;

pub(super) struct SqliteConnection {
    driver: Driver,
    file: File,
    /// When running statements are stopped.
    deadline: Arc<Stop>,
    /// What is taken in turns with the copying of the log, when this connection writes.
    turn: Option<Turn>,
    writing: Option<Writing>,
    usable: bool,
}

impl SqliteConnection {
    /// Opens the file for writing, and makes it with its folder when it is absent.
    pub(super) fn writing(path: &Path) -> Result<Self, StoreError> {
        make(path)?;
        // An acknowledged fact has reached the disk: synchronous = FULL. The log is copied back by a
        // thread of its own; the writer does it only when that thread is far behind, and it is cut
        // to 64 MiB when it is begun anew. At each commit SQLite looks through its whole cache, so a
        // larger one costs more than it saves: the operating system has the pages too.
        let options = options(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("wal_autocheckpoint", "131072")
            .pragma("journal_size_limit", "67108864")
            .pragma("cache_size", "-16384")
            .pragma("temp_store", "MEMORY");
        Self::open(path, &options, Some(Turn::default()))
    }

    /// Opens the file for copying its log back.
    pub(super) fn checkpointing(path: &Path) -> Result<Self, StoreError> {
        // A reader that holds the log up must not hold the writer up with it.
        let options = options(path)
            .busy_timeout(Duration::from_millis(50))
            .synchronous(SqliteSynchronous::Full)
            .pragma("cache_size", "-1024");
        Self::open(path, &options, None)
    }

    /// Opens the file for reading only. It is not mapped into memory: a file that is cut short under
    /// the service is then an error and not the end of the process.
    pub(super) fn reading(path: &Path) -> Result<Self, StoreError> {
        let options = options(path).read_only(true).pragma("cache_size", "-8192");
        Self::open(path, &options, None)
    }

    fn open(
        path: &Path,
        options: &SqliteConnectOptions,
        turn: Option<Turn>,
    ) -> Result<Self, StoreError> {
        let until = Instant::now() + Duration::from_secs(OPENING_SECONDS);
        let mut driver = loop {
            // Of several processes that turn the log of a new file on at once, SQLite refuses all
            // but one without waiting.
            match wait(until, options.connect())?.map_err(StoreError::from) {
                Err(error) if error.is_busy() && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        let deadline = Arc::new(Stop::default());
        let looked_at = Arc::clone(&deadline);
        wait(until, async {
            let mut handle = driver.lock_handle().await?;
            handle.set_progress_handler(STEPS_PER_LOOK, move || !looked_at.has_passed());
            Ok::<(), StoreError>(())
        })??;
        Ok(Self {
            driver,
            file: File::at(path)?,
            deadline,
            turn,
            writing: None,
            usable: true,
        })
    }

    /// Copies the log back as far as nobody is in the way. Returns how many pages the log has and
    /// how many of them are copied.
    pub(super) fn checkpoint(&mut self) -> Result<(i64, i64), StoreError> {
        let mut pages = (0, 0);
        let sql = SqlStr::from_static("PRAGMA wal_checkpoint(PASSIVE)");
        self.run(sql, [].iter(), &mut |row| {
            pages = (row.integer(1)?, row.integer(2)?);
            Ok(())
        })?;
        Ok(pages)
    }

    /// Begins a write transaction. It is the writer's turn until the transaction ends.
    pub(super) fn begin_write(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.file.check()?;
        self.writing = self.turn.as_ref().map(Turn::write);
        self.deadline.set(Some(deadline));
        // A deferred transaction that turns into a writing one fails at once when another process
        // wrote in between, whatever the busy timeout.
        let begun = self.statement("BEGIN IMMEDIATE");
        if begun.is_err() {
            self.ended();
        }
        begun
    }

    /// Begins a read snapshot whose statements are stopped at the deadline.
    pub(super) fn begin_read(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.deadline.set(Some(deadline));
        self.statement("BEGIN")
    }

    /// Ends a transaction.
    pub(super) fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        // What ends a transaction is never stopped half-way by what its statements had left.
        self.deadline.set(None);
        let ended = self.statement(how);
        self.ended();
        ended
    }

    fn ended(&mut self) {
        self.deadline.set(None);
        self.writing = None;
    }

    fn statement(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.run(SqlStr::from_static(sql), [].iter(), &mut |_| Ok(()))
            .map(drop)
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        let done = wait(
            self.until(),
            self.driver
                .execute(sqlx::raw_sql(super::connection::text(sql))),
        );
        self.checked(done).map(drop)
    }

    pub(super) fn run<'v>(
        &mut self,
        sql: SqlStr,
        values: impl Iterator<Item = &'v Value<'v>>,
        each: EachRow<'_>,
    ) -> Result<u64, StoreError> {
        if self.deadline.has_passed() {
            return Err(StoreError::Deadline);
        }
        let mut arguments = SqliteArguments::default();
        for value in values {
            sqlx::Arguments::add(&mut arguments, value).map_err(sqlx::Error::Encode)?;
        }
        let until = self.until();
        let mut changed = 0;
        let mut failed = Ok(());
        let mut steps = self.driver.fetch_many(sqlx::query_with(sql, arguments));
        let done = wait(until, async {
            while let Some(step) = steps.try_next().await? {
                match step {
                    Either::Left(result) => changed += result.rows_affected(),
                    Either::Right(row) => {
                        failed = each(&Row::Sqlite(&row));
                        if failed.is_err() {
                            break;
                        }
                    }
                }
            }
            Ok::<(), sqlx::Error>(())
        });
        drop(steps);
        self.checked(done)?;
        failed.map(|()| changed)
    }

    pub(super) fn migrate(&mut self, migrator: &Migrator) -> Result<(), StoreError> {
        // The driver's migrator does not keep two processes apart here, so all of it is one write
        // transaction. It may take long, and then nobody else may write anyway.
        let migrated = wait(migrate::until(), async {
            let mut transaction = self.driver.begin_with("BEGIN IMMEDIATE").await?;
            migrator.run_direct(None, &mut *transaction, false).await?;
            transaction.commit().await?;
            Ok::<(), StoreError>(())
        });
        self.checked(migrated)
    }

    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        let path = self.file.path.clone();
        let mut opened = Self::writing(&path)?;
        opened.turn = self.turn.take();
        *self = opened;
        Ok(())
    }

    pub(super) const fn is_usable(&self) -> bool {
        self.usable
    }

    pub(super) fn turn(&self) -> Option<Turn> {
        self.turn.clone()
    }

    /// Until when the driver's answer is waited for: a little longer than its statements may run, so
    /// that they are stopped by SQLite itself and the connection stays usable.
    fn until(&self) -> Instant {
        let deadline = self.deadline.get().map_or_else(
            || Instant::now() + Duration::from_secs(ALONE_SECONDS),
            |deadline| deadline.instant(),
        );
        deadline + Duration::from_secs(2)
    }

    /// A driver that gave no answer in time is left alone with its statement.
    fn checked<T, E>(&mut self, done: Result<Result<T, E>, StoreError>) -> Result<T, StoreError>
    where
        StoreError: From<E>,
    {
        let done = match done {
            Ok(result) => result.map_err(StoreError::from),
            Err(error) => {
                self.usable = false;
                Err(error)
            }
        };
        done.inspect_err(|error| self.usable &= !error.is_connection_lost())
    }
}

impl fmt::Debug for SqliteConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteConnection")
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_secs(BUSY_SECONDS))
        .statement_cache_capacity(STATEMENTS_MAX)
        .row_buffer_size(ROWS_WAITING)
        .thread_name(|number| format!("svc-sqlite-{number}"))
        .disable_statement_logging()
}

/// Makes the file and its folder when they are absent. What is stored here is as private as what the
/// agents saw; SQLite gives the files of its log the mode of the database.
fn make(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The file that a service has opened.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl File {
    /// Returns the file that the path names now.
    pub(super) fn at(path: &Path) -> Result<Self, StoreError> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Refuses to go on when the path names another file than the one that is open, or none: what is
    /// written would be acknowledged and lost.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match std::fs::metadata(&self.path) {
            Ok(now) if (now.dev(), now.ino()) == (self.device, self.inode) => Ok(()),
            Ok(_) => Err(StoreError::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(StoreError::Replaced),
            Err(error) => Err(error.into()),
        }
    }
}

/// When running statements are stopped. SQLite's thread looks at it while they run.
#[derive(Default)]
struct Stop(Mutex<Option<Deadline>>);

impl Stop {
    fn set(&self, deadline: Option<&Deadline>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline.cloned();
    }

    fn get(&self) -> Option<Deadline> {
        let deadline = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.clone()
    }

    fn has_passed(&self) -> bool {
        let deadline = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline
            .as_ref()
            .is_some_and(|deadline| deadline.check().is_err())
    }
}
