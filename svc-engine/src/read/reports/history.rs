//! What pushes brought: their commits, and what each adds to code files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use svc_engine_derive::attribution::{self, CommitFiles, Commits};
use svc_engine_derive::diff::CommitDiff;
use svc_engine_fact::threads::at_once;
use svc_engine_fact::{Lifetime, Push};
use svc_engine_mirror::{ChangedFile, DiffQuestion, ObjectId, PushRange};
use svc_engine_store::Snapshot;
use svc_model::id::FactId;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::additions::{Additions, split};
use super::memory::{self, ReportMemory};
use super::mirrors::{OpenMirror, OpenMirrors};
use super::resolving::Resolving;
use crate::error::Error;

/// The maximum size of a commit's diff. Nobody writes more in one commit.
pub(super) const QUESTION: DiffQuestion = DiffQuestion {
    bytes_max: 32 * 1024 * 1024,
    files_max: 10_000,
};

/// How many commits of one repository are read in one piece.
const COMMITS_AT_ONCE: usize = 512;
/// How many pieces are read before their files are handed on.
const PIECES_AT_ONCE: usize = 4;
/// Maximum bytes of added text that are kept until pull requests are scored.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A commit in a repository.
pub(super) type RepositoryCommit = (Lifetime, CommitSha);

/// The commits that a push brought; `None` if unreadable.
type CommitRange = Option<Arc<[CommitSha]>>;

/// The ends of a push.
#[derive(Debug)]
struct Ends {
    before: CommitSha,
    after: CommitSha,
    forced: bool,
}

/// What pushes brought, as far as it has been read.
#[derive(Debug)]
pub(super) struct History<'h> {
    pub(super) mirrors: OpenMirrors<'h>,
    memory: &'h ReportMemory,
    ends: HashMap<FactId, Ends>,
    /// The commits of each push that was asked for; `None` without a mirror, or if unreadable.
    ranges: HashMap<FactId, CommitRange>,
    /// The commits whose diffs may be needed again.
    wanted_again: HashSet<RepositoryCommit>,
    /// Diffs of these commits, while there is room.
    kept: HashMap<RepositoryCommit, Arc<CommitDiff>>,
    kept_bytes: AtomicUsize,
    /// The repositories whose mirror was fetched once, when that was asked for.
    fetched: OnceLock<BTreeSet<Lifetime>>,
}

/// What a commit adds to code files, and the diff if it will be needed again.
type CommitRead = (CommitSha, Arc<CommitFiles>, Option<Arc<CommitDiff>>);

impl<'h> History<'h> {
    pub(super) fn new(mirrors: OpenMirrors<'h>, memory: &'h ReportMemory) -> Self {
        Self {
            mirrors,
            memory,
            ends: HashMap::new(),
            ranges: HashMap::new(),
            wanted_again: HashSet::new(),
            kept: HashMap::new(),
            kept_bytes: AtomicUsize::new(0),
            fetched: OnceLock::new(),
        }
    }

    /// Announces commits whose diffs will be needed again.
    pub(super) fn want_again(&mut self, places: impl Iterator<Item = RepositoryCommit>) {
        self.wanted_again.extend(places);
    }

    pub(super) const fn memory(&self) -> &'h ReportMemory {
        self.memory
    }

    /// Returns the diff of a commit, if it was kept.
    pub(super) fn kept(&self, place: &RepositoryCommit) -> Option<&Arc<CommitDiff>> {
        self.kept.get(place)
    }

    /// Returns the repositories whose mirror was asked for and is missing although it was fetched
    /// once.
    pub(super) fn lost_mirrors(
        &self,
        snapshot: &mut Snapshot<'_>,
        boundary: Instant,
    ) -> Result<BTreeSet<Lifetime>, Error> {
        let mut lost = self.mirrors.absent();
        if !lost.is_empty() {
            let fetched = self.fetched_mirrors(snapshot, boundary)?;
            lost.retain(|repository| fetched.contains(repository));
        }
        Ok(lost)
    }

    /// Returns the repositories whose mirror was fetched once.
    fn fetched_mirrors(
        &self,
        snapshot: &mut Snapshot<'_>,
        boundary: Instant,
    ) -> Result<&BTreeSet<Lifetime>, Error> {
        if let Some(fetched) = self.fetched.get() {
            return Ok(fetched);
        }
        let jobs = snapshot.mirrors(boundary)?.into_iter();
        let fetched = jobs.filter(|job| job.last_success_at.is_some());
        let fetched = fetched.map(|job| job.lifetime).collect();
        Ok(self.fetched.get_or_init(|| fetched))
    }

    /// Remembers pushes, and returns them in the form that Attribution takes.
    pub(super) fn pushed(
        &mut self,
        pushes: &[Push],
        resolving: &Resolving,
    ) -> Vec<attribution::Push> {
        let mut pushed = Vec::with_capacity(pushes.len());
        for push in pushes {
            let ends = Ends {
                before: push.before_sha.clone(),
                after: push.after_sha.clone(),
                forced: push.forced,
            };
            self.ends.insert(push.push_id, ends);
            pushed.push(attribution::Push {
                push_id: push.push_id,
                captured_at: push.captured_at,
                repository: resolving.of_push(push),
            });
        }
        pushed
    }

    /// Reads which commits pushes brought, a few repositories at a time.
    pub(super) fn read_ranges<'p>(
        &mut self,
        pushes: impl Iterator<Item = (&'p Lifetime, FactId)>,
    ) -> Result<(), Error> {
        let mut wanted: BTreeMap<&Lifetime, Vec<FactId>> = BTreeMap::new();
        for (repository, push_id) in pushes {
            if !self.ranges.contains_key(&push_id) {
                wanted.entry(repository).or_default().push(push_id);
            }
        }
        let wanted: Vec<(&Lifetime, Vec<FactId>)> = wanted.into_iter().collect();
        let read = at_once(&wanted, |(repository, push_ids)| {
            self.ranges_of(repository, push_ids)
        })?;
        for ((_, push_ids), ranges) in wanted.into_iter().zip(read) {
            match ranges {
                Some(ranges) => self.ranges.extend(push_ids.into_iter().zip(ranges)),
                None => self
                    .ranges
                    .extend(push_ids.into_iter().map(|push_id| (push_id, None))),
            }
        }
        Ok(())
    }

    fn ranges_of(
        &self,
        repository: &Lifetime,
        push_ids: &[FactId],
    ) -> Result<Option<Vec<CommitRange>>, Error> {
        let range = |push_id: &FactId| {
            let ends = self.ends.get(push_id)?;
            Some(PushRange {
                before: &ends.before,
                after: &ends.after,
                forced: ends.forced,
            })
        };
        let key = |push: PushRange<'_>| memory::Range {
            repository: repository.clone(),
            before: ObjectId::of(push.before),
            after: ObjectId::of(push.after),
            forced: push.forced,
        };
        let mut ranges: Vec<CommitRange> = push_ids
            .iter()
            .map(|push_id| self.memory.ranges.get(&key(range(push_id)?)))
            .collect();
        let missing: Vec<(usize, PushRange<'_>)> = (0..)
            .zip(push_ids)
            .filter(|(place, _)| ranges[*place].is_none())
            .filter_map(|(place, push_id)| Some((place, range(push_id)?)))
            .collect();
        // Even if everything is remembered, a repository without a mirror has no answer.
        let read = self.mirrors.with(repository, |mirror| {
            if !missing.is_empty() {
                mirror.read(|reader| reader.prepare(missing.iter().map(|(_, push)| *push)))?;
            }
            for (place, push) in missing {
                let Some(brought) = mirror.read(|reader| reader.pushed(push))? else {
                    continue;
                };
                let commits: Arc<[CommitSha]> = brought.commits.into();
                if brought.is_final {
                    self.memory.ranges.insert(key(push), Arc::clone(&commits));
                }
                ranges[place] = Some(commits);
            }
            Ok(())
        })?;
        Ok(read.map(|()| ranges))
    }

    /// Returns the commits of a push whose range was read, oldest first.
    pub(super) fn range(&self, push_id: FactId) -> Option<Vec<CommitSha>> {
        self.ranges.get(&push_id)?.as_deref().map(<[_]>::to_vec)
    }

    /// Reads what the wanted commits add, a few repositories at a time.
    pub(super) fn read_files(&mut self, commits: &mut Commits) -> Result<(), Error> {
        let mut pieces: Vec<(Lifetime, Vec<CommitSha>)> = Vec::new();
        for (repository, commits) in commits.wanted() {
            let of_repository = commits.chunks(COMMITS_AT_ONCE);
            pieces.extend(of_repository.map(|commits| {
                let commits = commits.iter().copied().cloned();
                (repository.clone(), commits.collect())
            }));
        }
        for pieces in pieces.chunks(PIECES_AT_ONCE) {
            let read = at_once(pieces, |(repository, wanted)| {
                self.files_of(repository, wanted)
            })?;
            for ((repository, _), read) in pieces.iter().zip(read) {
                for (commit_sha, files, diff) in read {
                    commits.add(repository, &commit_sha, &files)?;
                    if let Some(diff) = diff {
                        self.kept.insert((repository.clone(), commit_sha), diff);
                    }
                }
            }
        }
        Ok(())
    }

    fn files_of(
        &self,
        repository: &Lifetime,
        commits: &[CommitSha],
    ) -> Result<Vec<CommitRead>, Error> {
        let mut read = Vec::with_capacity(commits.len());
        let mut missing = Vec::new();
        for commit in commits {
            match self.memory.files.get(&(repository.clone(), commit.clone())) {
                Some(files) => read.push((commit.clone(), files, None)),
                None => missing.push(commit.clone()),
            }
        }
        if missing.is_empty() {
            return Ok(read);
        }
        self.mirrors.with(repository, |mirror| {
            let changes = Self::changes_of(mirror, &missing)?;
            let (asked, others) = split(&changes);
            let mut additions = Additions::default();
            let mut ask = |places: &[usize], additions: &mut Additions| {
                let asked: Vec<CommitSha> =
                    places.iter().map(|place| missing[*place].clone()).collect();
                mirror.diffs(&asked, QUESTION, |at, diff| {
                    if let Ok(Some(diff)) = diff {
                        let place = places[at];
                        let diff = CommitDiff::parse(&diff.bytes);
                        let files = Arc::new(CommitFiles::of(&diff));
                        if let Some(changes) = &changes[place] {
                            additions.learn(changes, &diff, &files);
                        }
                        let diff = self.keep(repository, &missing[place], diff);
                        read.push(self.remember(repository, &missing[place], files, diff));
                    }
                })
            };
            ask(&asked, &mut additions)?;
            let mut unknown = Vec::new();
            let mut known = Vec::new();
            for place in others {
                let changes = changes[place].as_deref().unwrap_or_default();
                match additions.of(changes) {
                    Some(files) => known.push((place, files)),
                    None => unknown.push(place),
                }
            }
            if !unknown.is_empty() {
                ask(&unknown, &mut additions)?;
            }
            read.extend(known.into_iter().map(|(place, files)| {
                self.remember(repository, &missing[place], Arc::new(files), None)
            }));
            Ok(())
        })?;
        Ok(read)
    }

    /// Returns which files change in each commit, to find commits that bring the same content;
    /// `None` if that is unknown, or if there is only one commit.
    fn changes_of(
        mirror: &mut OpenMirror,
        commits: &[CommitSha],
    ) -> Result<Vec<Option<Vec<ChangedFile>>>, Error> {
        let mut changes = vec![None; commits.len()];
        if commits.len() > 1 {
            mirror.read(|reader| {
                reader.changes(commits, |at, found| changes[at] = found.ok().flatten())
            })?;
        }
        Ok(changes)
    }

    /// Keeps the diff of a commit if it will be needed again and there is room.
    fn keep(
        &self,
        repository: &Lifetime,
        commit: &CommitSha,
        diff: CommitDiff,
    ) -> Option<Arc<CommitDiff>> {
        let place = (repository.clone(), commit.clone());
        let bytes: usize = diff.files.iter().map(|file| file.added.len()).sum();
        let fitting = |kept: usize| Some(kept + bytes).filter(|kept| *kept <= KEPT_BYTES_MAX);
        let order = Ordering::Relaxed;
        let is_kept = self.wanted_again.contains(&place)
            && self.kept_bytes.fetch_update(order, order, fitting).is_ok();
        is_kept.then(|| Arc::new(diff))
    }

    fn remember(
        &self,
        repository: &Lifetime,
        commit: &CommitSha,
        files: Arc<CommitFiles>,
        diff: Option<Arc<CommitDiff>>,
    ) -> CommitRead {
        let place = (repository.clone(), commit.clone());
        self.memory.files.insert(place, Arc::clone(&files));
        (commit.clone(), files, diff)
    }
}
