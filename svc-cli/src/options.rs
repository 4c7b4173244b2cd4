//! The options that many commands have.

use clap::Args;

/// Which service is asked.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceOptions {
    /// The URL of the service.
    #[arg(long, env = "SVC_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) url: Option<String>,
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
