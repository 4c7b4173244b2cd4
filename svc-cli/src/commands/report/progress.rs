//! The progress of a long-running command, on one line of a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::output::Output;

/// The interval between updates, and before the first one.
const EVERY: Duration = Duration::from_secs(1);
/// Moves to the beginning of the line and clears it.
const EMPTY: &str = "\r\u{1b}[2K";

/// A line on a terminal that shows what is being done and for how long. It is cleared on drop.
#[derive(Debug)]
pub(super) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts showing what is being done. Without a terminal, nothing is shown.
    pub(super) fn begin(output: &Output, what: &'static str) -> Self {
        if !output.is_for_people() || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (end, ended) = channel();
        let begun = Instant::now();
        let show = move || {
            let mut is_shown = false;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                is_shown = true;
                let seconds = begun.elapsed().as_secs();
                write(&format!("{EMPTY}{what}: {seconds} s (Ctrl-C to stop)"));
            }
            if is_shown {
                write(EMPTY);
            }
        };
        let thread = thread::Builder::new().name("svc-progress".to_owned());
        Self(thread.spawn(show).ok().map(|thread| (end, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // Later output must begin on an empty line.
            drop(thread.join());
        }
    }
}

/// Writes to the terminal. If that fails, nobody is watching.
fn write(text: &str) {
    let mut terminal = io::stderr().lock();
    drop(terminal.write_all(text.as_bytes()));
    drop(terminal.flush());
}
