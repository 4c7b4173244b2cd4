//! One mirror: a bare repository that is fetched and queried.
//!
//! Each query is one process, however many commits, notes or objects it is about; they go in and
//! come out as streams. The content of a repository is untrusted, so everything is read with a
//! limit.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use svc_engine_capture::notes::NotesRef;
use svc_engine_fact::Lifetime;
use svc_engine_fact::private;

use super::allowance::Allowance;
use super::folder::MirrorLock;
use super::git::{Git, GitCall, GitError};
use super::obeyed;
use super::object_id::ObjectId;
use super::process::Input;
use super::remote::Remote;
use super::unfinished;

/// What is fetched besides the notes: branches, and the heads of pull requests.
const BRANCHES: &str = "+refs/heads/*:refs/heads/*";
const PULL_REQUESTS: &str = "+refs/pull/*/head:refs/pull/*/head";
/// The refs for the heads of merged pull requests that were fetched by id.
pub(super) const MERGED_HEADS: &str = "refs/svc-merged";
/// The maximum bytes of a line in git's answers.
const LINE_BYTES_MAX: u64 = 1_024;
/// With this many packs, a mirror is repacked. Each fetch adds one.
const PACKS_MAX: usize = 24;

/// What a fetch checks and what it tolerates. Unreadable objects are refused. Names, dates and
/// modes that old programs wrote incorrectly are tolerated, because many good repositories contain
/// them. What would be dangerous in a work tree is harmless here.
const FETCH_SETTINGS: [(&str, &str); 7] = [
    ("fetch.fsckObjects", "true"),
    // One pack per fetch and no loose objects, because the number of packs decides when to repack.
    ("fetch.unpackLimit", "1"),
    ("fetch.writeCommitGraph", "true"),
    ("fetch.showForcedUpdates", "false"),
    // Gives up on a stalled sender before the deadline.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "60"),
    ("protocol.version", "2"),
];
const TOLERATED: [&str; 35] = [
    "badDate",
    "badDateOverflow",
    "badEmail",
    "badFilemode",
    "badName",
    "badTagName",
    "badTimezone",
    "duplicateEntries",
    "emptyName",
    "fullPathname",
    "gitattributesBlob",
    "gitattributesLarge",
    "gitattributesLineLength",
    "gitattributesMissing",
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesMissing",
    "gitmodulesName",
    "gitmodulesPath",
    "gitmodulesSymlink",
    "gitmodulesUpdate",
    "gitmodulesUrl",
    "hasDot",
    "hasDotdot",
    "hasDotgit",
    "largePathname",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "multipleAuthors",
    "nulInCommit",
    "nullSha1",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
];

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Commit,
    Blob {
        id: ObjectId,
        bytes: u64,
    },
    /// A tree or tag.
    Other,
    Absent,
}

/// A mirror on this machine.
#[derive(Debug)]
pub(super) struct Mirror<'g> {
    pub(super) git: &'g Git,
    pub(super) path: PathBuf,
}

impl<'g> Mirror<'g> {
    pub(super) fn at(git: &'g Git, path: PathBuf) -> Self {
        Self { git, path }
    }

    /// Creates the mirror if there is none, for ids of the same length as `like`.
    pub(super) fn prepare(
        &self,
        lifetime: &Lifetime,
        like: ObjectId,
        lock: &MirrorLock,
        allowance: &Allowance,
    ) -> Result<(), PrepareError> {
        if self.path.join("HEAD").is_file() {
            obeyed::mend(&self.path, like)?;
            return Ok(unfinished::begin(&self.path)?);
        }
        private::create_folder(&self.path)?;
        unfinished::begin(&self.path)?;
        self.git
            .call("init", &self.path)
            // Backups hold refs as files.
            .settings([("init.defaultRefFormat".to_owned(), "files".to_owned())])
            .args(["init", "--quiet", "--bare", "--template="])
            .arg("--initial-branch=main")
            .arg(format!("--object-format={}", like.format()))
            .arg("--end-of-options")
            .arg(&self.path)
            .answer(Input::Held(lock.share()?), allowance)?;
        fs::write(self.path.join("description"), format!("{lifetime}\n"))?;
        Ok(())
    }

    /// Fetches everything that a mirror contains, and prunes what the remote no longer has.
    pub(super) fn fetch(
        &self,
        remote: &Remote,
        notes: &[NotesRef],
        lock: &MirrorLock,
        allowance: &Allowance,
    ) -> Result<(), FetchError> {
        self.fetching(remote, &["--prune"])
            .args([BRANCHES, PULL_REQUESTS])
            // Deliberately a pattern: an exact ref that is missing would fail the whole fetch.
            .args(
                notes
                    .iter()
                    .map(|note| format!("+{note}*:{note}*", note = note.as_str())),
            )
            .answer(Input::Held(lock.share()?), allowance)?;
        Ok(())
    }

    /// Fetches the head of a merged pull request by id, and keeps it under a ref of our own. Under
    /// its original name the next fetch would prune it, because the remote does not show it.
    pub(super) fn fetch_head(
        &self,
        remote: &Remote,
        head: ObjectId,
        pr_number: i64,
        lock: &MirrorLock,
        allowance: &Allowance,
    ) -> Result<(), FetchError> {
        self.fetching(remote, &[])
            .arg(format!("+{head}:{MERGED_HEADS}/{pr_number}/head"))
            .answer(Input::Held(lock.share()?), allowance)?;
        Ok(())
    }

    /// Prepares a fetch. The caller adds the refspecs.
    fn fetching(&self, remote: &Remote, options: &[&str]) -> GitCall {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let tolerated = TOLERATED.map(|flaw| (format!("fetch.fsck.{flaw}"), "ignore".to_owned()));
        self.git
            .on("fetch", &self.path)
            .settings(FETCH_SETTINGS.map(own))
            .settings(tolerated)
            .settings(remote.settings.iter().cloned())
            .environment(&remote.environment)
            .args(["fetch", "--quiet", "--no-tags"])
            .args(options)
            .args(["--no-write-fetch-head", "--no-auto-maintenance"])
            .args(["--no-recurse-submodules", "--end-of-options", &remote.url])
    }

    /// Removes what a killed program left behind.
    pub(super) fn sweep(&self) {
        if let Err(error) = unfinished::sweep(&self.path) {
            tracing::debug!(error = &error as &dyn std::error::Error, "mirror.not_swept");
        }
    }

    /// Records that the work is complete.
    pub(super) fn finish(&self) {
        if let Err(error) = unfinished::end(&self.path) {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "mirror.not_finished"
            );
        }
    }

    /// Returns whether git can read the mirror: its settings, its refs and the objects they point
    /// to, with ids of the same length as `like`.
    pub(super) fn is_sound(&self, like: ObjectId, allowance: &Allowance) -> Result<bool, GitError> {
        let format = self
            .git
            .on("rev-parse", &self.path)
            .args(["rev-parse", "--show-object-format"])
            .answer(Input::Nothing, allowance);
        match format {
            Ok(format) if format.trim_end() == like.format() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.is_failure() => return Ok(false),
            Err(error) => return Err(error),
        }
        let read = self
            .git
            .on("for-each-ref", &self.path)
            .args(["for-each-ref", "--format=%(objecttype)"])
            .run(Input::Nothing, allowance, |output| {
                io::copy(output, &mut io::sink()).map(drop)
            });
        match read {
            Ok(()) => Ok(true),
            Err(error) if error.is_failure() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the mirror has a branch.
    pub(super) fn has_branch(&self, allowance: &Allowance) -> Result<bool, GitError> {
        let answer = self
            .git
            .on("for-each-ref", &self.path)
            .args(["for-each-ref", "--count=1", "--format=%(refname)"])
            .args(["--end-of-options", "refs/heads/"])
            .answer(Input::Nothing, allowance)?;
        Ok(!answer.is_empty())
    }

    /// Returns the kinds of objects, in the order given. An object is named by its id or as
    /// `TREE:PATH`.
    pub(super) fn objects<N: std::fmt::Display>(
        &self,
        names: impl IntoIterator<Item = N>,
        allowance: &Allowance,
    ) -> Result<Vec<Object>, GitError> {
        let (input, count) = lines(names);
        if count == 0 {
            return Ok(Vec::new());
        }
        self.git
            .on("cat-file", &self.path)
            .args(["cat-file", "--buffer"])
            .arg("--batch-check=%(objectname) %(objecttype) %(objectsize)")
            .run(Input::Bytes(input), allowance, |output| {
                let mut line = String::new();
                (0..count)
                    .map(|_| {
                        line.clear();
                        output.take(LINE_BYTES_MAX).read_line(&mut line)?;
                        read_object(&line).ok_or(io::ErrorKind::InvalidData.into())
                    })
                    .collect()
            })
    }

    /// Returns the newest commits that are reachable from `after` but not from `before`, newest
    /// first.
    pub(super) fn range(
        &self,
        before: ObjectId,
        after: ObjectId,
        commits_max: usize,
        allowance: &Allowance,
    ) -> Result<Vec<ObjectId>, GitError> {
        let answer = self
            .git
            .on("rev-list", &self.path)
            .arg("rev-list")
            .arg(format!("--max-count={commits_max}"))
            .arg("--end-of-options")
            .args([after.to_string(), format!("^{before}")])
            .arg("--")
            .answer(Input::Nothing, allowance)?;
        Ok(answer
            .lines()
            .filter_map(|line| ObjectId::parse(line.as_bytes()))
            .collect())
    }

    /// Returns which of these commits are not reachable from any branch.
    pub(super) fn unreached(
        &self,
        commits: &[ObjectId],
        allowance: &Allowance,
    ) -> Result<HashSet<ObjectId>, GitError> {
        self.unreached_from(&["--branches"], commits, allowance)
    }

    /// Returns which of these commits are not reachable from any of the refs that these options
    /// name.
    pub(super) fn unreached_from(
        &self,
        refs: &[&str],
        commits: &[ObjectId],
        allowance: &Allowance,
    ) -> Result<HashSet<ObjectId>, GitError> {
        if commits.is_empty() {
            return Ok(HashSet::new());
        }
        let asked: HashSet<ObjectId> = commits.iter().copied().collect();
        self.git
            .on("rev-list", &self.path)
            .args(["rev-list", "--ignore-missing", "--stdin"])
            .arg("--not")
            .args(refs)
            .run(Input::Bytes(lines(commits).0), allowance, |output| {
                let mut unreached = HashSet::new();
                let mut line = Vec::new();
                loop {
                    line.clear();
                    if output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                        return Ok(unreached);
                    }
                    let commit = ObjectId::parse(line.trim_ascii_end());
                    unreached.extend(commit.filter(|commit| asked.contains(commit)));
                }
            })
    }

    /// Calls `each` with the index and the bytes of each blob, in the order given.
    pub(super) fn blobs(
        &self,
        blobs: &[ObjectId],
        allowance: &Allowance,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), GitError> {
        if blobs.is_empty() {
            return Ok(());
        }
        self.git
            .on("cat-file", &self.path)
            .args(["cat-file", "--buffer", "--batch"])
            .run(Input::Bytes(lines(blobs).0), allowance, |output| {
                let mut line = String::new();
                let mut bytes = Vec::new();
                for place in 0..blobs.len() {
                    line.clear();
                    output.take(LINE_BYTES_MAX).read_line(&mut line)?;
                    let Some(Object::Blob { bytes: length, .. }) = read_object(&line) else {
                        return Err(io::ErrorKind::InvalidData.into());
                    };
                    bytes.clear();
                    // The line break after the object is not part of it.
                    output.take(length + 1).read_to_end(&mut bytes)?;
                    if bytes.pop() != Some(b'\n') || bytes.len() as u64 != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    each(place, &bytes);
                }
                Ok(())
            })
    }

    /// Combines the packs of many fetches.
    pub(super) fn tidy(
        &self,
        lock: &MirrorLock,
        allowance: &Allowance,
    ) -> Result<(), PrepareError> {
        if count_packs(&self.path) < PACKS_MAX {
            return Ok(());
        }
        self.git
            .on("repack", &self.path)
            .args(["repack", "-d", "-q", "--geometric=2"])
            .args(["--no-write-bitmap-index", "--write-midx"])
            .answer(Input::Held(lock.share()?), allowance)?;
        self.pack_refs(lock, allowance)
    }

    /// Packs the refs into one file. A first fetch writes one file for each ref.
    pub(super) fn pack_refs(
        &self,
        lock: &MirrorLock,
        allowance: &Allowance,
    ) -> Result<(), PrepareError> {
        self.git
            .on("pack-refs", &self.path)
            .args(["pack-refs", "--all", "--prune"])
            .answer(Input::Held(lock.share()?), allowance)?;
        Ok(())
    }
}

/// Why a mirror cannot be created.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the folder of the mirror cannot be written")]
    Folder(#[from] io::Error),
}

impl PrepareError {
    /// Returns whether the work was stopped, or ran out of disk space.
    pub(super) fn is_stopped(&self) -> bool {
        match self {
            Self::Git(error) => error.stopped().is_some() || error.lacked_space(),
            Self::Folder(_) => false,
        }
    }

    /// Returns whether git's or the remote's error output contains one of these words.
    pub(super) fn mentions(&self, words: &[&str]) -> bool {
        match self {
            Self::Git(error) => error.mentions(words),
            Self::Folder(_) => false,
        }
    }
}

/// Why a fetch failed.
pub(super) type FetchError = PrepareError;

/// Returns names as lines, and how many there are.
pub(super) fn lines<N: std::fmt::Display>(names: impl IntoIterator<Item = N>) -> (Vec<u8>, usize) {
    let mut lines = Vec::new();
    let mut count = 0;
    for name in names {
        writeln!(lines, "{name}").expect("writing to memory cannot fail");
        count += 1;
    }
    (lines, count)
}

/// Parses a line of `cat-file` output.
fn read_object(line: &str) -> Option<Object> {
    let line = line.strip_suffix('\n')?;
    if line.ends_with(" missing") || line.ends_with(" ambiguous") {
        return Some(Object::Absent);
    }
    let mut fields = line.split(' ');
    let id = ObjectId::parse(fields.next()?.as_bytes())?;
    match fields.next()? {
        "commit" => Some(Object::Commit),
        "blob" => Some(Object::Blob {
            id,
            bytes: fields.next()?.parse().ok()?,
        }),
        _ => Some(Object::Other),
    }
}

fn count_packs(repository: &Path) -> usize {
    let entries = fs::read_dir(repository.join("objects/pack"));
    let is_pack = |entry: &fs::DirEntry| {
        entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "pack")
    };
    entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.as_ref().is_ok_and(is_pack))
        .count()
}

#[cfg(test)]
pub(super) mod tests;
