//! Runs programs that are never left behind.
//!
//! A program runs in its own process group, so its helper processes end with it. The allowance is
//! checked while waiting for output, so a silent program cannot hold anybody up. When the allowance
//! is used up, the whole group is asked to end, and is killed a second later. A program that only
//! reads is killed at once.
//!
//! A server that is killed cannot end anything. So a small shell leads the group, and a part of it
//! reads from a pipe that only this process can write to, and never does. When this process is gone
//! for whatever reason, the pipe ends, and the group with it. Only a POSIX shell is needed.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeWriter, Read, Write as _};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::allowance::{Allowance, StopReason};

/// How long a program may take to end after it has been asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How often the allowance is checked while a program is silent.
const LOOK: Duration = Duration::from_millis(50);
/// The number of bytes of output that are read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum bytes of unanswered questions, which is the least capacity of a pipe on any system.
const ASKED_BYTES_MAX: usize = 4 * 1024;
/// The bytes of error output that are kept, from the beginning.
const COMPLAINT_BYTES_MAX: usize = 8 * 1024;
/// The exit codes of a shell that cannot start a program.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Leads a program's group: `LIFELINE MEMORY PROGRAM ARGUMENT…`.
///
/// The shell closes the program's input and output on its own side, so that a pipe ends and a lock
/// is freed when the program is done with them. A trapped signal ends `wait` early, so `wait` is
/// repeated: the program may clean up before its leader ends and the rest is killed.
const LEADER: &str = r#"
lifeline=$1
ulimit -v "$2" 2>/dev/null
shift 2
trap : TERM
exec 3<&0 </dev/null
"$@" <&3 3<&- &
program=$!
exec 3<&- >/dev/null 2>&1
(
    trap '' TERM
    read -r _
    kill -TERM 0
    sleep 1
    kill -KILL 0
) <"/proc/self/fd/$lifeline" &
watcher=$!
while :; do
    wait "$program"
    status=$?
    kill -0 "$program" || break
done
kill -KILL "$watcher"
wait "$watcher"
exit "$status"
"#;

/// The lowest descriptor for the pipe. A shell uses lower ones for its own redirections.
const LIFELINE_MIN: i32 = 10;

/// The pipe that ends with this process. Every started program has its reading end open, and none
/// has its writing end.
static LIFELINE: LazyLock<io::Result<(OwnedFd, PipeWriter)>> = LazyLock::new(|| {
    let (reader, writer) = io::pipe()?;
    let reader = rustix::io::fcntl_dupfd_cloexec(&reader, LIFELINE_MIN)?;
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty())?;
    Ok((reader, writer))
});

/// The input of a program.
#[derive(Debug)]
pub(super) enum Input {
    /// No input.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file that stays open, and so keeps its lock, while any process of the group lives.
    Held(File),
}

/// Why a program has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// The program cannot be started.
    #[error("it cannot be started")]
    Start(#[source] io::Error),
    /// It was not started, because it would obey something that is not ours.
    #[error("not started: {0}")]
    Altered(String),
    /// Its allowance is used up.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// The program failed.
    #[error("it ended without success")]
    Failed {
        /// Its error output.
        complaint: String,
    },
    /// The output is invalid.
    #[error("its output cannot be read")]
    Output(#[source] io::Error),
}

/// Prepares a program that always ends with this process. `memory_max` limits its address space in
/// bytes.
pub(super) fn supervised(program: impl AsRef<OsStr>, memory_max: Option<u64>) -> Command {
    let lifeline = match &*LIFELINE {
        Ok((reader, _)) => reader.as_raw_fd().to_string(),
        // No such file exists, so nothing is watched, but the program can still run.
        Err(_) => "none".to_owned(),
    };
    let memory = memory_max.map_or("unlimited".to_owned(), |bytes| (bytes / 1_024).to_string());
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", LEADER, "svc-leader", &lifeline, &memory])
        .arg(program);
    command
}

/// Runs a supervised program and returns what `read` makes of its output.
pub(super) fn run<T>(
    command: &mut Command,
    input: Input,
    allowance: &Allowance,
    read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
) -> Result<T, ProcessError> {
    allowance.left()?;
    let (stdin, bytes) = match input {
        Input::Nothing => (Stdio::null(), None),
        Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
        Input::Held(file) => (file.into(), None),
    };
    let (mut running, stdout) =
        RunningProcess::start(command, stdin).map_err(ProcessError::Start)?;
    if let Some(bytes) = bytes {
        running.feed(bytes).map_err(ProcessError::Start)?;
    }
    let mut output = BufReader::with_capacity(PIECE_BYTES, Output::new(stdout, allowance.clone()));
    let result = read(&mut output);
    if let Some(stopped) = output.get_ref().stopped {
        return Err(stopped.into());
    }
    if result.is_err() {
        // A little more output may follow, which should not make the program fail.
        let mut rest = output.by_ref().take(4 * PIECE_BYTES as u64);
        drop(io::copy(&mut rest, &mut io::sink()));
    }
    // The rest is not needed, which the program notices when it writes.
    drop(output);
    let status = match &result {
        Ok(_) => running.end(allowance)?,
        // The program may have failed before its output was complete; then that is the reason.
        Err(_) => running.end(&allowance.within(GRACE))?,
    };
    match result {
        Ok(result) if status.success() => Ok(result),
        Err(error) if status.success() => Err(ProcessError::Output(error)),
        _ => Err(running.failure(status)),
    }
}

/// A supervised program that answers one question after another. Dropping it ends the program.
#[derive(Debug)]
pub(super) struct Conversation {
    stdin: ChildStdin,
    output: BufReader<Output>,
    running: RunningProcess,
}

impl Conversation {
    /// Starts a program. The allowance covers all its answers.
    pub(super) fn start(
        command: &mut Command,
        allowance: &Allowance,
    ) -> Result<Self, ProcessError> {
        allowance.left()?;
        let started = RunningProcess::start(command, Stdio::piped());
        let (mut running, stdout) = started.map_err(ProcessError::Start)?;
        // The program only reads and has nothing to clean up.
        running.ends_at_once = true;
        let stdin = running.child.stdin.take();
        let stdin = stdin.ok_or(ProcessError::Start(io::ErrorKind::BrokenPipe.into()))?;
        let output = Output::new(stdout, allowance.clone());
        Ok(Self {
            stdin,
            output: BufReader::with_capacity(PIECE_BYTES, output),
            running,
        })
    }

    /// Asks a question and returns what `read` makes of the answer. `read` must read the whole
    /// answer. The question must be smaller than the capacity of a pipe, which is at least 4 KiB on
    /// every system. The program has read all earlier questions, so writing never blocks. After an
    /// error, no more questions are answered.
    pub(super) fn ask<T>(
        &mut self,
        question: &[u8],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
    ) -> Result<T, ProcessError> {
        self.output.get_ref().allowance.left()?;
        let asked = self.stdin.write_all(question);
        let answer = asked.and_then(|()| read(&mut self.output));
        answer.map_err(|error| self.why(error))
    }

    /// Asks many questions of less than 4 KiB each, and passes on one answer after another while
    /// the program works on the next ones. `read` gets the index of the question and must read the
    /// whole answer. If it stops, no remaining or later question is answered. Returns the number of
    /// answers, including the one at which `read` stopped.
    pub(super) fn ask_all(
        &mut self,
        questions: &[Vec<u8>],
        mut read: impl FnMut(usize, &mut dyn BufRead) -> io::Result<ControlFlow<()>>,
    ) -> Result<usize, (usize, ProcessError)> {
        let mut waiting = VecDeque::new();
        let mut waiting_bytes = 0;
        let mut next = 0;
        for place in 0..questions.len() {
            let mut batch = Vec::new();
            // Questions are written in batches, because each write is a system call.
            let is_low = waiting_bytes <= ASKED_BYTES_MAX / 2;
            while is_low
                && let Some(question) = questions.get(next)
                && (waiting.is_empty() || waiting_bytes + question.len() <= ASKED_BYTES_MAX)
            {
                batch.extend_from_slice(question);
                waiting.push_back(question.len());
                waiting_bytes += question.len();
                next += 1;
            }
            if let Err(stopped) = self.output.get_ref().allowance.left() {
                return Err((place, stopped.into()));
            }
            let asked = match &batch[..] {
                [] => Ok(()),
                batch => self.stdin.write_all(batch),
            };
            match asked.and_then(|()| read(place, &mut self.output)) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(place + 1),
                Err(error) => return Err((place, self.why(error))),
            }
            waiting_bytes -= waiting.pop_front().unwrap_or_default();
        }
        Ok(questions.len())
    }

    /// Returns why a read failed.
    fn why(&mut self, error: io::Error) -> ProcessError {
        if let Some(stopped) = self.output.get_ref().stopped {
            return stopped.into();
        }
        let allowance = self.output.get_ref().allowance.within(GRACE);
        match error.kind() {
            // The program has ended, and may have reported why.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                match self.running.end(&allowance) {
                    Ok(status) => self.running.failure(status),
                    Err(error) => error,
                }
            }
            _ => ProcessError::Output(error),
        }
    }
}

/// A running program. Dropping it ends the whole group.
#[derive(Debug)]
struct RunningProcess {
    child: Child,
    group: Pid,
    ended: bool,
    /// Whether the program is killed without being asked to end first.
    ends_at_once: bool,
    complaint: Receiver<Vec<u8>>,
}

impl RunningProcess {
    fn start(command: &mut Command, stdin: Stdio) -> io::Result<(Self, Option<ChildStdout>)> {
        let mut child = command
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // The group has the id of its first process.
        let group = Pid::from_child(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (whole, complaint) = sync_channel(1);
        let running = Self {
            child,
            group,
            ended: false,
            ends_at_once: false,
            complaint,
        };
        // The thread ends with the pipe, at the latest when the group does.
        if let Some(stderr) = stderr {
            start_thread(move || drop(whole.send(beginning(stderr))))?;
        }
        Ok((running, stdout))
    }

    /// Writes the program's input.
    fn feed(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let Some(mut stdin) = self.child.stdin.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        start_thread(move || {
            // A program may ignore its input.
            drop(stdin.write_all(&bytes));
        })
    }

    /// Waits until the program ends.
    fn end(&mut self, allowance: &Allowance) -> Result<ExitStatus, ProcessError> {
        let mut pause = Duration::from_micros(100);
        while !self.has_ended() {
            let left = allowance.left()?;
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LOOK);
        }
        self.reap().map_err(ProcessError::Output)
    }

    /// Returns whether the program has ended. It is not reaped here, so its id is not reused.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = rustix::process::waitid(WaitId::Pid(self.group), options);
        !matches!(status, Ok(None))
    }

    /// Kills the rest of the group and reaps the program.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait();
        self.ended = true;
        status
    }

    fn signal(&self, signal: Signal) {
        // It fails if the group is gone, which is what we want.
        let _gone = rustix::process::kill_process_group(self.group, signal).is_err();
    }

    /// Returns the error of a failed program.
    fn failure(&self, status: ExitStatus) -> ProcessError {
        if status
            .code()
            .is_some_and(|code| NOT_STARTED.contains(&code))
        {
            return ProcessError::Start(io::ErrorKind::NotFound.into());
        }
        let complaint = self.complaint.recv_timeout(LOOK).unwrap_or_default();
        ProcessError::Failed {
            complaint: String::from_utf8_lossy(&complaint).into_owned(),
        }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if !self.ends_at_once {
            self.signal(Signal::TERM);
            let asked = Instant::now();
            while !self.has_ended() && asked.elapsed() < GRACE {
                thread::sleep(Duration::from_millis(5));
            }
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

/// Reads everything and returns the beginning. All of it is read because a full pipe would block
/// the program.
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

/// A program's output, read within the allowance.
#[derive(Debug)]
struct Output {
    /// `None` if the program has no output.
    stdout: Option<ChildStdout>,
    allowance: Allowance,
    stopped: Option<StopReason>,
}

impl Output {
    const fn new(stdout: Option<ChildStdout>, allowance: Allowance) -> Self {
        Self {
            stdout,
            allowance,
            stopped: None,
        }
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(stdout) = &mut self.stdout else {
            return Ok(0);
        };
        loop {
            let left = self.allowance.left().map_err(|stopped| {
                self.stopped = Some(stopped);
                io::Error::from(io::ErrorKind::TimedOut)
            })?;
            let timeout = Timespec::try_from(left.min(LOOK)).unwrap_or_default();
            let mut ready = [PollFd::new(stdout, PollFlags::IN)];
            match poll(&mut ready, Some(&timeout)) {
                // There are bytes or the other end is closed, so reading does not block.
                Ok(1..) => match stdout.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => return read,
                },
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
