//! The published schemas: which there are, what each says, and whether a document holds to one.
//!
//! They are in this program, so that these commands need neither a service nor a network.

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
    /// There is one for each request, each reply, and what stands within them: parts, log events,
    /// notes on commits and the payload of a gateway.
    List,
    /// Print a schema, as JSON.
    ///
    /// openapi prints the description of the whole service instead, as /openapi.json has it.
    Show(show::Show),
    /// Check a JSON document against a schema.
    ///
    /// Each violation is printed with the JSON Pointer of its place. The command exits with 1 when
    /// there is one. The document is never sent anywhere.
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
