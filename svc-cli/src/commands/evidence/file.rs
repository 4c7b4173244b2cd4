//! Files that hold replies.

use std::io;
use std::path::Path;

use svc_engine::private;

use crate::error::CommandError;
use crate::output::escape;

pub(super) fn exists(file: &Path) -> CommandError {
    let name = escape(&file.display().to_string());
    CommandError::refused(
        "file_exists",
        format!("{name} already exists and is never overwritten"),
    )
}

/// Creates a private file. Never overwrites an existing file, and leaves no incomplete reply behind
/// as evidence.
pub(super) fn write_new(file: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    private::write_new(file, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reply.json");
        write_new(&file, b"{}").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"{}");
        assert_eq!(write_new(&file, b"[]").unwrap_err().code(), "file_exists");
        assert_eq!(fs::read(&file).unwrap(), b"{}");
    }
}
