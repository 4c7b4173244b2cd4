use std::fmt;
use std::path::{Path, PathBuf};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::error::StoreError;

/// Where the facts are: `sqlite://path` or `postgres://…`. A password in the URL is never shown.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server and database.
    Postgres(Box<PgConnectOptions>),
}

/// Why a text is not a database URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// It has another scheme, or cannot be read.
    #[error("must be sqlite://PATH or postgres://USER@HOST/DATABASE")]
    Malformed,
    /// It names a database in memory.
    #[error(
        "must name a file, sqlite://PATH: a database in memory ends with the process, and what is \
         acknowledged must be on disk"
    )]
    InMemory,
    /// It names several hosts.
    #[error("must name one host: several are not tried in turn, so name the primary")]
    SeveralHosts,
    /// It has a parameter that would be ignored.
    #[error("must have no parameter {0}: {1}")]
    Parameter(String, &'static str),
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

/// Parameters of libpq that change nothing here: the service has time limits of its own, looks
/// itself whether a server can be written, and sends UTF-8. They are not passed on.
const IGNORED: [&str; 13] = [
    "client_encoding",
    "connect_timeout",
    "fallback_application_name",
    "gssdelegation",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "sslcompression",
    "sslsni",
    "tcp_user_timeout",
];

/// Parameters of libpq with the values that change nothing here, and what to do about others.
const VALUES: [(&str, &[&str], &str); 4] = [
    (
        "channel_binding",
        &["prefer", "disable"],
        "channels are not bound here; sslmode=verify-full tells that the server is the right one",
    ),
    (
        "gssencmode",
        &["prefer", "disable"],
        "GSSAPI is not spoken here; encrypt with sslmode",
    ),
    (
        "sslnegotiation",
        &["postgres"],
        "only the usual negotiation of TLS is spoken here",
    ),
    (
        "target_session_attrs",
        &["any", "read-write", "primary"],
        "the service needs a server that it can write to",
    ),
];

/// What to do about a parameter that is not known.
const UNKNOWN: &str = "it is not known, so it would be ignored; remove it, or correct its name";

/// Reads a parameter. Returns whether the driver gets it.
fn is_passed_on(name: &str, value: &str) -> Result<bool, DatabaseUrlError> {
    if PARAMETERS.contains(&name) || name.starts_with("options[") || name.starts_with("options%5B")
    {
        return Ok(true);
    }
    if IGNORED.contains(&name) {
        return Ok(false);
    }
    let known = VALUES.iter().find(|(known, ..)| *known == name);
    match known {
        Some((_, harmless, _)) if harmless.contains(&value) => Ok(false),
        Some((_, _, instead)) => Err(DatabaseUrlError::Parameter(
            format!("{name}={}", word(value)),
            instead,
        )),
        None => Err(DatabaseUrlError::Parameter(word(name), UNKNOWN)),
    }
}

/// Returns a word of a URL, unless it may be a part of a secret.
fn word(text: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    if !text.is_empty() && text.len() <= 32 && text.bytes().all(is_word) {
        text.to_owned()
    } else {
        "(one that is not shown)".to_owned()
    }
}

/// Returns the URL that the driver reads: without what changes nothing, and with the user as a
/// parameter if there is no host beside it, which a URL of other schemes could not have.
fn for_driver(text: &str) -> Result<String, DatabaseUrlError> {
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    if query.contains('@') {
        // It belongs to a password that is not percent-encoded.
        return Err(DatabaseUrlError::Malformed);
    }
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut kept = Vec::new();
    for (name, value) in parameters(text) {
        if matches!(name, "host" | "hostaddr" | "port") && value.contains(',') {
            return Err(DatabaseUrlError::SeveralHosts);
        }
        if is_passed_on(name, value)? {
            kept.push(format!("{name}={value}"));
        }
    }
    if host.contains(',') {
        return Err(DatabaseUrlError::SeveralHosts);
    }
    let mut authority = authority;
    if host.is_empty() && !user.is_empty() {
        authority = "";
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        for (name, value) in [("user", user), ("password", password)] {
            if !value.is_empty() {
                // Unlike in a user's name, a plus means a blank here.
                kept.push(format!("{name}={}", value.replace('+', "%2B")));
            }
        }
    }
    let query = if kept.is_empty() { "" } else { "?" };
    Ok(format!(
        "{scheme}://{authority}{path}{query}{}",
        kept.join("&")
    ))
}

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
            if path == ":memory:" || parameters.contains("mode=memory") {
                return Err(DatabaseUrlError::InMemory);
            }
            if path.is_empty() {
                return Err(DatabaseUrlError::Malformed);
            }
            if !parameters.is_empty() {
                let (name, _) = parameters.split_once('=').unwrap_or((parameters, ""));
                let none = "the URL of a file has none";
                return Err(DatabaseUrlError::Parameter(word(name), none));
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            // The driver logs what it ignores, with its value.
            let options = for_driver(text)?.parse::<PgConnectOptions>();
            let options = options.map_err(|_| DatabaseUrlError::Malformed)?;
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
    fn a_parameter_that_would_be_ignored_is_refused_by_its_name() {
        for (text, named) in [
            (
                "postgres://svc@db.internal/svc?sslmod=verify-full",
                "sslmod",
            ),
            (
                "postgres://svc@db.internal/svc?sslmode=require&channel_binding=require",
                "channel_binding=require",
            ),
            (
                "postgres://svc@db.internal/svc?target_session_attrs=standby",
                "target_session_attrs=standby",
            ),
            ("postgres:///svc?hunter2=3", "(one that is not shown)"),
            ("sqlite:///var/lib/svc.db?mode=ro", "mode"),
        ] {
            let refused = DatabaseUrl::parse(text).unwrap_err();
            let DatabaseUrlError::Parameter(name, _) = &refused else {
                panic!("{text}: {refused:?}");
            };
            assert_eq!(name, named, "{text}");
        }
        for text in [
            "postgres://svc@db.internal/svc?options[search_path]=svc&sslmode=require",
            "postgres://svc@db.internal/svc?sslmode=require&channel_binding=prefer&connect_timeout=3\
             &application_name=x&gssencmode=disable&target_session_attrs=read-write",
            "postgres:///svc?host=/run/postgresql&user=svc",
            "sqlite:///var/lib/svc.db",
        ] {
            assert!(DatabaseUrl::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_user_may_stand_before_the_folder_of_a_socket() {
        for text in [
            "postgres://u%40x:p%3Aw+d@/db?host=/tmp",
            "postgres:///db?host=/tmp&user=u%40x&password=p%3Aw%2Bd",
        ] {
            let DatabaseUrl::Postgres(options) = DatabaseUrl::parse(text).unwrap() else {
                panic!("{text}");
            };
            assert_eq!(options.get_username(), "u@x");
            assert_eq!(options.get_database(), Some("db"));
            assert_eq!(options.get_socket().unwrap(), Path::new("/tmp"));
            assert!(format!("{options:?}").contains("p:w+d"), "{text}");
        }
    }

    #[test]
    fn several_hosts_and_a_database_in_memory_are_refused() {
        for text in [
            "postgres://u@h1,h2/db",
            "postgres://u@h1:5432,h2:5433/db",
            "postgres:///db?host=h1,h2",
        ] {
            let refused = DatabaseUrl::parse(text).unwrap_err();
            assert_eq!(refused, DatabaseUrlError::SeveralHosts, "{text}");
        }
        for text in [
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite://x?mode=memory&cache=shared",
        ] {
            let refused = DatabaseUrl::parse(text).unwrap_err();
            assert_eq!(refused, DatabaseUrlError::InMemory, "{text}");
        }
        // The rest of a password.
        let refused = DatabaseUrl::parse("postgres://u:p?secret@h/db").unwrap_err();
        assert_eq!(refused, DatabaseUrlError::Malformed);
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = DatabaseUrl::parse("postgres://svc:hunter2@db.internal/svc").unwrap();
        assert_eq!(format!("{url:?}"), "postgres://[REDACTED]");
        assert_eq!(url.shown(), "postgres://svc@db.internal:5432/svc");
    }
}
