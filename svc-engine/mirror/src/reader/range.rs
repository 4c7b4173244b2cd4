use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io::{self, Read as _};

use svc_model::repository::CommitSha;

use super::objects::ObjectLookup;
use super::{
    COMMIT_BYTES_MAX, CommitObject, MirrorReader, ObjectKind, ReadDecline, ReadError, read_header,
};
use crate::bare::Mirror;
use crate::object_id::ObjectId;
use crate::observe::PUSH_COMMITS_MAX;

/// The number of commits that are read for one push before git is asked instead.
const VISITED_MAX: usize = 2_000;
/// The number of commits whose place in the history is kept in memory.
const LINKS_MAX: usize = 200_000;

/// Between which two commits a push moved a branch.
#[derive(Clone, Copy, Debug)]
pub struct PushRange<'p> {
    /// The commit that the branch was at; all zeros if the push created the branch.
    pub before: &'p CommitSha,
    /// The commit that the branch is at now.
    pub after: &'p CommitSha,
    /// Whether the new commit does not descend from the old one.
    pub forced: bool,
}

/// The commits that a push brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedCommits {
    /// The commits, the oldest first.
    pub commits: Vec<CommitSha>,
    /// Whether the answer stays the same, whatever the mirror receives later.
    pub is_final: bool,
}

/// The place of a commit in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistoryLink {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    committed_at: Option<i64>,
}

impl PushRange<'_> {
    /// Returns whether the push claims to have brought more than its newer end.
    fn is_range(&self) -> bool {
        !self.forced && self.before.as_str().bytes().any(|digit| digit != b'0')
    }
}

impl HistoryLink {
    fn of(commit: &CommitObject) -> Self {
        Self {
            tree: ObjectId::of(&commit.tree),
            parents: commit.parents.iter().map(ObjectId::of).collect(),
            committed_at: commit.committed_at,
        }
    }
}

/// A commit that a walk has met.
#[derive(Clone, Debug)]
struct WalkedCommit {
    link: HistoryLink,
    /// Whether the older end reaches it.
    is_before: bool,
    is_passed: bool,
}

impl MirrorReader {
    /// Returns the commits that a push brought: the 20 newest, in git's order, oldest first. For a
    /// push that was forced, that created its branch, or whose older end the mirror lacks, returns
    /// only its newer end.
    ///
    /// # Errors
    ///
    /// See [`ReadError`] and [`MirrorReader::commit`].
    pub fn pushed(&mut self, push: PushRange<'_>) -> Result<PushedCommits, ReadError> {
        let (before, after) = (ObjectId::of(push.before), ObjectId::of(push.after));
        let is_range =
            push.is_range() && self.link(before)?.is_some() && self.link(after)?.is_some();
        let mut range = if !is_range {
            Vec::new()
        } else if let Some(range) = self.between(before, after)? {
            range
        } else {
            let mirror = Mirror::at(&self.git, self.path.clone());
            mirror.range(before, after, PUSH_COMMITS_MAX, &self.allowance)?
        };
        range.reverse();
        if range.is_empty() {
            range.push(after);
        }
        Ok(PushedCommits {
            commits: range.into_iter().map(ObjectId::commit).collect(),
            is_final: is_range || !push.is_range(),
        })
    }

    /// Reads the places in the history that [`pushed`](Self::pushed) will need for these pushes,
    /// one generation of all pushes at a time.
    pub fn prepare<'p>(
        &mut self,
        pushes: impl Iterator<Item = PushRange<'p>>,
    ) -> Result<(), ReadError> {
        let ends: Vec<(ObjectId, ObjectId)> = pushes
            .filter(PushRange::is_range)
            .map(|push| (ObjectId::of(push.before), ObjectId::of(push.after)))
            .collect();
        self.learn(ends.iter().flat_map(|(before, after)| [*before, *after]))?;
        let mut seen: HashSet<ObjectId> = ends.iter().map(|(before, _)| *before).collect();
        let mut generation: Vec<ObjectId> = ends.into_iter().map(|(_, after)| after).collect();
        for _ in 0..PUSH_COMMITS_MAX {
            generation.retain(|id| seen.insert(*id));
            let parents = self.learn_parents(&generation)?;
            if parents.is_empty() {
                break;
            }
            generation = parents;
        }
        Ok(())
    }

    /// Reads the places of commits in the history, all at once. Unreadable commits are left out.
    pub(super) fn learn(
        &mut self,
        ids: impl IntoIterator<Item = ObjectId>,
    ) -> Result<(), ReadError> {
        let mut ids: Vec<ObjectId> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| !self.links.contains_key(id));
        let mut learnt = Vec::with_capacity(ids.len());
        self.objects(&ids, COMMIT_BYTES_MAX, |place, found| {
            if let ObjectLookup::Object(ObjectKind::Commit, text) = found
                && let Some(commit) = CommitObject::parse(text)
            {
                learnt.push((ids[place], HistoryLink::of(&commit)));
            }
        })?;
        for (id, link) in learnt {
            self.remember(id, link);
        }
        Ok(())
    }

    /// Reads the places of the parents of commits, and returns the parents.
    pub(super) fn learn_parents(&mut self, ids: &[ObjectId]) -> Result<Vec<ObjectId>, ReadError> {
        let links = ids.iter().filter_map(|id| self.links.get(id));
        let parents: Vec<ObjectId> = links.flat_map(|link| &link.parents).copied().collect();
        self.learn(parents.iter().copied())?;
        Ok(parents)
    }

    /// Returns whether the place of a commit in the history was read.
    pub(super) fn is_known(&self, id: ObjectId) -> bool {
        self.links.contains_key(&id)
    }

    fn remember(&mut self, id: ObjectId, link: HistoryLink) {
        if self.links.len() == LINKS_MAX {
            self.links.clear();
        }
        self.links.insert(id, link);
    }

    /// Returns the newest commits that `after` reaches and `before` does not, newest first, by
    /// walking from both. Returns `None` if the walk would be long, or if commit times do not
    /// follow the history, because git's order is different then.
    fn between(
        &mut self,
        before: ObjectId,
        after: ObjectId,
    ) -> Result<Option<Vec<ObjectId>>, ReadError> {
        let mut met: HashMap<ObjectId, WalkedCommit> = HashMap::new();
        // Ordered by time, and within the same time by when the walk met them.
        let mut waiting = BinaryHeap::new();
        let mut passed: Vec<(i64, ObjectId)> = Vec::new();
        // How many waiting commits the older end is not known to reach.
        let mut open = 0_usize;
        for (id, is_before) in [(after, false), (before, true)] {
            if before == after && !is_before {
                continue;
            }
            let Some(link) = self.link(id)? else {
                return Ok(None);
            };
            let Some(moment) = link.committed_at else {
                return Ok(None);
            };
            waiting.push((moment, Reverse(met.len()), id));
            open += usize::from(!is_before);
            let state = WalkedCommit {
                link,
                is_before,
                is_passed: false,
            };
            met.insert(id, state);
        }
        while let Some((moment, _, id)) = waiting.pop() {
            // A commit of the same time may still turn out to be reached.
            let oldest = passed.last().map_or(i64::MAX, |(moment, _)| *moment);
            if open == 0 && moment < oldest {
                break;
            }
            let Some(state) = met.get_mut(&id) else {
                return Ok(None);
            };
            state.is_passed = true;
            let is_before = state.is_before;
            let parents = state.link.parents.clone();
            if !is_before {
                open -= 1;
                passed.push((moment, id));
            }
            for parent in parents {
                if met.contains_key(&parent) {
                    if is_before {
                        open -= mark(&mut met, parent);
                    }
                    continue;
                }
                let Some(link) = self.link(parent)? else {
                    return Ok(None);
                };
                let Some(earlier) = link.committed_at.filter(|earlier| *earlier <= moment) else {
                    return Ok(None);
                };
                if met.len() == VISITED_MAX {
                    return Ok(None);
                }
                waiting.push((earlier, Reverse(met.len()), parent));
                open += usize::from(!is_before);
                let state = WalkedCommit {
                    link,
                    is_before,
                    is_passed: false,
                };
                met.insert(parent, state);
            }
        }
        let is_new = |(_, id): &(i64, ObjectId)| met.get(id).is_some_and(|state| !state.is_before);
        let newest = passed.into_iter().filter(is_new).map(|(_, id)| id);
        Ok(Some(newest.take(PUSH_COMMITS_MAX).collect()))
    }

    /// Returns the place of a commit in the history; `None` if the mirror lacks the commit.
    pub(super) fn link(&mut self, id: ObjectId) -> Result<Option<HistoryLink>, ReadError> {
        if let Some(link) = self.links.get(&id) {
            return Ok(Some(link.clone()));
        }
        let name = id.to_string().into_bytes();
        let question = [b"contents ", &name[..], b"\0"].concat();
        let answer = self.ask_objects(&question, |output| {
            let Some(header) = read_header(output, &name)? else {
                return Ok(Some(None));
            };
            if header.bytes > COMMIT_BYTES_MAX {
                // The rest is not read.
                return Ok(None);
            }
            let mut bytes = Vec::new();
            output.take(header.bytes + 1).read_to_end(&mut bytes)?;
            if bytes.pop() != Some(b'\n') || bytes.len() as u64 != header.bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Some((header.kind == ObjectKind::Commit).then_some(bytes)))
        })?;
        let Some(text) = answer else {
            self.objects = None;
            return Err(ReadError::Declined(ReadDecline::TooLarge));
        };
        let Some(text) = text else {
            return Ok(None);
        };
        let commit =
            CommitObject::parse(&text).ok_or(ReadError::Declined(ReadDecline::Malformed))?;
        let link = HistoryLink::of(&commit);
        self.remember(id, link.clone());
        Ok(Some(link))
    }
}

/// Marks a commit, and all that it is known to reach, as reached by the older end. Returns how many
/// of them were waiting.
fn mark(met: &mut HashMap<ObjectId, WalkedCommit>, id: ObjectId) -> usize {
    let mut marked = vec![id];
    let mut waited = 0;
    while let Some(id) = marked.pop() {
        if let Some(state) = met.get_mut(&id)
            && !state.is_before
        {
            state.is_before = true;
            if state.is_passed {
                marked.extend(&state.link.parents);
            } else {
                waited += 1;
            }
        }
    }
    waited
}
