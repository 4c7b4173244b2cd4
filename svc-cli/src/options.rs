//! The options that many commands have.

use clap::Args;

use crate::output::quote;

/// Which service is asked.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceOptions {
    /// The URL of the service, or localhost:PORT; by default that of SVC_URL, else that of the last
    /// login, else the service of this machine.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

impl ServiceOptions {
    /// Returns the option as a command is to repeat it, after a blank.
    pub(crate) fn repeated(&self) -> String {
        match self.url.as_deref().map(str::trim) {
            None | Some("") => String::new(),
            Some(url) => format!(" --url {}", quote(url)),
        }
    }
}

/// Which store is worked on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreOptions {
    /// The database: sqlite://PATH or postgres://USER@HOST/DATABASE; by default that of
    /// SVC_DATABASE_URL.
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,

    /// The organization; by default that of SVC_ORG_ID.
    #[arg(long = "org", value_name = "ORG")]
    pub(crate) org_id: Option<String>,
}
