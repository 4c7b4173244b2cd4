//! A disk that fills up quickly, or that is read-only.
//!
//! It is mounted in a namespace of its own, which any user may create on most systems. So only
//! programs that are started in the namespace see the disk, mounting it needs no privileges, and it
//! disappears with the process that holds it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts the disk at `$1` with the size `$2`, prints its own process id, and holds the disk until
/// its input ends.
const HOLD: &str = "mount -t tmpfs -o size=\"$2\" tmpfs \"$1\" && echo $$ && exec cat >/dev/null";

/// A mounted disk.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    holder: Child,
    /// The id of the process that is in the disk's namespace.
    id: u32,
    /// The beginning of every command line.
    before: Vec<OsString>,
}

impl SmallDisk {
    /// Mounts an empty disk on a folder. Returns `None`, with a message on standard error, if this
    /// user may not.
    pub fn mount(folder: &Path, kibibytes: u32) -> Option<Self> {
        Self::mount_as(Vec::new(), folder, kibibytes)
    }

    /// Mounts an empty disk as [`mount`](Self::mount) does, for the user that a program runs as if
    /// its command line begins with `before`.
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
            let mut line = String::new();
            let read = BufReader::new(holder.stdout.take()?).read_line(&mut line);
            let id = read.ok().and_then(|_| line.trim().parse().ok());
            if id.is_none() {
                holder.wait().ok()?;
            }
            Some((holder, id?))
        });
        let Some((holder, id)) = held else {
            // Written directly to standard error, past the test runner, which hides what a passing
            // test prints.
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

    /// Returns the command for a program that sees the disk.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = command(&self.before, "nsenter");
        command
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(self.id.to_string())
            .arg("--")
            .arg(program);
        command
    }

    /// Uses up all the remaining space.
    pub fn fill(&self) {
        let mut command = self.command(OsStr::new("sh"));
        let filled = command
            .args(["-c", "cat /dev/zero >\"$1\" 2>/dev/null; true", "sh"])
            .arg(self.filler())
            .status();
        assert!(filled.expect("sh starts").success());
    }

    /// Frees that space again.
    pub fn make_room(&self) {
        let mut command = self.command(OsStr::new("rm"));
        let removed = command.arg(self.filler()).status();
        assert!(removed.expect("rm starts").success());
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Changes the size of the disk.
    pub fn resize(&self, kibibytes: u32) {
        self.remount(&format!("size={kibibytes}k"));
    }

    /// Makes the disk read-only, or writable again. For read-only, nobody may have a file on it
    /// open for writing.
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

/// Returns the command for a program whose command line begins with `before`.
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
        // The end of its input ends the process, even if the one that was started only waits for
        // it.
        drop(self.holder.stdin.take());
        let _ignored = self.holder.wait();
    }
}
