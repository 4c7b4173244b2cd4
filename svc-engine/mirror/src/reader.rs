//! Reads a mirror, also while the refresher works on it.
//!
//! A reader keeps a mirror from being removed, and shares it with other readers. A fetch at the
//! same time only adds objects. Git does the reading: one process answers all questions about
//! objects and another writes all diffs, so a report on thousands of commits does not start
//! thousands of processes. Both end with the reader, and at its deadline.
//!
//! The content of a repository is untrusted. Sizes are checked before anything is read, bytes are
//! counted, and git's memory is limited. What is too large or malformed is declined with a closed
//! reason, and never truncated.
//!
//! Questions are asked ahead, as many as a pipe holds (4 KiB). The commits of a push are found by
//! walking through commits that were read before; git is asked only where commit times do not
//! follow the history.

mod ancestry;
mod changes;
mod commit;
mod diff;
mod files;
mod objects;
mod pull_requests;
mod range;
mod renames;
mod tree;

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;

use svc_model::repository::CommitSha;

pub use self::ancestry::Ancestry;
pub use self::changes::{ChangeKind, ChangedFile};
pub use self::commit::CommitObject;
pub use self::diff::{Diff, DiffQuestion};
pub use self::files::WantedFile;
use self::range::HistoryLink;
pub use self::range::PushRange;
pub use self::renames::Rename;
use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::{Deadline, Passed};

use super::allowance::{Allowance, StopReason};
use super::folder::{LockError, MirrorFolder, RemovalGuard};
use super::git::{Git, GitCall, GitError};
use super::object_id::ObjectId;
use super::process::{Conversation, ProcessError};

/// The address space, in bytes, of a git that reads for a request. Real repositories need far less.
/// A repository that is made to exhaust the machine's memory is stopped.
const GIT_MEMORY_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// The maximum bytes of a commit. Most of them are its message.
const COMMIT_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum bytes of a path, which is less than a question may have.
const PATH_BYTES_MAX: usize = 3 * 1024;
/// The git command that answers questions about objects.
const CAT_FILE: &str = "cat-file";
/// The maximum bytes of the line before an object.
const LINE_BYTES_MAX: u64 = 1_024;

/// How git reads: in windows that fit into its memory, and without diffs of files that are too
/// large to be written by hand. Names of files are not quoted.
const SETTINGS: [(&str, &str); 4] = [
    ("core.bigFileThreshold", "8m"),
    ("core.packedGitWindowSize", "32m"),
    ("core.packedGitLimit", "256m"),
    ("core.quotePath", "false"),
];

/// Why something was not read, as a closed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadDecline {
    /// It has more bytes than the question allows.
    TooLarge,
    /// The diff has more files than the question allows.
    TooManyFiles,
    /// The folder has more entries than the question allows.
    TooManyEntries,
    /// The history is longer than a walk may be.
    TooManyCommits,
    /// The path is too long, or no repository can contain it.
    Path,
    /// It is not a valid object of its kind.
    Malformed,
}

impl ReadDecline {
    /// Returns the reason's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::TooManyFiles => "too_many_files",
            Self::TooManyEntries => "too_many_entries",
            Self::TooManyCommits => "too_many_commits",
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
    /// The question is declined, and would be declined again.
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
    /// Returns an error that concerns one object only, so that others can still be read.
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

    /// Returns the same error for another object; `None` if no object can be read any more.
    fn of_another(&self) -> Option<Self> {
        match self {
            Self::Declined(decline) => Some(Self::Declined(*decline)),
            Self::Git(complaint) => Some(Self::Git(complaint.clone())),
            Self::Passed(_) | Self::Folder(_) => None,
        }
    }
}

impl From<GitError> for ReadError {
    fn from(error: GitError) -> Self {
        match error.stopped() {
            Some(StopReason::Passed(passed)) => Self::Passed(passed),
            Some(StopReason::DiskReserve) | None => Self::Git(error.complaint()),
        }
    }
}

/// The kind and the size of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObjectHeader {
    id: ObjectId,
    kind: ObjectKind,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// One mirror, open for reading. Calls block, at most until the deadline that it was opened with.
#[derive(Debug)]
pub struct MirrorReader {
    objects: Option<Conversation>,
    diffs: [Option<Conversation>; 2],
    renames: Option<Conversation>,
    /// Where commits stand in the history, which never changes.
    links: HashMap<ObjectId, HistoryLink>,
    pub(super) git: Git,
    pub(super) path: PathBuf,
    pub(super) allowance: Allowance,
    // Dropped last, because the programs above may read until they end.
    _kept: RemovalGuard,
}

impl MirrorReader {
    /// Opens the mirror of a repository, or returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the deadline passes while the mirror is being removed, or if the folder cannot be used.
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
            Err(LockError::Stopped(StopReason::Passed(passed))) => return Err(passed.into()),
            Err(LockError::Taken | LockError::Stopped(StopReason::DiskReserve)) => {
                return Err(Passed::Time.into());
            }
            Err(LockError::Folder(error)) => return Err(ReadError::Folder(error)),
        };
        if !folder.exists(lifetime) {
            return Ok(None);
        }
        Ok(Some(Self {
            objects: None,
            diffs: [None, None],
            renames: None,
            links: HashMap::new(),
            git: git.clone(),
            path: folder.path(lifetime),
            allowance,
            _kept: kept,
        }))
    }

    /// Returns a commit, or `None` if the mirror has none with this id.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooLarge`] beyond 1 MiB, [`ReadDecline::Malformed`], and see [`ReadError`].
    pub fn commit(&mut self, commit: &CommitSha) -> Result<Option<CommitObject>, ReadError> {
        let Some(header) = self.header(commit)? else {
            return Ok(None);
        };
        if header.kind != ObjectKind::Commit {
            return Ok(None);
        }
        let text = self.contents(header, COMMIT_BYTES_MAX)?;
        let commit =
            CommitObject::parse(&text).ok_or(ReadError::Declined(ReadDecline::Malformed))?;
        Ok(Some(commit))
    }

    /// Prepares a git process that reads.
    fn call(&self, what: &'static str) -> GitCall {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.git
            .on_within(what, &self.path, GIT_MEMORY_MAX)
            .settings(SETTINGS.map(own))
    }

    /// Returns the kind and the size of an object.
    fn header(&mut self, id: &CommitSha) -> Result<Option<ObjectHeader>, ReadError> {
        let id = id.as_str().as_bytes();
        let question = [b"info ", id, b"\0"].concat();
        self.ask_objects(&question, |output| read_header(output, id))
    }

    /// Returns the bytes of an object.
    fn contents(&mut self, header: ObjectHeader, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
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
            // The line break after the object is not part of it.
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

/// Reads the line before an object; `None` if there is no object with this id.
fn read_header(output: &mut dyn BufRead, id: &[u8]) -> io::Result<Option<ObjectHeader>> {
    let mut line = Vec::new();
    if output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match parse_header(&line) {
        Some(header) => Ok(Some(header)),
        None if line == [id, b" missing\n"].concat() => Ok(None),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn parse_header(line: &[u8]) -> Option<ObjectHeader> {
    let line = str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut fields = line.split(' ');
    let id = ObjectId::parse(fields.next()?.as_bytes())?;
    let kind = match fields.next()? {
        "commit" => ObjectKind::Commit,
        "tree" => ObjectKind::Tree,
        "blob" => ObjectKind::Blob,
        "tag" => ObjectKind::Tag,
        _ => return None,
    };
    let bytes = fields.next()?.parse().ok()?;
    Some(ObjectHeader { id, kind, bytes })
}

#[cfg(test)]
mod tests;
