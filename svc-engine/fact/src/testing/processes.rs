//! The processes on this machine, to prove that nothing was left behind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process, as Linux describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: u32,
    /// The id of its parent.
    pub parent: u32,
    /// The id of its process group.
    pub group: u32,
    /// The name of its program.
    pub program: String,
}

/// Returns the running processes. A process that has ended but was not reaped is not running.
pub fn running() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("a list of processes");
    entries
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            // The process may end at any time.
            let status = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let (before, after) = status.rsplit_once(") ")?;
            let mut fields = after.split(' ');
            let state = fields.next()?;
            let process = Process {
                id,
                parent: fields.next()?.parse().ok()?,
                group: fields.next()?.parse().ok()?,
                program: before.split_once('(')?.1.to_owned(),
            };
            (!matches!(state, "Z" | "X")).then_some(process)
        })
        .collect()
}

/// Returns the processes that run in a folder or below it.
pub fn in_folder(folder: &Path) -> Vec<Process> {
    let mut processes = running();
    processes.retain(|process| {
        let working = fs::read_link(format!("/proc/{}/cwd", process.id));
        working.is_ok_and(|working| working.starts_with(folder))
    });
    processes
}

/// Waits a few seconds, and returns whether no process of a group is running any more. A killed
/// process takes a moment to disappear.
pub fn group_is_gone(group: u32) -> bool {
    soon(|| running().iter().all(|process| process.group != group))
}

/// Waits a few seconds, and returns whether no process is running in a folder any more.
pub fn folder_is_left(folder: &Path) -> bool {
    soon(|| in_folder(folder).is_empty())
}

fn soon(holds: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if start.elapsed() > Duration::from_secs(5) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
