use std::io::{self, BufRead, Read as _};
use std::ops::ControlFlow;

use svc_model::repository::CommitSha;

use super::{MirrorReader, ReadDecline, ReadError, why};
use crate::object_id::ObjectId;
use crate::process::Conversation;

/// The git command that writes diffs.
const DIFF_TREE: &str = "diff-tree";
/// A line of the question, which git repeats after a diff. No line of a diff begins like this.
pub(super) const END: &[u8] = b"svc-end\n";
/// The beginning of a file's section.
const SECTION: &[u8] = b"diff --git ";
/// The empty trees of both hash algorithms, which every repository knows.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// The limits of a diff.
#[derive(Clone, Copy, Debug)]
pub struct DiffQuestion {
    /// Maximum bytes of the whole diff.
    pub bytes_max: usize,
    /// Maximum number of files that differ.
    pub files_max: usize,
}

/// A unified diff as git writes it, in any encoding, with unquoted names. A file of more than 8 MiB
/// is shown as a binary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The sections of the files.
    pub bytes: Vec<u8>,
    /// The number of files.
    pub files: usize,
}

impl MirrorReader {
    /// Returns how each of many commits differs from its first parent, or from the empty tree if it
    /// has no parent. Merges are treated like any other commit. A moved file is shown as one file
    /// if half of its content is unchanged; at most 1,000 files are compared for this. Git works on
    /// the next commits while `each` handles one. `each` gets the index of the commit, and `None`
    /// if the mirror lacks the commit.
    ///
    /// # Errors
    ///
    /// Only errors that end all reading: [`ReadError::Passed`] and [`ReadError::Folder`]. For a
    /// single commit, `each` gets errors such as [`ReadDecline::TooLarge`] and
    /// [`ReadDecline::TooManyFiles`], by the limits of the question, and
    /// [`ReadDecline::Malformed`].
    pub fn diffs(
        &mut self,
        commits: &[CommitSha],
        question: DiffQuestion,
        each: impl FnMut(usize, Result<Option<Diff>, ReadError>),
    ) -> Result<(), ReadError> {
        let read = |output: &mut dyn BufRead, head: &[u8]| read(output, head, question);
        self.compare_each(Comparison::Diff, commits, read, each)
    }

    /// Asks how each of many commits differs from its first parent. `read` gets each answer along
    /// with its first line, and `each` gets what `read` returns. If git cannot be asked at all,
    /// `each` gets the error for every commit that has no answer yet.
    pub(super) fn compare_each<T>(
        &mut self,
        comparison: Comparison,
        commits: &[CommitSha],
        read: impl FnMut(&mut dyn BufRead, &[u8]) -> io::Result<Result<T, ReadDecline>>,
        mut each: impl FnMut(usize, Result<Option<T>, ReadError>),
    ) -> Result<(), ReadError> {
        let mut is_answered = vec![false; commits.len()];
        let asked = self.ask_of_each(comparison, commits, read, |place, answer| {
            is_answered[place] = true;
            each(place, answer);
        });
        let Err(error) = asked else {
            return Ok(());
        };
        for place in (0..commits.len()).filter(|place| !is_answered[*place]) {
            let Some(of_place) = error.of_another() else {
                return Err(error);
            };
            each(place, Err(of_place));
        }
        Ok(())
    }

    fn ask_of_each<T>(
        &mut self,
        comparison: Comparison,
        commits: &[CommitSha],
        read: impl FnMut(&mut dyn BufRead, &[u8]) -> io::Result<Result<T, ReadDecline>>,
        mut each: impl FnMut(usize, Result<Option<T>, ReadError>),
    ) -> Result<(), ReadError> {
        let ids: Vec<ObjectId> = commits.iter().map(ObjectId::of).collect();
        self.learn(ids.iter().copied())?;
        self.learn_parents(&ids)?;
        let mut places = Vec::with_capacity(commits.len());
        let mut questions: Vec<Vec<u8>> = Vec::with_capacity(commits.len());
        for (place, commit) in commits.iter().enumerate() {
            match self.trees_of(commit) {
                Ok(Some((before, tree))) => {
                    places.push(place);
                    questions.push([head(&before, &tree).as_bytes(), END].concat());
                }
                Ok(None) => each(place, Ok(None)),
                Err(error) => each(place, Err(error.of_one()?)),
            }
        }
        self.ask_of_trees(comparison, &questions, read, |at, answer| {
            each(places[at], answer.map(Some));
        })
    }

    /// Returns how two commits differ, wherever they are in the history, or `None` if the mirror
    /// lacks either.
    ///
    /// # Errors
    ///
    /// As [`diffs`](Self::diffs) for a single commit, and see [`ReadError`].
    pub fn diff_between(
        &mut self,
        before: &CommitSha,
        after: &CommitSha,
        question: DiffQuestion,
    ) -> Result<Option<Diff>, ReadError> {
        let (before, after) = (ObjectId::of(before), ObjectId::of(after));
        let (Some(before), Some(after)) = (self.link(before)?, self.link(after)?) else {
            return Ok(None);
        };
        let trees = head(&before.tree.to_string(), &after.tree.to_string());
        let questions = [[trees.as_bytes(), END].concat()];
        let mut found = None;
        let read = |output: &mut dyn BufRead, head: &[u8]| read(output, head, question);
        self.ask_of_trees(Comparison::Diff, &questions, read, |_, diff| {
            found = Some(diff);
        })?;
        found.transpose()
    }

    /// Asks about pairs of trees. `each` gets the index of the question.
    fn ask_of_trees<T>(
        &mut self,
        comparison: Comparison,
        questions: &[Vec<u8>],
        mut read: impl FnMut(&mut dyn BufRead, &[u8]) -> io::Result<Result<T, ReadDecline>>,
        mut each: impl FnMut(usize, Result<T, ReadError>),
    ) -> Result<(), ReadError> {
        let mut next = 0;
        while next < questions.len() {
            let mut conversation = self.diff_conversation(&questions[next], comparison)?;
            let mut is_whole = true;
            let answered = conversation.ask_all(&questions[next..], |at, output| {
                let head = questions[next + at].strip_suffix(END).unwrap_or_default();
                let answer = read(output, head)?;
                is_whole = answer.is_ok();
                each(next + at, answer.map_err(ReadError::Declined));
                // A declined answer is not read to the end, so a new process gives the next answer.
                Ok(if is_whole {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            });
            match answered {
                Ok(count) => {
                    next += count;
                    if is_whole {
                        self.diffs[comparison.place()] = Some(conversation);
                    }
                }
                Err((at, cause)) => {
                    each(next + at, Err(why(DIFF_TREE, cause).of_one()?));
                    next += at + 1;
                }
            }
        }
        Ok(())
    }

    /// Ends the processes that write diffs, once no more diffs are needed.
    pub fn end_diffs(&mut self) {
        self.diffs = [None, None];
    }

    /// Returns the trees of a commit's first parent and of the commit, or `None` if the mirror
    /// lacks either.
    fn trees_of(&mut self, commit: &CommitSha) -> Result<Option<(String, String)>, ReadError> {
        let Some(commit) = self.link(ObjectId::of(commit))? else {
            return Ok(None);
        };
        let tree = commit.tree.to_string();
        let before = match commit.parents.first() {
            Some(parent) => match self.link(*parent)? {
                Some(parent) => parent.tree.to_string(),
                None => return Ok(None),
            },
            None => empty_tree_like(&tree).to_owned(),
        };
        Ok(Some((before, tree)))
    }

    /// Takes the process for this kind of question, or starts one.
    fn diff_conversation(
        &mut self,
        asked: &[u8],
        comparison: Comparison,
    ) -> Result<Conversation, ReadError> {
        if let Some(conversation) = self.diffs[comparison.place()].take() {
            return Ok(conversation);
        }
        let tree = asked.split(|byte| *byte == b' ').next().unwrap_or_default();
        let call = self
            .call(DIFF_TREE)
            // Attributes in the repository are ignored, because they could hide any file.
            .environment(&[(
                "GIT_ATTR_SOURCE".to_owned(),
                empty_tree_like(&String::from_utf8_lossy(tree)).to_owned(),
            )])
            .args(["diff-tree", "--stdin", "-r", "--full-index"])
            .args(["--submodule=short", "--ignore-submodules=none"])
            .args(comparison.arguments());
        Ok(call.converse(&self.allowance)?)
    }
}

/// What to ask git about two trees.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    /// What was added and removed in each file.
    Diff,
    /// Which files differ.
    Changes,
}

impl Comparison {
    /// Returns the index of the process that answers this kind of question.
    const fn place(self) -> usize {
        match self {
            Self::Diff => 0,
            Self::Changes => 1,
        }
    }

    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Diff => &[
                "-p",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "-M50%",
                "-l1000",
            ],
            Self::Changes => &["--raw", "-z", "--no-renames"],
        }
    }
}

/// Returns the line that asks how two trees differ. Git repeats it before its answer.
fn head(from: &str, to: &str) -> String {
    format!("{from} {to}\n")
}

fn empty_tree_like(id: &str) -> &'static str {
    let is_long = ObjectId::parse(id.as_bytes()).is_some_and(|id| id.bytes().len() > 20);
    EMPTY_TREES[usize::from(is_long)]
}

/// Reads a diff between the line that names its trees and the line that ends it.
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
        // Git could not read one of the trees.
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
