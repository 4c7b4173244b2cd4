use clap::Args;
use svc_server::{Overrides, Settings};

use super::store::given;
use crate::error::CommandError;
use crate::options::StoreOptions;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; by default 127.0.0.1:8000.
    #[arg(
        long,
        env = "SVC_LISTEN",
        hide_env_values = true,
        value_name = "HOST:PORT"
    )]
    listen: Option<String>,

    #[command(flatten)]
    store: StoreOptions,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let settings = Settings::load(Overrides {
            listen: given(self.listen.as_deref()),
            database_url: given(self.store.database_url.as_deref()),
            org_id: given(self.store.org_id.as_deref()),
            ..Overrides::default()
        })?;
        Ok(svc_server::serve(settings)?)
    }
}

impl From<svc_server::SettingsError> for CommandError {
    fn from(error: svc_server::SettingsError) -> Self {
        let refused = Self::refused("configuration", error.to_string());
        let lines = error.generating().into_iter();
        lines.fold(refused, Self::hint)
    }
}

impl From<svc_server::ServeError> for CommandError {
    fn from(error: svc_server::ServeError) -> Self {
        let refused = Self::refused("serve", error.to_string());
        match &error {
            svc_server::ServeError::Listen(address, cause)
                if cause.kind() == std::io::ErrorKind::AddrInUse =>
            {
                let refused = match svc_server::running_here() {
                    Some(url) if url.ends_with(&format!(":{}", address.port())) => refused.hint(
                        format!("a service of yours listens there: svc me --url {url}"),
                    ),
                    _ => refused,
                };
                refused.hint("to listen on a free port: svc serve --listen 127.0.0.1:0")
            }
            _ => refused,
        }
    }
}
