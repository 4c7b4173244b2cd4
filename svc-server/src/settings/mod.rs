//! The settings of a server, checked as a whole: every error is reported, by name and never by
//! value.

mod console;
mod grant;
mod host;
mod mcp;
mod mirrors;
mod mistakes;
mod of_command;
mod overrides;
mod reader;
mod redaction;
mod search;
mod secrets;
mod shown;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use secrecy::{ExposeSecret as _, SecretString};
use svc_engine::derive::call_pairs::PairingWaits;
use svc_engine::engine::EngineConfig;
use svc_engine::read::{CursorKey, ScanBounds, ScanLimits};
use svc_model::grant::TokenName;
use svc_model::repository::RepositoryHost;

pub(crate) use self::console::ConsoleSettings;
pub(crate) use self::mcp::McpSettings;
use self::reader::SettingsReader;
use self::secrets::SecretSettings;
use crate::embedded;
use crate::env::{self, LogFormat, Setting};
use crate::source::{Source, Strictness};

pub use self::grant::Grant;
pub use self::mirrors::beside as mirrors_beside;
pub use self::mistakes::SettingsError;
pub use self::of_command::{MirrorSettings, StoreSettings};
pub use self::overrides::Overrides;
pub use self::search::SearchSetting;
pub use self::shown::{ShownSetting, shown_settings};

/// The settings of a server.
#[derive(Debug)]
pub struct Settings {
    /// The address that the server listens on.
    pub listen: SocketAddr,
    /// The address for Prometheus metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// The engine's settings.
    pub engine: EngineConfig,
    /// The operator's token.
    pub(crate) operator_token: SecretString,
    /// Ingest tokens by client, including the client `legacy`.
    pub(crate) ingest_tokens: BTreeMap<String, SecretString>,
    /// The token for agents that read context.
    pub(crate) retrieval_token: Option<SecretString>,
    /// The named retrieval tokens, which read what is granted to their names in the store.
    pub(crate) retrieval_tokens: BTreeMap<TokenName, SecretString>,
    /// The secrets that the forge may sign with: the webhook secret and the previous one.
    pub(crate) webhook_secrets: Vec<SecretString>,
    /// Where the search index is.
    pub search: SearchSetting,
    /// The host of the forge.
    pub(crate) forge_host: RepositoryHost,
    /// The Sessions that context routes may read.
    pub grant: Grant,
    /// Whether the documentation is served.
    pub docs: bool,
    /// The settings of the Model Context Protocol, if enabled.
    pub(crate) mcp: Option<McpSettings>,
    /// The settings of the console, if enabled.
    pub(crate) console: Option<ConsoleSettings>,
    /// The log level, or log directives.
    pub log: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// Whether the rules for secrets and for the hosts of mirrors are disabled.
    pub(crate) dev_mode: bool,
    /// The private file of generated secrets, if it is used.
    pub secrets_file: Option<std::path::PathBuf>,
}

impl Settings {
    /// Reads the settings of this process.
    ///
    /// With SQLite, secrets that are not set are generated once and kept in a private file.
    ///
    /// # Errors
    ///
    /// Reports all errors at once.
    pub fn load(overrides: Overrides) -> Result<Self, SettingsError> {
        let mut mistakes = Vec::new();
        let mut source = overrides.source(Strictness::All, &mut mistakes);
        let secrets_file = match embedded::provide(&mut source) {
            Ok(file) => file,
            Err(mistake) => {
                source.set_unprovided();
                mistakes.push(mistake);
                None
            }
        };
        let mut settings = Self::read(&source, mistakes)?;
        if let Some(mirror) = &settings.engine.mirror
            && let Err(error) = mirrors::check(&mirror.path)
        {
            let name = source.shown(env::MIRROR_PATH.name);
            return Err(SettingsError(vec![format!(
                "{name} must be a folder that this user can write: {error}"
            )]));
        }
        settings.secrets_file = secrets_file;
        Ok(settings)
    }

    /// Returns the operator's token, for a program that starts its own server.
    pub fn operator_token(&self) -> &SecretString {
        &self.operator_token
    }

    /// Returns a webhook secret, for a program that starts its own server.
    pub fn webhook_secret(&self) -> Option<&SecretString> {
        self.webhook_secrets.first()
    }

    /// Reads settings from these variables only.
    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Result<Self, SettingsError> {
        Self::read(&Source::of(variables), Vec::new())
    }

    fn read(source: &Source, mistakes: Vec<String>) -> Result<Self, SettingsError> {
        let mut reader = SettingsReader::new(source, mistakes);
        let settings = Self::read_all(&mut reader);
        let mistakes = reader.mistakes;
        match settings {
            Some(settings) if mistakes.is_empty() => Ok(settings),
            _ => Err(SettingsError(mistakes)),
        }
    }

    /// Reads every setting before the first error ends it, so that all errors are reported.
    fn read_all(reader: &mut SettingsReader<'_>) -> Option<Self> {
        let dev_mode = reader.value(&env::DEV_MODE).unwrap_or_default();
        let listen = reader.value(&env::LISTEN);
        let metrics_listen = reader.given(&env::METRICS_LISTEN);
        let store = reader.store();
        let secrets = SecretSettings::read(reader, dev_mode);
        let forge_host = reader.value(&env::FORGE_HOST);
        let database = store.as_ref().map(|store| &store.url);
        let mirror = mirrors::read(reader, database, dev_mode, forge_host.as_ref());
        let grant = reader.grant();
        secrets.check_retrieval(reader, &grant);
        let read_slots = reader.value(&env::READ_SLOTS);
        let scan = scan_bounds(reader);
        let cache_bytes = reader.value(&env::CACHE_BYTES);
        let redaction = reader.value(&env::REDACTION);
        let grace = reader.value(&env::PAIRING_GRACE_SECONDS);
        let silence = reader.value(&env::PAIRING_SILENCE_SECONDS);
        let migrate = reader.value(&env::MIGRATE_ON_START);
        let docs = reader.value(&env::ENABLE_DOCS);
        let mcp = mcp::read(reader, listen);
        let console = console::read(reader, listen);
        let log = reader.value(&env::LOG);
        let log_format = reader.value(&env::LOG_FORMAT);

        let store = store?;
        let search = store.search;
        let mut engine = EngineConfig::new(store.url, store.org_id).with_read_slots(read_slots?);
        engine.store.migrate = migrate?;
        engine.scan = scan;
        engine.cache_bytes = cache_bytes?;
        engine.redaction = redaction?;
        engine.secrets = redaction::secrets(reader.source, &secrets);
        // Servers of one deployment share this token, so they accept each other's cursors.
        let operator = secrets.operator.expose_secret().as_bytes();
        engine.cursor_key = (!operator.is_empty()).then(|| CursorKey::derive(operator));
        engine.mirror = mirror;
        engine.pairing = PairingWaits {
            grace: grace?,
            silence: silence?,
        };
        Some(Self {
            listen: listen?,
            metrics_listen,
            engine,
            operator_token: secrets.operator,
            ingest_tokens: secrets.ingest,
            retrieval_token: secrets.retrieval,
            retrieval_tokens: secrets.named,
            webhook_secrets: secrets.webhook,
            search,
            forge_host: forge_host?,
            grant,
            docs: docs?,
            mcp,
            console,
            log: log?,
            log_format: log_format?,
            dev_mode,
            secrets_file: None,
        })
    }
}

/// Reads the bounds of scans. One that is set replaces the defaults of both ways to count.
fn scan_bounds(reader: &mut SettingsReader<'_>) -> ScanBounds {
    type Bound = fn(&mut ScanLimits) -> &mut u64;
    let mut scan = ScanBounds::default();
    let bounds: [(Setting<u64>, Bound); 4] = [
        (env::CONTEXT_MAX_CALLS, |limits| &mut limits.calls),
        (env::CONTEXT_MAX_PARTS, |limits| &mut limits.parts),
        (env::CONTEXT_MAX_SOURCE_BYTES, |limits| {
            &mut limits.source_bytes
        }),
        (env::CONTEXT_MAX_STATE_BYTES, |limits| {
            &mut limits.state_bytes
        }),
    ];
    for (setting, bound) in bounds {
        if let Some(number) = reader.given(&setting) {
            *bound(&mut scan.repeated) = number;
            *bound(&mut scan.distinct) = number;
        }
    }
    scan
}

/// Complete settings for tests, which can be changed.
#[cfg(test)]
mod testing {
    use super::{Settings, SettingsError, Source};

    pub(super) const OPERATOR: &str = "operator-operator-operator";
    pub(super) const INGEST: &str = r#"{"alice":"ingest-ingest-ingest-ingest"}"#;
    pub(super) const WEBHOOK: &str = "webhook-webhook-webhook-webhook";
    pub(super) const RETRIEVAL: &str = "retrieval-retrieval-retrieval";

    /// Reads complete settings, with these in place of the usual ones.
    pub(super) fn read(more: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let mut given = vec![
            ("SVC_DATABASE_URL", "sqlite:///tmp/x.db"),
            ("SVC_OPERATOR_TOKEN", OPERATOR),
            ("SVC_INGEST_TOKENS", INGEST),
            ("SVC_FORGE_WEBHOOK_SECRET", WEBHOOK),
        ];
        given.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        given.extend(more);
        Settings::read(&Source::of(&given), Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use svc_model::id::SessionId;

    use super::*;

    use super::testing::{OPERATOR, RETRIEVAL, WEBHOOK, read};

    fn mistakes(more: &[(&str, &str)]) -> Vec<String> {
        read(more).map_or_else(|error| error.0, |_| Vec::new())
    }

    #[test]
    fn complete_settings_are_read() {
        let settings = read(&[
            ("SVC_ORG_ID", "ACME"),
            ("SVC_RETRIEVAL_TOKEN", RETRIEVAL),
            ("SVC_RETRIEVAL_SESSION_IDS", r#"["zeta"," alpha "]"#),
        ])
        .unwrap();
        assert_eq!(settings.engine.store.org_id.as_str(), "acme");
        let grant: Vec<&str> = settings
            .grant
            .sessions()
            .iter()
            .map(SessionId::as_str)
            .collect();
        assert_eq!(grant, ["alpha", "zeta"]);
        assert!(
            !format!("{settings:?}").contains(OPERATOR),
            "secrets are never shown"
        );
    }

    #[test]
    fn all_mistakes_are_reported_at_once_without_values() {
        let mistakes = mistakes(&[
            ("SVC_OPERATOR_TOKEN", "changeme"),
            ("SVC_FORGE_WEBHOOK_SECRET", "too-short"),
            ("SVC_LISTEN", "nowhere"),
            ("SVC_ENABLE_DOCS", "perhaps"),
        ]);
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
        assert!(
            mistakes
                .iter()
                .all(|mistake| !mistake.contains("too-short"))
        );
        let lines = SettingsError(mistakes).to_string();
        assert_eq!(lines.lines().count(), 5, "{lines}");
    }

    #[test]
    fn a_malformed_setting_is_not_also_reported_as_missing() {
        for wrong in [
            ("SVC_INGEST_TOKENS", "{"),
            ("SVC_OPERATOR_TOKEN_FILE", "/nowhere"),
            ("SVC_FORGE_WEBHOOK_SECRET_FILE", "/nowhere"),
        ] {
            let mut more = vec![wrong];
            if let Some(name) = wrong.0.strip_suffix("_FILE") {
                more.push((name, ""));
            }
            let mistakes = mistakes(&more);
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        }
        for url in ["mysql://x", "sqlite:///x.db?mode=ro"] {
            let mut source = Source::of(&[("SVC_DATABASE_URL", url)]);
            assert_eq!(embedded::provide(&mut source), Ok(None));
            let mistakes = Settings::read(&source, Vec::new()).unwrap_err().0;
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        }
        assert_eq!(mistakes(&[("SVC_OPERATOR_TOKEN", "")]).len(), 1);
        assert_eq!(mistakes(&[("SVC_INGEST_TOKENS", "")]).len(), 1);
    }

    #[test]
    fn a_wrong_value_in_the_file_is_reported_with_its_place() {
        let source = Source::of_file(
            "log = \"loud\"\noperator_token = \"changeme\"\n[ingest_tokens]\nci = \"short\"\n",
        );
        let mistakes = Settings::read(&source, Vec::new()).unwrap_err().0;
        for expected in [
            "config.toml, line 1: log must be off",
            "config.toml, line 2: operator_token is a placeholder",
            "config.toml, line 3: ingest_tokens[ci] must have at least 24",
            "SVC_FORGE_WEBHOOK_SECRET must be set",
        ] {
            let is_there = mistakes.iter().any(|mistake| mistake.starts_with(expected));
            assert!(is_there, "{expected}: {mistakes:?}");
        }
    }

    #[test]
    fn a_mistake_names_the_valid_values() {
        for (name, wrong, expected) in [
            ("SVC_REDACTION", "maybe", "must be on or off"),
            (
                "SVC_PAIRING_GRACE_SECONDS",
                "3601",
                "must be a whole number from 0",
            ),
            (
                "SVC_PAIRING_SILENCE_SECONDS",
                "0",
                "must be a whole number from 1",
            ),
            (
                "SVC_PAIRING_SILENCE_SECONDS",
                "86401",
                "must be a whole number from 1",
            ),
            ("SVC_ENABLE_DOCS", "maybe", "must be true or false"),
            ("SVC_LOG", "loud", "must be off, error, warn,"),
            ("SVC_LOG", "svc_server=loud", "must be off, error, warn,"),
            ("SVC_LISTEN", "8000", "must be HOST:PORT"),
            ("SVC_DATABASE_URL", "mysql://x", "must be sqlite://PATH"),
        ] {
            let mistakes = mistakes(&[(name, wrong)]);
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
            assert!(
                mistakes[0].starts_with(&format!("{name} {expected}")),
                "{mistakes:?}"
            );
        }
    }

    #[test]
    fn the_listen_address_may_be_a_local_name() {
        let settings = read(&[
            ("SVC_LISTEN", "localhost:8301"),
            ("SVC_METRICS_LISTEN", "[::1]:9"),
            ("SVC_LOG", "warn,svc_server=debug"),
        ]);
        let settings = settings.unwrap();
        assert!(settings.listen.ip().is_loopback());
        assert_eq!(settings.listen.port(), 8301);
        assert_eq!(settings.metrics_listen.unwrap().port(), 9);
    }

    #[test]
    fn secrets_are_distinct_long_and_printable() {
        assert_eq!(mistakes(&[("SVC_FORGE_WEBHOOK_SECRET", OPERATOR)]).len(), 1);
        assert_eq!(mistakes(&[("SVC_API_BEARER_TOKEN", OPERATOR)]).len(), 1);
        assert_eq!(
            mistakes(&[("SVC_OPERATOR_TOKEN", "blank blank blank blank blank")]).len(),
            1
        );
        assert_eq!(mistakes(&[("SVC_INGEST_TOKENS", "{}")]).len(), 1);
        let previous = "SVC_FORGE_WEBHOOK_SECRET_PREVIOUS";
        for wrong in ["", "changeme", "too-short", WEBHOOK, OPERATOR] {
            let expected = usize::from(!wrong.is_empty());
            assert_eq!(mistakes(&[(previous, wrong)]).len(), expected, "{wrong}");
        }
        assert_eq!(
            mistakes(&[("SVC_DEV_MODE", "true"), ("SVC_OPERATOR_TOKEN", "x")]).len(),
            0
        );
    }

    #[test]
    fn the_forge_signs_with_the_secret_or_the_one_before_it() {
        let both = read(&[
            ("SVC_FORGE_WEBHOOK_SECRET", " padded padded padded padded "),
            ("SVC_FORGE_WEBHOOK_SECRET_PREVIOUS", WEBHOOK),
            ("SVC_FORGE_HOST", "Git.Example"),
        ])
        .unwrap();
        let secrets: Vec<&str> = both
            .webhook_secrets
            .iter()
            .map(ExposeSecret::expose_secret)
            .collect();
        assert_eq!(secrets, ["padded padded padded padded", WEBHOOK]);
        assert_eq!(both.forge_host.as_str(), "git.example");
        assert!(
            !format!("{both:?}").contains(WEBHOOK),
            "secrets are never shown"
        );
        let one = read(&[]).unwrap();
        assert_eq!(one.webhook_secrets.len(), 1);
        assert_eq!(one.forge_host.as_str(), "github.com");
        for wrong in ["git.example:443", "https://git.example", "a_b", "a.b."] {
            assert_eq!(mistakes(&[("SVC_FORGE_HOST", wrong)]).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn ingest_clients_are_named_once_and_not_with_reserved_names() {
        let token = "ingest-ingest-ingest-ingest";
        for wrong in [
            "[]".to_owned(),
            format!(r#"{{"a":"{token}","a":"{token}2"}}"#),
            format!(r#"{{"operator":"{token}"}}"#),
            format!(r#"{{"-a":"{token}"}}"#),
            r#"{"a":1}"#.to_owned(),
        ] {
            assert!(
                !mistakes(&[("SVC_INGEST_TOKENS", &wrong)]).is_empty(),
                "{wrong}"
            );
        }
        assert!(
            mistakes(&[("SVC_INGEST_TOKENS", &format!(r#"{{"Legacy":"{token}"}}"#))]).is_empty()
        );
    }

    #[test]
    fn named_retrieval_tokens_are_checked_like_all_credentials() {
        const OTHER: &str = "another-another-another-another";
        let tokens = |tokens: &str| mistakes(&[("SVC_RETRIEVAL_TOKENS", tokens)]);
        let two = format!(r#"{{"ci":"{RETRIEVAL}","review":" {OTHER} "}}"#);
        let settings = read(&[("SVC_RETRIEVAL_TOKENS", &two)]).unwrap();
        let names: Vec<&str> = settings
            .retrieval_tokens
            .keys()
            .map(TokenName::as_str)
            .collect();
        assert_eq!(names, ["ci", "review"]);
        assert!(
            !format!("{settings:?}").contains(RETRIEVAL),
            "secrets are never shown"
        );
        assert_eq!(
            settings.grant,
            Grant::None,
            "nothing is configured for them"
        );
        assert!(tokens("{}").is_empty());
        for wrong in [
            "[]".to_owned(),
            r#"{"ci":1}"#.to_owned(),
            format!(r#"{{"":"{RETRIEVAL}"}}"#),
            format!(r#"{{"retrieval":"{RETRIEVAL}"}}"#),
            format!(r#"{{"a b":"{RETRIEVAL}"}}"#),
            format!(r#"{{"ci":"{RETRIEVAL}","ci":"{OTHER}"}}"#),
            format!(r#"{{"ci":"{RETRIEVAL}","review":"{RETRIEVAL}"}}"#),
            format!(r#"{{"ci":"{OPERATOR}"}}"#),
            r#"{"ci":"ingest-ingest-ingest-ingest"}"#.to_owned(),
            format!(r#"{{"ci":"{WEBHOOK}"}}"#),
            r#"{"ci":"short"}"#.to_owned(),
            r#"{"ci":"blank blank blank blank blank"}"#.to_owned(),
            r#"{"ci":""}"#.to_owned(),
        ] {
            let mistakes = tokens(&wrong);
            assert_eq!(mistakes.len(), 1, "{wrong} {mistakes:?}");
            assert!(
                mistakes[0].starts_with("SVC_RETRIEVAL_TOKENS"),
                "{mistakes:?}"
            );
            let lax = [("SVC_DEV_MODE", "true"), ("SVC_RETRIEVAL_TOKENS", &wrong)];
            assert!(read(&lax).is_err(), "even in development: {wrong}");
        }
        let default = [
            ("SVC_RETRIEVAL_TOKEN", RETRIEVAL),
            ("SVC_RETRIEVAL_SESSION_ID", "s"),
            ("SVC_RETRIEVAL_TOKENS", two.as_str()),
        ];
        assert_eq!(mistakes(&default).len(), 1, "equal to the default token");
    }

    #[test]
    fn a_retrieval_token_and_one_session_setting_belong_together() {
        let token = ("SVC_RETRIEVAL_TOKEN", RETRIEVAL);
        let single = ("SVC_RETRIEVAL_SESSION_ID", "s");
        let plural = ("SVC_RETRIEVAL_SESSION_IDS", r#"["s"]"#);
        assert!(mistakes(&[token, single]).is_empty());
        assert!(mistakes(&[token, plural]).is_empty());
        assert_eq!(mistakes(&[token]).len(), 1);
        assert_eq!(mistakes(&[single]).len(), 1);
        assert_eq!(mistakes(&[token, single, plural]).len(), 1);
        assert_eq!(
            mistakes(&[("SVC_RETRIEVAL_TOKEN", OPERATOR), single]).len(),
            1
        );
        for wrong in ["[]", r#"["a","a "]"#, r#"["a",1]"#, "x"] {
            assert!(
                !mistakes(&[token, ("SVC_RETRIEVAL_SESSION_IDS", wrong)]).is_empty(),
                "{wrong}"
            );
        }
    }
}
