//! Every setting: its environment variable, description and default. The table in
//! docs/reference/settings.md and the help of the server are generated from this list. Variables
//! and keys that are not listed are refused.
//!
//! A setting comes from a flag, else from its variable, else from the file named by `NAME_FILE`
//! (secrets only), else from `$XDG_CONFIG_HOME/svc/config.toml` (the name in lower case, without
//! `SVC_`), else it has its default. An empty value counts as unset, except where it switches something
//! off ([`OFF_IF_EMPTY`]).

mod address;
mod parse;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::str::FromStr as _;
use std::time::Duration;

use secrecy::SecretString;
use svc_engine::capture::Redaction;
use svc_engine::mirror::NotesRef;
use svc_engine::store::DatabaseUrl;
use svc_model::grant::TokenName;
use svc_model::id::{OrgId, SessionId};
use svc_model::repository::RepositoryHost;

use crate::host::Host;

pub use self::parse::LogFormat;

/// The prefix of every variable.
pub const PREFIX: &str = "SVC_";

/// The form of a setting in the configuration file. In a variable, lists and tables are JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingForm {
    /// A text, a number or a boolean.
    Text,
    /// A list of texts.
    List,
    /// A table of texts.
    Table,
}

/// One setting, for people.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name of the environment variable.
    pub name: &'static str,
    /// Its default, as shown in the documentation.
    pub default: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Its form in the configuration file.
    pub form: SettingForm,
    /// Whether it is a secret: never shown, and readable from a file.
    pub secret: bool,
}

impl Variable {
    /// Returns the key of the setting in `config.toml`.
    pub fn key(&self) -> String {
        let name = self.name.strip_prefix(PREFIX).unwrap_or(self.name);
        name.to_ascii_lowercase()
    }

    /// Returns the variable that names a file with the setting, if it is a secret.
    pub fn file_variable(&self) -> Option<String> {
        self.secret.then(|| format!("{}_FILE", self.name))
    }
}

/// One setting, with the type of its value.
pub(crate) struct Setting<T> {
    /// The name of the environment variable.
    pub(crate) name: &'static str,
    /// Its default, as shown in the documentation.
    default: &'static str,
    /// Parses a value, or states the rule that it breaks. The rule never repeats the value.
    parser: fn(&str) -> Result<T, String>,
}

impl<T> Setting<T> {
    /// Parses a value, or returns the rule that it breaks.
    pub(crate) fn parse(&self, text: &str) -> Result<T, String> {
        (self.parser)(text)
    }

    /// Returns the default, if it is one value rather than a description.
    pub(crate) fn default(&self) -> Option<T> {
        self.parse(self.default_text()?).ok()
    }

    fn default_text(&self) -> Option<&'static str> {
        let text = self.default.strip_prefix('`')?.strip_suffix('`')?;
        (!text.contains('`')).then_some(text)
    }
}

/// Returns the setting of this name.
pub fn find(name: &str) -> Option<&'static Variable> {
    ALL.iter().find(|variable| variable.name == name)
}

/// A variable that the client, the shell or a hook reads and that is not a setting of the service.
#[derive(Clone, Copy, Debug)]
pub struct ShellVariable {
    /// The name.
    pub name: &'static str,
    /// The default, for the documentation.
    pub default: &'static str,
    /// What it is, for the documentation.
    pub description: &'static str,
}

macro_rules! shell_variables {
    ($($name:literal, $default:literal, $description:literal;)+) => {
        /// The variables that the client, the shell and its hooks read, in the order of the
        /// documentation.
        pub const OF_THE_SHELL: &[ShellVariable] = &[$(ShellVariable {
            name: $name,
            default: $default,
            description: $description,
        }),+];

        /// Other variables with the prefix that may be set.
        pub const OTHERS: &[&str] = &[
            $($name,)+
            // The tests.
            "SVC_BIN_DIR",
            "SVC_CASES_PENDING",
        ];
    };
}

shell_variables! {
    "SVC_URL", "the service of the last `svc login`, else the one on this machine: the address of the last `svc serve` of the store, else `http://127.0.0.1:8000`", "The URL of the service. It may have the path prefix of a proxy.";
    "SVC_TOKEN", "that of the last `svc login`", "The token.";
    "SVC_TOKEN_FILE", "none", "A file that contains only the token.";
    "SVC_ALLOW_PLAIN_HTTP", "off", "`1` allows `http` to other machines. Anyone on the network can then read the token.";
    "SVC_CA_FILE", "none", "A file of root certificates in PEM form that are trusted in addition to the system's.";
    "SVC_OUTBOX", "`$XDG_DATA_HOME/svc/outbox`", "The folder in which reports and events wait that could not be delivered. On a machine with a temporary disk, name one that stays.";
    "SVC_PROGRAM", "`svc`", "The program that the installed git hooks run.";
    "SVC_SESSION_ID", "none", "The Session of the agent that runs `git commit`, for an agent whose own variable is not known.";
    "SVC_SESSION_TOOL", "`agent`", "The name of that agent.";
    "SVC_REPOSITORY_ID", "what the CI system says", "The forge's number of the repository, for `svc ci report`.";
    "SVC_REPOSITORY_HOST", "what the CI system says", "The host of that forge.";
}

/// Settings whose default is switched off by an empty value.
pub const OFF_IF_EMPTY: [&str; 1] = [MIRROR_PATH.name];

/// The prefix of the variables for tests.
pub const TEST_PREFIX: &str = "SVC_TEST_";

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:literal, $form:ident, $secret:expr, $parser:expr $(, $rule:literal)?;)+) => {
        $($(#[doc = $doc])+ pub(crate) const $name: Setting<$type> = Setting {
            name: concat!("SVC_", stringify!($name)),
            default: $default,
            parser: settings!(@parser $parser $(, $rule)?),
        };)+

        /// Every setting, in the order of the documentation.
        pub const ALL: &[Variable] = &[$(Variable {
            name: $name.name,
            default: $default,
            description: concat!($($doc),+),
            form: SettingForm::$form,
            secret: $secret,
        }),+];

        #[cfg(test)]
        fn defaults_that_cannot_be_parsed() -> Vec<&'static str> {
            let broken = [$($name.default_text().filter(|_| $name.default().is_none())),+];
            broken.into_iter().flatten().collect()
        }
    };
    (@parser $parser:expr, $rule:literal) => { |text| $parser(text).ok_or_else(|| $rule.to_owned()) };
    (@parser $parser:expr) => { |text| $parser(text).map_err(|error| error.to_string()) };
}

/// A secret: never shown, and readable from a file.
const SECRET: bool = true;
/// Not a secret.
const SHOWN: bool = false;

// A row is a setting: its description, name, type, default as the documentation shows it, form in the
// configuration file, parser, and the rule that an error states. Without a rule, the parser's own
// error states it.
settings! {
    /// The address to listen on: an address or a name of this machine, and a port.
    LISTEN: SocketAddr = "`127.0.0.1:8000`", Text, SHOWN, address::parse;
    /// The database: `sqlite://PATH` or `postgres://USER@HOST/DATABASE`.
    DATABASE_URL: DatabaseUrl = "SQLite in `$XDG_DATA_HOME/svc/svc.db`", Text, SECRET, DatabaseUrl::parse;
    /// The organization of the deployment.
    ORG_ID: OrgId = "`default`", Text, SHOWN, parse::org_id, "must be 1 to 64 of a-z, 0-9, '.', '_', '-'";
    /// The operator's bearer token.
    OPERATOR_TOKEN: String = "generated, with SQLite", Text, SECRET, String::from_str;
    /// The ingest tokens: a JSON object of client name to token.
    INGEST_TOKENS: BTreeMap<String, SecretString> = "generated, with SQLite", Table, SECRET,
        parse::ingest_tokens, "must be a JSON object of client name to token; operator, legacy and retrieval are reserved";
    /// An additional ingest token, for the client `legacy`.
    API_BEARER_TOKEN: String = "none", Text, SECRET, String::from_str;
    /// The secret that signs the forge's webhooks.
    FORGE_WEBHOOK_SECRET: String = "generated, with SQLite", Text, SECRET, String::from_str;
    /// The previous webhook secret, which is accepted too while the forge is switched to the new
    /// one.
    FORGE_WEBHOOK_SECRET_PREVIOUS: String = "none", Text, SECRET, String::from_str;
    /// The host of the forge that sends webhooks. It is recorded on their facts.
    FORGE_HOST: RepositoryHost = "`github.com`", Text, SHOWN, RepositoryHost::new, "must be a host name without a port";
    /// The folder for mirrors of repositories, from which commit notes are read. If it is set to
    /// nothing, nothing is fetched.
    MIRROR_PATH: String = "with SQLite, the folder `svc.mirrors` beside `svc.db`; with PostgreSQL off", Text, SHOWN, String::from_str;
    /// The file of the search index, which holds words of all Sessions: one for each server. `off`
    /// switches search off.
    SEARCH_PATH: String = "`search.db` beside the SQLite database; with PostgreSQL `$XDG_DATA_HOME/svc/search.db`", Text, SHOWN, String::from_str;
    /// Seconds between a push and the fetch of its repository, so that notes pushed right after
    /// their branch are included: 0 to 3600.
    MIRROR_SETTLE_SECONDS: Duration = "`1`", Text, SHOWN, parse::seconds_of_an_hour, "must be a whole number from 0 to 3600";
    /// The hosts that mirrors may be fetched from: a JSON array of names or addresses, in any
    /// network. `[]` allows every host with only public addresses.
    ALLOWED_CLONE_HOSTS: Vec<String> = "the host of `SVC_FORGE_HOST`", List, SHOWN,
        parse::clone_hosts, "must be a JSON array of host names or addresses, without scheme and port";
    /// Tokens for cloning private repositories: a JSON object of host to token. Sent over https
    /// only.
    FORGE_CLONE_TOKENS: BTreeMap<RepositoryHost, SecretString> = "none", Table, SECRET,
        parse::clone_tokens, "must be a JSON object of host to token, each host once";
    /// The notes refs to read: a JSON array of `refs/notes/svc` (the service's own) and
    /// `refs/notes/ai` (git-ai's).
    NOTES_REFS: Vec<NotesRef> = "both", List, SHOWN, parse::notes_refs, "must be a JSON array of refs/notes/svc, refs/notes/ai or both";
    /// Seconds that a logged response waits for records that may show which request it answers, before
    /// the only request that is left is taken: 0 to 3600.
    PAIRING_GRACE_SECONDS: Duration = "`60`", Text, SHOWN, parse::seconds_of_an_hour, "must be a whole number from 0 to 3600";
    /// Seconds of silence in a Session, before logged responses without a request become calls
    /// without input, and requests without a response are dropped: 1 to 86400.
    PAIRING_SILENCE_SECONDS: Duration = "`3600`", Text, SHOWN, parse::seconds_of_a_day, "must be a whole number from 1 to 86400";
    /// The bearer token for agents that read context; requires one of the two Session settings.
    RETRIEVAL_TOKEN: String = "none", Text, SECRET, String::from_str;
    /// Named retrieval tokens: a JSON object of name to token. Each reads what is granted to its
    /// name in the store (`svc grant`), which can change while the server runs.
    RETRIEVAL_TOKENS: BTreeMap<TokenName, SecretString> = "none", Table, SECRET,
        parse::retrieval_tokens, "must be a JSON object of name to token; operator, legacy and retrieval are reserved";
    /// The one Session that context routes may read.
    RETRIEVAL_SESSION_ID: SessionId = "none", Text, SHOWN, parse::session_id, "must be a Session id";
    /// The Sessions that context routes may read: a JSON array of 1 to 32 ids.
    RETRIEVAL_SESSION_IDS: Vec<SessionId> = "none", List, SHOWN, parse::session_ids, "must be a JSON array of 1 to 32 distinct Session ids";
    /// Serves `/docs`, `/redoc` and `/openapi.json`.
    ENABLE_DOCS: bool = "`false`", Text, SHOWN, parse::truth, "must be true or false";
    /// Serves the Model Context Protocol to agents at `/mcp`.
    ENABLE_MCP: bool = "`false`", Text, SHOWN, parse::truth, "must be true or false";
    /// The host names that agents may use for `/mcp`, with or without a port: a JSON array. Any
    /// other host is 403.
    MCP_HOSTS: Vec<Host> = "loopback, and the address of `SVC_LISTEN`", List, SHOWN,
        parse::hosts, "must be a JSON array of hosts, with or without a port";
    /// The origins of web pages that may call `/mcp`, such as `https://agents.example:443`: a JSON
    /// array.
    MCP_ORIGINS: Vec<String> = "none", List, SHOWN, parse::origins, "must be a JSON array of origins with a port, such as https://agents.example:443";
    /// Serves the read-only console for people at `/console`.
    ENABLE_CONSOLE: bool = "`false`", Text, SHOWN, parse::truth, "must be true or false";
    /// The host names that people may use for `/console`, with or without a port: a JSON array. Any
    /// other host is 403.
    CONSOLE_HOSTS: Vec<Host> = "loopback, and the address of `SVC_LISTEN`", List, SHOWN,
        parse::hosts, "must be a JSON array of hosts, with or without a port";
    /// Disables the rules for secrets and for the hosts of mirrors. For development only.
    DEV_MODE: bool = "`false`", Text, SHOWN, parse::truth, "must be true or false";
    /// Creates or upgrades the database schema at start.
    MIGRATE_ON_START: bool = "`true`", Text, SHOWN, parse::truth, "must be true or false";
    /// Reads of evidence, context, Sessions, commits and reports that may run at once. One more waits
    /// for up to 2 seconds, or less with `Prefer: wait=0`, and is then 503. One retrieval token uses
    /// at most half of them, and all of these tokens together leave one to operators.
    READ_SLOTS: usize = "`2`", Text, SHOWN, parse::slots, "must be a whole number from 1";
    /// Visible calls of a search. The second default is for named tokens, operators and tools.
    CONTEXT_MAX_CALLS: u64 = "`1000`, `100000`", Text, SHOWN, parse::positive, "must be a whole number from 1";
    /// Parts of a search. The second default is for named tokens, operators and tools, for which
    /// repeated messages count once.
    CONTEXT_MAX_PARTS: u64 = "`16384`, `1000000`", Text, SHOWN, parse::positive, "must be a whole number from 1";
    /// Canonical bytes of what a search reads. The second default is as for parts.
    CONTEXT_MAX_SOURCE_BYTES: u64 = "`67108864`, `1073741824`", Text, SHOWN, parse::positive, "must be a whole number from 1";
    /// Bytes of candidate state of a search.
    CONTEXT_MAX_STATE_BYTES: u64 = "`33554432`", Text, SHOWN, parse::positive, "must be a whole number from 1";
    /// Bytes of decoded messages that are cached in memory.
    CACHE_BYTES: u64 = "`67108864`", Text, SHOWN, parse::number, "must be a whole number";
    /// Redaction of credentials before storage: `on` or `off`.
    REDACTION: Redaction = "`on`", Text, SHOWN, parse::redaction, "must be on or off";
    /// The address that serves metrics for Prometheus at `/metrics`, without authentication.
    METRICS_LISTEN: SocketAddr = "off", Text, SHOWN, address::parse;
    /// The log level, or directives such as `svc_server=debug`. `debug` logs a line per request.
    LOG: String = "`info`", Text, SHOWN, parse::log_filter, "must be off, error, warn, info, debug or trace, or directives such as svc_server=debug";
    /// The log format: `text` or `json`.
    LOG_FORMAT: LogFormat = "`text`", Text, SHOWN, parse::log_format, "must be text or json";
}

/// Returns what `svc-server --help` prints.
pub fn help() -> String {
    let mut help = String::from(
        "The evidence service.\n\n\
         Usage: svc-server [--help | --version]\n\n\
         It takes no other arguments. A setting comes from its variable; for a secret, else from \
         the file named by\nNAME_FILE; else from $XDG_CONFIG_HOME/svc/config.toml (the name in \
         lower case without SVC_);\nelse it has its default.\n\n",
    );
    for variable in ALL {
        let description = variable.description.trim();
        let secret = if variable.secret { " Secret." } else { "" };
        let (name, default) = (variable.name, variable.default);
        help.extend([name, "\n    ", description, secret]);
        help.extend(["\n    Default: ", default, "\n"]);
    }
    help.replace('`', "")
}

/// Returns the table of docs/reference/settings.md.
pub fn table() -> String {
    rows(ALL.iter().map(|variable| {
        let secret = if variable.secret { " Secret." } else { "" };
        let description = variable.description.trim();
        (variable.name, variable.default, description, secret)
    }))
}

/// Returns the table of docs/reference/settings.md for the client and the shell.
pub fn shell_table() -> String {
    let variables = OF_THE_SHELL.iter();
    rows(variables.map(|variable| (variable.name, variable.default, variable.description, "")))
}

fn rows<'a>(rows: impl Iterator<Item = (&'a str, &'a str, &'a str, &'a str)>) -> String {
    let mut table = String::from("| Variable | Default | What it is |\n|---|---|---|\n");
    for (name, default, description, end) in rows {
        table.extend(["| `", name, "` | ", default]);
        table.extend([" | ", description, end, " |\n"]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_this_table() {
        let settings = include_str!("../../docs/reference/settings.md");
        for table in [table(), shell_table()] {
            assert!(
                settings.contains(&table),
                "put this into docs/reference/settings.md:\n{table}"
            );
        }
    }

    #[test]
    fn every_default_that_is_a_value_follows_the_rule_of_its_setting() {
        assert_eq!(defaults_that_cannot_be_parsed(), [""; 0]);
    }

    #[test]
    fn every_setting_is_listed_once() {
        let names = ALL.iter().map(|variable| variable.name);
        let names: Vec<&str> = names.chain(OTHERS.iter().copied()).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.starts_with(PREFIX)));
    }
}
