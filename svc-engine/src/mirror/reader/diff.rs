use std::io::{self, BufRead, Read as _};

use svc_model::repository::CommitSha;

use super::{MirrorReader, ReadDecline, ReadError, why};
use crate::mirror::object_id::ObjectId;

/// A line that is asked and repeated by git after a diff. Every line of a diff begins otherwise.
pub(super) const END: &[u8] = b"svc-end\n";
/// How the section of a file begins.
const SECTION: &[u8] = b"diff --git ";
/// The tree without entries, of which every repository knows.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// Whether a file that moved is shown as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renames {
    /// It is: half of its content is the same, and no more than 1,000 files are compared.
    Detected,
    /// It is shown as removed and added.
    Apart,
}

/// What becomes of a commit with several parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// It is compared with its first parent, as any other.
    FirstParent,
    /// It is declined.
    Declined,
}

/// What a diff may be.
#[derive(Clone, Copy, Debug)]
pub struct DiffQuestion {
    /// Whether renames are detected.
    pub renames: Renames,
    /// What becomes of a merge.
    pub merges: Merges,
    /// Bytes of the whole diff.
    pub bytes_max: usize,
    /// Files that differ.
    pub files_max: usize,
}

/// A unified diff, as git writes it: of no certain encoding, with names as they are. A file of more
/// than 8 MiB is shown as a binary one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The sections of the files.
    pub bytes: Vec<u8>,
    /// How many they are.
    pub files: usize,
}

impl MirrorReader {
    /// Returns how a commit differs from its first parent, or the first of a history from nothing;
    /// nothing when the mirror has no such commit.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooLarge`], [`ReadDecline::TooManyFiles`] and [`ReadDecline::Merge`] as asked,
    /// and see [`MirrorReader::commit`].
    pub fn diff(
        &mut self,
        commit: &CommitSha,
        question: DiffQuestion,
    ) -> Result<Option<Diff>, ReadError> {
        let Some(commit) = self.link(ObjectId::of(commit))? else {
            return Ok(None);
        };
        if question.merges == Merges::Declined && commit.parents.len() > 1 {
            return Err(ReadError::Declined(ReadDecline::Merge));
        }
        let tree = commit.tree.to_string();
        let before = match commit.parents.first() {
            Some(parent) => match self.link(*parent)? {
                Some(parent) => parent.tree.to_string(),
                None => return Ok(None),
            },
            None => empty_tree_like(&tree).to_owned(),
        };
        self.trees(&before, &tree, question).map(Some)
    }

    /// Returns how one commit differs from another, whatever lies between them; nothing when the
    /// mirror lacks one.
    ///
    /// # Errors
    ///
    /// See [`MirrorReader::diff`].
    pub fn difference(
        &mut self,
        from: &CommitSha,
        to: &CommitSha,
        question: DiffQuestion,
    ) -> Result<Option<Diff>, ReadError> {
        let (from, to) = (ObjectId::of(from), ObjectId::of(to));
        let (from, to) = (self.link(from)?, self.link(to)?);
        let Some((from, to)) = from.zip(to) else {
            return Ok(None);
        };
        self.trees(&from.tree.to_string(), &to.tree.to_string(), question)
            .map(Some)
    }

    fn trees(&mut self, from: &str, to: &str, question: DiffQuestion) -> Result<Diff, ReadError> {
        const WHAT: &str = "diff-tree";
        let place = usize::from(question.renames == Renames::Detected);
        let mut conversation = match self.diffs[place].take() {
            Some(conversation) => conversation,
            None => self
                .call(WHAT)
                // What a repository says of its files is not followed: it may hide any of them.
                .environment(&[("GIT_ATTR_SOURCE".to_owned(), empty_tree_like(to).to_owned())])
                .args(["diff-tree", "--stdin", "-r", "-p", "--full-index"])
                .args(["--no-color", "--no-ext-diff", "--no-textconv"])
                .args(["--submodule=short", "--ignore-submodules=none"])
                .args(match question.renames {
                    Renames::Detected => &["-M50%", "-l1000"][..],
                    Renames::Apart => &["--no-renames"][..],
                })
                .converse(&self.allowance)?,
        };
        let head = format!("{from} {to}\n");
        let asked = [head.as_bytes(), END].concat();
        let answer = conversation.ask(&asked, |output| read(output, head.as_bytes(), question));
        let diff = answer.map_err(|cause| why(WHAT, cause))?;
        // Of what is declined the rest is not read, so the next diff is another process's.
        let diff = diff.map_err(ReadError::Declined)?;
        self.diffs[place] = Some(conversation);
        Ok(diff)
    }
}

fn empty_tree_like(id: &str) -> &'static str {
    let is_long = ObjectId::parse(id.as_bytes()).is_some_and(|id| id.bytes().len() > 20);
    EMPTY_TREES[usize::from(is_long)]
}

/// Reads a diff between the line that says of what it is and the one that ends it.
fn read(
    output: &mut dyn BufRead,
    head: &[u8],
    question: DiffQuestion,
) -> io::Result<Result<Diff, ReadDecline>> {
    let mut first = Vec::new();
    output
        .take(head.len() as u64)
        .read_until(b'\n', &mut first)?;
    if first.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first != head {
        // git could not read one of the trees.
        return Ok(Err(ReadDecline::Malformed));
    }
    let mut diff = Diff {
        bytes: Vec::new(),
        files: 0,
    };
    loop {
        let start = diff.bytes.len();
        let room = (question.bytes_max - start).saturating_add(END.len());
        let length = output
            .take(room as u64 + 1)
            .read_until(b'\n', &mut diff.bytes)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = &diff.bytes[start..];
        if line == END {
            diff.bytes.truncate(start);
            return Ok(Ok(diff));
        }
        if line.starts_with(SECTION) {
            diff.files += 1;
        }
        if diff.files > question.files_max {
            return Ok(Err(ReadDecline::TooManyFiles));
        }
        if diff.bytes.len() > question.bytes_max {
            return Ok(Err(ReadDecline::TooLarge));
        }
    }
}
