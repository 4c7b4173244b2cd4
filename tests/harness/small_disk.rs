//! A disk that is soon full, or that can only be read.
//!
//! It is mounted in a namespace of its own, which any user may have on most systems. So it is seen by the
//! programs that are started in it, needs no rights, and is gone with the process that holds it.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts the disk at `$1` with the size `$2`, says so, and holds it until its input ends.
const HOLD: &str =
    "mount -t tmpfs -o size=\"$2\" tmpfs \"$1\" && echo mounted && exec cat >/dev/null";

/// A mounted disk.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
    holder: Child,
}

impl SmallDisk {
    /// Mounts an empty disk on a folder; nothing, with a word on standard error, where this user may not.
    pub fn mount(folder: &Path, kibibytes: u32) -> Option<Self> {
        let mut holder = Command::new("unshare");
        holder
            .args(["--mount", "--map-root-user", "sh", "-c", HOLD, "sh"])
            .arg(folder)
            .arg(format!("{kibibytes}k"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let held = holder.spawn().ok().and_then(|mut holder| {
            let mut said = [0; 8];
            let output = holder.stdout.as_mut()?;
            if output.read_exact(&mut said).is_err() {
                holder.wait().ok()?;
                return None;
            }
            Some(holder)
        });
        let Some(holder) = held else {
            // Past the test runner, which hides what a passing test prints.
            let line = "a small disk is skipped: this user may not mount one in a namespace\n";
            let _ignored = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        Some(Self {
            folder: folder.to_owned(),
            holder,
        })
    }

    /// Returns the command of a program that sees the disk.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(self.holder.id().to_string())
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

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ignored = self.holder.kill();
        let _ignored = self.holder.wait();
    }
}
