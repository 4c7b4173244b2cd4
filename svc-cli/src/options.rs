//! The options that many commands have.

use clap::Args;
use svc_client::environment;

use crate::output::quote;

/// Which service is asked.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceOptions {
    /// The URL of the service.
    #[arg(long, env = "SVC_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) url: Option<String>,
}

impl ServiceOptions {
    /// Returns the option as a command is to repeat it, after a blank: nothing when the environment
    /// gives it, which the next command has too.
    pub(crate) fn repeated(&self) -> String {
        match self.url.as_deref().map(str::trim) {
            None | Some("") => String::new(),
            given if environment::url().ok().flatten().as_deref() == given => String::new(),
            Some(url) => format!(" --url {}", quote(url)),
        }
    }
}

/// Which store is worked on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreOptions {
    /// The database: sqlite://PATH or postgres://USER@HOST/DATABASE.
    #[arg(
        long,
        env = "SVC_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) database_url: Option<String>,

    /// The organization.
    #[arg(
        long = "org",
        env = "SVC_ORG_ID",
        hide_env_values = true,
        value_name = "ORG"
    )]
    pub(crate) org_id: Option<String>,
}
