//! Generated secrets. A server on a SQLite file generates the secrets that are not set, once, and
//! keeps them in a private file beside its database. A shell can source that file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use svc_engine::clock::Ids;
use svc_engine::private;
use svc_engine::store::DatabaseUrl;
use svc_model::json::Json;

use crate::source::{Source, Strictness, data_folder};
use crate::{env, presence};

/// The name of the ingest client with a generated token.
const CLIENT: &str = "local";

/// The required secrets, each with the settings that provide it.
const NEEDED: [(&str, &[&str]); 3] = [
    (env::OPERATOR_TOKEN.name, &[env::OPERATOR_TOKEN.name]),
    (
        env::INGEST_TOKENS.name,
        &[env::INGEST_TOKENS.name, env::API_BEARER_TOKEN.name],
    ),
    (
        env::FORGE_WEBHOOK_SECRET.name,
        &[env::FORGE_WEBHOOK_SECRET.name],
    ),
];

/// The credentials that were generated on this machine.
#[derive(Clone, Debug)]
pub struct LocalCredentials {
    /// The operator's token.
    pub operator_token: SecretString,
    /// The ingest token of the client `local`.
    pub ingest_token: SecretString,
    /// The retrieval token, which is valid only if a Session is granted.
    pub retrieval_token: SecretString,
    /// The webhook secret.
    pub webhook_secret: SecretString,
    /// The private file that contains them.
    pub file: PathBuf,
}

/// The default address of a server.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

/// Returns the URL of the server on this machine that was started last for the configured store, if
/// it is running. Without a configured store, a server of any PostgreSQL database is found too.
pub fn running_here() -> Option<String> {
    let settings = settings();
    let running = presence::find(&database(&settings)?);
    running.or_else(|| elsewhere(&settings))
}

/// Returns the URL of the server of a PostgreSQL database, if no store is configured.
fn elsewhere(settings: &Source) -> Option<String> {
    let is_set = settings.is_given(env::DATABASE_URL.name);
    if is_set {
        None
    } else {
        presence::find_postgres()
    }
}

/// Returns the URL of the server on this machine: of the [running one](running_here), or else of
/// one started with these settings.
pub fn local_url() -> String {
    if let Some(running) = running_here() {
        return running;
    }
    let listen = settings().get(env::LISTEN.name).ok().flatten();
    let listen = listen.and_then(|text| env::LISTEN.parse(&text).ok());
    let listen = listen.filter(|address| address.port() != 0);
    presence::url(listen.unwrap_or(DEFAULT_LISTEN))
}

/// Returns the URL of the server on this machine, if a URL refers to it by its address or as
/// `localhost`. Requests are sent to the address, because another program may be listening under
/// the name.
pub fn as_local(url: &str) -> Option<String> {
    let local = local_url();
    is_same(url, &local).then_some(local)
}

fn is_same(url: &str, local: &str) -> bool {
    let url = url.trim().trim_end_matches('/');
    if url == local {
        return true;
    }
    let port = match url.strip_prefix("http://localhost") {
        Some("") => Some(80),
        Some(rest) => rest.strip_prefix(':').and_then(|port| port.parse().ok()),
        None => None,
    };
    let address = local
        .strip_prefix("http://")
        .and_then(|address| address.parse().ok());
    let is_named = |address: SocketAddr| address.ip().is_loopback() && Some(address.port()) == port;
    address.is_some_and(is_named)
}

/// Returns the database without any setting.
pub(crate) fn default_database() -> Option<DatabaseUrl> {
    Some(DatabaseUrl::Sqlite(data_folder()?.join("svc.db")))
}

/// Returns the database in these settings.
fn database(settings: &Source) -> Option<DatabaseUrl> {
    match settings.get(env::DATABASE_URL.name).ok().flatten() {
        None => default_database(),
        Some(url) => DatabaseUrl::parse(&url).ok(),
    }
}

/// Returns the settings of this process. Errors in them are left for the server to report.
fn settings() -> Source {
    Source::process(BTreeMap::new(), Strictness::Misspelled, &mut Vec::new())
}

/// Returns the credentials that were generated for the configured database, if any. They are not
/// those of a running server of another store.
pub fn local_credentials() -> Option<LocalCredentials> {
    let settings = settings();
    let url = database(&settings)?;
    let DatabaseUrl::Sqlite(database) = &url else {
        return None;
    };
    if presence::find(&url).is_none() && elsewhere(&settings).is_some() {
        return None;
    }
    let file = file_beside(database);
    let generated = parse(&fs::read_to_string(&file).ok()?);
    let secret = |name: &str| {
        generated
            .get(name)
            .map(|text| SecretString::from(text.as_str()))
    };
    let tokens = Json::parse(generated.get(env::INGEST_TOKENS.name)?.as_bytes()).ok()?;
    Some(LocalCredentials {
        operator_token: secret(env::OPERATOR_TOKEN.name)?,
        ingest_token: SecretString::from(tokens.as_object()?.get(CLIENT)?.as_str()?),
        retrieval_token: secret(env::RETRIEVAL_TOKEN.name)?,
        webhook_secret: secret(env::FORGE_WEBHOOK_SECRET.name)?,
        file,
    })
}

/// Provides generated secrets for those that are not set, if the database is a SQLite file. Returns
/// the file with the secrets, if one is used.
pub(crate) fn provide(source: &mut Source) -> Result<Option<PathBuf>, String> {
    let mut missing: Vec<&'static str> = NEEDED
        .into_iter()
        .filter(|(_, giving)| !giving.iter().any(|name| source.is_given(name)))
        .map(|(name, _)| name)
        .collect();
    let Ok(url) = source.get(env::DATABASE_URL.name) else {
        // An unreadable URL is reported elsewhere too.
        source.set_unprovided();
        return Ok(None);
    };
    let database = match url.as_deref().map(DatabaseUrl::parse) {
        None => data_folder().map(|folder| folder.join("svc.db")),
        Some(Ok(DatabaseUrl::Sqlite(path))) => Some(path),
        Some(Ok(DatabaseUrl::Postgres(_))) => None,
        // An invalid URL is reported elsewhere.
        Some(Err(_)) => {
            source.set_unprovided();
            None
        }
    };
    let Some(database) = database.filter(|_| !missing.is_empty()) else {
        return Ok(None);
    };
    let granted = source.is_given(env::RETRIEVAL_SESSION_ID.name)
        || source.is_given(env::RETRIEVAL_SESSION_IDS.name);
    if granted && !source.is_given(env::RETRIEVAL_TOKEN.name) {
        missing.push(env::RETRIEVAL_TOKEN.name);
    }
    let file = file_beside(&database);
    let generated = read_or_generate(&file)
        .map_err(|error| format!("{} cannot be used: {error}", file.display()))?;
    for name in missing {
        if let Some(value) = generated.get(name) {
            source.embed(name, value.clone());
        }
    }
    Ok(Some(file))
}

fn file_beside(database: &Path) -> PathBuf {
    database.with_extension("secrets.env")
}

fn read_or_generate(file: &Path) -> io::Result<BTreeMap<String, String>> {
    if !file.exists() {
        generate(file)?;
    }
    if fs::metadata(file)?.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "other users can read it; make it private with chmod 600",
        ));
    }
    Ok(parse(&fs::read_to_string(file)?))
}

fn generate(file: &Path) -> io::Result<()> {
    private::create_folder_of(file)?;
    let ids = Ids::random();
    // Two random UUIDs: 244 random bits in 64 hexadecimal digits.
    let token = || format!("{}{}", ids.fresh().simple(), ids.fresh().simple());
    let mut text = String::from(
        "# Generated by svc. Private: anyone who can read this file can read all evidence.\n",
    );
    for (name, value) in [
        (env::OPERATOR_TOKEN.name, token()),
        (
            env::INGEST_TOKENS.name,
            format!("{{\"{CLIENT}\":\"{}\"}}", token()),
        ),
        (env::FORGE_WEBHOOK_SECRET.name, token()),
        (env::RETRIEVAL_TOKEN.name, token()),
    ] {
        writeln!(text, "{name}={}", quoted(&value)).map_err(io::Error::other)?;
    }
    // Written to a temporary file and linked into place, so that another server that starts at the
    // same moment sees either the complete file or none. The second server uses the secrets of the
    // first.
    let aside = file.with_extension(format!("{}.tmp", ids.fresh().simple()));
    private::write_new(&aside, text.as_bytes())?;
    let linked = match fs::hard_link(&aside, file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    };
    // Removed after an error too, or each start would leave another file.
    let removed = fs::remove_file(&aside);
    linked.and(removed)
}

/// Returns a value quoted for a shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Returns the value in a line. A person may have written it without quotes, or with different
/// ones.
fn unquoted(value: &str) -> String {
    let between = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    match (between('\''), between('"')) {
        (Some(value), _) => value.replace(r"'\''", "'"),
        (None, other) => other.unwrap_or(value).to_owned(),
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .map(|line| line.trim().trim_start_matches("export "))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_this_machine_is_known_by_its_address_and_as_localhost() {
        let local = "http://127.0.0.1:8301";
        for same in [local, " http://127.0.0.1:8301/ ", "http://localhost:8301"] {
            assert!(is_same(same, local), "{same}");
        }
        for other in [
            "http://localhost:8302",
            "http://localhost",
            "https://localhost:8301",
            "http://localhost:8301/prefix",
            "http://localhost.example:8301",
            "http://[::1]:8301",
        ] {
            assert!(!is_same(other, local), "{other}");
        }
        assert!(is_same("http://localhost", "http://127.0.0.1:80"));
        assert!(!is_same("http://localhost:80", "http://10.0.0.1:80"));
    }

    #[test]
    fn secrets_are_generated_once_into_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/svc.secrets.env");
        let first = read_or_generate(&file).unwrap();
        assert_eq!(read_or_generate(&file).unwrap(), first);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(first["SVC_OPERATOR_TOKEN"].len(), 64);
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left"
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            read_or_generate(&file).is_err(),
            "a file that others can read is refused"
        );
    }

    #[test]
    fn a_shell_reads_the_same_values() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("svc.secrets.env");
        let generated = read_or_generate(&file).unwrap();
        assert_eq!(generated.len(), 4);
        for (name, value) in &generated {
            let script = format!(". {}; printf %s \"${name}\"", file.display());
            let shell = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert_eq!(&String::from_utf8(shell.stdout).unwrap(), value, "{name}");
        }
    }

    #[test]
    fn handwritten_lines_are_read() {
        let read = parse("# c\nA=x\nexport B = \"y z\"\nC='it'\\''s'\nD={\"a\":\"b\"}\n\nE");
        let expected = [
            ("A", "x"),
            ("B", "y z"),
            ("C", "it's"),
            ("D", r#"{"a":"b"}"#),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read, BTreeMap::from(expected));
        let odd = "a'b\"c";
        assert_eq!(parse(&format!("A={}", quoted(odd)))["A"], odd);
    }

    #[test]
    fn only_the_missing_secrets_are_generated() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("svc.db").display());
        let given = "given-given-given-given-given";
        let provided = |more: &[(&str, &str)]| {
            let mut source = Source::of(&[&[("SVC_DATABASE_URL", url.as_str())], more].concat());
            let file = provide(&mut source).unwrap();
            (file, source)
        };
        let (file, source) = provided(&[("SVC_OPERATOR_TOKEN", given)]);
        let get = |source: &Source, name| source.get(name).unwrap();
        assert_eq!(get(&source, "SVC_OPERATOR_TOKEN").as_deref(), Some(given));
        assert!(get(&source, "SVC_INGEST_TOKENS").is_some());
        let webhook = get(&source, "SVC_FORGE_WEBHOOK_SECRET").unwrap();
        assert_eq!(get(&source, "SVC_RETRIEVAL_TOKEN"), None);

        let (again, source) = provided(&[
            ("SVC_API_BEARER_TOKEN", given),
            ("SVC_RETRIEVAL_SESSION_ID", "s"),
        ]);
        assert_eq!(again, file);
        assert_eq!(get(&source, "SVC_FORGE_WEBHOOK_SECRET"), Some(webhook));
        assert_eq!(get(&source, "SVC_INGEST_TOKENS"), None, "there is one");
        assert!(get(&source, "SVC_RETRIEVAL_TOKEN").is_some());

        std::fs::remove_file(file.unwrap()).unwrap();
        let (none, source) = provided(&[
            ("SVC_OPERATOR_TOKEN", given),
            ("SVC_API_BEARER_TOKEN", given),
            ("SVC_FORGE_WEBHOOK_SECRET", given),
            ("SVC_RETRIEVAL_SESSION_ID", "s"),
        ]);
        assert_eq!(none, None, "everything that is needed is given");
        assert_eq!(get(&source, "SVC_RETRIEVAL_TOKEN"), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
