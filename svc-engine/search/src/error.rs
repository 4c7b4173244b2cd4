//! Errors of the index.

use std::io;
use std::path::PathBuf;

use svc_engine_store::StoreError;

/// Why a folder or a file cannot hold the index.
#[derive(Debug, thiserror::Error)]
pub enum SearchPathError {
    /// Another server uses the file.
    #[error(
        "another server uses the search index {path}: give each server a file of its own with \
         SVC_SEARCH_PATH, or set it to off"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be locked.
    #[error("cannot lock the search index {path}")]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why the index cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file cannot be read or written.
    #[error("the search index cannot be used")]
    File(#[from] rusqlite::Error),
    /// The file cannot be made or removed.
    #[error("the file of the search index cannot be made or removed")]
    Io(#[from] io::Error),
    /// The facts cannot be read.
    #[error("the facts to search cannot be read")]
    Store(#[from] StoreError),
    /// The index has not been opened yet.
    #[error("the search index is not open yet")]
    Closed,
}

impl IndexError {
    /// Returns whether only a new file helps.
    pub(crate) fn is_damage(&self) -> bool {
        let Self::File(error) = self else {
            return false;
        };
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => matches!(
                failure.code,
                rusqlite::ErrorCode::DatabaseCorrupt
                    | rusqlite::ErrorCode::NotADatabase
                    | rusqlite::ErrorCode::Unknown
            ),
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..) => true,
            _ => false,
        }
    }
}
