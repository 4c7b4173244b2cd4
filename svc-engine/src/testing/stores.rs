use std::time::Duration;

use svc_model::id::OrgId;
use tempfile::TempDir;

use super::postgres;
use crate::deadline::Deadline;
use crate::store::{
    Append, DatabaseUrl, Ledger, Outcome, Snapshot, Store, StoreConfig, StoreError,
};

/// A database that the store runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A SQLite file.
    Sqlite,
    /// A database of the PostgreSQL cluster of the run.
    Postgres,
}

/// A database of its own, empty at first, gone at the end.
#[derive(Debug)]
pub struct TestStore {
    url: DatabaseUrl,
    folder: TempDir,
    _database: Option<postgres::Database<'static>>,
}

impl TestStore {
    /// Makes an empty database; nothing when the backend is skipped in this run.
    pub fn create(backend: Backend) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let (url, database) = match backend {
            Backend::Sqlite => (DatabaseUrl::sqlite(&folder.path().join("svc.db")), None),
            Backend::Postgres => {
                let database = postgres::shared()?.create_database();
                (
                    DatabaseUrl::parse(&database.url()).expect("a URL"),
                    Some(database),
                )
            }
        };
        Some(Self {
            url,
            folder,
            _database: database,
        })
    }

    /// Returns where it is.
    pub fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Returns a folder that is gone at the end.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Opens the store of an organization on it.
    pub fn open(&self, org_id: &str) -> Store {
        self.try_open(org_id).expect("a store")
    }

    /// Opens the store of an organization on it.
    ///
    /// # Errors
    ///
    /// See [`Store::open`].
    pub fn try_open(&self, org_id: &str) -> Result<Store, StoreError> {
        Store::open(&StoreConfig {
            url: self.url.clone(),
            org_id: OrgId::new(org_id).expect("an organization"),
            migrate: true,
            readers: 4,
        })
    }

    /// Returns the rows of a selection of texts.
    pub fn rows(&self, sql: &str, columns: usize) -> Vec<Vec<String>> {
        crate::store::text_rows(&self.url, sql, columns).expect("rows")
    }

    /// Opens the ledger of an organization on it.
    pub fn ledger(&self, org_id: &str) -> Ledger {
        Ledger::open(&self.url, OrgId::new(org_id).expect("an organization")).expect("a ledger")
    }
}

impl Store {
    /// Appends facts and waits, from a thread without a runtime.
    pub fn append_now(&self, facts: Vec<Append>) -> Result<Vec<Outcome>, StoreError> {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(self.append(facts))
    }

    /// Opens a snapshot with time enough for any test.
    pub fn snapshot_now(&self) -> Snapshot<'_> {
        self.snapshot(&Deadline::after(Duration::from_mins(1)))
            .expect("a snapshot")
    }
}
