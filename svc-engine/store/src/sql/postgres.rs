//! PostgreSQL: any number of servers on one database.

use std::fmt;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection as Driver};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Either, Executor as _, SqlSafeStr as _, SqlStr};
use svc_engine_fact::deadline::Deadline;

use super::driver::{Compaction, EachRow, LockWait, NextRow, STATEMENTS_MAX, migration_deadline};
use super::error::StoreError;
use super::runtime::Reactor;
use super::value::{Row, Value, binary_row};

/// The time limit for connecting.
const CONNECTING_SECONDS: u64 = 5;
/// The time limit for a statement outside a transaction.
const ALONE_SECONDS: u64 = 30;

/// Every statement searches by index. A generic plan made while a table was empty would scan it, a
/// plan for each list of keys costs more than the search, and compiling one costs more than running
/// it.
const SESSION: &str = "SET synchronous_commit = on;
    SET lock_timeout = '5s';
    SET statement_timeout = '30s';
    SET idle_in_transaction_session_timeout = '60s';
    SET client_min_messages = warning;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET jit = off";

/// An idle time that is shorter than the wait for a lock.
const BEGIN_WRITE: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '4s'";
const USUAL_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '5s'";
const SHORT_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '100ms'";

/// How long rewriting tables waits for readers of the previous state.
const COMPACTING_SECONDS: u64 = 60;
/// The owner of a table that this role may not rewrite, and the role: `VACUUM FULL` of it would be a
/// warning and change nothing. The owner of the database may rewrite its tables too, and from version
/// 17 on whoever maintains the table.
const OF_ANOTHER: &str = "SELECT pg_get_userbyid(c.relowner)::TEXT, current_user::TEXT
    FROM pg_catalog.pg_class c, pg_catalog.pg_database d
    WHERE c.oid = CAST(CAST($1 AS TEXT) AS regclass) AND d.datname = current_database()
        AND NOT pg_has_role(c.relowner, 'USAGE') AND NOT pg_has_role(d.datdba, 'USAGE')
        AND NOT CASE WHEN CAST(current_setting('server_version_num') AS INT) >= 170000
            THEN has_table_privilege(c.oid, 'MAINTAIN') ELSE false END";
/// The file of a table. Rewriting gives the table another one.
const FILE_OF_TABLE: &str =
    "SELECT CAST(pg_relation_filenode(CAST(CAST($1 AS TEXT) AS regclass)) AS BIGINT)";
/// The number of the transaction; every committed transaction has a lower one.
const TRANSACTION: &str = "SELECT txid_current()";
/// Counts what still needs rows that earlier transactions deleted: snapshots of this database,
/// standbys, and running transactions in any database of the cluster. Such a transaction counts
/// because the rewriting's own snapshot is as old as the transaction.
const KEEPING: &str = "WITH since AS (SELECT CAST(CAST($1 % 4294967296 AS TEXT) AS xid) AS number)
    SELECT (SELECT COUNT(*) FROM pg_catalog.pg_stat_activity, since
            WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
                AND AGE(backend_xmin) > AGE(since.number))
        + (SELECT COUNT(*) FROM pg_catalog.pg_replication_slots, since
            WHERE AGE(xmin) > AGE(since.number))
        + CASE WHEN txid_snapshot_xmin(txid_current_snapshot()) < $1 THEN 1 ELSE 0 END";

/// Whether a transaction of the session may write, and whether the server is a standby.
const CAN_WRITE: &str =
    "SELECT CAST(current_setting('transaction_read_only') = 'off' AS INT)::BIGINT,
    CAST(pg_is_in_recovery() AS INT)::BIGINT";
const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// The process of the server that answers. Two connections have two of them.
const PROCESS: &str = "SELECT CAST(pg_backend_pid() AS BIGINT)";

/// The start of a stream of rows in the binary format: its signature, no flags, no extension.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Bytes of rows that are sent at once.
const COPY_BYTES: usize = 256 * 1024;

pub(crate) struct PostgresConnection {
    options: Box<PgConnectOptions>,
    driver: Driver,
    reactor: Reactor,
    usable: bool,
    transaction: Option<Transaction>,
}

/// The transaction that is open.
struct Transaction {
    /// The time after which its statements fail.
    deadline: Deadline,
    /// The statement timeout that was last set on the server.
    statement_timeout: Duration,
}

impl PostgresConnection {
    pub(crate) fn open(options: &PgConnectOptions) -> Result<Self, StoreError> {
        let name = options.get_application_name().unwrap_or("svc");
        let options = options
            .clone()
            .application_name(name)
            // No number with a fraction is stored, and poolers refuse the parameter.
            .extra_float_digits(None)
            .statement_cache_capacity(STATEMENTS_MAX)
            .disable_statement_logging();
        let until = Instant::now() + Duration::from_secs(CONNECTING_SECONDS);
        // A server that hangs is unreachable; the deadline of a question has not passed.
        let reactor = Reactor::new()?;
        let connected = reactor.wait(until, async {
            let mut driver = options.connect().await?;
            driver.execute(sqlx::raw_sql(SESSION)).await?;
            Ok::<_, StoreError>(driver)
        });
        let driver = match connected {
            Err(StoreError::Deadline) => Err(StoreError::Unreachable),
            other => other,
        }??;
        Ok(Self {
            options: Box::new(options),
            driver,
            reactor,
            usable: true,
            transaction: None,
        })
    }

    /// Begins a write transaction, which somebody may wait for: if this process is paused within
    /// it, the server ends it before the others give up.
    pub(crate) fn begin_write(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.begin(BEGIN_WRITE, deadline)
    }

    /// Begins a write transaction that may take as long as its deadline allows.
    pub(crate) fn begin_load(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.begin("BEGIN", deadline)
    }

    /// Sets how long the open transaction waits for somebody else's lock.
    pub(crate) fn set_lock_wait(&mut self, wait: LockWait) -> Result<(), StoreError> {
        self.batch(match wait {
            LockWait::Usual => USUAL_LOCK_WAIT,
            LockWait::Short => SHORT_LOCK_WAIT,
        })
    }

    /// Begins a read snapshot whose statements are stopped at the deadline.
    pub(crate) fn begin_read(&mut self, deadline: &Deadline) -> Result<(), StoreError> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", deadline)
    }

    fn begin(&mut self, how: &str, deadline: &Deadline) -> Result<(), StoreError> {
        let statement_timeout = left(deadline)?;
        self.transaction = Some(Transaction {
            deadline: deadline.clone(),
            statement_timeout,
        });
        self.batch(&format!("{how}; {}", timeout(statement_timeout)))
    }

    /// Gives another connection the state of this one. The other connection has begun a read
    /// snapshot and read nothing yet. Returns whether it worked: a name or a balancer may lead the
    /// other connection to another server, which does not know the state.
    pub(crate) fn share_snapshot(&mut self, other: &mut Self) -> Result<bool, StoreError> {
        let mut name = String::new();
        self.run("SELECT pg_export_snapshot()", [].iter(), &mut |row| {
            name = row.text(0)?;
            Ok(())
        })?;
        match other.batch(&format!("SET TRANSACTION SNAPSHOT '{name}'")) {
            Err(error) if error.is_of_unknown_snapshot() => Ok(false),
            shared => shared.map(|()| true),
        }
    }

    /// Ends a transaction.
    pub(crate) fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        let ended = self.batch(how);
        self.transaction = None;
        ended
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        let until = self.until();
        let batch = self.driver.execute(sqlx::raw_sql(text(sql)));
        let done = self.reactor.wait(until, batch);
        self.checked(done).map(drop)
    }

    pub(crate) fn run<'v>(
        &mut self,
        sql: &str,
        values: impl Iterator<Item = &'v Value<'v>>,
        each: EachRow<'_>,
    ) -> Result<u64, StoreError> {
        self.arm()?;
        let mut arguments = PgArguments::default();
        for value in values {
            sqlx::Arguments::add(&mut arguments, value).map_err(sqlx::Error::Encode)?;
        }
        let until = self.until();
        let mut changed = 0;
        let mut failed = Ok(());
        let mut steps = self
            .driver
            .fetch_many(sqlx::query_with(text(sql), arguments));
        let done = self.reactor.wait(until, async {
            while let Some(step) = steps.try_next().await? {
                match step {
                    Either::Left(result) => changed += result.rows_affected(),
                    Either::Right(row) => {
                        failed = each(&Row::Postgres(&row));
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

    /// Loads rows into a table as one stream in the binary format, and returns their number.
    pub(crate) fn copy_in(&mut self, sql: &str, next: NextRow<'_>) -> Result<u64, StoreError> {
        self.arm()?;
        let until = self.until();
        let copying = async {
            let mut copy = self.driver.copy_in_raw(sql).await?;
            let mut buffer = COPY_HEAD.to_vec();
            let mut values = Vec::new();
            loop {
                let more = match next(&mut values) {
                    Ok(more) => more,
                    Err(error) => {
                        // Otherwise the connection cannot be used any more.
                        copy.abort("the rows cannot be read").await?;
                        return Err(error);
                    }
                };
                if more {
                    binary_row(&values, &mut buffer)?;
                }
                if !more {
                    buffer.extend_from_slice(&(-1_i16).to_be_bytes());
                }
                if !more || buffer.len() >= COPY_BYTES {
                    copy.send(std::mem::take(&mut buffer)).await?;
                }
                if !more {
                    return Ok(copy.finish().await?);
                }
            }
        };
        let done = self.reactor.wait(until, copying);
        self.checked(done)
    }

    /// Upgrades the schema. If several servers try at once, the migrator lets one of them do it
    /// while the others wait as long as it takes, for example to build a large index.
    pub(crate) fn migrate(&mut self, migrator: &Migrator) -> Result<(), StoreError> {
        self.check_encoding()?;
        self.batch("SET statement_timeout = 0; SET lock_timeout = 0")?;
        let migrated = self.reactor.wait(
            migration_deadline(),
            migrator.run_direct(None, &mut self.driver, false),
        );
        self.checked(migrated)?;
        self.batch(SESSION)
    }

    /// Refuses a role that may not rewrite these tables.
    pub(crate) fn check_compaction(&mut self, tables: &[&str]) -> Result<(), StoreError> {
        for table in tables {
            let mut refused = Ok(());
            self.run(OF_ANOTHER, [Value::Text(table)].iter(), &mut |row| {
                let (owner, role) = (row.text(0)?, row.text(1)?);
                refused = Err(StoreError::NotOwner { owner, role });
                Ok(())
            })?;
            refused?;
        }
        Ok(())
    }

    fn file_of(&mut self, table: &str) -> Result<Option<i64>, StoreError> {
        let mut file = None;
        self.run(FILE_OF_TABLE, [Value::Text(table)].iter(), &mut |row| {
            file = row.optional_integer(0)?;
            Ok(())
        })?;
        Ok(file)
    }

    /// Rewrites tables without deleted rows. Rows that somebody can still see would stay, so the
    /// rewriting waits for everybody who may see them.
    pub(crate) fn compact(&mut self, tables: &[&'static str]) -> Result<Compaction, StoreError> {
        self.check_compaction(tables)?;
        let mut since = None;
        self.run(TRANSACTION, [].iter(), &mut |row| {
            since = Some(row.integer(0)?);
            Ok(())
        })?;
        let since = [Value::Integer(since.unwrap_or_default())];
        let until = Instant::now() + Duration::from_secs(COMPACTING_SECONDS);
        loop {
            let mut keeping = 0;
            self.run(KEEPING, since.iter(), &mut |row| {
                keeping = row.integer(0)?;
                Ok(())
            })?;
            if keeping == 0 {
                break;
            }
            if Instant::now() >= until {
                return Ok(Compaction::InUse);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.batch("SET statement_timeout = 0; SET lock_timeout = '60s'")?;
        let mut compaction = Compaction::Done;
        let mut left = Ok(());
        for table in tables {
            let before = self.file_of(table)?;
            let vacuum = format!("VACUUM FULL {table}");
            let vacuum = self.driver.execute(sqlx::raw_sql(text(&vacuum)));
            let done = self.reactor.wait(migration_deadline(), vacuum);
            match self.checked(done) {
                Err(error) if error.is_busy() => compaction = Compaction::InUse,
                done => {
                    done?;
                    // What PostgreSQL will not rewrite, it skips with a warning.
                    if self.file_of(table)? == before {
                        left = Err(StoreError::NotRewritten(table));
                    }
                }
            }
        }
        self.batch(SESSION)?;
        left.map(|()| compaction)
    }

    /// Refuses a database that cannot hold every text.
    pub(crate) fn check_encoding(&mut self) -> Result<(), StoreError> {
        let mut encoding = String::new();
        self.run(ENCODING, [].iter(), &mut |row| {
            encoding = row.text(0)?;
            Ok(())
        })?;
        match &*encoding {
            "UTF8" => Ok(()),
            _ => Err(StoreError::Encoding(encoding)),
        }
    }

    /// Refuses a pooler that keeps no sessions: another connection is then answered by the process
    /// that answered this one.
    pub(crate) fn check_session(&mut self) -> Result<(), StoreError> {
        let mut other = Self::open(&self.options)?;
        let own = self.process()?;
        other.begin_write(&Deadline::after(Duration::from_secs(CONNECTING_SECONDS)))?;
        let of_other = other.process()?;
        let again = self.process()?;
        other.end("ROLLBACK")?;
        if own == of_other || own != again {
            return Err(StoreError::Pooler);
        }
        Ok(())
    }

    fn process(&mut self) -> Result<i64, StoreError> {
        let mut process = 0;
        self.run(PROCESS, [].iter(), &mut |row| {
            process = row.integer(0)?;
            Ok(())
        })?;
        Ok(process)
    }

    /// Refuses a session that can only read.
    pub(crate) fn check_writing(&mut self) -> Result<(), StoreError> {
        self.check_encoding()?;
        let (mut can_write, mut is_standby) = (true, false);
        self.run(CAN_WRITE, [].iter(), &mut |row| {
            (can_write, is_standby) = (row.integer(0)? != 0, row.integer(1)? != 0);
            Ok(())
        })?;
        match (can_write, is_standby) {
            (true, _) => Ok(()),
            (false, true) => Err(StoreError::Standby),
            (false, false) => Err(StoreError::ReadOnly(None)),
        }
    }

    pub(crate) fn reopen(&mut self) -> Result<(), StoreError> {
        *self = Self::open(&self.options)?;
        Ok(())
    }

    pub(crate) const fn is_usable(&self) -> bool {
        self.usable
    }

    /// Sets the server's statement timeout, if it has become much shorter: the deadline covers all
    /// statements together.
    fn arm(&mut self) -> Result<(), StoreError> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        let left = left(&transaction.deadline)?;
        if left > transaction.statement_timeout / 2 {
            return Ok(());
        }
        transaction.statement_timeout = left;
        self.batch(&timeout(left))
    }

    /// Returns how long to wait for an answer.
    fn until(&self) -> Instant {
        match &self.transaction {
            Some(transaction) => transaction.deadline.instant(),
            None => Instant::now() + Duration::from_secs(ALONE_SECONDS),
        }
    }

    /// Marks the connection as unusable if there was no answer, because its state is then unknown,
    /// or if the server closes a connection after such an error.
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

/// The one place where a text becomes a statement. The texts are constants of the store and
/// combinations of them; values are always bound.
fn text(sql: &str) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

fn left(deadline: &Deadline) -> Result<Duration, StoreError> {
    deadline.check()?;
    let left = deadline.remaining().filter(|left| left.as_millis() > 0);
    left.ok_or(StoreError::Deadline)
}

fn timeout(left: Duration) -> String {
    format!("SET LOCAL statement_timeout = {}", left.as_millis())
}

impl fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresConnection")
    }
}
