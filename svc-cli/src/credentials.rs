//! The credentials that `svc login` keeps, for the commands that ask a service.
//!
//! They are in one private JSON file: `{"current": URL, "servers": {URL: {"token", "capture_token",
//! ..}}}`. A token is used only for the service at its URL. Unknown members are preserved, and
//! writes are atomic.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use secrecy::{ExposeSecret as _, SecretString};
use svc_client::reqwest::Url;
use svc_engine::private;
use svc_model::identity::{Authority, IdentityProbe};
use svc_model::json::{Json, Object, Text};

use crate::error::CommandError;
use crate::output::escape;

/// The text before the command that makes the file private.
pub(crate) const PRIVATE: &str = "to make it private: ";

/// What a command uses a token for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// To read, as the operator.
    Operator,
    /// To send evidence. The operator may do that too.
    Capture,
}

/// The stored credentials.
pub(crate) struct Credentials {
    /// The file, or `None` without a home folder.
    file: Option<PathBuf>,
    document: Object,
}

impl Role {
    /// Returns the authority that a token of this role has.
    pub(crate) const fn authority(self) -> Authority {
        match self {
            Self::Operator => Authority::Operator,
            Self::Capture => Authority::Ingest,
        }
    }

    const fn token(self) -> &'static str {
        match self {
            Self::Operator => "token",
            Self::Capture => "capture_token",
        }
    }

    const fn token_authority(self) -> &'static str {
        match self {
            Self::Operator => "authority",
            Self::Capture => "capture_authority",
        }
    }

    const fn client_id(self) -> &'static str {
        match self {
            Self::Operator => "client_id",
            Self::Capture => "capture_client_id",
        }
    }
}

impl Credentials {
    /// Reads the user's file. An absent file counts as empty.
    pub(crate) fn load() -> Result<Self, CommandError> {
        let file = svc_server::config_folder().map(|folder| folder.join("credentials.json"));
        match file {
            Some(file) => Self::read(file),
            None => Ok(Self {
                file: None,
                document: Object::new(),
            }),
        }
    }

    fn read(file: PathBuf) -> Result<Self, CommandError> {
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => {
                return Ok(Self {
                    file: Some(file),
                    document: Object::new(),
                });
            }
            Err(error) => return Err(unusable(&file, error)),
        };
        if fs::metadata(&file)?.permissions().mode() & 0o077 != 0 {
            let name = escape(&file.display().to_string());
            return Err(unusable(&file, "other users can read it")
                .hint(format!("{PRIVATE}chmod 600 {name}")));
        }
        let document = Json::parse(&bytes).ok().and_then(Json::into_object);
        let is_ours = |document: &Object| {
            let servers = document.get("servers");
            servers.is_none_or(|servers| servers.as_object().is_some())
        };
        match document.filter(is_ours) {
            Some(document) => Ok(Self {
                file: Some(file),
                document,
            }),
            None => Err(unusable(&file, "it was not written by svc login")
                .hint("move it away, and log in again: svc login URL")),
        }
    }

    /// Returns the URL of the default service.
    pub(crate) fn current(&self) -> Option<&str> {
        self.document.get("current")?.as_str()
    }

    /// Returns the URLs of all services with stored tokens.
    pub(crate) fn servers(&self) -> Vec<String> {
        let servers = self.document.get("servers").and_then(Json::as_object);
        let servers = servers.into_iter().flat_map(Object::iter);
        servers
            .map(|(url, _)| url.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the token for a service.
    pub(crate) fn token(&self, url: &str, role: Role) -> Option<SecretString> {
        let servers = self.document.get("servers")?.as_object()?;
        let entry = servers.get(&normalised(url)?)?.as_object()?;
        let stored = |role: Role| {
            let token = entry.get(role.token())?.as_str()?;
            (!token.is_empty()).then(|| SecretString::from(token))
        };
        match role {
            Role::Operator => stored(Role::Operator),
            Role::Capture => stored(Role::Capture).or_else(|| stored(Role::Operator)),
        }
    }

    /// Stores a token with its identity, and makes its service the default.
    pub(crate) fn remember(
        &mut self,
        url: &str,
        role: Role,
        token: &SecretString,
        probe: &IdentityProbe,
    ) {
        self.document.insert("current", Json::from(url));
        change_member(&mut self.document, "servers", |servers| {
            change_member(servers, url, |entry| {
                entry.insert(role.token(), Json::from(token.expose_secret()));
                entry.insert(role.token_authority(), Json::from(probe.authority.as_str()));
                entry.insert(role.client_id(), Json::from(probe.client_id.as_str()));
                entry.insert("org_id", Json::from(probe.org_id.as_str()));
            });
        });
    }

    /// Removes the entry of a service, and the default if it was this one. Returns whether there
    /// was an entry.
    pub(crate) fn forget(&mut self, url: &str) -> bool {
        let Some(url) = normalised(url) else {
            return false;
        };
        let servers = self.document.get_mut("servers");
        let removed = servers
            .and_then(Json::as_object_mut)
            .and_then(|servers| servers.remove(&url));
        if removed.is_some() && self.current() == Some(&*url) {
            self.document.insert("current", Json::Null);
        }
        removed.is_some()
    }

    /// Writes the private file, replacing the old one.
    pub(crate) fn save(&self) -> Result<(), CommandError> {
        let Some(file) = &self.file else {
            return Err(
                CommandError::refused("credentials", "there is no folder for credentials")
                    .hint("set HOME or XDG_CONFIG_HOME"),
            );
        };
        let bytes = Json::Object(self.document.clone()).to_canonical();
        replace(file, &bytes).map_err(|error| unusable(file, error))
    }
}

/// Returns the normalised URL that identifies a service; `None` if the text is not a URL.
pub(crate) fn normalised(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Changes a member that is an object, creating it if necessary.
fn change_member(object: &mut Object, name: &str, change: impl FnOnce(&mut Object)) {
    let member = object.get(name).and_then(Json::as_object);
    let mut member = member.cloned().unwrap_or_default();
    change(&mut member);
    object.insert(Text::from(name), Json::Object(member));
}

/// Returns whether the file does not exist, or nothing could hold it: a home may be `/dev/null`.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unusable(file: &Path, why: impl fmt::Display) -> CommandError {
    let message = format!("{} cannot be used: {why}", file.display());
    CommandError::refused("credentials", message)
}

fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    private::create_folder_of(file)?;
    let aside = file.with_extension(format!("{}.tmp", std::process::id()));
    // Left behind by a killed process with the same id.
    drop(fs::remove_file(&aside));
    private::write_new(&aside, &[bytes, b"\n"].concat())?;
    let renamed = fs::rename(&aside, file);
    if renamed.is_err() {
        drop(fs::remove_file(&aside));
    }
    renamed
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use svc_model::id::OrgId;

    use super::*;

    const URL: &str = "https://svc.example";

    fn probe(authority: Authority) -> IdentityProbe {
        IdentityProbe {
            org_id: OrgId::new("acme").unwrap(),
            version: "0.1.0".to_owned(),
            authority: authority.into(),
            client_id: "c".to_owned(),
            source_session_id: None,
            source_session_ids: None,
            grants: None,
        }
    }

    fn remember(credentials: &mut Credentials, url: &str, role: Role, token: &str) {
        let probe = probe(role.authority());
        credentials.remember(url, role, &SecretString::from(token), &probe);
    }

    fn token(credentials: &Credentials, url: &str, role: Role) -> Option<String> {
        let token = credentials.token(url, role)?;
        Some(token.expose_secret().to_owned())
    }

    #[test]
    fn a_token_is_used_only_for_its_service_and_role() {
        let folder = tempfile::tempdir().unwrap();
        let mut credentials = Credentials::read(folder.path().join("new/c.json")).unwrap();
        assert_eq!(token(&credentials, URL, Role::Capture), None);
        remember(&mut credentials, URL, Role::Operator, "one");
        assert_eq!(
            token(&credentials, URL, Role::Capture).unwrap(),
            "one",
            "the operator may deliver"
        );
        remember(&mut credentials, URL, Role::Capture, "two");
        credentials.save().unwrap();

        let read = Credentials::read(folder.path().join("new/c.json")).unwrap();
        assert_eq!(read.current(), Some(URL));
        let stored = |url, role| token(&read, url, role);
        assert_eq!(stored(URL, Role::Operator).unwrap(), "one");
        assert_eq!(
            stored(" HTTPS://svc.example/ ", Role::Capture).unwrap(),
            "two"
        );
        assert_eq!(stored("http://svc.example", Role::Operator), None);
        assert_eq!(stored("https://svc.example:8443", Role::Operator), None);
        assert!(!format!("{read:?}").contains("one"));
    }

    #[test]
    fn the_file_is_private_and_keeps_unknown_members() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.json");
        let text = r#"{"theme":"dark","servers":{"https://a":{"note":1.10,"token":"t"}}}"#;
        fs::write(&file, text).unwrap();
        let refused = Credentials::read(file.clone()).unwrap_err();
        assert!(refused.hints()[0].contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

        let mut credentials = Credentials::read(file.clone()).unwrap();
        assert_eq!(credentials.current(), None);
        remember(&mut credentials, "https://a", Role::Capture, "u");
        credentials.save().unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            r#"{"theme":"dark","servers":{"https://a":{"note":1.10,"token":"t","capture_token":"u","capture_authority":"ingest","capture_client_id":"c","org_id":"acme"}},"current":"https://a"}
"#
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left"
        );
    }

    #[test]
    fn a_forgotten_login_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut credentials = Credentials::read(folder.path().join("c.json")).unwrap();
        remember(&mut credentials, "https://a", Role::Operator, "t");
        remember(&mut credentials, URL, Role::Operator, "t");
        assert!(credentials.forget("https://a/"));
        assert!(!credentials.forget("https://a"));
        assert_eq!(credentials.current(), Some(URL));
        assert!(credentials.forget(URL));
        assert_eq!(
            (credentials.current(), credentials.servers().len()),
            (None, 0)
        );
    }

    #[test]
    fn a_file_of_another_kind_is_refused_and_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.json");
        for text in ["[]", "secret", r#"{"servers":["secret"]}"#] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            let refused = Credentials::read(file.clone()).unwrap_err();
            assert_eq!(refused.code(), "credentials");
            assert!(!refused.message().contains("secret"));
        }
    }
}
