//! The program `svc-server`: the server alone, for containers. It takes its settings from the
//! environment, and no arguments.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::{Overrides, Settings, env, serve};

/// What the command line asks for.
enum Request {
    Serve,
    Help,
    Version,
}

/// Runs the program `svc-server` with these arguments, without its name, until it ends.
pub fn alone(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = arguments.into_iter().map(OsString::into_string);
    let arguments: Vec<_> = arguments.collect();
    let arguments: Vec<_> = arguments.iter().map(Result::as_deref).collect();
    let request = match arguments.as_slice() {
        [] => Request::Serve,
        [Ok("--help" | "-h")] => Request::Help,
        [Ok("--version" | "-V")] => Request::Version,
        // An argument may be a secret, so it is not repeated.
        _ => {
            complain(
                "svc-server takes no arguments: its settings come from the environment and \
                 config.toml; svc-server --help lists them",
            );
            return ExitCode::from(2);
        }
    };
    match request {
        Request::Serve => run(),
        Request::Help => {
            print(&env::help());
            ExitCode::SUCCESS
        }
        Request::Version => {
            print(&format!(
                "svc-server {}\n",
                svc_model::version::SERVICE_VERSION
            ));
            ExitCode::SUCCESS
        }
    }
}

fn run() -> ExitCode {
    let served = match Settings::load(Overrides::default()) {
        Ok(settings) => serve(settings).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints an answer. This fails only if nobody reads it.
fn print(text: &str) {
    drop(std::io::Write::write_all(
        &mut std::io::stdout(),
        text.as_bytes(),
    ));
}

/// Prints why the server could not start: the first line of the error, then the rest.
#[expect(
    clippy::print_stderr,
    reason = "the settings decide how to log, so errors in them cannot be logged"
)]
fn complain(error: &str) {
    eprintln!("error: {}", error.replace('\n', "\n  "));
}
