//! The mirrors of the service: how they are, and what an operator does about them. These commands
//! work on the store and on the folder of the mirrors.

mod gc;
mod refresh;
mod status;

use clap::{Args, Subcommand};
use serde::Serialize;
use svc_engine::mirror::MirrorConfig;
use svc_model::repository::RepositoryIdentity;
use svc_server::{MirrorSettings, Overrides};

use super::store::given;
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Mirror {
    /// Show every mirror: whether it is as new as the pushes, and why not.
    Status(status::Status),
    /// Refresh mirrors now, without waiting for a server.
    ///
    /// It fetches, reads the commit notes and stores what they say, as a server does. A repository
    /// whose first fetch takes longer than a server allows is fetched with a longer --deadline.
    Refresh(refresh::Refresh),
    /// Remove the mirrors that nobody has pushed to for long.
    ///
    /// Without --apply it only shows them. Facts are never removed, and a mirror is fetched again
    /// when somebody pushes.
    Gc(gc::Gc),
}

impl Mirror {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Status(status) => status.run(output),
            Self::Refresh(refresh) => refresh.run(output),
            Self::Gc(gc) => gc.run(output),
        }
    }
}

/// Which store and which mirrors are worked on.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MirrorOptions {
    #[command(flatten)]
    store: StoreOptions,

    /// The folder of the mirrors.
    #[arg(
        long,
        env = "SVC_MIRROR_PATH",
        hide_env_values = true,
        value_name = "FOLDER"
    )]
    mirror_path: Option<String>,
}

impl MirrorOptions {
    /// Returns whether a store, or a folder of mirrors, is named.
    pub(super) fn are_named(&self) -> bool {
        let named = [&self.store.database_url, &self.mirror_path];
        named.into_iter().any(|it| given(it.as_deref()).is_some())
    }

    /// Returns the organization that is named.
    pub(super) fn organization(&self) -> Option<String> {
        given(self.store.org_id.as_deref())
    }

    pub(super) fn settings(&self) -> Result<MirrorSettings, CommandError> {
        Ok(MirrorSettings::load(Overrides {
            database_url: given(self.store.database_url.as_deref()),
            org_id: given(self.store.org_id.as_deref()),
            mirror_path: given(self.mirror_path.as_deref()),
            ..Overrides::default()
        })?)
    }
}

/// Returns how mirrors are kept, for a command that needs them.
fn required(mirror: Option<MirrorConfig>) -> Result<MirrorConfig, CommandError> {
    mirror.ok_or_else(|| {
        CommandError::refused("no_mirrors", "there are no mirrors")
            .hint("name their folder: --mirror-path or SVC_MIRROR_PATH")
    })
}

/// An identity, as a program reads it.
#[derive(Debug, Serialize)]
struct Identity {
    provider: &'static str,
    host: String,
    repository_id: String,
}

impl From<&RepositoryIdentity> for Identity {
    fn from(identity: &RepositoryIdentity) -> Self {
        Self {
            provider: identity.repository_provider.as_str(),
            host: identity.repository_host.to_string(),
            repository_id: identity.repository_id.to_string(),
        }
    }
}
