//! A file that holds a reply.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::error::CommandError;
use crate::output::escape;

pub(super) fn exists(file: &Path) -> CommandError {
    let name = escape(&file.display().to_string());
    CommandError::refused(
        "file_exists",
        format!("{name} already exists and is never overwritten"),
    )
}

/// Creates a private file. An existing file is never overwritten.
pub(super) fn write_new(file: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => error.into(),
    })?;
    let written = opened.write_all(bytes).and_then(|()| opened.sync_all());
    if written.is_err() {
        // An incomplete reply must not remain as evidence.
        drop(fs::remove_file(file));
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_new_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reply.json");
        write_new(&file, b"{}").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"{}");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(&file).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(write_new(&file, b"[]").unwrap_err().code(), "file_exists");
        assert_eq!(fs::read(&file).unwrap(), b"{}");
    }
}
