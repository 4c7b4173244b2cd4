//! The mirrors of the service. These commands work directly on the store and on the folder of the
//! mirrors.

mod gc;
mod refresh;
mod status;

use clap::{Args, Subcommand};
use svc_engine::mirror::{MirrorConfig, MirrorFolder};
use svc_engine::store::{JobState, MirrorStatus};
use svc_server::{MirrorSettings, Overrides};

use super::store::{given, overrides};
use crate::error::CommandError;
use crate::options::StoreOptions;
use crate::output::{Output, quote};

#[derive(Debug, Subcommand)]
pub(crate) enum Mirror {
    /// Show every mirror, whether it is up to date with its pushes, and if not, why.
    Status(status::Status),
    /// Refresh mirrors now, without waiting for a server.
    ///
    /// It fetches, reads the commit notes and stores the observations, as a server does. For a
    /// repository whose first fetch takes longer than a server allows, set a longer --deadline.
    Refresh(refresh::Refresh),
    /// Remove mirrors without recent pushes.
    ///
    /// Without --apply it only lists them. Facts are never removed, and a mirror is fetched again
    /// after the next push.
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

/// The store and the mirrors to work on.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MirrorOptions {
    #[command(flatten)]
    pub(super) store: StoreOptions,

    /// The folder of the mirrors; by default that of a server on the store, beside a SQLite file.
    #[arg(
        long,
        env = "SVC_MIRROR_PATH",
        hide_env_values = true,
        value_name = "FOLDER"
    )]
    mirror_path: Option<String>,
}

impl MirrorOptions {
    /// Returns whether a folder for the mirrors is given.
    pub(super) fn has_path(&self) -> bool {
        given(self.mirror_path.as_deref()).is_some()
    }

    /// Returns whether an option, rather than the environment, names a folder for the mirrors.
    pub(super) fn has_option(&self) -> bool {
        self.has_path() && self.mirror_path != std::env::var("SVC_MIRROR_PATH").ok()
    }

    /// Returns the organization, if one is given.
    pub(super) fn organization(&self) -> Option<String> {
        given(self.store.org_id.as_deref())
    }

    pub(super) fn settings(&self) -> Result<MirrorSettings, CommandError> {
        Ok(MirrorSettings::load(Overrides {
            // An empty one says that there are no mirrors.
            mirror_path: self.mirror_path.clone(),
            ..overrides(&self.store)?
        })?)
    }
}

/// Returns whether a mirror was fetched but is no longer in the folder of the mirrors. A running
/// refresh may be creating it anew.
pub(super) fn is_gone(folder: Option<&MirrorFolder>, mirror: &MirrorStatus) -> bool {
    let is_running = matches!(mirror.state, JobState::Running(_));
    mirror.last_success_at.is_some()
        && !is_running
        && folder.is_some_and(|folder| !folder.exists(&mirror.lifetime))
}

/// Returns the command that refreshes the mirror of a repository.
pub(super) fn refresh_command(repository: &str) -> String {
    format!("svc mirror refresh {}", quote(repository))
}

/// Returns the configuration of mirrors, for a command that needs one.
fn required(mirror: Option<MirrorConfig>) -> Result<MirrorConfig, CommandError> {
    mirror.ok_or_else(|| {
        CommandError::refused("no_mirrors", "no folder of mirrors is configured")
            .hint("set it with --mirror-path or SVC_MIRROR_PATH")
    })
}
