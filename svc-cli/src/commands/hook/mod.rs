//! The commands that agents' hooks run.

mod cursor;
mod transcript;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CommandError;
use crate::output::{Format, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    /// Report an edit that Cursor made, from the standard input of its hook postToolUse.
    ///
    /// It never fails and never takes long. Errors go to standard error.
    Cursor(cursor::Cursor),
    /// Send what is new in the transcript of an agent, from the standard input of its hook.
    ///
    /// It never fails and never takes long: what is new is put into the outbox, and sent by another
    /// process. Nothing is read without --cwd or --all, or if the agent works elsewhere. Errors go
    /// to standard error.
    Transcript(transcript::TranscriptHook),
}

impl Hook {
    pub(crate) fn run(&self, output: &mut Output) {
        match self {
            Self::Cursor(cursor) => cursor.run(output),
            Self::Transcript(transcript) => transcript.run(output),
        }
    }
}

/// Returns whether a command line calls the hook that must never fail, whatever its arguments are:
/// an agent may take another exit code as an order to stop.
pub(crate) fn is_called(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut words = arguments.skip(1);
    let mut next = || words.next();
    next().is_some_and(|word| word == "hook") && next().is_some_and(|word| word == "transcript")
}

/// Says on one line of standard error what is wrong with the command line of such a hook. Nothing
/// is sent, and the agent goes on. Somebody who asks for help gets it.
pub(crate) fn misused(usage: &clap::Error) -> ExitCode {
    if usage.use_stderr() {
        let error = CommandError::usage(&usage.to_string());
        Output::standard(Format::Text).caveat(error.message());
    } else {
        drop(usage.print());
    }
    ExitCode::SUCCESS
}
