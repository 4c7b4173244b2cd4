//! Every setting: its environment variable, description and default. The table in
//! docs/reference/settings.md and the help of the server are generated from this list. Variables
//! and keys that are not listed are refused.
//!
//! A setting comes from a flag, else from its variable, else from the file named by `NAME_FILE`
//! (secrets only), else from `$XDG_CONFIG_HOME/svc/config.toml` (the name in lower case, without
//! `SVC_`), else it has its default. An empty value counts as unset, except where it switches something
//! off ([`OFF_IF_EMPTY`]).

/// The prefix of every variable.
pub const PREFIX: &str = "SVC_";

/// The form of a setting in the configuration file. In a variable, lists and tables are JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A text, a number or a boolean.
    Text,
    /// A list of texts.
    List,
    /// A table of texts.
    Table,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name of the environment variable.
    pub name: &'static str,
    /// Its default, as shown in the documentation.
    pub default: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Its form in the configuration file.
    pub form: Form,
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
pub const OFF_IF_EMPTY: [&str; 1] = [MIRROR_PATH];

/// The prefix of the variables for tests.
pub const TEST_PREFIX: &str = "SVC_TEST_";

macro_rules! variables {
    ($($(#[doc = $doc:literal])+ $constant:ident = $name:literal, $default:literal, $form:ident, $secret:literal;)+) => {
        $($(#[doc = $doc])+ pub const $constant: &str = $name;)+

        /// Every setting, in the order of the documentation.
        pub const ALL: &[Variable] = &[$(Variable {
            name: $name,
            default: $default,
            description: concat!($($doc),+),
            form: Form::$form,
            secret: $secret,
        }),+];
    };
}

variables! {
    /// The address to listen on: an address or a name of this machine, and a port.
    LISTEN = "SVC_LISTEN", "`127.0.0.1:8000`", Text, false;
    /// The database: `sqlite://PATH` or `postgres://USER@HOST/DATABASE`.
    DATABASE_URL = "SVC_DATABASE_URL", "SQLite in `$XDG_DATA_HOME/svc/svc.db`", Text, true;
    /// The organization of the deployment.
    ORG_ID = "SVC_ORG_ID", "`default`", Text, false;
    /// The operator's bearer token.
    OPERATOR_TOKEN = "SVC_OPERATOR_TOKEN", "generated, with SQLite", Text, true;
    /// The ingest tokens: a JSON object of client name to token.
    INGEST_TOKENS = "SVC_INGEST_TOKENS", "generated, with SQLite", Table, true;
    /// An additional ingest token, for the client `legacy`.
    API_BEARER_TOKEN = "SVC_API_BEARER_TOKEN", "none", Text, true;
    /// The secret that signs the forge's webhooks.
    FORGE_WEBHOOK_SECRET = "SVC_FORGE_WEBHOOK_SECRET", "generated, with SQLite", Text, true;
    /// The previous webhook secret, which is accepted too while the forge is switched to the new
    /// one.
    FORGE_WEBHOOK_SECRET_PREVIOUS = "SVC_FORGE_WEBHOOK_SECRET_PREVIOUS", "none", Text, true;
    /// The host of the forge that sends webhooks. It is recorded on their facts.
    FORGE_HOST = "SVC_FORGE_HOST", "`github.com`", Text, false;
    /// The folder for mirrors of repositories, from which commit notes are read. If it is set to
    /// nothing, nothing is fetched.
    MIRROR_PATH = "SVC_MIRROR_PATH", "with SQLite, the folder `svc.mirrors` beside `svc.db`; with PostgreSQL off", Text, false;
    /// Seconds between a push and the fetch of its repository, so that notes pushed right after
    /// their branch are included: 0 to 3600.
    MIRROR_SETTLE_SECONDS = "SVC_MIRROR_SETTLE_SECONDS", "`1`", Text, false;
    /// The hosts that mirrors may be fetched from: a JSON array of names or addresses, in any
    /// network. `[]` allows every host with only public addresses.
    ALLOWED_CLONE_HOSTS = "SVC_ALLOWED_CLONE_HOSTS", "the host of `SVC_FORGE_HOST`", List, false;
    /// Tokens for cloning private repositories: a JSON object of host to token. Sent over https
    /// only.
    FORGE_CLONE_TOKENS = "SVC_FORGE_CLONE_TOKENS", "none", Table, true;
    /// The notes refs to read: a JSON array of `refs/notes/svc` (the service's own) and
    /// `refs/notes/ai` (git-ai's).
    NOTES_REFS = "SVC_NOTES_REFS", "both", List, false;
    /// The bearer token for agents that read context; requires one of the two Session settings.
    RETRIEVAL_TOKEN = "SVC_RETRIEVAL_TOKEN", "none", Text, true;
    /// Named retrieval tokens: a JSON object of name to token. Each reads what is granted to its
    /// name in the store (`svc grant`), which can change while the server runs.
    RETRIEVAL_TOKENS = "SVC_RETRIEVAL_TOKENS", "none", Table, true;
    /// The one Session that context routes may read.
    RETRIEVAL_SESSION_ID = "SVC_RETRIEVAL_SESSION_ID", "none", Text, false;
    /// The Sessions that context routes may read: a JSON array of 1 to 32 ids.
    RETRIEVAL_SESSION_IDS = "SVC_RETRIEVAL_SESSION_IDS", "none", List, false;
    /// Serves `/docs`, `/redoc` and `/openapi.json`.
    ENABLE_DOCS = "SVC_ENABLE_DOCS", "`false`", Text, false;
    /// Serves the Model Context Protocol to agents at `/mcp`.
    ENABLE_MCP = "SVC_ENABLE_MCP", "`false`", Text, false;
    /// The host names that agents may use for `/mcp`, with or without a port: a JSON array. Any
    /// other host is 403.
    MCP_HOSTS = "SVC_MCP_HOSTS", "loopback, and the address of `SVC_LISTEN`", List, false;
    /// The origins of web pages that may call `/mcp`, such as `https://agents.example:443`: a JSON
    /// array.
    MCP_ORIGINS = "SVC_MCP_ORIGINS", "none", List, false;
    /// Serves the read-only console for people at `/console`.
    ENABLE_CONSOLE = "SVC_ENABLE_CONSOLE", "`false`", Text, false;
    /// The host names that people may use for `/console`, with or without a port: a JSON array. Any
    /// other host is 403.
    CONSOLE_HOSTS = "SVC_CONSOLE_HOSTS", "loopback, and the address of `SVC_LISTEN`", List, false;
    /// Disables the rules for secrets and for the hosts of mirrors. For development only.
    DEV_MODE = "SVC_DEV_MODE", "`false`", Text, false;
    /// Creates or upgrades the database schema at start.
    MIGRATE_ON_START = "SVC_MIGRATE_ON_START", "`true`", Text, false;
    /// Reads of evidence, context, Sessions, commits and reports that may run at once. One more waits
    /// for up to 2 seconds, or less with `Prefer: wait=0`, and is then 503. One retrieval token uses
    /// at most half of them, and all of these tokens together leave one to operators.
    READ_SLOTS = "SVC_READ_SLOTS", "`2`", Text, false;
    /// Visible calls of a search. The second default is for named tokens, operators and tools.
    CONTEXT_MAX_CALLS = "SVC_CONTEXT_MAX_CALLS", "`1000`, `100000`", Text, false;
    /// Parts of a search. The second default is for named tokens, operators and tools, for which
    /// repeated messages count once.
    CONTEXT_MAX_PARTS = "SVC_CONTEXT_MAX_PARTS", "`16384`, `1000000`", Text, false;
    /// Canonical bytes of what a search reads. The second default is as for parts.
    CONTEXT_MAX_SOURCE_BYTES = "SVC_CONTEXT_MAX_SOURCE_BYTES", "`67108864`, `1073741824`", Text, false;
    /// Bytes of candidate state of a search.
    CONTEXT_MAX_STATE_BYTES = "SVC_CONTEXT_MAX_STATE_BYTES", "`33554432`", Text, false;
    /// Bytes of decoded messages that are cached in memory.
    CACHE_BYTES = "SVC_CACHE_BYTES", "`67108864`", Text, false;
    /// Redaction of credentials before storage: `on` or `off`.
    REDACTION = "SVC_REDACTION", "`on`", Text, false;
    /// The address that serves metrics for Prometheus at `/metrics`, without authentication.
    METRICS_LISTEN = "SVC_METRICS_LISTEN", "off", Text, false;
    /// The log level, or directives such as `svc_server=debug`. `debug` logs a line per request.
    LOG = "SVC_LOG", "`info`", Text, false;
    /// The log format: `text` or `json`.
    LOG_FORMAT = "SVC_LOG_FORMAT", "`text`", Text, false;
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
        let default = variable.default;
        help.extend([variable.name, "\n"]);
        help.extend([
            "    ",
            description,
            secret,
            "\n    Default: ",
            default,
            "\n",
        ]);
    }
    help.replace('`', "")
}

/// Returns the table of docs/reference/settings.md.
pub fn table() -> String {
    let mut table = String::from("| Variable | Default | What it is |\n|---|---|---|\n");
    for variable in ALL {
        let secret = if variable.secret { " Secret." } else { "" };
        let description = variable.description.trim();
        table.push_str(
            &[
                "| `",
                variable.name,
                "` | ",
                variable.default,
                " | ",
                description,
                secret,
                " |\n",
            ]
            .concat(),
        );
    }
    table
}

/// Returns the table of docs/reference/settings.md for the client and the shell.
pub fn shell_table() -> String {
    let mut table = String::from("| Variable | Default | What it is |\n|---|---|---|\n");
    for variable in OF_THE_SHELL {
        table.push_str(
            &[
                "| `",
                variable.name,
                "` | ",
                variable.default,
                " | ",
                variable.description,
                " |\n",
            ]
            .concat(),
        );
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
    fn every_setting_is_listed_once() {
        let names = ALL.iter().map(|variable| variable.name);
        let names: Vec<&str> = names.chain(OTHERS.iter().copied()).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.starts_with(PREFIX)));
    }
}
