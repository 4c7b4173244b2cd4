//! What pushes brought: their commits, and what each adds to files of code.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use svc_model::id::FactId;
use svc_model::repository::CommitSha;

use super::mirrors::OpenMirrors;
use super::resolving::Resolving;
use crate::derive::attribution::{self, CommitFiles, Commits};
use crate::derive::diff::CommitDiff;
use crate::error::Error;
use crate::fact::{Lifetime, Push};
use crate::mirror::{DiffQuestion, Merges, PushRange, Renames};

/// What a commit's diff may be. Nobody writes more in one commit.
pub(super) const QUESTION: DiffQuestion = DiffQuestion {
    renames: Renames::Detected,
    merges: Merges::FirstParent,
    bytes_max: 32 * 1024 * 1024,
    files_max: 10_000,
};

/// A commit of a repository.
type Place = (Lifetime, CommitSha);

#[derive(Clone)]
struct Weight;

impl Weighter<Place, Arc<CommitFiles>> for Weight {
    fn weight(&self, _: &Place, files: &Arc<CommitFiles>) -> u64 {
        256 + files.bytes() as u64
    }
}

/// What commits add to files of code, kept between reports and bounded by bytes. A commit never
/// changes.
pub struct FilesCache(Cache<Place, Arc<CommitFiles>, Weight>);

impl fmt::Debug for FilesCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilesCache")
    }
}

impl FilesCache {
    /// Returns an empty cache of about this many bytes.
    pub fn new(bytes: u64) -> Self {
        let commits = usize::try_from(bytes / 4_096).unwrap_or(usize::MAX).max(16);
        Self(Cache::with_weighter(commits, bytes, Weight))
    }
}

/// The ends of a push.
#[derive(Debug)]
struct Ends {
    before: CommitSha,
    after: CommitSha,
    forced: bool,
}

/// What pushes brought, as far as it was asked for.
#[derive(Debug)]
pub(super) struct History<'h> {
    pub(super) mirrors: OpenMirrors<'h>,
    cache: &'h FilesCache,
    ends: HashMap<FactId, Ends>,
    /// The commits of each push that was asked for; nothing where the repository has no mirror.
    ranges: HashMap<FactId, Option<Vec<CommitSha>>>,
}

impl<'h> History<'h> {
    pub(super) fn new(mirrors: OpenMirrors<'h>, cache: &'h FilesCache) -> Self {
        Self {
            mirrors,
            cache,
            ends: HashMap::new(),
            ranges: HashMap::new(),
        }
    }

    /// Takes pushes, and returns them as Attribution knows them.
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

    /// Reads which commits pushes brought, one repository after the other.
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
        for (repository, push_ids) in wanted {
            for push_id in push_ids {
                let range = match (self.mirrors.of(repository)?, self.ends.get(&push_id)) {
                    (Some(mirror), Some(ends)) => {
                        let range = PushRange {
                            before: &ends.before,
                            after: &ends.after,
                            forced: ends.forced,
                        };
                        mirror.read(|it| it.pushed(range))?
                    }
                    _ => None,
                };
                self.ranges.insert(push_id, range);
            }
        }
        Ok(())
    }

    /// Returns the commits of a push that were read, the oldest first.
    pub(super) fn range(&self, push_id: FactId) -> Option<Vec<CommitSha>> {
        self.ranges.get(&push_id)?.clone()
    }

    /// Reads what the commits add that are wanted, one repository after the other.
    pub(super) fn read_files(&mut self, commits: &mut Commits) -> Result<(), Error> {
        let wanted: Vec<Place> = commits
            .wanted()
            .into_iter()
            .flat_map(|(repository, commits)| {
                let place = |commit: &CommitSha| (repository.clone(), commit.clone());
                commits.into_iter().map(place).collect::<Vec<_>>()
            })
            .collect();
        for place in wanted {
            if let Some(files) = self.files(&place)? {
                commits.add(&place.0, &place.1, &files)?;
            }
        }
        Ok(())
    }

    fn files(&mut self, place: &Place) -> Result<Option<Arc<CommitFiles>>, Error> {
        if let Some(files) = self.cache.0.get(place) {
            return Ok(Some(files));
        }
        let (repository, commit_sha) = place;
        let Some(mirror) = self.mirrors.of(repository)? else {
            return Ok(None);
        };
        let diff = mirror.read(|it| it.diff(commit_sha, QUESTION))?;
        let Some(diff) = diff.flatten() else {
            return Ok(None);
        };
        let files = Arc::new(CommitFiles::of(&CommitDiff::parse(&diff.bytes)));
        self.cache.0.insert(place.clone(), Arc::clone(&files));
        Ok(Some(files))
    }
}
