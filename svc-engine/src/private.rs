//! Files and folders that only this account can read: evidence, mirrors and secrets are other people's.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

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
