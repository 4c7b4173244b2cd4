use std::fmt;
use std::path::{Path, PathBuf};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::StoreError;

/// Where the facts are: `sqlite://path` or `postgres://…`. A password in the URL is never shown.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database.
    Postgres(Box<PgConnectOptions>),
}

/// Why a text is not a database URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// It has another scheme, or cannot be read.
    #[error("must be sqlite://PATH or postgres://USER@HOST/DATABASE")]
    Malformed,
    /// It has a parameter that would be ignored.
    #[error(
        "must have no parameter that is not known: none for SQLite, those of libpq such as sslmode \
         and sslrootcert for PostgreSQL"
    )]
    UnknownParameter,
}

/// The parameters that the PostgreSQL driver reads. It ignores all others, even a misspelled
/// `sslmode`.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

impl DatabaseUrl {
    /// Returns whether there is anything to connect to. A PostgreSQL database always counts.
    ///
    /// # Errors
    ///
    /// If this user cannot tell, because a folder of a SQLite file is closed to it.
    pub fn is_there(&self) -> Result<bool, StoreError> {
        match self {
            // What cannot be seen is not absent.
            Self::Sqlite(path) => Ok(path.try_exists()?),
            Self::Postgres(_) => Ok(true),
        }
    }

    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// If the URL has another scheme or cannot be read. The error does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, DatabaseUrlError> {
        let text = text.trim_end_matches(['\r', '\n']);
        if let Some(path) = text
            .strip_prefix("sqlite://")
            .or_else(|| text.strip_prefix("sqlite:"))
        {
            let (path, parameters) = path.split_once('?').unwrap_or((path, ""));
            if path.is_empty() {
                return Err(DatabaseUrlError::Malformed);
            }
            if !parameters.is_empty() {
                return Err(DatabaseUrlError::UnknownParameter);
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            if parameters(text).any(|(name, _)| !is_known(name)) {
                return Err(DatabaseUrlError::UnknownParameter);
            }
            // The driver logs what it ignores, with its value.
            let options: PgConnectOptions =
                text.parse().map_err(|_| DatabaseUrlError::Malformed)?;
            let options = match options.get_ssl_mode() {
                // Without a setting, the network is not trusted.
                PgSslMode::Prefer if !sets_ssl_mode(text) && !is_local(&options) => {
                    options.ssl_mode(PgSslMode::Require)
                }
                _ => options,
            };
            return Ok(Self::Postgres(Box::new(options)));
        }
        Err(DatabaseUrlError::Malformed)
    }

    /// Returns the URL of a SQLite file.
    pub fn sqlite(path: &Path) -> Self {
        Self::Sqlite(path.to_owned())
    }

    /// Returns the URL for a person to read: without the password and the other connection options.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(options) => format!(
                "postgres://{}@{}:{}/{}",
                options.get_username(),
                options.get_host(),
                options.get_port(),
                options.get_database().unwrap_or_default()
            ),
        }
    }

    /// Returns the name of the backend.
    pub const fn backend(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

/// Returns the parameters of a URL, as they are written.
fn parameters(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let (_, query) = text.split_once('?').unwrap_or_default();
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn is_known(name: &str) -> bool {
    PARAMETERS.contains(&name) || name.starts_with("options[") || name.starts_with("options%5B")
}

fn sets_ssl_mode(text: &str) -> bool {
    parameters(text).any(|(name, _)| matches!(name, "sslmode" | "ssl-mode"))
}

/// Returns whether data sent to the server stays on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(_) => f.write_str("postgres://[REDACTED]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssl_mode(text: &str) -> PgSslMode {
        match DatabaseUrl::parse(text).unwrap() {
            DatabaseUrl::Postgres(options) => options.get_ssl_mode(),
            DatabaseUrl::Sqlite(_) => panic!("{text}"),
        }
    }

    #[test]
    fn a_remote_server_must_use_tls() {
        for here in [
            "localhost",
            "127.0.0.1",
            "127.0.0.9:5433",
            "[::1]",
            "%2Frun%2Fpostgresql",
        ] {
            let mode = ssl_mode(&format!("postgres://svc@{here}/svc"));
            assert!(matches!(mode, PgSslMode::Prefer), "{here}");
        }
        for there in [
            "db.internal",
            "10.0.0.1",
            "[2001:db8::1]:5432",
            "localhost.example",
        ] {
            let mode = ssl_mode(&format!("postgres://svc@{there}/svc"));
            assert!(matches!(mode, PgSslMode::Require), "{there}");
        }
        let mode = ssl_mode("postgres:///svc?host=/run/postgresql");
        assert!(matches!(mode, PgSslMode::Prefer));
    }

    #[test]
    fn the_url_may_choose_the_tls_mode() {
        let mode = |query: &str| ssl_mode(&format!("postgres://svc@db.internal/svc?{query}"));
        assert!(matches!(mode("sslmode=disable"), PgSslMode::Disable));
        assert!(matches!(mode("sslmode=prefer"), PgSslMode::Prefer));
        assert!(matches!(
            mode("application_name=x&sslmode=verify-full&sslrootcert=/etc/ca.pem"),
            PgSslMode::VerifyFull
        ));
        let unknown = DatabaseUrl::parse("postgres://svc@db.internal/svc?sslmode=maybe");
        assert_eq!(unknown.unwrap_err(), DatabaseUrlError::Malformed);
    }

    #[test]
    fn a_parameter_that_would_be_ignored_is_refused() {
        for text in [
            "postgres://svc@db.internal/svc?sslmod=verify-full",
            "postgres://svc@db.internal/svc?sslmode=require&connect_timeout=3",
            "sqlite:///var/lib/svc.db?mode=ro",
        ] {
            let refused = DatabaseUrl::parse(text).unwrap_err();
            assert_eq!(refused, DatabaseUrlError::UnknownParameter, "{text}");
        }
        for text in [
            "postgres://svc@db.internal/svc?options[search_path]=svc&sslmode=require",
            "postgres:///svc?host=/run/postgresql&user=svc",
            "sqlite:///var/lib/svc.db",
        ] {
            assert!(DatabaseUrl::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = DatabaseUrl::parse("postgres://svc:hunter2@db.internal/svc").unwrap();
        assert_eq!(format!("{url:?}"), "postgres://[REDACTED]");
        assert_eq!(url.shown(), "postgres://svc@db.internal:5432/svc");
    }
}
