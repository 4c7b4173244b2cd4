//! `svc`: the shell of the evidence service.
//!
//! It holds the server (`svc serve`), the questions that a person asks a running service, and the
//! commands that work on the store itself. Each command has one file in `commands`; what it prints
//! is made in `output`, where text that came from outside is escaped; what goes wrong becomes a
//! `CommandError`, whose kind is the exit code and whose hints are the next commands to run.
//!
//! Exit codes: 0 done, also when nothing was found; 1 refused or failed; 2 wrong usage.

mod cli;
mod commands;
mod credentials;
mod error;
mod help;
mod options;
mod output;
mod product;
mod run;

use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::error::CommandError;
use crate::output::{Format, Output};

fn main() -> ExitCode {
    let color = cli::color_of(std::env::args_os());
    let command = help::command().color(color);
    let cli = command
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    output::begin(cli.as_ref().map_or(color, Cli::color));
    let cli = match cli {
        Ok(cli) => cli,
        Err(usage) => return misused(&usage),
    };
    let mut output = Output::standard(cli.format());
    match run::run(cli, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            error.exit_code()
        }
    }
}

/// Answers a command line that is none, or one that asks for help.
fn misused(usage: &clap::Error) -> ExitCode {
    let asked = matches!(
        usage.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if !asked && std::env::args_os().any(|argument| argument == "--json") {
        let error = CommandError::usage(&usage.to_string());
        Output::standard(Format::Json).error(&error);
        return error.exit_code();
    }
    // It fails only when nobody reads it.
    drop(usage.print());
    u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
