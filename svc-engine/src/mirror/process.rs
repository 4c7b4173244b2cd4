//! A program that is never left behind.
//!
//! It runs in a process group of its own, so that the helpers it starts end with it, and whoever waits
//! for its output looks at the allowance meanwhile, so that a program that says nothing and does not
//! end cannot hold up anybody. When its allowance is used up the whole group is asked to end, and
//! killed a second later; one that only reads is killed at once.
//!
//! A server that is killed can end nothing any more. So a small shell leads the group, and a part of
//! it reads from a pipe that only this process can write to and never does: once this process is
//! gone, however it went, the pipe ends, and with it the group. Nothing but a POSIX shell is needed.

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

use super::allowance::{Allowance, Stopped};

/// How long a program may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How often the allowance is looked at while a program says nothing.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of output that are read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes of questions that a program was asked and has not answered: a pipe holds as many everywhere.
const ASKED_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a complaint that are kept: its beginning.
const COMPLAINT_BYTES_MAX: usize = 8 * 1024;
/// What a shell ends with when it cannot start a program.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Leads the group of a program: `LIFELINE MEMORY PROGRAM ARGUMENT…`.
///
/// The shell lets go of everything that the program reads and writes, so that a pipe ends, and a lock
/// is free, when the program is done with it. A trapped signal ends `wait` early, so it is repeated:
/// the program may tidy up before its leader is gone and the rest is killed.
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

/// The least number of the pipe: smaller ones are the shell's own to redirect.
const LIFELINE_MIN: i32 = 10;

/// The pipe that ends with this process. Its end for reading is left open in every program that is
/// started; the other is closed in all of them.
static LIFELINE: LazyLock<io::Result<(OwnedFd, PipeWriter)>> = LazyLock::new(|| {
    let (reader, writer) = io::pipe()?;
    let reader = rustix::io::fcntl_dupfd_cloexec(&reader, LIFELINE_MIN)?;
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty())?;
    Ok((reader, writer))
});

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

/// Prepares a program that ends with this process, whatever ends this process. Without a limit it may
/// use as much memory as it likes; otherwise so many bytes of address space.
pub(super) fn supervised(program: impl AsRef<OsStr>, memory_max: Option<u64>) -> Command {
    let lifeline = match &*LIFELINE {
        Ok((reader, _)) => reader.as_raw_fd().to_string(),
        // There is no such file, so nobody watches; that is no reason to do nothing.
        Err(_) => "none".to_owned(),
    };
    let memory = memory_max.map_or("unlimited".to_owned(), |bytes| (bytes / 1_024).to_string());
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", LEADER, "svc-leader", &lifeline, &memory])
        .arg(program);
    command
}

/// Runs a supervised program to its end and returns what `read` made of its output.
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
    let (mut running, stdout) = Running::start(command, stdin).map_err(ProcessError::Start)?;
    if let Some(bytes) = bytes {
        running.feed(bytes).map_err(ProcessError::Start)?;
    }
    let mut output = BufReader::with_capacity(PIECE_BYTES, Output::new(stdout, allowance.clone()));
    let result = read(&mut output);
    if let Some(stopped) = output.get_ref().stopped {
        return Err(stopped.into());
    }
    if result.is_err() {
        // A little more may be on its way, and is no reason for the program to fail.
        let mut rest = output.by_ref().take(4 * PIECE_BYTES as u64);
        drop(io::copy(&mut rest, &mut io::sink()));
    }
    // Whatever is not read is not wanted: the program is told by its next write.
    drop(output);
    let status = match &result {
        Ok(_) => running.end(allowance)?,
        // It may have ended before its output was whole; then that is the reason.
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
    running: Running,
}

impl Conversation {
    /// Starts a program. The allowance is for everything that it is asked.
    pub(super) fn start(
        command: &mut Command,
        allowance: &Allowance,
    ) -> Result<Self, ProcessError> {
        allowance.left()?;
        let started = Running::start(command, Stdio::piped());
        let (mut running, stdout) = started.map_err(ProcessError::Start)?;
        // It only reads, and has nothing to tidy up.
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

    /// Asks a question and returns what `read` makes of the answer. It must read the whole answer,
    /// and the question must be smaller than a pipe holds, which is 4 KiB everywhere: the program
    /// has read every earlier question, so writing never waits. After an error no further question is
    /// answered.
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

    /// Asks many questions, each of which is smaller than 4 KiB, and hands on one answer after the
    /// other: the program works on the next ones while an answer is looked at. `read` gets the place of
    /// the question and must read its whole answer; where it breaks off, the rest is not answered, and
    /// neither is any further question. Returns how many were answered, the one at which it broke off
    /// included.
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
            // Several at a time: each write is a call of the system.
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

    /// Returns why there is no answer.
    fn why(&mut self, error: io::Error) -> ProcessError {
        if let Some(stopped) = self.output.get_ref().stopped {
            return stopped.into();
        }
        let allowance = self.output.get_ref().allowance.within(GRACE);
        match error.kind() {
            // The program has ended, and may have said why.
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
struct Running {
    child: Child,
    group: Pid,
    ended: bool,
    /// Whether it is killed without being asked to end.
    ends_at_once: bool,
    complaint: Receiver<Vec<u8>>,
}

impl Running {
    fn start(command: &mut Command, stdin: Stdio) -> io::Result<(Self, Option<ChildStdout>)> {
        let mut child = command
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // The group has the number of its first process.
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

    /// Gives the program what it reads.
    fn feed(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        let Some(mut stdin) = self.child.stdin.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        start_thread(move || {
            // A program need not read what it is given.
            drop(stdin.write_all(&bytes));
        })
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

    /// Returns what a program that has ended without success complained of.
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

impl Drop for Running {
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
#[derive(Debug)]
struct Output {
    /// Nothing when the program has none.
    stdout: Option<ChildStdout>,
    allowance: Allowance,
    stopped: Option<Stopped>,
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
                // There is something, or the other end is closed: reading does not wait.
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
