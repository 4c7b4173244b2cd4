//! What the notes of a fetched mirror say.
//!
//! Two questions are answered. What do the notes on the pushed commits say? And what do the notes
//! say that are new since the last refresh, on any commit that a branch reaches? The second finds
//! notes that came after their commits, and notes for pushes that were missed. Notes may arrive
//! before their branch, so a note whose commit no branch reaches yet is read again later.

use std::collections::HashSet;

use svc_engine_capture::notes::NotesRef;
use svc_engine_store::{DeferredNote, WaitingPush};
use svc_model::id::SessionId;

use super::allowance::Allowance;
use super::bare::{Mirror, Object};
use super::git::GitError;
use super::notes::{NotesError, TreeNote};
use super::object_id::ObjectId;
use super::progress::{PartialProgress, Progress, RefProgress};

/// The number of commits of one push whose notes are read.
pub(super) const PUSH_COMMITS_MAX: usize = 20;

/// How many new notes one refresh may read, whether or not a branch reaches their commits. The next
/// refresh continues with the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotesBudget {
    /// The number of notes.
    pub notes: usize,
    /// Total bytes of the notes.
    pub bytes: u64,
    /// The number of Sessions that the notes name.
    pub sessions: usize,
    /// How many notes may wait for a branch to reach their commits. Every refresh checks all of
    /// them, and the notes of a branch that is squash-merged would wait forever. So the oldest
    /// beyond this number are dropped, and the operator is informed.
    pub waiting: usize,
}

impl Default for NotesBudget {
    fn default() -> Self {
        Self {
            notes: 1_000,
            bytes: 256 * 1024 * 1024,
            sessions: 20_000,
            waiting: 50_000,
        }
    }
}

/// A Session that a note names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotedCommit {
    pub(super) commit: ObjectId,
    pub(super) session_id: SessionId,
    pub(super) notes: NotesRef,
    /// The index of the push that brought the commit, if one of the waiting pushes did.
    pub(super) push: Option<usize>,
}

/// What the notes of a mirror say.
#[derive(Debug, Default)]
pub(super) struct NotesObservation {
    pub(super) sightings: Vec<NotedCommit>,
    pub(super) progress: Progress,
    /// New notes whose commits no branch reaches.
    pub(super) deferred: Vec<DeferredNote>,
    /// Notes that were waiting and have now been read.
    pub(super) reached: Vec<DeferredNote>,
    /// The number of notes that were ignored.
    pub(super) invalid: usize,
    /// Whether notes are left for another refresh.
    pub(super) more: bool,
}

/// Reads the notes of a mirror.
pub(super) fn observe(
    mirror: &Mirror<'_>,
    notes: &[NotesRef],
    budget: NotesBudget,
    known: NotesInputs<'_>,
    allowance: &Allowance,
) -> Result<NotesObservation, GitError> {
    let tips = mirror.notes_tips(notes, allowance)?;
    let mut reading = NotesReader {
        mirror,
        allowance,
        budget,
        left: budget,
        seen: HashSet::new(),
        observed: NotesObservation {
            progress: known.progress.clone(),
            ..NotesObservation::default()
        },
    };
    let pushed = reading.pushed_commits(known.pushes)?;
    let with_tips = || notes.iter().copied().zip(&tips);
    for (notes, tip) in with_tips() {
        if let Some(tip) = *tip {
            reading.pushed_notes(notes, tip, &pushed)?;
        }
    }
    for (notes, tip) in with_tips() {
        if let Some(tip) = *tip {
            reading.deferred_notes(notes, tip, known.deferred)?;
            reading.new_notes(notes, tip)?;
        }
    }
    Ok(reading.observed)
}

/// What is known before the notes are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotesInputs<'k> {
    /// The pushes to look at, oldest first.
    pub(super) pushes: &'k [WaitingPush],
    pub(super) progress: &'k Progress,
    pub(super) deferred: &'k [DeferredNote],
}

struct NotesReader<'r> {
    mirror: &'r Mirror<'r>,
    allowance: &'r Allowance,
    budget: NotesBudget,
    left: NotesBudget,
    /// What has been seen: a Session counts once per commit, even if several notes name it.
    seen: HashSet<(ObjectId, SessionId)>,
    observed: NotesObservation,
}

impl NotesReader<'_> {
    /// Returns the commits of pushes, each with the index of the first push that brought it.
    fn pushed_commits(&self, pushes: &[WaitingPush]) -> Result<Vec<(ObjectId, usize)>, GitError> {
        let ends: Vec<ObjectId> = pushes
            .iter()
            .flat_map(|waiting| [&waiting.push.before_sha, &waiting.push.after_sha])
            .map(ObjectId::of)
            .collect();
        let objects = self.mirror.objects(&ends, self.allowance)?;
        let mut known = HashSet::new();
        let mut commits = Vec::new();
        for (place, waiting) in pushes.iter().enumerate() {
            let (before, after) = (ends[2 * place], ends[2 * place + 1]);
            let whole = objects[2 * place..][..2] == [Object::Commit, Object::Commit];
            let mut range = if waiting.push.forced || !whole {
                Vec::new()
            } else {
                self.mirror
                    .range(before, after, PUSH_COMMITS_MAX, self.allowance)?
            };
            range.reverse();
            if range.is_empty() {
                range.push(after);
            }
            commits.extend(
                range
                    .into_iter()
                    .filter(|commit| known.insert(*commit))
                    .map(|commit| (commit, place)),
            );
        }
        Ok(commits)
    }

    /// Reads the current notes of pushed commits. They have their own budget, so they never keep
    /// new notes from being read.
    fn pushed_notes(
        &mut self,
        notes: NotesRef,
        tip: ObjectId,
        pushed: &[(ObjectId, usize)],
    ) -> Result<(), GitError> {
        let commits: Vec<ObjectId> = pushed.iter().map(|(commit, _)| *commit).collect();
        let noted = self.mirror.notes_of(tip, &commits, self.allowance)?;
        let places: std::collections::HashMap<_, _> = pushed.iter().copied().collect();
        let noted: Vec<_> = noted
            .into_iter()
            .map(|noted| (noted, places.get(&noted.commit).copied()))
            .collect();
        let invalid = self.observed.invalid;
        self.left.notes = usize::MAX;
        self.read(notes, &noted)?;
        self.left = self.budget;
        // An invalid note is counted only once, when it is new.
        self.observed.invalid = invalid;
        Ok(())
    }

    /// Reads the waiting notes whose commits a branch reaches now.
    fn deferred_notes(
        &mut self,
        notes: NotesRef,
        tip: ObjectId,
        deferred: &[DeferredNote],
    ) -> Result<(), GitError> {
        let waiting: Vec<&DeferredNote> = deferred
            .iter()
            .filter(|note| note.notes_ref == notes.as_str())
            .collect();
        let commits: Vec<ObjectId> = waiting
            .iter()
            .map(|note| ObjectId::of(&note.commit_sha))
            .collect();
        let reached = self.reached(&commits)?;
        let mut reached: Vec<ObjectId> = commits
            .into_iter()
            .filter(|commit| reached.contains(commit))
            .collect();
        self.observed.more |= reached.len() > self.left.notes;
        reached.truncate(self.left.notes);
        let noted = self.mirror.notes_of(tip, &reached, self.allowance)?;
        let noted: Vec<_> = noted.into_iter().map(|noted| (noted, None)).collect();
        let read = self.read(notes, &noted)?;
        let unread: HashSet<ObjectId> = noted[read..].iter().map(|(note, _)| note.commit).collect();
        self.observed.more |= !unread.is_empty();
        // A note that has been removed no longer waits either.
        let done: HashSet<ObjectId> = reached.into_iter().collect();
        self.observed.reached.extend(
            waiting
                .into_iter()
                .filter(|note| {
                    let commit = ObjectId::of(&note.commit_sha);
                    done.contains(&commit) && !unread.contains(&commit)
                })
                .cloned(),
        );
        Ok(())
    }

    /// Reads the notes that are new since all notes were last read.
    fn new_notes(&mut self, notes: NotesRef, tip: ObjectId) -> Result<(), GitError> {
        let mut progress = self.still_there(self.observed.progress.of(notes))?;
        // First the state that was partly read, then the current one.
        while progress.observed != Some(tip) {
            let target = progress.going.map_or(tip, |going| going.target);
            let after = progress.going.map(|going| going.after);
            let new = match self
                .mirror
                .new_notes(progress.observed, target, self.allowance)
            {
                Ok(new) => new,
                Err(NotesError::Git(error)) => return Err(error),
                Err(NotesError::TooMany) => {
                    self.observed.invalid += 1;
                    Vec::new()
                }
            };
            let new: Vec<TreeNote> = new
                .into_iter()
                .filter(|noted| after.is_none_or(|after| noted.commit > after))
                .collect();
            // Reachability is checked only for these. Otherwise many refreshes in a row would each
            // check all that are left.
            let next = &new[..new.len().min(self.left.notes)];
            let done = self.read_reached(notes, next)?;
            if done == new.len() {
                progress = RefProgress {
                    observed: Some(target),
                    going: None,
                };
                continue;
            }
            self.observed.more = true;
            // If nothing could be read, nothing has changed.
            if let Some(after) = new[..done].last().map(|noted| noted.commit).or(after) {
                progress.going = Some(PartialProgress { target, after });
            }
            break;
        }
        self.observed.progress.set(notes, progress);
        Ok(())
    }

    /// Forgets states of the notes that this mirror lacks because it is new or on another machine.
    fn still_there(&self, mut progress: RefProgress) -> Result<RefProgress, GitError> {
        let target = progress.going.map(|going| going.target);
        for (state, is_target) in [(progress.observed, false), (target, true)] {
            let Some(state) = state else { continue };
            let objects = self.mirror.objects([state], self.allowance)?;
            if objects != [Object::Commit] {
                progress.going = None;
                if !is_target {
                    progress.observed = None;
                }
            }
        }
        Ok(progress)
    }

    /// Reads the notes whose commits a branch reaches, and lets the others wait. Returns how many
    /// of all the notes were handled before the budget was used up.
    fn read_reached(&mut self, notes: NotesRef, new: &[TreeNote]) -> Result<usize, GitError> {
        let commits: Vec<ObjectId> = new.iter().map(|noted| noted.commit).collect();
        let reached = self.reached(&commits)?;
        let to_read: Vec<_> = new
            .iter()
            .filter(|noted| reached.contains(&noted.commit))
            .map(|noted| (*noted, None))
            .collect();
        let read = self.read(notes, &to_read)?;
        let done = match to_read.get(read) {
            Some((unread, _)) => new.partition_point(|noted| noted.commit < unread.commit),
            None => new.len(),
        };
        let waiting = new[..done]
            .iter()
            .filter(|noted| !reached.contains(&noted.commit))
            .map(|noted| DeferredNote {
                notes_ref: notes.as_str().to_owned(),
                commit_sha: noted.commit.commit(),
            });
        self.observed.deferred.extend(waiting);
        self.left.notes = self.left.notes.saturating_sub(done - read);
        Ok(done)
    }

    /// Returns which of these commits exist and are reached by a branch.
    fn reached(&self, commits: &[ObjectId]) -> Result<HashSet<ObjectId>, GitError> {
        let objects = self.mirror.objects(commits, self.allowance)?;
        let existing: Vec<ObjectId> = commits
            .iter()
            .zip(objects)
            .filter(|(_, object)| *object == Object::Commit)
            .map(|(commit, _)| *commit)
            .collect();
        let unreached = self.mirror.unreached(&existing, self.allowance)?;
        Ok(existing
            .into_iter()
            .filter(|commit| !unreached.contains(commit))
            .collect())
    }

    /// Reads notes until the budget is used up, and returns how many were read.
    fn read(
        &mut self,
        notes: NotesRef,
        noted: &[(TreeNote, Option<usize>)],
    ) -> Result<usize, GitError> {
        let noted = &noted[..noted.len().min(self.left.notes)];
        let ids = noted.iter().map(|(noted, _)| noted.note);
        let objects = self.mirror.objects(ids, self.allowance)?;
        let mut to_read = Vec::new();
        let mut done = 0;
        for ((noted, push), object) in noted.iter().zip(objects) {
            match object {
                Object::Blob { bytes, .. } if bytes <= notes.bytes_max() as u64 => {
                    // The first note is always read. Otherwise a large one would block all others.
                    if bytes > self.left.bytes && self.left.bytes < self.budget.bytes {
                        break;
                    }
                    self.left.bytes = self.left.bytes.saturating_sub(bytes);
                    to_read.push((done, *noted, *push));
                }
                Object::Blob { .. } | Object::Commit | Object::Other | Object::Absent => {
                    self.observed.invalid += 1;
                }
            }
            done += 1;
        }
        let blobs: Vec<ObjectId> = to_read.iter().map(|(_, noted, _)| noted.note).collect();
        let Self {
            mirror,
            allowance,
            budget,
            left,
            seen,
            observed,
        } = self;
        mirror.blobs(&blobs, allowance, |place, note| {
            let (number, noted, push) = &to_read[place];
            if *number >= done {
                return;
            }
            let Ok(sessions) = notes.sessions(note) else {
                observed.invalid += 1;
                return;
            };
            if sessions.len() > left.sessions && left.sessions < budget.sessions {
                done = *number;
                return;
            }
            left.sessions = left.sessions.saturating_sub(sessions.len());
            for session_id in sessions {
                if seen.insert((noted.commit, session_id.clone())) {
                    observed.sightings.push(NotedCommit {
                        commit: noted.commit,
                        session_id,
                        notes,
                        push: *push,
                    });
                }
            }
        })?;
        left.notes = left.notes.saturating_sub(done);
        Ok(done)
    }
}
