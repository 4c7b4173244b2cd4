//! The published schemas: list them, show one, validate a document.
//!
//! They are built into this program, so these commands need neither a service nor a network.

mod list;
mod published;
mod show;
mod validate;
mod violation;

use clap::Subcommand;

use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Schema {
    /// List the published schemas.
    ///
    /// There is one for each request, each reply, and what they contain: parts, log events, notes
    /// on commits and gateway payloads.
    List,
    /// Print a schema, as JSON.
    ///
    /// The name openapi prints the OpenAPI document of the service, the same as /openapi.json.
    Show(show::Show),
    /// Validate a JSON document against a schema.
    ///
    /// Each violation is printed with its JSON Pointer, and the command exits with 1. The document
    /// is never sent anywhere.
    Validate(validate::Validate),
}

impl Schema {
    pub(crate) fn run(self, output: &mut Output) -> Result<(), CommandError> {
        match self {
            Self::List => list::run(output),
            Self::Show(show) => show.run(output),
            Self::Validate(validate) => validate.run(output),
        }
    }
}
