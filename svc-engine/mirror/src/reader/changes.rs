use std::io::{self, BufRead};

use svc_model::repository::CommitSha;

use super::diff::Comparison;
use super::renames::{NextFile, begins, next, text};
use super::{MirrorReader, PATH_BYTES_MAX, ReadDecline, ReadError};
use crate::object_id::ObjectId;

/// The maximum files of one commit that are returned. The caller holds the files of many commits.
const RETURNED_MAX: usize = 256;
/// The maximum files of one commit that are read.
const FILES_MAX: usize = 10_000;

/// What happened to a file, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// Its content or its mode is different.
    Modified,
    /// The file was removed.
    Deleted,
    /// It is not a regular file, or was not one before.
    Other,
}

/// A file that differs between a commit and its first parent. A moved file appears twice, as
/// removed and as new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// What happened to the file.
    pub kind: ChangeKind,
    /// The ids of its content before and after; all zeros where there is none.
    pub contents: (ObjectId, ObjectId),
    /// Its path, in any encoding.
    pub path: Vec<u8>,
}

impl MirrorReader {
    /// Returns which files differ between commits and their first parents, in git's order. Git
    /// reads no file contents for this. `each` gets the index of the commit, and `None` if the
    /// mirror lacks the commit or if more than 256 files differ.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`]. For a
    /// single commit, `each` gets errors such as [`ReadDecline::TooManyFiles`] and
    /// [`ReadDecline::Path`].
    pub fn changes(
        &mut self,
        commits: &[CommitSha],
        mut each: impl FnMut(usize, Result<Option<Vec<ChangedFile>>, ReadError>),
    ) -> Result<(), ReadError> {
        self.compare_each(Comparison::Changes, commits, read, |place, changes| {
            each(place, changes.map(Option::flatten));
        })
    }
}

/// Reads `:MODE MODE ID ID STATUS` and the path of each file, both ended by NUL, between the line
/// with the trees and the line that ends the answer.
fn read(
    output: &mut dyn BufRead,
    head: &[u8],
) -> io::Result<Result<Option<Vec<ChangedFile>>, ReadDecline>> {
    if !begins(output, head)? {
        return Ok(Err(ReadDecline::Malformed));
    }
    let mut changes = Vec::new();
    for files in 1.. {
        let fields = match next(output)? {
            NextFile::File(_) if files > FILES_MAX => return Ok(Err(ReadDecline::TooManyFiles)),
            NextFile::File(fields) => fields,
            NextFile::Odd => return Ok(Err(ReadDecline::Malformed)),
            NextFile::End => break,
        };
        let Some((kind, contents)) = parse(&fields) else {
            return Ok(Err(ReadDecline::Malformed));
        };
        let Some(path) = text(output, PATH_BYTES_MAX)? else {
            return Ok(Err(ReadDecline::Path));
        };
        // One more than may be returned shows that there are more.
        if files <= RETURNED_MAX + 1 {
            changes.push(ChangedFile {
                kind,
                contents,
                path,
            });
        }
    }
    Ok(Ok((changes.len() <= RETURNED_MAX).then_some(changes)))
}

/// Parses what precedes a path: two modes, two ids and a word.
fn parse(fields: &[u8]) -> Option<(ChangeKind, (ObjectId, ObjectId))> {
    let mut fields = fields.split(|byte| *byte == b' ');
    let modes = [fields.next()?, fields.next()?];
    let contents = (
        ObjectId::parse(fields.next()?)?,
        ObjectId::parse(fields.next()?)?,
    );
    let is_file = |mode: &[u8]| matches!(mode, b"100644" | b"100755");
    let none = b"000000";
    let kind = match (fields.next()?, modes) {
        (b"A", [before, after]) if before == none && is_file(after) => ChangeKind::Added,
        (b"D", [before, after]) if is_file(before) && after == none => ChangeKind::Deleted,
        (b"M", [before, after]) if is_file(before) && is_file(after) => ChangeKind::Modified,
        _ => ChangeKind::Other,
    };
    Some((kind, contents))
}
