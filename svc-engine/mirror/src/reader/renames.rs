use std::io::{self, BufRead, Read as _};

use svc_model::repository::CommitSha;

use super::diff::END;
use super::{MirrorReader, PATH_BYTES_MAX, ReadDecline, ReadError, why};
use crate::object_id::ObjectId;

/// The maximum number of files that moved between two commits.
const RENAMES_MAX: usize = 10_000;
/// The maximum bytes of what precedes the paths of one file.
const HEAD_BYTES_MAX: usize = 1_024;

/// A file that has another path in a later commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// Its path before, in any encoding.
    pub from: Vec<u8>,
    /// Its path after.
    pub to: Vec<u8>,
}

impl MirrorReader {
    /// Returns the files that have another path in a later commit and at least half of their
    /// content unchanged, in git's order. `None` if the mirror lacks one of the commits. If more
    /// than 1,000 files would have to be compared, returns only files with unchanged content.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooManyFiles`] for more than 10,000 files, [`ReadDecline::Path`] for a path
    /// of more than 3 KiB, and see [`MirrorReader::commit`].
    pub fn renames(
        &mut self,
        from: &CommitSha,
        to: &CommitSha,
    ) -> Result<Option<Vec<Rename>>, ReadError> {
        const WHAT: &str = "diff-tree";
        let (from, to) = (ObjectId::of(from), ObjectId::of(to));
        let (from, to) = (self.link(from)?, self.link(to)?);
        let Some((from, to)) = from.zip(to) else {
            return Ok(None);
        };
        let mut conversation = match self.renames.take() {
            Some(conversation) => conversation,
            None => self
                .call(WHAT)
                .args(["diff-tree", "--stdin", "-r", "-z", "--raw"])
                .args(["--diff-filter=R", "-M50%", "-l1000"])
                .converse(&self.allowance)?,
        };
        let trees = format!("{} {}\n", from.tree, to.tree);
        let asked = [trees.as_bytes(), END].concat();
        let answer = conversation.ask(&asked, |output| read(output, trees.as_bytes()));
        let renames = answer.map_err(|cause| why(WHAT, cause))?;
        // A declined answer is not read to the end, so a new process gives the next answer.
        let renames = renames.map_err(ReadError::Declined)?;
        self.renames = Some(conversation);
        Ok(Some(renames))
    }
}

/// Reads `:MODES IDS STATUS`, the path before and the path after of each file, all ended by NUL,
/// between the line with the trees and the line that ends the answer.
fn read(output: &mut dyn BufRead, trees: &[u8]) -> io::Result<Result<Vec<Rename>, ReadDecline>> {
    if !begins(output, trees)? {
        return Ok(Err(ReadDecline::Malformed));
    }
    let mut renames = Vec::new();
    loop {
        match next(output)? {
            NextFile::End => return Ok(Ok(renames)),
            NextFile::Odd => return Ok(Err(ReadDecline::Malformed)),
            NextFile::File(_) if renames.len() == RENAMES_MAX => {
                return Ok(Err(ReadDecline::TooManyFiles));
            }
            NextFile::File(_) => {}
        }
        let (from, to) = (text(output, PATH_BYTES_MAX)?, text(output, PATH_BYTES_MAX)?);
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(Err(ReadDecline::Path));
        };
        renames.push(Rename { from, to });
    }
}

/// Reads the line with the trees, and returns whether it is the one in the question. If not, git
/// could not read one of the trees.
pub(super) fn begins(output: &mut dyn BufRead, trees: &[u8]) -> io::Result<bool> {
    let mut first = Vec::new();
    output
        .take(trees.len() as u64)
        .read_until(b'\n', &mut first)?;
    if first.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(first == trees)
}

/// What comes next in an answer.
#[derive(Debug)]
pub(super) enum NextFile {
    /// A file: what precedes its paths, without the colon.
    File(Vec<u8>),
    /// The line that ends the answer.
    End,
    /// Something that git does not write.
    Odd,
}

/// Reads what precedes the paths of the next file.
pub(super) fn next(output: &mut dyn BufRead) -> io::Result<NextFile> {
    let mut first = [0];
    output.read_exact(&mut first)?;
    if first == *b":" {
        return Ok(text(output, HEAD_BYTES_MAX)?.map_or(NextFile::Odd, NextFile::File));
    }
    if first[0] == END[0] {
        let mut rest = vec![0; END.len() - 1];
        output.read_exact(&mut rest)?;
        if rest == END[1..] {
            return Ok(NextFile::End);
        }
    }
    Ok(NextFile::Odd)
}

/// Reads up to the next NUL and returns what precedes it, or `None` if that is longer than
/// `bytes_max`.
pub(super) fn text(output: &mut dyn BufRead, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    output
        .take(bytes_max as u64 + 1)
        .read_until(b'\0', &mut text)?;
    if text.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((text.pop() == Some(b'\0')).then_some(text))
}
