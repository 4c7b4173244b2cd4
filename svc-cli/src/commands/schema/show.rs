use clap::Args;

use super::published::{self, OPENAPI};
use crate::error::CommandError;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The schema, such as GatewayPayload, or openapi.
    #[arg(value_name = "NAME")]
    name: String,
}

impl Show {
    pub(crate) fn run(&self, output: &mut Output) -> Result<(), CommandError> {
        if published::is_named(&self.name, OPENAPI) {
            return output.text(svc_server::OPENAPI);
        }
        output.text(published::find(&self.name)?.text)
    }
}
