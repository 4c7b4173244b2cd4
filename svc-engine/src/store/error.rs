use super::SchemaState;

/// Why the store gives no answer. Texts of drivers are kept as sources, for the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused a statement.
    #[error("SQLite")]
    Sqlite(#[source] rusqlite::Error),
    /// PostgreSQL refused a statement, or is out of reach.
    #[error("PostgreSQL")]
    Postgres(#[source] postgres::Error),
    /// The folder or file of the database cannot be used.
    #[error("the database file")]
    File(#[source] std::io::Error),
    /// TLS cannot be set up.
    #[error("TLS")]
    Tls(#[source] rustls::Error),
    /// The deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// The schema is not at head.
    #[error("the schema is {0}, this service needs its head revision")]
    Schema(SchemaState),
    /// A migration was changed after it had been applied.
    #[error("migration {0} was changed after it had been applied")]
    MigrationChanged(i64),
    /// A row cannot be read back as what it is.
    #[error("a row of {table} that cannot be read: {what}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// The writer has stopped.
    #[error("the writer has stopped")]
    Closed,
    /// The writer failed to store one delivery; the cause is in the log.
    #[error("the delivery was not stored")]
    NotStored,
}

impl StoreError {
    /// Returns whether the database gave one of several transactions up that waited for each other.
    /// The same again may succeed.
    pub(super) fn is_given_up(&self) -> bool {
        use postgres::error::SqlState;
        matches!(
            self,
            Self::Postgres(error) if matches!(
                error.code(),
                Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE)
            )
        )
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::Deadline,
            _ => Self::Sqlite(error),
        }
    }
}

impl From<postgres::Error> for StoreError {
    fn from(error: postgres::Error) -> Self {
        match error.code() {
            Some(&postgres::error::SqlState::QUERY_CANCELED) => Self::Deadline,
            _ => Self::Postgres(error),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

/// Returns the error of a row that cannot be read back.
pub(super) const fn corrupt(table: &'static str, what: &'static str) -> StoreError {
    StoreError::Corrupt { table, what }
}
