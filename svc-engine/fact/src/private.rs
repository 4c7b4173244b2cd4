//! Files and folders that only this account can read: evidence, mirrors and secrets are other people's.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a folder and the folders above it that are absent. One that exists stays as it is.
///
/// # Errors
///
/// If a folder cannot be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
        .map_err(|error| named(folder, &error))
}

/// Creates a folder, and the folders above it that are absent.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if there is something already, or if it cannot be created.
pub fn create_new_folder(folder: &Path) -> io::Result<()> {
    create_folder_of(folder)?;
    DirBuilder::new()
        .mode(FOLDER_MODE)
        .create(folder)
        .map_err(|error| named(folder, &error))
}

/// Opens a file that somebody else may have put there: only a plain file, without following a link
/// and without waiting for anybody.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] if it is no plain file, or if it cannot be opened.
pub fn open_plain(file: &Path) -> io::Result<File> {
    let no_file = || {
        let what = format!("{} is not a plain file", file.display());
        io::Error::new(io::ErrorKind::InvalidInput, what)
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(file);
    match opened {
        Ok(opened) if opened.metadata()?.is_file() => Ok(opened),
        Ok(_) => Err(no_file()),
        Err(_) if fs::symlink_metadata(file).is_ok_and(|found| !found.is_file()) => Err(no_file()),
        Err(error) => Err(named(file, &error)),
    }
}

/// Reads a file as [`open_plain`] opens it.
///
/// # Errors
///
/// As [`open_plain`], or [`io::ErrorKind::FileTooLarge`] if it has more bytes than this.
pub fn read_plain(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(file)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(named(file, &io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

/// Creates the folder that a file is in, as [`create_folder`] does.
///
/// # Errors
///
/// As [`create_folder`].
pub fn create_folder_of(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => create_folder(folder),
        _ => Ok(()),
    }
}

/// Creates a file, to be written.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] if there is one, or if it cannot be created.
pub fn create_file(file: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(file)
        .map_err(|error| named(file, &error))
}

/// Opens a file to add to its end, and creates it if it is absent.
///
/// # Errors
///
/// If it cannot be opened.
pub fn append_to(file: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(FILE_MODE)
        .open(file)
        .map_err(|error| named(file, &error))
}

/// Writes a new file through to the disk. After an error, there is none.
///
/// # Errors
///
/// As [`create_file`], or if the file cannot be written.
pub fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut created = create_file(file)?;
    let written = created.write_all(bytes).and_then(|()| created.sync_all());
    if written.is_err() {
        // The error that is reported is the first one.
        drop(fs::remove_file(file));
    }
    written.map_err(|error| named(file, &error))
}

/// Adds the path to an error, which otherwise says only what the system refused.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_plain_files_are_read_and_only_new_folders_are_used() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        write_new(&path("file"), b"four").unwrap();
        assert_eq!(read_plain(&path("file"), 4).unwrap(), b"four");
        let kind = |name: &str, max| read_plain(&path(name), max).unwrap_err().kind();
        assert_eq!(kind("file", 3), io::ErrorKind::FileTooLarge);
        assert_eq!(kind("absent", 9), io::ErrorKind::NotFound);
        for (link, target) in [("zero", "/dev/zero"), ("link", "file"), ("lost", "absent")] {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
            assert_eq!(kind(link, 9), io::ErrorKind::InvalidInput, "{link}");
        }
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status();
        assert!(made.unwrap().success());
        create_new_folder(&path("a/new")).unwrap();
        for name in ["pipe", "a"] {
            assert_eq!(kind(name, 9), io::ErrorKind::InvalidInput, "{name}");
        }
        for name in ["a/new", "lost", "file"] {
            let again = create_new_folder(&path(name)).unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        let mode = fs::metadata(path("a/new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, FOLDER_MODE);
    }

    #[test]
    fn created_files_and_folders_are_private_to_the_account() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        let (new, added) = (folder.join("new"), folder.join("added"));
        create_folder_of(&new).unwrap();
        create_folder(&folder).unwrap();
        create_folder_of(Path::new("no-folder")).unwrap();
        write_new(&new, b"one").unwrap();
        for part in [&b"one"[..], b"two"] {
            append_to(&added).unwrap().write_all(part).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&scratch.path().join("a")), FOLDER_MODE);
        assert_eq!(mode(&folder), FOLDER_MODE);
        assert_eq!([mode(&new), mode(&added)], [FILE_MODE; 2]);
        assert_eq!(fs::read(&added).unwrap(), b"onetwo");
        let again = write_new(&new, b"two").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert!(
            again.to_string().starts_with(new.to_str().unwrap()),
            "{again}"
        );
        assert_eq!(fs::read(&new).unwrap(), b"one");
    }
}
