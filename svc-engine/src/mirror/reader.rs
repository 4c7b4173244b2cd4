//! A mirror, read while the refresher works on it.
//!
//! A reader keeps a mirror from being removed, and shares it with other readers. A fetch at the same
//! time only adds objects. Git does the reading: one process answers all questions about objects, and
//! one writes all diffs, so a report on thousands of commits does not start thousands of processes.
//! Both end with the reader, and with its deadline.
//!
//! The content of a repository is untrusted. Sizes are checked before anything is read, bytes are
//! counted, and git's memory is limited. What is too large or malformed is declined with a closed
//! reason, never cut.

mod ancestry;
mod changes;
mod commit;
mod diff;
mod files;
mod objects;
mod range;
mod renames;
mod tree;

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;

use svc_model::repository::CommitSha;

pub use self::ancestry::Ancestry;
pub use self::changes::{Change, ChangeKind};
pub use self::commit::Commit;
pub use self::diff::{Diff, DiffQuestion, Merges, Renames};
pub use self::files::WantedFile;
use self::range::Link;
pub use self::range::PushRange;
pub use self::renames::Rename;
pub use self::tree::{EntryKind, TreeEntry};
use super::allowance::{Allowance, Stopped};
use super::bare::Mirror;
use super::folder::{Kept, LockError, MirrorFolder};
use super::git::{Call, Git, GitError};
use super::object_id::ObjectId;
use super::process::{Conversation, ProcessError};
use crate::deadline::{Deadline, Passed};
use crate::fact::Lifetime;

/// Bytes of address space of a git that reads for a request. Real repositories need far less; a
/// repository that is made to use up the memory of the machine is stopped.
const GIT_MEMORY_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Bytes of a commit, most of which are its message.
const COMMIT_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a path, less than a question may have.
const PATH_BYTES_MAX: usize = 3 * 1024;
/// Entries of a folder that is searched for a file.
const FOLDER_ENTRIES_MAX: usize = 100_000;
/// What answers questions about objects.
const CAT_FILE: &str = "cat-file";
/// Bytes of the line before an object.
const LINE_BYTES_MAX: u64 = 1_024;

/// How git reads: in windows that fit into its memory, and without diffs of files that are too large
/// to be written by hand. Names of files are not quoted.
const SETTINGS: [(&str, &str); 4] = [
    ("core.bigFileThreshold", "8m"),
    ("core.packedGitWindowSize", "32m"),
    ("core.packedGitLimit", "256m"),
    ("core.quotePath", "false"),
];

/// Why something was not read, in one closed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadDecline {
    /// It has more bytes than were asked for.
    TooLarge,
    /// The diff has more files than were asked for.
    TooManyFiles,
    /// The folder has more entries than were asked for.
    TooManyEntries,
    /// The history is longer than a walk may be.
    TooManyCommits,
    /// The commit is a merge, and merges were not asked for.
    Merge,
    /// It is not a file.
    NotAFile,
    /// It is not a folder.
    NotAFolder,
    /// No repository can have this path, or it is too long.
    Path,
    /// It is not a valid object of its kind.
    Malformed,
}

impl ReadDecline {
    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::TooManyFiles => "too_many_files",
            Self::TooManyEntries => "too_many_entries",
            Self::TooManyCommits => "too_many_commits",
            Self::Merge => "merge",
            Self::NotAFile => "not_a_file",
            Self::NotAFolder => "not_a_folder",
            Self::Path => "path",
            Self::Malformed => "malformed",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The deadline has passed, or the work was cancelled.
    #[error(transparent)]
    Passed(#[from] Passed),
    /// It is declined, and would be declined again.
    #[error("declined: {}", .0.as_str())]
    Declined(ReadDecline),
    /// Git gave no answer. Its complaint is for the log.
    #[error("git could not read the mirror: {0}")]
    Git(String),
    /// The folder of the mirrors cannot be used.
    #[error("the folder of the mirrors cannot be used")]
    Folder(#[source] io::Error),
}

impl ReadError {
    /// Returns an error that concerns one object only: others can still be read.
    ///
    /// # Errors
    ///
    /// The error itself, if nothing more can be read.
    fn of_one(self) -> Result<Self, Self> {
        match self {
            Self::Declined(_) | Self::Git(_) => Ok(self),
            Self::Passed(_) | Self::Folder(_) => Err(self),
        }
    }
}

impl From<GitError> for ReadError {
    fn from(error: GitError) -> Self {
        match error.stopped() {
            Some(Stopped::Passed(passed)) => Self::Passed(passed),
            Some(Stopped::DiskReserve) | None => Self::Git(error.complaint()),
        }
    }
}

/// What an object is, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    id: ObjectId,
    kind: Kind,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// One mirror, open for reading. Calls block, until the deadline that it was opened with.
#[derive(Debug)]
pub struct MirrorReader {
    objects: Option<Conversation>,
    diffs: [Option<Conversation>; 3],
    renames: Option<Conversation>,
    /// Places of commits in the history, which never change.
    links: HashMap<ObjectId, Link>,
    git: Git,
    path: PathBuf,
    allowance: Allowance,
    // Dropped last: the programs above may read until they end.
    _kept: Kept,
}

impl MirrorReader {
    /// Opens the mirror of a repository; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If the deadline passes while the mirror is removed, or the folder cannot be used.
    pub fn open(
        git: &Git,
        folder: &MirrorFolder,
        lifetime: &Lifetime,
        deadline: &Deadline,
    ) -> Result<Option<Self>, ReadError> {
        deadline.check()?;
        // No folder is created for a mirror that was never fetched.
        if !folder.exists(lifetime) {
            return Ok(None);
        }
        let allowance = Allowance::until(deadline.clone());
        let kept = match folder.keep(lifetime, &allowance) {
            Ok(kept) => kept,
            Err(LockError::Stopped(Stopped::Passed(passed))) => return Err(passed.into()),
            Err(LockError::Taken | LockError::Stopped(Stopped::DiskReserve)) => {
                return Err(Passed::Time.into());
            }
            Err(LockError::Folder(error)) => return Err(ReadError::Folder(error)),
        };
        if !folder.exists(lifetime) {
            return Ok(None);
        }
        Ok(Some(Self {
            objects: None,
            diffs: [None, None, None],
            renames: None,
            links: HashMap::new(),
            git: git.clone(),
            path: folder.path(lifetime),
            allowance,
            _kept: kept,
        }))
    }

    /// Returns a commit; nothing if the mirror has none with this id.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooLarge`] beyond 1 MiB, [`ReadDecline::Malformed`], and see [`ReadError`].
    pub fn commit(&mut self, commit: &CommitSha) -> Result<Option<Commit>, ReadError> {
        let Some(header) = self.header(commit.as_str().as_bytes())? else {
            return Ok(None);
        };
        if header.kind != Kind::Commit {
            return Ok(None);
        }
        let text = self.contents(header, COMMIT_BYTES_MAX)?;
        let commit = Commit::parse(&text).ok_or(ReadError::Declined(ReadDecline::Malformed))?;
        Ok(Some(commit))
    }

    /// Returns the bytes of a file at a commit; nothing if there is none. Links are not followed: the
    /// bytes of a link are its path.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooLarge`] beyond so many bytes, [`ReadDecline::NotAFile`],
    /// [`ReadDecline::Path`], and see [`ReadError`].
    pub fn blob(
        &mut self,
        commit: &CommitSha,
        path: &[u8],
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let name = object_name(commit, path)?;
        let Some(header) = self.header(&name)? else {
            return Ok(None);
        };
        if header.kind != Kind::Blob {
            return Err(ReadError::Declined(ReadDecline::NotAFile));
        }
        self.contents(header, bytes_max).map(Some)
    }

    /// Returns the bytes of a regular file at a commit; nothing if there is none at the path, or if it
    /// is a link, a folder or a commit of another repository.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooLarge`] beyond so many bytes, [`ReadDecline::TooManyEntries`] for a folder of
    /// more than 100,000 entries, [`ReadDecline::Path`], and see [`ReadError`].
    pub fn regular_file(
        &mut self,
        commit: &CommitSha,
        path: &[u8],
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        object_name(commit, path)?;
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) = match slash {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], path),
        };
        let entries = match self.tree_entries(commit, folder, FOLDER_ENTRIES_MAX) {
            Err(ReadError::Declined(ReadDecline::NotAFolder)) => None,
            entries => entries?,
        };
        let is_it = |entry: &&TreeEntry| entry.name == name && entry.kind == EntryKind::File;
        let Some(entry) = entries.iter().flatten().find(is_it) else {
            return Ok(None);
        };
        match self.header(entry.id.as_str().as_bytes())? {
            Some(header) if header.kind == Kind::Blob => self.contents(header, bytes_max).map(Some),
            _ => Err(ReadError::Declined(ReadDecline::Malformed)),
        }
    }

    /// Returns the entries of a folder at a commit, in the order of the repository; nothing if there is
    /// no such folder. An empty path is the root folder.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooManyEntries`], [`ReadDecline::TooLarge`] where the names are too long for so
    /// many, [`ReadDecline::NotAFolder`], [`ReadDecline::Path`], [`ReadDecline::Malformed`], and see
    /// [`ReadError`].
    pub fn tree_entries(
        &mut self,
        commit: &CommitSha,
        path: &[u8],
        entries_max: usize,
    ) -> Result<Option<Vec<TreeEntry>>, ReadError> {
        let name = if path.is_empty() {
            format!("{commit}:").into_bytes()
        } else {
            object_name(commit, path)?
        };
        let Some(header) = self.header(&name)? else {
            return Ok(None);
        };
        if header.kind != Kind::Tree {
            return Err(ReadError::Declined(ReadDecline::NotAFolder));
        }
        let tree = self.contents(header, tree::bytes_max(entries_max))?;
        let entries = tree::parse(&tree, header.id, entries_max).map_err(ReadError::Declined)?;
        Ok(Some(entries))
    }

    /// Returns for each commit whether the mirror has it and a branch reaches it.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn reached(&self, commits: &[CommitSha]) -> Result<Vec<bool>, ReadError> {
        let mirror = Mirror::at(&self.git, self.path.clone());
        let ids: Vec<ObjectId> = commits.iter().map(ObjectId::of).collect();
        let objects = mirror.objects(&ids, &self.allowance)?;
        let is_commit: Vec<bool> = objects
            .iter()
            .map(|object| *object == super::bare::Object::Commit)
            .collect();
        let existing: Vec<ObjectId> = ids
            .iter()
            .zip(&is_commit)
            .filter_map(|(id, is_commit)| is_commit.then_some(*id))
            .collect();
        let unreached = mirror.unreached(&existing, &self.allowance)?;
        let reached = |(id, is_commit): (&ObjectId, bool)| is_commit && !unreached.contains(id);
        Ok(ids.iter().zip(is_commit).map(reached).collect())
    }

    /// Prepares a git process that reads.
    fn call(&self, what: &'static str) -> Call {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.git
            .on_within(what, &self.path, GIT_MEMORY_MAX)
            .settings(SETTINGS.map(own))
    }

    /// Returns what an object is: by its id, or as `COMMIT:PATH`.
    fn header(&mut self, name: &[u8]) -> Result<Option<Header>, ReadError> {
        let question = [b"info ", name, b"\0"].concat();
        self.ask_objects(&question, |output| read_header(output, name))
    }

    /// Returns the bytes of an object.
    fn contents(&mut self, header: Header, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
        if header.bytes > bytes_max {
            return Err(ReadError::Declined(ReadDecline::TooLarge));
        }
        let name = header.id.to_string().into_bytes();
        let question = [b"contents ", &name[..], b"\0"].concat();
        self.ask_objects(&question, |output| {
            if read_header(output, &name)? != Some(header) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut bytes = Vec::new();
            // The line break after it is not part of the object.
            output.take(header.bytes + 1).read_to_end(&mut bytes)?;
            if bytes.pop() != Some(b'\n') || bytes.len() as u64 != header.bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(bytes)
        })
    }

    /// Takes the process that answers questions about objects, or starts one.
    fn objects_conversation(&mut self) -> Result<Conversation, ReadError> {
        if let Some(conversation) = self.objects.take() {
            return Ok(conversation);
        }
        let call = self
            .call(CAT_FILE)
            .args(["cat-file", "-z"])
            .arg("--batch-command=%(objectname) %(objecttype) %(objectsize)");
        Ok(call.converse(&self.allowance)?)
    }

    fn ask_objects<T>(
        &mut self,
        question: &[u8],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>,
    ) -> Result<T, ReadError> {
        let mut conversation = self.objects_conversation()?;
        let answer = conversation
            .ask(question, read)
            .map_err(|cause| why(CAT_FILE, cause))?;
        // After an error, the next question goes to a new process.
        self.objects = Some(conversation);
        Ok(answer)
    }
}

fn why(what: &'static str, cause: ProcessError) -> ReadError {
    GitError::new(what, cause).into()
}

/// Returns the name of the object at a path. Git gives paths that begin with a dot a meaning of their
/// own, and no tree that it writes has such names.
fn object_name(commit: &CommitSha, path: &[u8]) -> Result<Vec<u8>, ReadError> {
    let odd = |part: &[u8]| matches!(part, b"" | b"." | b"..");
    let parts = || path.split(|byte| *byte == b'/');
    if path.len() > PATH_BYTES_MAX || path.contains(&0) || parts().any(odd) {
        return Err(ReadError::Declined(ReadDecline::Path));
    }
    Ok([commit.as_str().as_bytes(), b":", path].concat())
}

/// Reads the line before an object; nothing if there is no such object. In that case git repeats its
/// name, including any line breaks.
fn read_header(output: &mut dyn BufRead, name: &[u8]) -> io::Result<Option<Header>> {
    let absent = [name, b" missing\n"].concat();
    let mut line = Vec::new();
    loop {
        let room = LINE_BYTES_MAX + absent.len() as u64;
        if output.take(room).read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(header) = parse_header(&line) {
            return Ok(Some(header));
        }
        if line == absent {
            return Ok(None);
        }
        if !absent.starts_with(&line) {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn parse_header(line: &[u8]) -> Option<Header> {
    let line = str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut fields = line.split(' ');
    let id = ObjectId::parse(fields.next()?.as_bytes())?;
    let kind = match fields.next()? {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        "blob" => Kind::Blob,
        "tag" => Kind::Tag,
        _ => return None,
    };
    let bytes = fields.next()?.parse().ok()?;
    Some(Header { id, kind, bytes })
}

#[cfg(test)]
mod tests;
