//! One mirror: a bare repository that is fetched and asked.
//!
//! Every question is one process, whatever it is about: commits, notes and objects go in and come
//! out as streams. What a repository holds was written by others, so nothing is read without a
//! bound.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::allowance::Allowance;
use super::folder::{Locked, make_private};
use super::git::{Git, GitError};
use super::object_id::ObjectId;
use super::process::Input;
use super::remote::Remote;
use crate::capture::notes::NotesRef;
use crate::fact::Lifetime;

/// What is fetched beside the notes: branches, and the heads of pull requests.
const BRANCHES: &str = "+refs/heads/*:refs/heads/*";
const PULL_REQUESTS: &str = "+refs/pull/*/head:refs/pull/*/head";
/// Bytes of a path in a tree that is read; a longer one is no note.
const PATH_BYTES_MAX: usize = 256;
/// Bytes of one line that git answers.
const LINE_BYTES_MAX: u64 = 1_024;
/// Changes between two states of the notes that are compared; more are not notes of people.
pub(super) const CHANGES_MAX: usize = 500_000;
/// Packs after which a mirror is repacked. A fetch leaves one.
const PACKS_MAX: usize = 24;

/// What a fetch checks, and what it lets pass. An object that cannot be read is refused. Names, dates
/// and modes that old programs wrote wrongly are in the history of many good repositories; what would
/// harm a work tree harms none here.
const FETCH_SETTINGS: [(&str, &str); 7] = [
    ("fetch.fsckObjects", "true"),
    // One pack a fetch and no loose objects: files are counted to know when to repack.
    ("fetch.unpackLimit", "1"),
    ("fetch.writeCommitGraph", "true"),
    ("fetch.showForcedUpdates", "false"),
    // A sender that has stopped sending is left before the deadline.
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

/// What an object is.
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

/// A note in a notes tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Noted {
    pub(super) commit: ObjectId,
    pub(super) note: ObjectId,
}

/// Why a question about notes has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotesError {
    /// git gave none.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There are more changes than [`CHANGES_MAX`].
    #[error("the notes have too many changes")]
    TooMany,
}

/// One mirror of this machine.
#[derive(Debug)]
pub(super) struct Mirror<'g> {
    git: &'g Git,
    path: PathBuf,
}

impl<'g> Mirror<'g> {
    pub(super) fn at(git: &'g Git, path: PathBuf) -> Self {
        Self { git, path }
    }

    /// Makes the mirror if it is absent. Its ids are as long as this one.
    pub(super) fn prepare(
        &self,
        lifetime: &Lifetime,
        like: ObjectId,
        allowance: &Allowance,
    ) -> Result<(), PrepareError> {
        if self.path.join("HEAD").is_file() {
            return Ok(());
        }
        make_private(&self.path)?;
        let format = match like.to_string().len() {
            40 => "sha1",
            _ => "sha256",
        };
        self.git
            .call("init", &self.path)
            .args(["init", "--quiet", "--bare", "--template="])
            .arg("--initial-branch=main")
            .arg(format!("--object-format={format}"))
            .arg("--end-of-options")
            .arg(&self.path)
            .answer(Input::Nothing, allowance)?;
        fs::write(self.path.join("description"), format!("{lifetime}\n"))?;
        Ok(())
    }

    /// Fetches everything a mirror holds, and drops what the other side has dropped.
    pub(super) fn fetch(
        &self,
        remote: &Remote,
        notes: &[NotesRef],
        lock: &Locked,
        allowance: &Allowance,
    ) -> Result<(), FetchError> {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let tolerated = TOLERATED.map(|it| (format!("fetch.fsck.{it}"), "ignore".to_owned()));
        self.git
            .on("fetch", &self.path)
            .settings(FETCH_SETTINGS.map(own))
            .settings(tolerated)
            .settings(remote.settings.iter().cloned())
            .environment(&remote.environment)
            .args(["fetch", "--quiet", "--prune", "--no-tags"])
            .args(["--no-write-fetch-head", "--no-auto-maintenance"])
            .args(["--no-recurse-submodules", "--end-of-options", &remote.url])
            .args([BRANCHES, PULL_REQUESTS])
            // A pattern on purpose: an exact ref that is absent would fail the whole fetch.
            .args(
                notes
                    .iter()
                    .map(|it| format!("+{it}*:{it}*", it = it.as_str())),
            )
            .answer(Input::Held(lock.share()?), allowance)?;
        Ok(())
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

    /// Returns the commits that notes refs point to.
    pub(super) fn notes_tips(
        &self,
        refs: &[NotesRef],
        allowance: &Allowance,
    ) -> Result<Vec<Option<ObjectId>>, GitError> {
        let answer = self
            .git
            .on("for-each-ref", &self.path)
            .args([
                "for-each-ref",
                "--format=%(objecttype) %(objectname) %(refname)",
            ])
            .arg("--end-of-options")
            .args(refs.iter().map(|it| it.as_str()))
            .answer(Input::Nothing, allowance)?;
        let tip = |notes: &NotesRef| {
            answer.lines().find_map(|line| {
                let (id, name) = line.strip_prefix("commit ")?.split_once(' ')?;
                (name == notes.as_str()).then(|| ObjectId::parse(id.as_bytes()))?
            })
        };
        Ok(refs.iter().map(tip).collect())
    }

    /// Returns what objects are, in the order in which they are named: by id, or as `TREE:PATH`.
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

    /// Returns the newest commits that one commit reaches and another does not, the newest first.
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

    /// Returns the notes of commits, as they are in a state of the notes.
    pub(super) fn notes_of(
        &self,
        tip: ObjectId,
        commits: &[ObjectId],
        allowance: &Allowance,
    ) -> Result<Vec<Noted>, GitError> {
        // git spreads many notes over folders: this deep for up to some ten million of them.
        const DEPTH_MAX: usize = 3;
        let paths = commits.iter().flat_map(|commit| {
            let digits = commit.to_string();
            (0..=DEPTH_MAX).map(move |depth| format!("{tip}:{}", fanned_out(&digits, depth)))
        });
        let objects = self.objects(paths, allowance)?;
        let noted = |(commit, objects): (&ObjectId, &[Object])| {
            objects.iter().find_map(|object| match object {
                Object::Blob { id, .. } => Some(Noted {
                    commit: *commit,
                    note: *id,
                }),
                Object::Commit | Object::Other | Object::Absent => None,
            })
        };
        Ok(commits
            .iter()
            .zip(objects.chunks(DEPTH_MAX + 1))
            .filter_map(noted)
            .collect())
    }

    /// Returns the notes that are new or changed between two states of the notes, by commit; all of
    /// them when there is no earlier state.
    pub(super) fn new_notes(
        &self,
        before: Option<ObjectId>,
        tip: ObjectId,
        allowance: &Allowance,
    ) -> Result<Vec<Noted>, NotesError> {
        let call = self.git.on("diff-tree", &self.path);
        let call = match before {
            Some(before) => call
                .args(["diff-tree", "-r", "-z", "--raw", "--no-renames"])
                .arg("--end-of-options")
                .args([before.to_string(), tip.to_string()]),
            None => call
                .args(["ls-tree", "-r", "-z", "--full-tree", "--end-of-options"])
                .arg(tip.to_string()),
        };
        let changes = call.run(Input::Nothing, allowance, |output| {
            read_changes(output, before.is_some())
        })?;
        changes.ok_or(NotesError::TooMany)
    }

    /// Returns which of these commits no branch reaches.
    pub(super) fn unreached(
        &self,
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
            .args(["--not", "--branches"])
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

    /// Calls `each` with the place and the bytes of every blob, in the order in which they are given.
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
                    // The line break that follows is no part of it.
                    output.take(length + 1).read_to_end(&mut bytes)?;
                    if bytes.pop() != Some(b'\n') || bytes.len() as u64 != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    each(place, &bytes);
                }
                Ok(())
            })
    }

    /// Puts the packs of many fetches together, when there are many.
    pub(super) fn tidy(&self, allowance: &Allowance) -> Result<(), GitError> {
        if count_packs(&self.path) < PACKS_MAX {
            return Ok(());
        }
        self.git
            .on("repack", &self.path)
            .args(["repack", "-d", "-q", "--geometric=2"])
            .args(["--no-write-bitmap-index", "--write-midx"])
            .answer(Input::Nothing, allowance)?;
        self.pack_refs(allowance)
    }

    /// Puts the refs into one file. A first fetch writes one for each.
    pub(super) fn pack_refs(&self, allowance: &Allowance) -> Result<(), GitError> {
        self.git
            .on("pack-refs", &self.path)
            .args(["pack-refs", "--all", "--prune"])
            .answer(Input::Nothing, allowance)
            .map(drop)
    }
}

/// Why a mirror cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the folder of the mirror cannot be written")]
    Folder(#[from] io::Error),
}

/// Why a fetch failed.
pub(super) type FetchError = PrepareError;

fn lines<N: std::fmt::Display>(names: impl IntoIterator<Item = N>) -> (Vec<u8>, usize) {
    let mut lines = Vec::new();
    let mut count = 0;
    for name in names {
        writeln!(lines, "{name}").expect("writing to memory cannot fail");
        count += 1;
    }
    (lines, count)
}

/// Reads one answer of `cat-file`.
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

/// Returns the path of a note at this depth of folders.
fn fanned_out(digits: &str, depth: usize) -> String {
    let mut path = String::with_capacity(digits.len() + depth);
    let (folders, name) = digits.split_at(depth * 2);
    for folder in folders.as_bytes().chunks_exact(2) {
        path.extend(folder.iter().map(|byte| char::from(*byte)));
        path.push('/');
    }
    path + name
}

/// Reads the records of `diff-tree` or `ls-tree`; nothing when there are too many.
fn read_changes(output: &mut dyn BufRead, is_diff: bool) -> io::Result<Option<Vec<Noted>>> {
    let mut added = Vec::new();
    let mut removed = HashMap::new();
    let mut record = Vec::new();
    let mut path = Vec::new();
    while read_record(output, &mut record)? {
        if added.len() + removed.len() == CHANGES_MAX {
            io::copy(output, &mut io::sink())?;
            return Ok(None);
        }
        let change = if is_diff {
            if !read_record(output, &mut path)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read_difference(&record, &path)
        } else {
            read_entry(&record)
        };
        match change {
            Some(Change::Added(noted)) => added.push(noted),
            Some(Change::Removed(noted)) => {
                removed.insert(noted.commit, noted.note);
            }
            None => {}
        }
    }
    // git moves notes between folders as they become more.
    added.retain(|noted| removed.get(&noted.commit) != Some(&noted.note));
    added.sort_unstable();
    added.dedup_by_key(|noted| noted.commit);
    Ok(Some(added))
}

enum Change {
    Added(Noted),
    Removed(Noted),
}

/// Reads `:OLD_MODE NEW_MODE OLD_ID NEW_ID STATUS` and its path.
fn read_difference(record: &[u8], path: &[u8]) -> Option<Change> {
    let mut fields = record.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let modes = [fields.next()?, fields.next()?];
    let ids = [fields.next()?, fields.next()?];
    let commit = noted_commit(path)?;
    let note = |side: usize| {
        let note = ObjectId::parse(ids[side])?;
        modes[side]
            .starts_with(b"100")
            .then_some(Noted { commit, note })
    };
    match fields.next()? {
        b"D" => note(0).map(Change::Removed),
        _ => note(1).map(Change::Added),
    }
}

/// Reads `MODE TYPE ID<tab>PATH`.
fn read_entry(record: &[u8]) -> Option<Change> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut fields = record[..tab].split(|byte| *byte == b' ');
    if !fields.next()?.starts_with(b"100") {
        return None;
    }
    fields.next()?;
    Some(Change::Added(Noted {
        commit: noted_commit(&record[tab + 1..])?,
        note: ObjectId::parse(fields.next()?)?,
    }))
}

/// Returns the commit whose note lies at a path of a notes tree. Other files may lie there too.
fn noted_commit(path: &[u8]) -> Option<ObjectId> {
    let digits: Vec<u8> = path.iter().copied().filter(|byte| *byte != b'/').collect();
    ObjectId::parse(&digits)
}

/// Reads a record that ends with NUL. Of one that is too long only the beginning is kept, which is
/// then no path of a note. Returns whether there was one.
fn read_record(output: &mut dyn BufRead, record: &mut Vec<u8>) -> io::Result<bool> {
    record.clear();
    let mut any = false;
    loop {
        let buffer = output.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == 0);
        let length = end.unwrap_or(buffer.len());
        let room = (2 * PATH_BYTES_MAX).saturating_sub(record.len());
        record.extend_from_slice(&buffer[..length.min(room)]);
        output.consume(length + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn count_packs(repository: &Path) -> usize {
    let entries = fs::read_dir(repository.join("objects/pack"));
    let is_pack = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|it| it == "pack");
    entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.as_ref().is_ok_and(is_pack))
        .count()
}

#[cfg(test)]
mod tests;
