//! PostgreSQL: any number of server processes over one database.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::ToSql;
use postgres::{Client, Statement};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::StoreError;
use super::connection::{EachRow, Insert, Lookup};
use super::value::{Row, Value};

/// Rows of one insertion, keys of one look-up. Fewer are sent as powers of two, so that a handful
/// of statements stays prepared.
const ROWS_MAX: usize = 64;

pub(super) struct PostgresConnection {
    config: postgres::Config,
    client: Client,
    statements: HashMap<String, Statement>,
    usable: bool,
}

impl PostgresConnection {
    pub(super) fn open(config: &postgres::Config) -> Result<Self, StoreError> {
        let mut config = config.clone();
        config.application_name("svc");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        // A server that went away without a word must not hold the writer up for long.
        config.tcp_user_timeout(Duration::from_secs(30));
        let client = if config.get_ssl_mode() == postgres::config::SslMode::Disable {
            config.connect(postgres::NoTls)?
        } else {
            config.connect(tls()?)?
        };
        let mut connection = Self {
            config,
            client,
            statements: HashMap::new(),
            usable: true,
        };
        // Every statement looks up by index. A plan that was made while a table was empty would scan
        // it, making a plan for each list of keys costs more than the look-up, and compiling one more
        // than running it.
        connection.batch(
            "SET synchronous_commit = on;
             SET lock_timeout = '5s';
             SET statement_timeout = '30s';
             SET idle_in_transaction_session_timeout = '60s';
             SET client_min_messages = warning;
             SET TIME ZONE 'UTC';
             SET plan_cache_mode = force_generic_plan;
             SET enable_seqscan = off;
             SET jit = off;",
        )?;
        Ok(connection)
    }

    pub(super) fn begin_read(&mut self, deadline: Instant) -> Result<(), StoreError> {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .as_millis();
        if left == 0 {
            return Err(StoreError::Deadline);
        }
        self.batch(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {left}"
        ))
    }

    pub(super) fn end_read(&mut self) -> Result<(), StoreError> {
        self.batch("COMMIT")
    }

    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        let result = self.client.batch_execute(sql);
        self.checked(result)
    }

    #[cfg(test)]
    pub(super) fn prepare(&mut self, sql: &str) -> Result<(), StoreError> {
        self.prepared(sql).map(drop)
    }

    pub(super) fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let statement = self.prepared(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let result = self.client.execute(&statement, &values);
        self.checked(result)
    }

    pub(super) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.each_row(sql, values.iter(), each)
    }

    fn each_row<'v>(
        &mut self,
        sql: &str,
        values: impl ExactSizeIterator<Item = &'v Value<'v>>,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let statement = self.prepared(sql)?;
        let parameters = values.map(|value| value as &dyn ToSql);
        let failed = match self.client.query_raw(&statement, parameters) {
            Ok(mut rows) => loop {
                match rows.next() {
                    Ok(Some(row)) => each(&Row::Postgres(&row))?,
                    Ok(None) => return Ok(()),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        self.checked(Err(failed))
    }

    pub(super) fn insert<'v>(
        &mut self,
        insert: &Insert,
        rows: impl Iterator<Item = &'v [Value<'v>]>,
    ) -> Result<Vec<Option<i64>>, StoreError> {
        let rows: Vec<&[Value<'_>]> = rows.collect();
        let mut inserted: HashMap<Vec<u8>, i64> = HashMap::new();
        let mut rest = rows.as_slice();
        while let Some(first) = rest.first() {
            let (chunk, after) = rest.split_at(power_of_two_within(rest.len()));
            let is_text = first[insert.unique].is_text();
            let text = format!(
                "{} RETURNING {}",
                insert.text(chunk.len()),
                insert.returning
            );
            let values: Vec<&Value<'_>> = chunk.iter().copied().flatten().collect();
            self.each_row(&text, values.into_iter(), &mut |row| {
                let unique = if is_text {
                    row.text(1)?.into_bytes()
                } else {
                    row.blob(1)?
                };
                inserted.insert(unique, row.integer(0)?);
                Ok(())
            })?;
            rest = after;
        }
        // Of two equal rows the first was inserted.
        let unique = |row: &&[Value<'_>]| inserted.remove(row[insert.unique].as_bytes());
        Ok(rows.iter().map(unique).collect())
    }

    pub(super) fn lookup(
        &mut self,
        lookup: &Lookup<'_>,
        shared: &[Value<'_>],
        keys: &[Value<'_>],
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let mut rest = keys;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(power_of_two_within(rest.len()));
            let text = lookup.text(shared.len(), chunk.len());
            self.each(&text, &[shared, chunk].concat(), each)?;
            rest = after;
        }
        Ok(())
    }

    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        *self = Self::open(&self.config)?;
        Ok(())
    }

    pub(super) fn is_usable(&self) -> bool {
        self.usable && !self.client.is_closed()
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let result = self.client.prepare(sql);
        let statement = self.checked(result)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn checked<T>(&mut self, result: Result<T, postgres::Error>) -> Result<T, StoreError> {
        result.map_err(|error| {
            // Without a code of the server the connection itself failed.
            self.usable &= error.code().is_some();
            StoreError::from(error)
        })
    }
}

fn power_of_two_within(count: usize) -> usize {
    match count.min(ROWS_MAX) {
        0 => 1,
        count => 1 << count.ilog2(),
    }
}

fn tls() -> Result<MakeRustlsConnect, StoreError> {
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(StoreError::Tls)?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresConnection")
    }
}
