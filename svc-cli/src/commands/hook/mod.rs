//! What the hooks of agents run.

mod cursor;

use clap::Subcommand;

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    /// Report an edit that Cursor made, from what its hook postToolUse writes to standard input.
    ///
    /// It never fails, and never takes long: what cannot be reported is said on standard error.
    Cursor(cursor::Cursor),
}

impl Hook {
    pub(crate) fn run(&self, output: &mut Output) {
        match self {
            Self::Cursor(cursor) => cursor.run(output),
        }
    }
}
