//! The settings of mirrors: the folder, the allowed hosts, the credentials, and the notes to read.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use secrecy::SecretString;
use svc_engine::mirror::{AllowedHosts, MirrorConfig, NotesRef, Remotes};
use svc_engine::private;
use svc_engine::store::DatabaseUrl;
use svc_model::json::Json;
use svc_model::repository::RepositoryHost;

use super::reader::Reader;
use crate::env;

/// Reads the settings, which are checked even if mirrors are disabled.
pub(super) fn read(
    reader: &mut Reader<'_>,
    database: Option<&DatabaseUrl>,
    dev_mode: bool,
    forge_host: Option<&RepositoryHost>,
) -> Option<MirrorConfig> {
    let listed = reader.parsed(
        env::ALLOWED_CLONE_HOSTS,
        "must be a JSON array of host names or addresses, without scheme and port",
        hosts,
    );
    let tokens = reader.parsed(
        env::FORGE_CLONE_TOKENS,
        "must be a JSON object of host to token, each host once",
        tokens,
    );
    let notes = reader.parsed(
        env::NOTES_REFS,
        "must be a JSON array of refs/notes/svc, refs/notes/ai or both",
        notes_refs,
    );
    let settle = reader.parsed(
        env::MIRROR_SETTLE_SECONDS,
        "must be a whole number from 0 to 3600",
        |text| text.parse().ok().filter(|seconds| *seconds <= 3_600),
    );
    let path = match reader.text(env::MIRROR_PATH) {
        Some(path) if path.trim().is_empty() => return None,
        Some(path) => PathBuf::from(path),
        None => beside(database?)?,
    };
    let path = std::path::absolute(path)
        .inspect_err(|_| reader.mistake(env::MIRROR_PATH, "must be a path"))
        .ok()?;
    // Otherwise every fetch would fail, and only the log would say why.
    if path.exists() && !path.is_dir() {
        reader.mistake(env::MIRROR_PATH, "must be a folder; it is a file");
    }
    let allowed = match listed {
        _ if dev_mode => AllowedHosts::Anything,
        None => AllowedHosts::Listed(vec![forge_host?.to_string()]),
        Some(hosts) if hosts.is_empty() => AllowedHosts::Public,
        Some(hosts) => AllowedHosts::Listed(hosts),
    };
    let remotes = Remotes::new(allowed, tokens.unwrap_or_default());
    let mut config = MirrorConfig::new(path, remotes);
    config.notes = notes.unwrap_or(config.notes);
    config.settle = settle.map_or(config.settle, Duration::from_secs);
    Some(config)
}

/// Returns the folder of the mirrors of a database if none is set: beside a SQLite file. Servers on
/// PostgreSQL may run on several machines, and only an operator knows a folder that they share.
pub fn beside(database: &DatabaseUrl) -> Option<PathBuf> {
    match database {
        DatabaseUrl::Sqlite(path) => Some(path.with_extension("mirrors")),
        DatabaseUrl::Postgres(_) => None,
    }
}

/// Creates the folder of the mirrors if it is absent, and checks that it is writable.
pub(super) fn check(folder: &Path) -> io::Result<()> {
    private::create_folder(folder)?;
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    Ok(rustix::fs::access(folder, needed)?)
}

fn hosts(text: &str) -> Option<Vec<String>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    items.iter().map(|item| host(item.as_str()?)).collect()
}

/// Returns a host in the form that clone URLs are compared with.
fn host(text: &str) -> Option<String> {
    let text = text.trim();
    match text.parse::<IpAddr>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => RepositoryHost::new(text).map(String::from),
    }
}

pub(super) fn tokens(text: &str) -> Option<BTreeMap<RepositoryHost, SecretString>> {
    let members = Json::parse(text.as_bytes()).ok()?.into_object()?;
    let token = |(host, token): (svc_model::json::Text, Json)| {
        let host = RepositoryHost::new(host.as_str()?.trim())?;
        let token = token.as_str()?.trim();
        // It becomes part of a header line.
        let plain = !token.is_empty() && token.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        plain.then(|| (host, SecretString::from(token)))
    };
    let mut tokens = BTreeMap::new();
    for member in members {
        let (host, token) = token(member)?;
        // Two spellings of a host would leave open which token is meant.
        if tokens.insert(host, token).is_some() {
            return None;
        }
    }
    Some(tokens)
}

fn notes_refs(text: &str) -> Option<Vec<NotesRef>> {
    let items = Json::parse(text.as_bytes()).ok()?.into_array()?;
    let mut refs = items
        .iter()
        .map(|item| NotesRef::from_name(item.as_str()?))
        .collect::<Option<Vec<NotesRef>>>()?;
    refs.sort();
    refs.dedup();
    (!refs.is_empty()).then_some(refs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn read_all(given: &[(&str, &str)]) -> Result<Option<MirrorConfig>, Vec<String>> {
        let source = Source::of(given);
        let mut reader = Reader::new(&source, Vec::new());
        let forge_host = RepositoryHost::new("git.example.test");
        let dev_mode = reader.boolean(env::DEV_MODE, false);
        let config = read(&mut reader, None, dev_mode, forge_host.as_ref());
        if reader.mistakes.is_empty() {
            Ok(config)
        } else {
            Err(reader.mistakes)
        }
    }

    fn allowed(more: &[(&str, &str)]) -> AllowedHosts {
        let given = [&[(env::MIRROR_PATH, "/m")], more].concat();
        read_all(&given).unwrap().unwrap().remotes.allowed().clone()
    }

    #[test]
    fn without_a_path_there_are_no_mirrors() {
        assert!(read_all(&[]).unwrap().is_none());
        assert!(read_all(&[(env::MIRROR_PATH, "")]).unwrap().is_none());
        let config = read_all(&[(env::MIRROR_PATH, "m")]).unwrap().unwrap();
        assert!(config.path.is_absolute());
        assert_eq!(config.notes, NotesRef::ALL);
    }

    #[test]
    fn mirrors_are_beside_a_sqlite_database_unless_they_are_elsewhere_or_off() {
        let of = |url: &str, given: &[(&str, &str)]| {
            let url = DatabaseUrl::parse(url).unwrap();
            let source = Source::of(given);
            let mut reader = Reader::new(&source, Vec::new());
            let config = read(&mut reader, Some(&url), true, None);
            config.map(|config| config.path.display().to_string())
        };
        let path = |path: &str| Some(path.to_owned());
        assert_eq!(of("sqlite:///d/svc.db", &[]), path("/d/svc.mirrors"));
        let elsewhere = [(env::MIRROR_PATH, "/m")];
        assert_eq!(of("sqlite:///d/svc.db", &elsewhere), path("/m"));
        for off in ["", " "] {
            assert_eq!(of("sqlite:///d/svc.db", &[(env::MIRROR_PATH, off)]), None);
        }
        let postgres = "postgres://svc@db/svc";
        assert_eq!(of(postgres, &[]), None);
        assert_eq!(of(postgres, &elsewhere), path("/m"));
    }

    #[test]
    fn mirrors_are_in_a_folder_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mistakes = read_all(&[(env::MIRROR_PATH, file.to_str().unwrap())]).unwrap_err();
        assert_eq!(mistakes, ["SVC_MIRROR_PATH must be a folder; it is a file"]);
        assert!(check(&file.join("below")).is_err());
        check(&folder.path().join("new/mirrors")).unwrap();
    }

    #[test]
    fn the_host_of_the_forge_is_allowed_by_default() {
        let listed = |hosts: &[&str]| {
            AllowedHosts::Listed(hosts.iter().map(|&host| host.to_owned()).collect())
        };
        assert_eq!(allowed(&[]), listed(&["git.example.test"]));
        let named = r#"["GitHub.com"," 127.0.0.1 ","::0001"]"#;
        assert_eq!(
            allowed(&[(env::ALLOWED_CLONE_HOSTS, named)]),
            listed(&["github.com", "127.0.0.1", "::1"])
        );
        let any = (env::ALLOWED_CLONE_HOSTS, "[]");
        assert_eq!(allowed(&[any]), AllowedHosts::Public);
        assert_eq!(
            allowed(&[any, (env::DEV_MODE, "true")]),
            AllowedHosts::Anything
        );
    }

    #[test]
    fn malformed_mirror_settings_are_named_even_without_mirrors() {
        for (name, wrong) in [
            (env::ALLOWED_CLONE_HOSTS, "github.com"),
            (env::ALLOWED_CLONE_HOSTS, r#"["https://github.com"]"#),
            (env::ALLOWED_CLONE_HOSTS, r#"["github.com:443"]"#),
            (env::ALLOWED_CLONE_HOSTS, r#"["*.github.com"]"#),
            (env::ALLOWED_CLONE_HOSTS, "[1]"),
            (env::FORGE_CLONE_TOKENS, "[]"),
            (env::FORGE_CLONE_TOKENS, r#"{"github.com":1}"#),
            (env::FORGE_CLONE_TOKENS, r#"{"github.com":" "}"#),
            (env::FORGE_CLONE_TOKENS, r#"{"github.com":"a\r\nb"}"#),
            (env::FORGE_CLONE_TOKENS, r#"{"https://github.com":"a"}"#),
            (
                env::FORGE_CLONE_TOKENS,
                r#"{"github.com":"a","GitHub.com":"b"}"#,
            ),
            (env::NOTES_REFS, "[]"),
            (env::NOTES_REFS, r#"["refs/notes/commits"]"#),
            (env::NOTES_REFS, "refs/notes/svc"),
            (env::MIRROR_SETTLE_SECONDS, "-1"),
            (env::MIRROR_SETTLE_SECONDS, "3601"),
            (env::MIRROR_SETTLE_SECONDS, "1s"),
        ] {
            let mistakes = read_all(&[(name, wrong)]).unwrap_err();
            assert_eq!(mistakes.len(), 1, "{wrong}");
            assert!(mistakes[0].starts_with(name), "{mistakes:?}");
        }
    }

    #[test]
    fn notes_are_chosen_and_tokens_are_never_shown() {
        let config = read_all(&[
            (env::MIRROR_PATH, "/m"),
            (env::NOTES_REFS, r#"["refs/notes/ai","refs/notes/ai"]"#),
            (env::FORGE_CLONE_TOKENS, r#"{"GitHub.com":"sesame-open"}"#),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(config.notes, [NotesRef::GitAi]);
        assert_eq!(config.settle, Duration::from_secs(1));
        let at_once = [(env::MIRROR_PATH, "/m"), (env::MIRROR_SETTLE_SECONDS, "0")];
        assert!(read_all(&at_once).unwrap().unwrap().settle.is_zero());
        let shown = format!("{config:?}");
        assert!(shown.contains("github.com") && !shown.contains("sesame"));
    }
}
