//! Disk operations of the outbox: private files that survive a power failure, and locks that end
//! with their process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::ops::{Deref, DerefMut};
use std::panic::resume_unwind;
use std::path::Path;

use tokio::task::spawn_blocking;

use super::OutboxError;

/// Runs blocking disk work outside of the runtime's threads. The work runs to its end, even if
/// nobody waits for it any more.
pub(super) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OutboxError> + Send + 'static,
) -> Result<T, OutboxError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(OutboxError::ShuttingDown),
        },
    }
}

/// Creates a private folder and its parents. A folder that exists must be private.
pub(super) fn private_folder(path: &Path) -> Result<(), OutboxError> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let is_new = !path.exists();
    builder
        .recursive(true)
        .create(path)
        .map_err(OutboxError::disk("create", path))?;
    check_private(path)?;
    if is_new && let Some(parent) = path.parent() {
        sync_folder(parent)?;
    }
    Ok(())
}

/// Checks that the folder exists and is this user's, and that other users cannot enter it. A link
/// is not followed: it may lead to a folder that is not meant.
pub(super) fn check_private(path: &Path) -> Result<(), OutboxError> {
    let look = OutboxError::disk("look at", path);
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => return Err(look(io::ErrorKind::NotADirectory.into())),
        Err(error) => return Err(look(error)),
    };
    if !is_own(&metadata) {
        return Err(OutboxError::Foreign {
            path: path.to_owned(),
        });
    }
    if mode(&metadata) & 0o077 != 0 {
        return Err(OutboxError::Exposed {
            path: path.to_owned(),
        });
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions())
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

/// Other systems have no user id.
#[cfg(not(unix))]
fn is_own(_metadata: &fs::Metadata) -> bool {
    true
}

/// Other systems have no mode that says who may enter a folder.
#[cfg(not(unix))]
fn mode(_metadata: &fs::Metadata) -> u32 {
    0
}

/// Opens a private file for reading and writing.
pub(super) fn private_file(path: &Path, new: NewFile) -> Result<File, OutboxError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match new {
        NewFile::Always => options.create_new(true),
        NewFile::WhenAbsent => options.create(true).truncate(false),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    open_plain(&mut options, path).map_err(OutboxError::disk("create", path))
}

/// Opens a file for reading.
pub(super) fn read_only(path: &Path) -> io::Result<File> {
    open_plain(OpenOptions::new().read(true), path)
}

/// Opens a plain file. What else somebody may have put in its place, a link to another file or a
/// pipe without a writer, is not opened.
fn open_plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a plain file",
        ))
    }
}

/// Whether a file must not exist yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewFile {
    Always,
    WhenAbsent,
}

/// Replaces a small file atomically. After a power failure, the old one may be there again.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), OutboxError> {
    let aside = path.with_added_extension("new");
    remove(&aside)?;
    let mut file = private_file(&aside, NewFile::Always)?;
    file.write_all(bytes)
        .map_err(OutboxError::disk("write", &aside))?;
    rename(&aside, path)
}

/// Renames a file, if it exists.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), OutboxError> {
    present(fs::rename(from, to))
        .map(drop)
        .map_err(OutboxError::disk("rename", from))
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), OutboxError> {
    present(fs::remove_file(path))
        .map(drop)
        .map_err(OutboxError::disk("remove", path))
}

/// Makes creations, renames and removals in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), OutboxError> {
    // On other systems, folders cannot be opened.
    if cfg!(not(unix)) {
        return Ok(());
    }
    let here = Path::new(".");
    let path = if path.as_os_str().is_empty() {
        here
    } else {
        path
    };
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(OutboxError::disk("write", path))
}

/// A file that only this process has locked. The lock ends when this is dropped, or with the
/// process.
#[derive(Debug)]
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Locks a file; nothing if it is already locked.
    pub(super) fn try_new(file: File, path: &Path) -> Result<Option<Self>, OutboxError> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(OutboxError::disk("lock", path)(error)),
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that is being started has a copy of the file
        // until it runs, and holds the lock with it.
        drop(self.0.unlock());
    }
}

/// Returns whether a file is locked. While this checks, nobody else can lock the file.
pub(super) fn is_locked(path: &Path) -> bool {
    let Ok(file) = read_only(path) else {
        return false;
    };
    let tried = file.try_lock_shared();
    drop(file.unlock());
    matches!(tried, Err(TryLockError::WouldBlock))
}

/// Returns the processes that have locked a file, as far as the system shows them. A process
/// without an id here is `None`.
#[cfg(target_os = "linux")]
pub(super) fn holders(path: &Path) -> Vec<Option<u32>> {
    use std::os::linux::fs::MetadataExt as _;

    let (Ok(metadata), Ok(locks)) = (fs::metadata(path), fs::read_to_string("/proc/locks")) else {
        return Vec::new();
    };
    let device = metadata.st_dev();
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    let file = format!("{major:02x}:{minor:02x}:{}", metadata.st_ino());
    let holders = locks.lines().filter_map(|line| holder(line, &file));
    // A process in another container has no id here.
    let known = |process: &u32| *process > 0;
    holders
        .map(|process| process.parse().ok().filter(known))
        .collect()
}

/// Returns the id of the process that holds the lock in a line of `/proc/locks`, if the lock is on
/// this file. A line with `->` is about a process that waits for a lock.
#[cfg(target_os = "linux")]
fn holder<'a>(line: &'a str, file: &str) -> Option<&'a str> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let process = words.nth(2)?;
    (words.next()? == file).then_some(process)
}

/// Returns nothing, because this system does not show who has locked a file.
#[cfg(not(target_os = "linux"))]
pub(super) fn holders(_path: &Path) -> Vec<Option<u32>> {
    Vec::new()
}

/// Turns the error for a file that does not exist into `None`.
pub(super) fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_even_if_a_child_process_inherited_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sender");
        let open = || private_file(&path, NewFile::WhenAbsent).unwrap();
        let locked = LockedFile::try_new(open(), &path).unwrap().unwrap();
        let copy = locked.try_clone().unwrap();
        assert!(LockedFile::try_new(open(), &path).unwrap().is_none());
        drop(locked);
        assert!(LockedFile::try_new(open(), &path).unwrap().is_some());
        drop(copy);
    }

    #[test]
    fn a_lock_is_seen_without_being_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("writers");
        assert!(!is_locked(&path), "there is no file");
        let open = || private_file(&path, NewFile::WhenAbsent).unwrap();
        drop(open());
        assert!(!is_locked(&path));
        assert_eq!(holders(&path), []);
        let locked = LockedFile::try_new(open(), &path).unwrap().unwrap();
        assert!(is_locked(&path));
        drop(locked);
        assert!(!is_locked(&path));
        assert!(LockedFile::try_new(open(), &path).unwrap().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_about_a_lock_names_its_process() {
        let file = "08:01:123";
        let held = "1: FLOCK  ADVISORY  WRITE 4711 08:01:123 0 EOF";
        assert_eq!(holder(held, file), Some("4711"));
        for (from, to) in [
            ("FLOCK ", "-> FLOCK"),
            ("FLOCK", "POSIX"),
            (":123", ":1234"),
            (held, ""),
        ] {
            assert_eq!(holder(&held.replace(from, to), file), None, "{to}");
        }
    }
}
