use clap::Subcommand;

use super::inventory::ReadInventory;
use super::manifest::ReadManifest;
use super::read::ReadParts;
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Evidence {
    /// List the visible calls of a Session.
    Inventory(ReadInventory),
    /// List the messages and parts of a call, without their content.
    #[command(alias = "inspect")]
    Manifest(ReadManifest),
    /// Read parts, completely and exactly.
    #[command(alias = "fetch")]
    Read(ReadParts),
}

impl Evidence {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::Inventory(inventory) => inventory.run(output),
            Self::Manifest(manifest) => manifest.run(output),
            Self::Read(read) => read.run(output),
        }
    }
}
