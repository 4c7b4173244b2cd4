//! What runs on this machine, to prove that nothing was left behind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// One process, as Linux describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// The number of its parent.
    pub parent: u32,
    /// The number of its group.
    pub group: u32,
    /// The name of its program.
    pub program: String,
}

/// Returns the processes that run. One that has ended and waits for its parent does not.
pub fn running() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("a list of processes");
    entries
        .filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            // It may end at any time.
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

/// Returns the processes that run in a folder or beneath it.
pub fn in_folder(folder: &Path) -> Vec<Process> {
    let mut processes = running();
    processes.retain(|process| {
        let working = fs::read_link(format!("/proc/{}/cwd", process.id));
        working.is_ok_and(|working| working.starts_with(folder))
    });
    processes
}

/// Returns whether no process of a group runs any more, within a few seconds: a killed one takes a
/// moment to be gone.
pub fn group_is_gone(group: u32) -> bool {
    soon(|| running().iter().all(|process| process.group != group))
}

/// Returns whether no process runs in a folder any more, within a few seconds.
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
