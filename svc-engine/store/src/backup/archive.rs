//! Archives of files, in the format of the tables.

use std::io;
use std::path::Path;

use super::block::{BlockReader, BlockWriter, NextRows, WrittenFile};
use crate::sql::value::Value;

/// An archive: folders, and pieces of files in order.
#[derive(Debug)]
pub struct ArchiveWriter(BlockWriter);

impl ArchiveWriter {
    /// Creates the file of an archive, which must not exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        BlockWriter::create(path).map(Self)
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &str) -> io::Result<()> {
        self.0.row(&[Value::Text(path), Value::Null])
    }

    /// Adds the next piece of a file.
    pub fn piece(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.row(&[Value::Text(path), Value::Blob(bytes)])
    }

    /// Ends the archive and returns what was written.
    pub fn finish(self) -> io::Result<WrittenFile> {
        self.0.finish()
    }
}

/// Reads an archive. Calls `each` with the path of each folder, and with the path and the next
/// piece of each file. Returns `None` if the archive is damaged.
pub fn read_archive(
    path: &Path,
    mut each: impl FnMut(&str, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<Option<WrittenFile>> {
    let mut reader = BlockReader::open(path)?;
    let (mut values, mut rows) = (Vec::new(), 0);
    loop {
        match reader.next()? {
            NextRows::Damaged(_) => return Ok(None),
            NextRows::End => break,
            NextRows::Rows(mut block) => {
                while block.row(2, &mut values).is_some() {
                    rows += 1;
                    each(values[0].as_str().unwrap_or_default(), values[1].as_blob())?;
                }
                if !block.is_read() {
                    return Ok(None);
                }
            }
        }
    }
    let (bytes, sha256) = reader.finish()?;
    Ok(Some(WrittenFile {
        rows,
        bytes,
        sha256,
    }))
}
