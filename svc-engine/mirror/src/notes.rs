//! The notes of a mirror, and which of them are new.
//!
//! A notes tree contains one file per commit, named after the commit. git spreads many files over
//! folders. Other files in the tree are not notes and are skipped.

use std::collections::HashMap;
use std::io::{self, BufRead};

use svc_engine_capture::notes::NotesRef;

use super::allowance::Allowance;
use super::bare::{Mirror, Object};
use super::git::GitError;
use super::object_id::ObjectId;
use super::process::Input;

/// The maximum bytes of a path in a tree. A longer path is not a note's.
const PATH_BYTES_MAX: usize = 256;
/// The maximum number of changes between two states of the notes. Nobody writes more.
const CHANGES_MAX: usize = 500_000;

/// A note in a notes tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TreeNote {
    pub(super) commit: ObjectId,
    pub(super) note: ObjectId,
}

/// Why notes cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotesError {
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There are more changes than [`CHANGES_MAX`].
    #[error("the notes have too many changes")]
    TooMany,
}

impl Mirror<'_> {
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
            .args(refs.iter().map(|reference| reference.as_str()))
            .answer(Input::Nothing, allowance)?;
        let tip = |notes: &NotesRef| {
            answer.lines().find_map(|line| {
                let (id, name) = line.strip_prefix("commit ")?.split_once(' ')?;
                (name == notes.as_str()).then(|| ObjectId::parse(id.as_bytes()))?
            })
        };
        Ok(refs.iter().map(tip).collect())
    }

    /// Returns the notes of some commits, in one state of the notes.
    pub(super) fn notes_of(
        &self,
        tip: ObjectId,
        commits: &[ObjectId],
        allowance: &Allowance,
    ) -> Result<Vec<TreeNote>, GitError> {
        // git spreads many notes over folders. This depth is enough for some ten million.
        const DEPTH_MAX: usize = 3;
        let paths = commits.iter().flat_map(|commit| {
            let digits = commit.to_string();
            (0..=DEPTH_MAX).map(move |depth| format!("{tip}:{}", fanned_out(&digits, depth)))
        });
        let objects = self.objects(paths, allowance)?;
        let noted = |(commit, objects): (&ObjectId, &[Object])| {
            objects.iter().find_map(|object| match object {
                Object::Blob { id, .. } => Some(TreeNote {
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

    /// Returns the notes that are new or changed between two states of the notes, ordered by
    /// commit. Without an earlier state, returns all notes.
    pub(super) fn new_notes(
        &self,
        before: Option<ObjectId>,
        tip: ObjectId,
        allowance: &Allowance,
    ) -> Result<Vec<TreeNote>, NotesError> {
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

/// Reads the records of `diff-tree` or `ls-tree`; `None` if there are too many.
fn read_changes(output: &mut dyn BufRead, is_diff: bool) -> io::Result<Option<Vec<TreeNote>>> {
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
            Some(NoteChange::Added(noted)) => added.push(noted),
            Some(NoteChange::Removed(noted)) => {
                removed.insert(noted.commit, noted.note);
            }
            None => {}
        }
    }
    // git moves notes between folders as their number grows.
    added.retain(|noted| removed.get(&noted.commit) != Some(&noted.note));
    added.sort_unstable();
    added.dedup_by_key(|noted| noted.commit);
    Ok(Some(added))
}

enum NoteChange {
    Added(TreeNote),
    Removed(TreeNote),
}

/// Parses `:OLD_MODE NEW_MODE OLD_ID NEW_ID STATUS` and its path.
fn read_difference(record: &[u8], path: &[u8]) -> Option<NoteChange> {
    let mut fields = record.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let modes = [fields.next()?, fields.next()?];
    let ids = [fields.next()?, fields.next()?];
    let commit = noted_commit(path)?;
    let note = |side: usize| {
        let note = ObjectId::parse(ids[side])?;
        modes[side]
            .starts_with(b"100")
            .then_some(TreeNote { commit, note })
    };
    match fields.next()? {
        b"D" => note(0).map(NoteChange::Removed),
        _ => note(1).map(NoteChange::Added),
    }
}

/// Parses `MODE TYPE ID<tab>PATH`.
fn read_entry(record: &[u8]) -> Option<NoteChange> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut fields = record[..tab].split(|byte| *byte == b' ');
    if !fields.next()?.starts_with(b"100") {
        return None;
    }
    fields.next()?;
    Some(NoteChange::Added(TreeNote {
        commit: noted_commit(&record[tab + 1..])?,
        note: ObjectId::parse(fields.next()?)?,
    }))
}

/// Returns the commit whose note is at a path of a notes tree; `None` for any other file.
fn noted_commit(path: &[u8]) -> Option<ObjectId> {
    let digits: Vec<u8> = path.iter().copied().filter(|byte| *byte != b'/').collect();
    ObjectId::parse(&digits)
}

/// Reads a record that ends with NUL, and returns whether there was one. Only the beginning of a
/// record that is too long is kept, and that is never the path of a note.
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

#[cfg(test)]
mod tests;
