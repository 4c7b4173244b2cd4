//! `svc`: the shell of the evidence service.
//!
//! It contains the server (`svc serve`), the commands that ask a running service, and the commands
//! that work on the store itself. Each command has one file in `commands`. Its output is formatted
//! in `output`, where external text is escaped. An error becomes a `CommandError`, whose kind
//! determines the exit code and whose hints name the next commands to run. Under the name
//! `svc-server`, it is the server alone.
//!
//! Exit codes: 0 success, even if nothing was found; 1 refused or failed; 2 wrong usage.

mod cli;
mod commands;
mod credentials;
mod error;
mod help;
#[cfg(test)]
mod mentions;
mod options;
mod output;
mod product;
mod run;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{FromArgMatches as _, Parser as _};

use crate::cli::Cli;
use crate::commands::{hook, overview};
use crate::error::CommandError;
use crate::output::{Format, Output};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().map(PathBuf::from).unwrap_or_default();
    if name.file_stem().is_some_and(|name| name == "svc-server") {
        return svc_server::alone(arguments);
    }
    let color = cli::color_of(std::env::args_os());
    let command = help::command().color(color);
    let cli = command
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    output::begin(cli.as_ref().map_or(color, Cli::color));
    let cli = match cli {
        Ok(cli) => cli,
        Err(usage) if hook::is_called(std::env::args_os()) => return hook::misused(&usage),
        // A program that forgets the command has made a mistake.
        Err(usage) if std::env::args_os().len() == 1 && io::stdout().is_terminal() => {
            match without_command() {
                Some(cli) => cli,
                None => return unanswerable(&usage),
            }
        }
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

/// Returns what the program does for a person without any argument: it shows the overview, if it knows whom to
/// ask.
fn without_command() -> Option<Cli> {
    overview::is_service_known()
        .then(|| Cli::try_parse_from(["svc", "overview"]).ok())
        .flatten()
}

/// Shows the help, and how to begin.
fn unanswerable(usage: &clap::Error) -> ExitCode {
    let code = misused(usage);
    Output::standard(Format::Text).note(
        "once a service is known, this shows what became of the last days' work: start one with \
         `svc serve`, or name one with `svc login URL`",
    );
    code
}

/// Handles an invalid command line or a request for help.
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
    if let Err(error) = usage.print()
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        Output::standard(Format::Text).error(&error.into());
        return ExitCode::FAILURE;
    }
    u8::try_from(usage.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
