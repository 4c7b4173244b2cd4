use std::fmt;
use std::path::{Path, PathBuf};

/// Where the facts are: `sqlite://path` or `postgres://…`. A password in it is never shown.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database.
    Postgres(Box<postgres::Config>),
}

/// A text that is no database URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be sqlite://PATH or postgres://USER@HOST/DATABASE")]
pub struct DatabaseUrlError;

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// When it has another scheme or cannot be read. The text is not repeated.
    pub fn parse(text: &str) -> Result<Self, DatabaseUrlError> {
        let text = text.trim_end_matches(['\r', '\n']);
        if let Some(path) = text
            .strip_prefix("sqlite://")
            .or_else(|| text.strip_prefix("sqlite:"))
        {
            let path = path.split('?').next().unwrap_or_default();
            if path.is_empty() {
                return Err(DatabaseUrlError);
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let config = text.parse().map_err(|_| DatabaseUrlError)?;
            return Ok(Self::Postgres(Box::new(config)));
        }
        Err(DatabaseUrlError)
    }

    /// Returns the URL of a SQLite file.
    pub fn sqlite(path: &Path) -> Self {
        Self::Sqlite(path.to_owned())
    }

    /// Returns the name of the backend.
    pub const fn backend(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(_) => f.write_str("postgres://[REDACTED]"),
        }
    }
}
