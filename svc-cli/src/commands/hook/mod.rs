//! The commands that agents' hooks run.

mod cursor;

use clap::Subcommand;

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    /// Report an edit that Cursor made, from the standard input of its hook postToolUse.
    ///
    /// It never fails and never takes long. Errors go to standard error.
    Cursor(cursor::Cursor),
}

impl Hook {
    pub(crate) fn run(&self, output: &mut Output) {
        match self {
            Self::Cursor(cursor) => cursor.run(output),
        }
    }
}
