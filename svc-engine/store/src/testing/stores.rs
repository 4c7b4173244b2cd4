use std::time::Duration;

use svc_engine_fact::clock::Clock;
use svc_engine_fact::deadline::Deadline;
use svc_model::id::OrgId;
use tempfile::TempDir;

use super::{plan_check, postgres};
use crate::{
    DatabaseUrl, Delivery, Ledger, NewPriceTable, Outcome, PriceLoad, Snapshot, Store, StoreConfig,
    StoreError,
};

/// A database that the store runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A SQLite file.
    Sqlite,
    /// A database in the PostgreSQL cluster of this run.
    Postgres,
}

/// Creates a database in the cluster of this run that has the schema, and no facts. `None` if
/// PostgreSQL is skipped in this run.
pub fn postgres_with_schema() -> Option<postgres::Database<'static>> {
    let upgrade = |url: &str| {
        let url = DatabaseUrl::parse(url).expect("a URL");
        crate::upgrade(&url).expect("the schema");
    };
    let schema = super::schema_digest();
    Some(postgres::shared()?.create_filled_database(schema, upgrade))
}

/// A database of its own, without facts at first, and removed on drop.
#[derive(Debug)]
pub struct TestStore {
    url: DatabaseUrl,
    folder: TempDir,
    database: Option<postgres::Database<'static>>,
}

impl TestStore {
    /// Creates a database to open stores in, or returns `None` if the backend is skipped in this
    /// run.
    pub fn create(backend: Backend) -> Option<Self> {
        Some(match backend {
            Backend::Sqlite => Self::of(None),
            Backend::Postgres => Self::of(Some(postgres_with_schema()?)),
        })
    }

    /// Creates an empty database, or returns `None` if the backend is skipped in this run.
    pub fn create_empty(backend: Backend) -> Option<Self> {
        Some(match backend {
            Backend::Sqlite => Self::of(None),
            Backend::Postgres => Self::of(Some(postgres::shared()?.create_database())),
        })
    }

    fn of(database: Option<postgres::Database<'static>>) -> Self {
        plan_check::start();
        let folder = tempfile::tempdir().expect("a folder");
        let url = match &database {
            None => DatabaseUrl::sqlite(&folder.path().join("svc.db")),
            Some(database) => DatabaseUrl::parse(&database.url()).expect("a URL"),
        };
        Self {
            url,
            folder,
            database,
        }
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Returns the URL for a role that may read and change every row and owns no table of the
    /// PostgreSQL database.
    pub fn url_of_role_that_owns_nothing(&self) -> DatabaseUrl {
        let database = self.database.as_ref().expect("PostgreSQL");
        let url = database.url_of_role_that_owns_nothing();
        DatabaseUrl::parse(&url).expect("a URL")
    }

    /// Creates the PostgreSQL database anew, in this encoding, and returns its URL.
    pub fn url_in_encoding(&self, encoding: &str) -> DatabaseUrl {
        let database = self.database.as_ref().expect("PostgreSQL");
        database.create_again_in(encoding);
        self.url.clone()
    }

    /// Returns a folder that is removed on drop.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Opens an organization's store in the database. It keeps the times of facts as they are
    /// given.
    pub fn open(&self, org_id: &str) -> Store {
        self.try_open(org_id).expect("a store")
    }

    /// Opens an organization's store in the database. It keeps the times of facts as they are
    /// given.
    ///
    /// # Errors
    ///
    /// See [`Store::open`].
    pub fn try_open(&self, org_id: &str) -> Result<Store, StoreError> {
        Store::open_with_given_moments(&self.config(org_id))
    }

    /// Opens an organization's store in the database. It stamps facts as a server does.
    pub fn open_stamping(&self, org_id: &str) -> Store {
        Store::open(&self.config(org_id)).expect("a store")
    }

    /// Opens an organization's store in the database, by this clock. It stamps facts as a server
    /// does.
    pub fn open_by(&self, org_id: &str, clock: &Clock) -> Store {
        Store::open_by(&self.config(org_id), clock).expect("a store")
    }

    fn config(&self, org_id: &str) -> StoreConfig {
        StoreConfig {
            url: self.url.clone(),
            org_id: OrgId::new(org_id).expect("an organization"),
            migrate: true,
            readers: 4,
        }
    }

    /// Returns the rows of a query for texts.
    pub fn rows(&self, sql: &str, columns: usize) -> Vec<Vec<String>> {
        super::sql::text_rows(&self.url, sql, columns).expect("rows")
    }

    /// Returns a SQL expression for the bytes of a column, as a text of hexadecimal digits.
    pub fn hexadecimal(&self, column: &str) -> String {
        match &self.database {
            None => format!("LOWER(HEX({column}))"),
            Some(_) => format!("ENCODE({column}, 'hex')"),
        }
    }

    /// Copies the database as it is now, replacing an earlier copy.
    pub fn back_up(&self) {
        if let Some(database) = &self.database {
            database.back_up();
            return;
        }
        let copy = self.copy();
        if copy.exists() {
            std::fs::remove_file(&copy).expect("the earlier copy is removed");
        }
        self.run(&format!("VACUUM INTO '{}'", copy.display()));
    }

    /// Resets the database to the copy, while others may be using it.
    pub fn restore(&self) {
        if let Some(database) = &self.database {
            database.restore();
            return;
        }
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table'
            AND name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\'";
        let replace = |table: String| {
            format!(
                "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM copy.{table};"
            )
        };
        let replaced: String = self
            .rows(tables, 1)
            .concat()
            .into_iter()
            .map(replace)
            .collect();
        let copy = self.copy();
        self.run(&format!(
            "ATTACH '{}' AS copy; BEGIN IMMEDIATE; {replaced} COMMIT; DETACH copy;",
            copy.display()
        ));
    }

    fn copy(&self) -> std::path::PathBuf {
        self.folder.path().join("copy.db")
    }

    fn run(&self, sql: &str) {
        super::run_sql(&self.url, sql).expect("it runs");
    }

    /// Ends every connection to the PostgreSQL database.
    pub fn end_connections(&self) {
        if let Some(database) = &self.database {
            database.refuse_connections();
            database.accept_connections();
        }
    }

    /// Runs something while PostgreSQL accepts no connections to the database.
    pub fn while_refusing<T>(&self, run: impl FnOnce() -> T) -> T {
        let database = self.database.as_ref().expect("PostgreSQL");
        database.refuse_connections();
        let result = run();
        database.accept_connections();
        result
    }

    /// Changes rows behind the back of every store. Returns how many.
    pub fn change(&self, sql: &str) -> u64 {
        super::change_rows(&self.url, sql).expect("changed rows")
    }

    /// Opens an organization's ledger in the database.
    pub fn ledger(&self, org_id: &str) -> Ledger {
        Ledger::open(&self.url, OrgId::new(org_id).expect("an organization")).expect("a ledger")
    }
}

impl Store {
    /// Appends a delivery and waits for it, from a thread without a runtime.
    pub fn append_now(&self, delivery: impl Into<Delivery>) -> Result<Vec<Outcome>, StoreError> {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(self.append(delivery))
    }

    /// Stores a price table, and waits for it.
    pub fn load_price_table_now(&self, table: NewPriceTable) -> Result<PriceLoad, StoreError> {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(self.load_price_table(table))
    }

    /// Opens a snapshot with enough time for any test.
    pub fn snapshot_now(&self) -> Snapshot<'_> {
        self.snapshot(&Deadline::after(Duration::from_mins(1)))
            .expect("a snapshot")
    }

    /// Opens a snapshot over two connections, with enough time for any test.
    pub fn snapshot_of_two_now(&self) -> Snapshot<'_> {
        self.snapshot_of_two(&Deadline::after(Duration::from_mins(1)))
            .expect("a snapshot")
    }
}
