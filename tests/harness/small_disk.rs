//! A disk that is soon full, or that can only be read.
//!
//! It is mounted in a namespace of its own, which any user may have on most systems. So it is seen by the
//! programs that are started in it, needs no rights, and is gone with the process that holds it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts the disk at `$1` with the size `$2`, says its own number, and holds it until its input ends.
const HOLD: &str = "mount -t tmpfs -o size=\"$2\" tmpfs \"$1\" && echo $$ && exec cat >/dev/null";

/// A mounted disk.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    holder: Child,
    /// The number of the process that is in its namespace.
    id: u32,
    /// What every command line begins with.
    before: Vec<OsString>,
}

impl SmallDisk {
    /// Mounts an empty disk on a folder; nothing, with a word on standard error, where this user may not.
    pub fn mount(folder: &Path, kibibytes: u32) -> Option<Self> {
        Self::mount_as(Vec::new(), folder, kibibytes)
    }

    /// Mounts an empty disk as [`mount`](Self::mount) does, for the user that a program runs as when its
    /// command line begins so.
    pub fn mount_as(before: Vec<OsString>, folder: &Path, kibibytes: u32) -> Option<Self> {
        let mut holder = command(&before, "unshare");
        holder
            .args(["--mount", "--map-root-user", "sh", "-c", HOLD, "sh"])
            .arg(folder)
            .arg(format!("{kibibytes}k"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let held = holder.spawn().ok().and_then(|mut holder| {
            let mut said = String::new();
            let read = BufReader::new(holder.stdout.take()?).read_line(&mut said);
            let id = read.ok().and_then(|_| said.trim().parse().ok());
            if id.is_none() {
                holder.wait().ok()?;
            }
            Some((holder, id?))
        });
        let Some((holder, id)) = held else {
            // Past the test runner, which hides what a passing test prints.
            let line = "a small disk is skipped: this user may not mount one in a namespace\n";
            let _ignored = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        Some(Self {
            folder: folder.to_owned(),
            holder,
            id,
            before,
        })
    }

    /// Returns the command of a program that sees the disk.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = command(&self.before, "nsenter");
        command
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(self.id.to_string())
            .arg("--")
            .arg(program);
        command
    }

    /// Takes all room that is left.
    pub fn fill(&self) {
        let mut command = self.command(OsStr::new("sh"));
        let filled = command
            .args(["-c", "cat /dev/zero >\"$1\" 2>/dev/null; true", "sh"])
            .arg(self.filler())
            .status();
        assert!(filled.expect("sh starts").success());
    }

    /// Gives that room back.
    pub fn make_room(&self) {
        let mut command = self.command(OsStr::new("rm"));
        let removed = command.arg(self.filler()).status();
        assert!(removed.expect("rm starts").success());
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Changes its size.
    pub fn resize(&self, kibibytes: u32) {
        self.remount(&format!("size={kibibytes}k"));
    }

    /// Lets it only be read, which needs that nobody has a file of it open for writing, or be written
    /// again.
    pub fn set_writable(&self, writable: bool) {
        self.remount(if writable { "rw" } else { "ro" });
    }

    fn remount(&self, how: &str) {
        let mut command = self.command(OsStr::new("mount"));
        let status = command
            .args(["-o", &format!("remount,{how}")])
            .arg(&self.folder)
            .status();
        assert!(status.expect("mount starts").success(), "remount,{how}");
    }
}

/// Returns the command of a program whose command line begins so.
pub(crate) fn command(before: &[OsString], program: impl AsRef<OsStr>) -> Command {
    match before {
        [] => Command::new(program),
        [first, others @ ..] => {
            let mut command = Command::new(first);
            command.args(others).arg(program);
            command
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The end of its input ends it, also where the process that was started only waits for it.
        drop(self.holder.stdin.take());
        let _ignored = self.holder.wait();
    }
}
