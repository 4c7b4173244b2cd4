//! Child processes with a time limit.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The result of a finished process.
#[derive(Debug)]
pub struct Output {
    /// How the process ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Returns the standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Runs a command to its end with this input.
///
/// # Errors
///
/// If the command cannot start, or takes longer than `limit` and is killed.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Result<Output, String> {
    let name = command.get_program().display().to_string();
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("{name}: {error}"))?;
    let mut stdin = child.stdin.take().expect("a piped input");
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // Writing fails if the process does not read its input, which is not an error.
        scope.spawn(move || drop(stdin.write_all(input)));
        let stdout = scope.spawn(move || read_all(stdout));
        let stderr = scope.spawn(move || read_all(stderr));
        let status = wait(&mut child, limit);
        if status.is_none() {
            let _ignored = child.kill();
            let _ignored = child.wait();
        }
        let stdout = stdout.join().expect("the reader does not panic");
        let stderr = stderr.join().expect("the reader does not panic");
        let status = status.ok_or_else(|| format!("{name} took longer than {limit:?}"))?;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    })
}

/// Waits for the end of a child; `None` if it takes longer than `limit`.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return Some(status);
        }
        if start.elapsed() > limit {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn read_all(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let _ignored = stream.read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_written_and_both_outputs_are_read() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo complaint >&2; exit 3"]);
        let output = run(&mut command, b"words", Duration::from_secs(10)).expect("it runs");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (output.stdout_text().as_str(), output.stderr_text().as_str()),
            ("words", "complaint\n")
        );
    }

    #[test]
    fn a_process_that_exceeds_its_time_is_killed() {
        let start = Instant::now();
        let outcome = run(
            Command::new("sleep").arg("60"),
            b"",
            Duration::from_millis(50),
        );
        assert!(outcome.expect_err("no end").contains("took longer"));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
