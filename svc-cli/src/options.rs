//! Options shared by many commands.

use clap::Args;

use crate::output::long_option;

/// The service to ask.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServiceOptions {
    /// The URL of the service, or localhost:PORT; by default SVC_URL, else the last login, else the
    /// service on this machine.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

impl ServiceOptions {
    /// Returns the option for a suggested command, after a space.
    pub(crate) fn repeated(&self) -> String {
        match self.url.as_deref().map(str::trim) {
            None | Some("") => String::new(),
            Some(url) => long_option("url", url),
        }
    }
}

/// The store to work on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreOptions {
    /// The database: sqlite://PATH or postgres://USER@HOST/DATABASE; by default SVC_DATABASE_URL.
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,

    /// The organization; by default SVC_ORG_ID.
    #[arg(long = "org", value_name = "ORG", value_parser = organization)]
    pub(crate) org_id: Option<String>,
}

/// Refuses a blank organization, such as that of a variable that is not set. It would read as no
/// option, and the command would work on another organization than the one that was meant.
fn organization(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("must name an organization");
    }
    Ok(text.to_owned())
}
