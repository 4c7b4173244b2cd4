//! The server as a separate process, and what the kernel knows about processes. Linux only, because
//! it reads `/proc`.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::http::Client;

/// The ticks per second in which Linux reports processor time to programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program and what it is started with.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Settings. Those in the caller's own environment are not passed on.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// The folder that it runs in and logs to.
    pub(crate) folder: PathBuf,
}

/// A running server. Dropping it kills it, and [`Server::stop`] lets it finish.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The time from the start of the process to the first good answer from `/health`.
    pub(crate) start_time: Duration,
    log: PathBuf,
}

impl Server {
    /// Starts a server on a free port and waits until it is healthy.
    pub(crate) fn start(launch: &Launch) -> Result<Self, Failure> {
        let address = free_address()?;
        let log = launch.folder.join("server.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(&launch.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SVC_") {
                command.env_remove(name);
            }
        }
        command
            .args(&launch.arguments)
            .env("SVC_LISTEN", address.to_string())
            .envs(launch.settings.iter().map(|(name, value)| (name, value)))
            .current_dir(&launch.folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let begin = Instant::now();
        let child = command
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", launch.program.display()))?;
        let mut server = Self {
            child,
            address,
            start_time: Duration::ZERO,
            log,
        };
        loop {
            // A refused connection costs microseconds, so the pause between attempts determines the
            // precision.
            if healthy(address) {
                server.start_time = begin.elapsed();
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(
                    format!("the server ended with {status}:\n{}", server.log_tail()).into(),
                );
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!(
                    "the server is not healthy after {PATIENCE:?}:\n{}",
                    server.log_tail()
                )
                .into());
            }
            thread::sleep(Duration::from_micros(500));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to finish and waits until it has.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        signal(self.child.id(), "TERM")?;
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > PATIENCE {
                return Err(format!(
                    "the server did not stop within {PATIENCE:?}:\n{}",
                    self.log_tail()
                )
                .into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let begin = text.len().saturating_sub(2_000);
        text[text.ceil_char_boundary(begin)..].to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Returns the address of a port that was free a moment ago.
pub(crate) fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn healthy(address: SocketAddr) -> bool {
    Client::connect(address)
        .and_then(|mut client| client.get("/health", ""))
        .is_ok_and(|reply| reply.status == 200)
}

/// Sends a signal by name.
pub(crate) fn signal(process: u32, name: &str) -> Result<(), Failure> {
    run(Command::new("kill")
        .arg(format!("-{name}"))
        .arg(process.to_string()))?;
    Ok(())
}

/// Runs a program to its end and returns what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program} does not start: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "{program}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// Returns the seconds of processor time that a process has used, including its children that have
/// ended.
pub(crate) fn processor_seconds(process: u32) -> Result<f64, Failure> {
    Ok(Statistics::read(process)?.ticks / TICKS_PER_SECOND)
}

/// Returns the seconds of processor time of a process and all its living children.
pub(crate) fn family_processor_seconds(process: u32) -> Result<f64, Failure> {
    let mut ticks = Statistics::read(process)?.ticks;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        // A child may end while the folder is read. What it used is then counted for its parent
        // next time.
        if let Some(Ok(child)) = name.to_str().map(str::parse)
            && let Ok(statistics) = Statistics::read(child)
            && statistics.parent == process
        {
            ticks += statistics.ticks;
        }
    }
    Ok(ticks / TICKS_PER_SECOND)
}

#[derive(Clone, Copy, Debug)]
struct Statistics {
    parent: u32,
    ticks: f64,
}

impl Statistics {
    fn read(process: u32) -> Result<Self, Failure> {
        let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The program's name, in brackets, may contain anything. The fields after it are numbers.
        let (_, fields) = text
            .rsplit_once(") ")
            .ok_or("a process without statistics")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |index: usize| -> Result<f64, Failure> {
            Ok(fields
                .get(index)
                .ok_or("a short line of statistics")?
                .parse()?)
        };
        Ok(Self {
            parent: fields.get(1).ok_or("a short line of statistics")?.parse()?,
            ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        })
    }
}

/// The bytes of a process in memory: now, and the maximum so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

impl Memory {
    pub(crate) fn of(process: u32) -> Result<Self, Failure> {
        let text = fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name: &str| -> Result<u64, Failure> {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .ok_or("a process without memory")?;
            Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1_024)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
        })
    }
}

/// Returns the file system that a path is on: the type of the mount with the longest matching name.
pub(crate) fn file_system(path: &Path) -> Result<String, Failure> {
    let path = path.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut best = (0, String::from("unknown"));
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        if let (Some(_), Some(folder), Some(kind)) = (fields.next(), fields.next(), fields.next())
            && path.starts_with(folder)
            && folder.len() >= best.0
        {
            best = (folder.len(), kind.to_owned());
        }
    }
    Ok(best.1)
}
