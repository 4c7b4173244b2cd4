//! The server alone, for containers: it takes its settings from the environment and needs no
//! argument.

use std::process::ExitCode;

use svc_server::{Overrides, Settings, serve};

#[expect(
    clippy::print_stderr,
    reason = "the settings decide how to log, so their mistakes cannot be logged"
)]
fn main() -> ExitCode {
    let served = match Settings::load(Overrides::default()) {
        Ok(settings) => serve(settings).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
