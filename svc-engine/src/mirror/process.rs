//! A program that is never left behind.
//!
//! It runs in a process group of its own, so that the helpers it starts end with it, and its output
//! is read through a channel, so that a program that says nothing and does not end cannot hold up
//! whoever waits for it. When its allowance is used up the whole group is asked to end, and killed
//! a second later.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::allowance::{Allowance, Stopped};

/// How long a program may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How often the allowance is looked at while a program says nothing.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of one piece of output.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces of output that wait for their reader.
const PIECES_MAX: usize = 4;
/// Bytes of a complaint that are kept: its beginning.
const COMPLAINT_BYTES_MAX: usize = 8 * 1024;

/// What a program reads.
#[derive(Debug)]
pub(super) enum Input {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file that stays open for as long as any process of the group lives, and with it its lock.
    Held(File),
}

/// Why a program gave no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// It cannot be started.
    #[error("it cannot be started")]
    Start(#[source] io::Error),
    /// Its allowance was used up.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// It ended without success.
    #[error("it ended without success")]
    Failed {
        /// What it complained of.
        complaint: String,
    },
    /// Its output is not what it should be.
    #[error("its output cannot be read")]
    Output(#[source] io::Error),
}

/// Runs a program to its end and returns what `read` made of its output.
pub(super) fn run<T>(
    command: &mut Command,
    input: Input,
    allowance: &Allowance,
    read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
) -> Result<T, ProcessError> {
    allowance.left()?;
    let mut running = Running::start(command, input).map_err(ProcessError::Start)?;
    let pieces = running
        .pieces
        .take()
        .ok_or(ProcessError::Start(io::ErrorKind::BrokenPipe.into()))?;
    let mut output = BufReader::with_capacity(PIECE_BYTES, Output::new(pieces, allowance));
    let result = read(&mut output);
    if let Some(stopped) = output.get_ref().stopped {
        return Err(stopped.into());
    }
    // Whatever is not read is not wanted: the program is told by its next write.
    drop(output);
    let status = match &result {
        Ok(_) => running.end(allowance)?,
        // It may have ended before its output was whole; then that is the reason.
        Err(_) => running.end(&allowance.at_most(GRACE))?,
    };
    match result {
        Ok(result) if status.success() => Ok(result),
        Err(error) if status.success() => Err(ProcessError::Output(error)),
        _ => Err(ProcessError::Failed {
            complaint: running.complaint(),
        }),
    }
}

/// A running program. Dropping it ends the whole group.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Pid,
    ended: bool,
    pieces: Option<Receiver<Vec<u8>>>,
    complaint: Receiver<Vec<u8>>,
}

impl Running {
    fn start(command: &mut Command, input: Input) -> io::Result<Self> {
        command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let bytes = match input {
            Input::Nothing => {
                command.stdin(Stdio::null());
                None
            }
            Input::Bytes(bytes) => {
                command.stdin(Stdio::piped());
                Some(bytes)
            }
            Input::Held(file) => {
                command.stdin(file);
                None
            }
        };
        let mut child = command.spawn()?;
        // The group has the number of its first process.
        let group = Pid::from_child(&child);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (piece, pieces) = sync_channel(PIECES_MAX);
        let (whole, complaint) = sync_channel(1);
        let running = Self {
            child,
            group,
            ended: false,
            pieces: Some(pieces),
            complaint,
        };
        // The threads end with the pipes, at the latest when the group does.
        if let (Some(mut stdin), Some(bytes)) = (stdin, bytes) {
            start_thread(move || {
                // A program need not read what it is given.
                drop(stdin.write_all(&bytes));
            })?;
        }
        if let Some(stdout) = stdout {
            start_thread(move || hand_over(stdout, &piece))?;
        }
        if let Some(stderr) = stderr {
            start_thread(move || drop(whole.send(beginning(stderr))))?;
        }
        Ok(running)
    }

    /// Waits for the end of the program.
    fn end(&mut self, allowance: &Allowance) -> Result<ExitStatus, ProcessError> {
        let mut pause = Duration::from_micros(100);
        while !self.has_ended() {
            let left = allowance.left()?;
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LOOK);
        }
        self.reap().map_err(ProcessError::Output)
    }

    /// Returns whether the program has ended. It is not reaped, so its number stays its own.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = rustix::process::waitid(WaitId::Pid(self.group), options);
        !matches!(status, Ok(None))
    }

    /// Kills what is left of the group and reaps the program.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait();
        self.ended = true;
        status
    }

    fn signal(&self, signal: Signal) {
        // It fails when the group is gone, which is what a signal is for.
        let _gone = rustix::process::kill_process_group(self.group, signal).is_err();
    }

    fn complaint(&self) -> String {
        let complaint = self.complaint.recv_timeout(LOOK).unwrap_or_default();
        String::from_utf8_lossy(&complaint).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while !self.has_ended() && asked.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(5));
        }
        drop(self.reap());
    }
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("svc-git-pipe".to_owned())
        .spawn(work)
        .map(drop)
}

/// Hands output over piece by piece until nobody takes it.
fn hand_over(mut stdout: impl Read, pieces: &SyncSender<Vec<u8>>) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        match stdout.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => {
                piece.truncate(length);
                if pieces.send(piece).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Reads everything and returns its beginning: a program must not be held up by a full pipe.
fn beginning(mut stderr: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    drop(
        stderr
            .by_ref()
            .take(COMPLAINT_BYTES_MAX as u64)
            .read_to_end(&mut kept),
    );
    drop(io::copy(&mut stderr, &mut io::sink()));
    kept
}

/// The output of a program, for as long as its allowance lasts.
struct Output<'a> {
    pieces: Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
    allowance: &'a Allowance,
    stopped: Option<Stopped>,
}

impl<'a> Output<'a> {
    fn new(pieces: Receiver<Vec<u8>>, allowance: &'a Allowance) -> Self {
        Self {
            pieces,
            piece: io::Cursor::default(),
            allowance,
            stopped: None,
        }
    }
}

impl Read for Output<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.piece.read(buffer)?;
            if length > 0 {
                return Ok(length);
            }
            let left = self.allowance.left().map_err(|stopped| {
                self.stopped = Some(stopped);
                io::Error::from(io::ErrorKind::TimedOut)
            })?;
            match self.pieces.recv_timeout(left.min(LOOK)) {
                Ok(piece) => self.piece = io::Cursor::new(piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::allowance::CallOff;
    use crate::testing::processes::group_is_gone;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn long() -> Allowance {
        Allowance::of(Duration::from_secs(30), CallOff::default())
    }

    fn everything(output: &mut dyn BufRead) -> io::Result<String> {
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Runs a script that says its group first, and returns it with what became of the run.
    fn group_of(script: &str, allowance: &Allowance) -> (Pid, Result<(), ProcessError>) {
        let mut group = None;
        let result = run(&mut shell(script), Input::Nothing, allowance, |output| {
            let mut line = String::new();
            output.read_line(&mut line)?;
            group = Some(line.trim().parse().unwrap());
            everything(output).map(drop)
        });
        (Pid::from_raw(group.unwrap()).unwrap(), result)
    }

    fn is_gone(group: Pid) -> bool {
        group_is_gone(group.as_raw_pid().cast_unsigned())
    }

    #[test]
    fn input_goes_in_and_output_comes_out() {
        let input = vec![b'x'; 1_000_000];
        let output = run(
            &mut shell("cat"),
            Input::Bytes(input.clone()),
            &long(),
            everything,
        );
        assert_eq!(output.unwrap().as_bytes(), input);
        let ignored = run(&mut shell("true"), Input::Bytes(input), &long(), everything);
        assert_eq!(ignored.unwrap(), "");
    }

    #[test]
    fn a_failure_says_why() {
        let mut failing = shell("echo half; yes why | head -c 100000 >&2; exit 3");
        let failed = run(&mut failing, Input::Nothing, &long(), everything);
        match failed {
            Err(ProcessError::Failed { complaint }) => {
                assert!(complaint.starts_with("why\n"));
                assert_eq!(complaint.len(), COMPLAINT_BYTES_MAX);
            }
            other => panic!("{other:?}"),
        }
        let missing = run(
            &mut Command::new("/nowhere/at/all"),
            Input::Nothing,
            &long(),
            everything,
        );
        assert!(matches!(missing, Err(ProcessError::Start(_))));
        let refused = run(&mut shell("echo odd"), Input::Nothing, &long(), |_| {
            Err::<(), _>(io::ErrorKind::InvalidData.into())
        });
        assert!(matches!(refused, Err(ProcessError::Output(_))));
    }

    #[test]
    fn a_program_ends_at_its_deadline_with_everything_it_started() {
        let start = Instant::now();
        let allowance = Allowance::of(Duration::from_millis(200), CallOff::default());
        let script = "echo $$; sleep 600 & sleep 600 & (sleep 600 | cat) & wait";
        let (group, result) = group_of(script, &allowance);
        assert!(matches!(
            result,
            Err(ProcessError::Stopped(Stopped::Deadline))
        ));
        assert!(is_gone(group));
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_program_that_will_not_end_is_killed() {
        let allowance = Allowance::of(Duration::from_millis(200), CallOff::default());
        let script = "trap '' TERM; echo $$; while true; do sleep 1; done";
        let (group, result) = group_of(script, &allowance);
        assert!(matches!(
            result,
            Err(ProcessError::Stopped(Stopped::Deadline))
        ));
        assert!(is_gone(group));
    }

    #[test]
    fn a_program_that_closes_its_output_and_stays_is_killed_too() {
        let allowance = Allowance::of(Duration::from_millis(300), CallOff::default());
        let (group, result) = group_of("echo $$; exec >&- 2>&-; exec sleep 600", &allowance);
        assert!(matches!(
            result,
            Err(ProcessError::Stopped(Stopped::Deadline))
        ));
        assert!(is_gone(group));
    }

    #[test]
    fn work_that_is_called_off_ends_at_once() {
        let call_off = CallOff::default();
        let allowance = Allowance::of(Duration::from_mins(10), call_off.clone());
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                call_off.now();
            });
            let (group, result) = group_of("echo $$; exec sleep 600", &allowance);
            assert!(matches!(
                result,
                Err(ProcessError::Stopped(Stopped::CalledOff))
            ));
            assert!(is_gone(group));
        });
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_helper_that_outlives_the_program_is_killed() {
        let (group, result) = group_of("echo $$; sleep 600 >/dev/null 2>&1 &", &long());
        assert!(result.is_ok(), "{result:?}");
        assert!(is_gone(group));
    }

    #[test]
    fn a_held_lock_lasts_as_long_as_the_group() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lock = File::open(file.path()).unwrap();
        lock.lock().unwrap();
        let held = Input::Held(lock);
        run(&mut shell("cat"), held, &long(), |output| {
            let other = File::open(file.path())?;
            assert!(other.try_lock().is_err());
            everything(output)
        })
        .unwrap();
        // A program that another thread starts holds every file for a moment.
        let freed = (0..1_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            File::open(file.path()).unwrap().try_lock().is_ok()
        });
        assert!(freed);
    }
}
