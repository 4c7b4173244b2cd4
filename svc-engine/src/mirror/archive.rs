//! Copies a mirror into a single file, and restores it. The mirror is locked meanwhile.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path};
use std::time::Duration;

use super::allowance::Allowance;
use super::folder::{LockError, MirrorFolder};
use crate::deadline::Deadline;
use crate::fact::Lifetime;
use crate::private;
use crate::store::backup::{ArchiveWriter, Written, read_archive};

/// How long to wait for a running refresh, which is a little longer than a refresh may take.
const LOCK_WAIT: Duration = Duration::from_mins(3);
/// The maximum bytes of a block.
const PIECE_BYTES: usize = 256 * 1024;

/// Why a mirror was not copied or restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// The mirror is in use, or its folder cannot be used.
    #[error("the mirror cannot be locked")]
    Lock(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file cannot be read or written.
    #[error("a file of the mirror")]
    File(#[from] io::Error),
    /// The archive file is damaged.
    #[error("the file of the mirror is damaged")]
    Damaged,
}

impl From<LockError> for ArchiveError {
    fn from(error: LockError) -> Self {
        Self::Lock(Box::new(error))
    }
}

/// Copies a mirror into a new file.
pub(crate) fn keep(
    folder: &MirrorFolder,
    lifetime: &Lifetime,
    into: &Path,
    deadline: &Deadline,
) -> Result<Written, ArchiveError> {
    let wait = Allowance::until(deadline.within(LOCK_WAIT));
    let _lock = folder.lock(lifetime, &wait)?;
    let mut writer = ArchiveWriter::create(into)?;
    let root = folder.path(lifetime);
    let mut folders = vec![root.clone()];
    while let Some(next) = folders.pop() {
        let mut entries = fs::read_dir(&next)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            deadline.check().map_err(io::Error::other)?;
            let path = entry.path();
            let name = path.strip_prefix(&root).map_err(io::Error::other)?;
            let name = name.to_str();
            let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                writer.folder(name)?;
                folders.push(path);
            } else if kind.is_file() {
                file(&mut writer, name, &path)?;
            }
        }
    }
    Ok(writer.finish()?)
}

fn file(writer: &mut ArchiveWriter, name: &str, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut is_first = true;
    loop {
        piece.clear();
        (&file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.is_empty() && !is_first {
            return Ok(());
        }
        writer.piece(name, &piece)?;
        is_first = false;
    }
}

/// Restores a mirror if there is none, and returns whether it did. An existing mirror is kept,
/// because it is at least as new as the file.
pub(crate) fn put_back(
    folder: &MirrorFolder,
    lifetime: &Lifetime,
    from: &Path,
    deadline: &Deadline,
) -> Result<bool, ArchiveError> {
    let wait = Allowance::until(deadline.within(LOCK_WAIT));
    let _lock = folder.lock(lifetime, &wait)?;
    if folder.exists(lifetime) {
        return Ok(false);
    }
    let root = folder.path(lifetime);
    private::create_folder(&root)?;
    // A mirror exists once it has a `HEAD`, so that file is written last.
    let mut head = Vec::new();
    let read = read_archive(from, |name, piece| {
        deadline.check().map_err(io::Error::other)?;
        let path = Path::new(name);
        let is_plain = |part| matches!(part, Component::Normal(_));
        if name.is_empty() || !path.components().all(is_plain) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let path = root.join(path);
        match piece {
            None => private::create_folder(&path),
            Some(piece) if name == "HEAD" => {
                head.extend_from_slice(piece);
                Ok(())
            }
            Some(piece) => private::append_to(&path)?.write_all(piece),
        }
    });
    let put = match read {
        Ok(Some(_)) => private::write_new(&root.join("HEAD"), &head).map_err(ArchiveError::from),
        Ok(None) => Err(ArchiveError::Damaged),
        Err(error) => Err(error.into()),
    };
    if put.is_err() {
        drop(fs::remove_dir_all(&root));
    }
    put.map(|()| true)
}
