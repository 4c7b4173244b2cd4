//! Other people's programs that tests drive: clients, test suites, a browser.
//!
//! They are installed from their registries, which a machine may not be able to reach. Then a test
//! says what is missing and ends, unless `SVC_TEST_FOREIGN` is `required` or `whole`, in which case
//! it fails. Each program is driven once; with `whole`, in every case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use crate::process;

/// How long the installation of a program may take.
const INSTALL_MAX: Duration = Duration::from_mins(3);

/// The variable that says whether these programs must be present, and how far they are driven.
pub const VARIABLE: &str = "SVC_TEST_FOREIGN";

/// Returns whether these programs are driven in every case.
pub fn is_whole() -> bool {
    env::var(VARIABLE).is_ok_and(|value| value == "whole")
}

/// Returns the cases to drive a program in: all of them, or the first.
pub fn cases<T>(all: &[T]) -> &[T] {
    if is_whole() {
        all
    } else {
        &all[..all.len().min(1)]
    }
}

/// Says why a test is left out.
///
/// # Panics
///
/// If nothing may be left out.
#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
pub fn left_out(why: &str) {
    let is_required = env::var(VARIABLE).is_ok_and(|value| value == "required") || is_whole();
    assert!(!is_required, "{VARIABLE} is required, and {why}");
    eprintln!("left out, because a program of others cannot be used here: {why}");
}

/// Returns the folder of a program, in a folder that is kept.
pub fn folder(kept: &Path, client: &str) -> PathBuf {
    let name: String = client
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    kept.join(name)
}

/// Runs the steps that install a program, unless they were run before.
///
/// # Errors
///
/// Why it cannot be installed.
pub fn install(client: &str, folder: &Path, steps: &[&[&str]]) -> Result<(), String> {
    let done = folder.join("installed");
    if done.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for step in steps {
        let [program, arguments @ ..] = step else {
            continue;
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        let output = process::run(&mut command, b"", INSTALL_MAX)?;
        if !output.status.success() {
            let stderr = output.stderr_text();
            return Err(format!(
                "{client}: {}",
                stderr.lines().last().unwrap_or_default()
            ));
        }
    }
    fs::write(done, "").map_err(|error| error.to_string())
}
