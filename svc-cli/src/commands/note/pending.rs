//! The Sessions that worked on a commit. The environment names some, because an agent runs git
//! itself. Others are remembered, because an agent wrote a file and somebody else commits it.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use svc_engine::capture::notes::Stamp;
use svc_model::time::Instant;

use super::remembered::{RememberedSession, RememberedSessions};
use super::{repository, session};
use crate::error::CommandError;

/// How long git may take to report what a commit changes. Whoever commits waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The Sessions that worked on a commit.
#[derive(Debug, Default)]
pub(super) struct PendingSessions {
    pub(super) stamps: Vec<Stamp>,
    /// Why remembered Sessions may be left out.
    pub(super) trouble: Option<CommandError>,
    /// What to forget once the commit names the Sessions.
    done: Vec<RememberedSession>,
}

impl PendingSessions {
    /// Returns the Sessions, or none during a rebase: its commits are the work of earlier Sessions
    /// and keep their notes.
    pub(super) fn of(commit: &str, now: Instant) -> Result<Self, CommandError> {
        for replaying in ["rebase-merge", "rebase-apply"] {
            if repository::own_path(replaying)?.exists() {
                return Ok(Self::default());
            }
        }
        let environment = session::of_environment(|name| std::env::var(name).ok());
        let mut trouble = None;
        let remembered = RememberedSessions::here().and_then(|remembered| remembered.entries(now));
        let entries = remembered.unwrap_or_else(|error| {
            trouble = Some(error);
            Vec::new()
        });
        let changes = CommitChanges::of(commit, &entries).unwrap_or_else(|error| {
            trouble = Some(error);
            CommitChanges::default()
        });
        Ok(Self {
            trouble,
            ..share(&environment, &entries, &changes)
        })
    }

    /// Forgets what the commit has taken care of.
    pub(super) fn forget(&self, now: Instant) -> Result<(), CommandError> {
        RememberedSessions::here()?.forget(&self.done, now)
    }
}

/// Returns the Sessions that worked on a commit, and the entries that are done with it.
fn share(
    environment: &[Stamp],
    entries: &[RememberedSession],
    changes: &CommitChanges,
) -> PendingSessions {
    let with_files: BTreeSet<&Stamp> = entries
        .iter()
        .filter(|entry| entry.file.is_some())
        .map(|entry| &entry.stamp)
        .collect();
    let is_named = |entry: &&RememberedSession| match &entry.file {
        Some(file) => is_among(&changes.written, file),
        // It is not known what the Session wrote, so it counts for whatever a person commits.
        None => environment.is_empty() && !with_files.contains(&entry.stamp),
    };
    let mut stamps: Vec<Stamp> = Vec::new();
    let named = entries.iter().filter(is_named).map(|entry| &entry.stamp);
    for stamp in named.chain(environment) {
        if !stamps.contains(stamp) {
            stamps.push(stamp.clone());
        }
    }
    let is_done = |entry: &&RememberedSession| match &entry.file {
        Some(file) => is_among(&changes.written, file) || is_among(&changes.deleted, file),
        None => stamps.contains(&entry.stamp),
    };
    let done = entries.iter().filter(is_done).cloned().collect();
    PendingSessions {
        stamps,
        trouble: None,
        done,
    }
}

/// What a commit changes among the files that remembered Sessions wrote.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommitChanges {
    /// The files that it adds or modifies. A renamed file has its new name.
    written: HashSet<Vec<u8>>,
    deleted: HashSet<Vec<u8>>,
}

impl CommitChanges {
    fn of(commit: &str, entries: &[RememberedSession]) -> Result<Self, CommandError> {
        let files = entries.iter().filter_map(|entry| entry.file.as_deref());
        let wanted: HashSet<&[u8]> = files.flat_map(names).collect();
        let mut changes = Self::default();
        if wanted.is_empty() {
            return Ok(changes);
        }
        let base = base(commit)?;
        // Renames are not detected, because that would read the files.
        let arguments = [
            "diff-tree",
            "-r",
            "-z",
            "--name-status",
            "--no-renames",
            &base,
            commit,
        ];
        let mut status = None;
        repository::texts(&arguments, PATIENCE, |text| {
            let Some(status) = status.take() else {
                status = Some(text.first().copied());
                return;
            };
            if wanted.contains(text) {
                let changed = match status {
                    Some(b'D') => &mut changes.deleted,
                    _ => &mut changes.written,
                };
                changed.insert(text.to_vec());
            }
        })?;
        Ok(changes)
    }
}

/// Returns what to compare a commit with: the commit that it replaced, or else its first parent, or
/// else the empty tree. So what it already contained does not become anybody's work again.
fn base(commit: &str) -> Result<String, CommandError> {
    let parents = repository::parents(commit)?;
    if let Some(before) = repository::head_before(commit)?
        && repository::parents(&before)? == parents
    {
        return Ok(before);
    }
    match parents.into_iter().next() {
        Some(first) => Ok(first),
        None => repository::empty_tree(),
    }
}

/// Returns the names under which git may list a file: its own, and those of the folders around it,
/// because a submodule is one entry.
fn names(file: &str) -> impl Iterator<Item = &[u8]> {
    let folders = file.match_indices('/').map(|(end, _)| &file[..end]);
    folders.chain([file]).map(str::as_bytes)
}

fn is_among(changed: &HashSet<Vec<u8>>, file: &str) -> bool {
    names(file).any(|name| changed.contains(name))
}

#[cfg(test)]
mod tests {
    use super::super::remembered::stamp;
    use super::*;

    fn stamps(session_ids: &[&str]) -> Vec<Stamp> {
        let stamp = |session_id: &&str| stamp("t", session_id).unwrap();
        session_ids.iter().map(stamp).collect()
    }

    fn entry((session_id, file): &(&str, &str)) -> RememberedSession {
        RememberedSession {
            stamp: stamp("t", session_id).unwrap(),
            file: (!file.is_empty()).then(|| (*file).to_owned()),
            remembered_at: None,
        }
    }

    /// Returns the Sessions that are named, and what stays pending.
    fn shared(
        environment: &[&str],
        remembered: &[(&'static str, &'static str)],
        written: &[&str],
        deleted: &[&str],
    ) -> (Vec<String>, Vec<(&'static str, &'static str)>) {
        let set = |files: &[&str]| files.iter().map(|file| file.as_bytes().to_vec()).collect();
        let changes = CommitChanges {
            written: set(written),
            deleted: set(deleted),
        };
        let entries: Vec<RememberedSession> = remembered.iter().map(entry).collect();
        let pending = share(&stamps(environment), &entries, &changes);
        let named = pending.stamps.into_iter();
        let named = named.map(|stamp| stamp.session_id.into()).collect();
        let stays = |remembered: &&(_, _)| !pending.done.contains(&entry(remembered));
        (named, remembered.iter().filter(stays).copied().collect())
    }

    #[test]
    fn a_session_is_named_on_the_commit_of_its_file() {
        let remembered = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "1")];
        let (named, rest) = shared(&[], &remembered, &["1", "4"], &[]);
        assert_eq!(named, ["a", "c"]);
        assert_eq!(rest, [("b", "2"), ("a", "3")]);
        let (named, rest) = shared(&["e"], &remembered, &["2", "5"], &[]);
        assert_eq!(named, ["b", "e"]);
        assert_eq!(rest, [("a", "1"), ("a", "3"), ("c", "1")]);
        let (named, rest) = shared(&["a"], &remembered, &["3"], &[]);
        assert_eq!(named, ["a"], "once");
        assert_eq!(rest, [("a", "1"), ("b", "2"), ("c", "1")]);
        let (named, rest) = shared(&["e"], &remembered, &[], &[]);
        assert_eq!(named, ["e"]);
        assert_eq!(rest, remembered);
    }

    #[test]
    fn a_deleted_file_names_no_session_and_is_forgotten() {
        let (named, rest) = shared(&[], &[("a", "1"), ("b", "2")], &[], &["1"]);
        assert_eq!(named, [""; 0]);
        assert_eq!(rest, [("b", "2")]);
    }

    #[test]
    fn a_session_without_a_file_counts_for_the_next_commit_of_a_person() {
        let remembered = [("a", ""), ("b", "2")];
        let (named, rest) = shared(&["e"], &remembered, &["2"], &[]);
        assert_eq!(named, ["b", "e"]);
        assert_eq!(rest, [("a", "")]);
        let (named, rest) = shared(&[], &remembered, &["9"], &[]);
        assert_eq!(named, ["a"]);
        assert_eq!(rest, [("b", "2")]);
        // The agent committed by itself.
        let (named, rest) = shared(&["a"], &remembered, &["9"], &[]);
        assert_eq!(named, ["a"]);
        assert_eq!(rest, [("b", "2")]);
    }

    #[test]
    fn a_session_that_wrote_files_is_named_only_when_one_is_committed() {
        let remembered = [("a", ""), ("a", "1")];
        let (named, rest) = shared(&[], &remembered, &["9"], &[]);
        assert_eq!(named, [""; 0]);
        assert_eq!(rest, remembered);
        let (named, rest) = shared(&[], &remembered, &["1"], &[]);
        assert_eq!(named, ["a"]);
        assert_eq!(rest, []);
    }

    #[test]
    fn a_submodule_is_one_entry() {
        let (named, rest) = shared(&[], &[("a", "sub/x/1"), ("b", "subway/1")], &["sub"], &[]);
        assert_eq!(named, ["a"]);
        assert_eq!(rest, [("b", "subway/1")]);
    }
}
