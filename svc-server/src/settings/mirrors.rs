//! The settings of mirrors: the folder, the allowed hosts, the credentials, and the notes to read.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use svc_engine::mirror::{AllowedHosts, MirrorConfig, Remotes};
use svc_engine::private;
use svc_engine::store::DatabaseUrl;
use svc_model::repository::RepositoryHost;

use super::reader::SettingsReader;
use crate::env;

/// Reads the settings, which are checked even if mirrors are disabled.
pub(super) fn read(
    reader: &mut SettingsReader<'_>,
    database: Option<&DatabaseUrl>,
    dev_mode: bool,
    forge_host: Option<&RepositoryHost>,
) -> Option<MirrorConfig> {
    let listed = reader.given(&env::ALLOWED_CLONE_HOSTS);
    let tokens = reader.given(&env::FORGE_CLONE_TOKENS);
    let notes = reader.given(&env::NOTES_REFS);
    let settle = reader.value(&env::MIRROR_SETTLE_SECONDS);
    let path = match reader.given(&env::MIRROR_PATH) {
        Some(path) if path.trim().is_empty() => return None,
        Some(path) => PathBuf::from(path),
        None => beside(database?)?,
    };
    let path = std::path::absolute(path)
        .inspect_err(|_| reader.mistake(env::MIRROR_PATH.name, "must be a path"))
        .ok()?;
    // Otherwise every fetch would fail, and only the log would say why.
    if path.exists() && !path.is_dir() {
        reader.mistake(env::MIRROR_PATH.name, "must be a folder; it is a file");
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
    config.settle = settle.unwrap_or(config.settle);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use svc_engine::mirror::NotesRef;

    use super::*;
    use crate::source::Source;

    fn read_all(given: &[(&str, &str)]) -> Result<Option<MirrorConfig>, Vec<String>> {
        let source = Source::of(given);
        let mut reader = SettingsReader::new(&source, Vec::new());
        let forge_host = RepositoryHost::new("git.example.test");
        let dev_mode = reader.value(&env::DEV_MODE).unwrap_or_default();
        let config = read(&mut reader, None, dev_mode, forge_host.as_ref());
        if reader.mistakes.is_empty() {
            Ok(config)
        } else {
            Err(reader.mistakes)
        }
    }

    fn allowed(more: &[(&str, &str)]) -> AllowedHosts {
        let given = [&[("SVC_MIRROR_PATH", "/m")], more].concat();
        read_all(&given).unwrap().unwrap().remotes.allowed().clone()
    }

    #[test]
    fn without_a_path_there_are_no_mirrors() {
        assert!(read_all(&[]).unwrap().is_none());
        assert!(read_all(&[("SVC_MIRROR_PATH", "")]).unwrap().is_none());
        let config = read_all(&[("SVC_MIRROR_PATH", "m")]).unwrap().unwrap();
        assert!(config.path.is_absolute());
        assert_eq!(config.notes, NotesRef::ALL);
    }

    #[test]
    fn mirrors_are_beside_a_sqlite_database_unless_they_are_elsewhere_or_off() {
        let of = |url: &str, given: &[(&str, &str)]| {
            let url = DatabaseUrl::parse(url).unwrap();
            let source = Source::of(given);
            let mut reader = SettingsReader::new(&source, Vec::new());
            let config = read(&mut reader, Some(&url), true, None);
            config.map(|config| config.path.display().to_string())
        };
        let path = |path: &str| Some(path.to_owned());
        assert_eq!(of("sqlite:///d/svc.db", &[]), path("/d/svc.mirrors"));
        let elsewhere = [("SVC_MIRROR_PATH", "/m")];
        assert_eq!(of("sqlite:///d/svc.db", &elsewhere), path("/m"));
        for off in ["", " "] {
            assert_eq!(of("sqlite:///d/svc.db", &[("SVC_MIRROR_PATH", off)]), None);
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
        let mistakes = read_all(&[("SVC_MIRROR_PATH", file.to_str().unwrap())]).unwrap_err();
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
            allowed(&[("SVC_ALLOWED_CLONE_HOSTS", named)]),
            listed(&["github.com", "127.0.0.1", "::1"])
        );
        let any = ("SVC_ALLOWED_CLONE_HOSTS", "[]");
        assert_eq!(allowed(&[any]), AllowedHosts::Public);
        assert_eq!(
            allowed(&[any, ("SVC_DEV_MODE", "true")]),
            AllowedHosts::Anything
        );
    }

    #[test]
    fn malformed_mirror_settings_are_named_even_without_mirrors() {
        for (name, wrong) in [
            ("SVC_ALLOWED_CLONE_HOSTS", "github.com"),
            ("SVC_ALLOWED_CLONE_HOSTS", r#"["https://github.com"]"#),
            ("SVC_ALLOWED_CLONE_HOSTS", r#"["github.com:443"]"#),
            ("SVC_ALLOWED_CLONE_HOSTS", r#"["*.github.com"]"#),
            ("SVC_ALLOWED_CLONE_HOSTS", "[1]"),
            ("SVC_FORGE_CLONE_TOKENS", "[]"),
            ("SVC_FORGE_CLONE_TOKENS", r#"{"github.com":1}"#),
            ("SVC_FORGE_CLONE_TOKENS", r#"{"github.com":" "}"#),
            ("SVC_FORGE_CLONE_TOKENS", r#"{"github.com":"a\r\nb"}"#),
            ("SVC_FORGE_CLONE_TOKENS", r#"{"https://github.com":"a"}"#),
            (
                "SVC_FORGE_CLONE_TOKENS",
                r#"{"github.com":"a","GitHub.com":"b"}"#,
            ),
            ("SVC_NOTES_REFS", "[]"),
            ("SVC_NOTES_REFS", r#"["refs/notes/commits"]"#),
            ("SVC_NOTES_REFS", "refs/notes/svc"),
            ("SVC_MIRROR_SETTLE_SECONDS", "-1"),
            ("SVC_MIRROR_SETTLE_SECONDS", "3601"),
            ("SVC_MIRROR_SETTLE_SECONDS", "1s"),
        ] {
            let mistakes = read_all(&[(name, wrong)]).unwrap_err();
            assert_eq!(mistakes.len(), 1, "{wrong}");
            assert!(mistakes[0].starts_with(name), "{mistakes:?}");
        }
    }

    #[test]
    fn notes_are_chosen_and_tokens_are_never_shown() {
        let config = read_all(&[
            ("SVC_MIRROR_PATH", "/m"),
            ("SVC_NOTES_REFS", r#"["refs/notes/ai","refs/notes/ai"]"#),
            ("SVC_FORGE_CLONE_TOKENS", r#"{"GitHub.com":"sesame-open"}"#),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(config.notes, [NotesRef::GitAi]);
        assert_eq!(config.settle, Duration::from_secs(1));
        let at_once = [
            ("SVC_MIRROR_PATH", "/m"),
            ("SVC_MIRROR_SETTLE_SECONDS", "0"),
        ];
        assert!(read_all(&at_once).unwrap().unwrap().settle.is_zero());
        let shown = format!("{config:?}");
        assert!(shown.contains("github.com") && !shown.contains("sesame"));
    }
}
