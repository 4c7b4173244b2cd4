//! A long-running command: its deadline, and its progress on a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use svc_engine::backup::BackupError;
use svc_engine::deadline::{Cancellation, Deadline};
use svc_engine::store::backup::Watch;

use super::ended;
use crate::commands::interruption::by_the_operator;
use crate::error::CommandError;
use crate::output::Output;

/// The time limit. Usually the work is done, or the operator interrupts it, much earlier.
const AT_MOST: Duration = Duration::from_hours(24);
/// How often the progress is printed.
const EVERY: Duration = Duration::from_millis(250);
/// Moves to the beginning of the line and clears it.
const EMPTY: &str = "\r\u{1b}[2K";

/// What is left when a command that writes is interrupted.
pub(super) const REMOVED: &str = "everything written so far was removed";

/// Runs work that Ctrl-C interrupts, and prints its progress to standard error. `left` says what an
/// interruption leaves.
pub(super) fn run<T>(
    output: &Output,
    what: &str,
    left: &str,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, BackupError>,
) -> Result<T, CommandError> {
    let cancellation: Cancellation = by_the_operator()?;
    let is_shown = output.is_for_people() && io::stderr().is_terminal();
    let mut last = None;
    let mut progress = |part: &str, rows: u64| {
        let is_due = last.is_none_or(|last: Instant| last.elapsed() >= EVERY);
        if is_shown && is_due {
            last = Some(Instant::now());
            write(&format!("{EMPTY}{what}: {part}, {rows} (Ctrl-C to stop)"));
        }
    };
    let done = work(&mut Watch {
        deadline: Deadline::after(AT_MOST).cancelled_by(&cancellation),
        progress: &mut progress,
    });
    if last.is_some() {
        write(EMPTY);
    }
    done.map_err(|error| ended(error, cancellation.is_cancelled(), left))
}

/// Writes to the terminal. If that fails, nobody is watching.
fn write(text: &str) {
    let mut terminal = io::stderr().lock();
    drop(terminal.write_all(text.as_bytes()));
    drop(terminal.flush());
}
