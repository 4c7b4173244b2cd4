//! What reports remember between requests.
//!
//! Everything is kept under the id of what it was derived from: a commit, a stored content, an edit
//! observation. These never change, so an entry is always valid, and each snapshot decides whether
//! it may be shown. Each kind is bounded in bytes and evicts what was not asked for. What changes
//! with the store is read again: see `docs/decisions/013-report-memory.md`.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use svc_engine_derive::attribution::{CallReach, CodeTokens, CommitFiles, CommitTies, ReachKey};
use svc_engine_derive::merge_retention::Scores;
use svc_engine_fact::Lifetime;
use svc_engine_mirror::{Ancestry, ObjectId};
use svc_model::id::FactId;
use svc_model::repository::CommitSha;

use super::history::RepositoryCommit;
use crate::read::overview::OverviewMemory;
use crate::read::prices::PriceMemory;

/// What reports remember.
#[derive(Debug)]
pub struct ReportMemory {
    /// The commits that pushes brought.
    pub(super) ranges: MeteredCache<Range, Arc<[CommitSha]>>,
    /// What commits add to code files.
    pub(super) files: MeteredCache<RepositoryCommit, Arc<CommitFiles>>,
    /// The tokens of answers, by the id of their content.
    pub(super) answers: MeteredCache<i64, Arc<CodeTokens>>,
    /// What commits were tied to, given the calls within their reach.
    pub(super) tied: MeteredCache<(RepositoryCommit, CallReach), Arc<CommitTies>>,
    /// The key that each [`CallReach`] is computed with.
    pub(super) reach_key: ReachKey,
    /// Which commits can be reached from which.
    pub(super) ancestries: MeteredCache<AncestryKey, Arc<Ancestry>>,
    /// The commits that each commit says it reverts.
    pub(super) reverts: MeteredCache<RepositoryCommit, Arc<[CommitSha]>>,
    /// How much of files was left when they were merged.
    pub(super) scores: MeteredCache<ScoredFile, Arc<ScoredCommit>>,
    /// The share of an edit that was left, by observation.
    pub(super) shares: MeteredCache<FactId, f64>,
    /// The price tables that were read last.
    pub(in crate::read) prices: PriceMemory,
    /// The overviews of much work that were derived last.
    pub(in crate::read) overviews: OverviewMemory,
}

/// The move of a branch by a push.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub(super) repository: Lifetime,
    pub(super) before: ObjectId,
    pub(super) after: ObjectId,
    pub(super) forced: bool,
}

/// A question about the ancestry of commits, and the mirror that it was put to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AncestryKey {
    pub(super) mirror: Lifetime,
    /// The digest of the commits and the tips.
    pub(super) question: [u8; 32],
}

/// A file of a commit, and the commits where it was searched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScoredFile {
    pub(super) commit: ObjectId,
    pub(super) path: String,
    pub(super) head: ObjectId,
    pub(super) merge: ObjectId,
}

/// How much of a file was left, and how many sections of the commit's diff could not be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScoredCommit {
    pub(super) scores: Scores,
    pub(super) malformed: u64,
    pub(super) unsupported: u64,
}

/// How much of one kind is remembered, and how often that helped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes in use.
    pub bytes: u64,
    /// Maximum bytes.
    pub bytes_max: u64,
    /// Look-ups that were answered from memory.
    pub hits: u64,
    /// Look-ups that were not.
    pub misses: u64,
}

impl ReportMemory {
    /// Returns an empty memory of about `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        let part = |parts: u64| bytes / 25 * parts;
        Self {
            ranges: MeteredCache::new(part(1), 512),
            files: MeteredCache::new(part(7), 4_096),
            answers: MeteredCache::new(part(5), 1_024),
            tied: MeteredCache::new(part(5), 1_024),
            reach_key: ReachKey::default(),
            ancestries: MeteredCache::new(part(2), 65_536),
            reverts: MeteredCache::new(part(1), 256),
            scores: MeteredCache::new(part(3), 384),
            shares: MeteredCache::new(part(1), 64),
            prices: PriceMemory::default(),
            overviews: OverviewMemory::default(),
        }
    }

    /// Returns the use of each kind of entry, by name.
    pub fn uses(&self) -> [(&'static str, MemoryUse); 8] {
        [
            ("pushes", self.ranges.used()),
            ("commit_files", self.files.used()),
            ("answers", self.answers.used()),
            ("tied_commits", self.tied.used()),
            ("ancestries", self.ancestries.used()),
            ("reverts", self.reverts.used()),
            ("merged_files", self.scores.used()),
            ("edits", self.shares.used()),
        ]
    }
}

/// The size of an entry in memory, including its key.
pub(super) trait Bytes {
    fn bytes(&self) -> u64;
}

impl Bytes for Arc<[CommitSha]> {
    fn bytes(&self) -> u64 {
        320 + 64 * self.len() as u64
    }
}

impl Bytes for Arc<CommitFiles> {
    fn bytes(&self) -> u64 {
        256 + CommitFiles::bytes(self) as u64
    }
}

impl Bytes for Arc<CodeTokens> {
    fn bytes(&self) -> u64 {
        96 + 8 * self.len() as u64
    }
}

impl Bytes for Arc<CommitTies> {
    fn bytes(&self) -> u64 {
        256 + CommitTies::bytes(self) as u64
    }
}

impl Bytes for Arc<Ancestry> {
    fn bytes(&self) -> u64 {
        256 + Ancestry::bytes(self) as u64
    }
}

impl Bytes for Arc<ScoredCommit> {
    fn bytes(&self) -> u64 {
        320 + (self.scores.head_path.len() + self.scores.merge_path.len()) as u64 * 3 / 2
    }
}

impl Bytes for f64 {
    fn bytes(&self) -> u64 {
        64
    }
}

#[derive(Clone)]
struct Weight;

impl<K, V: Bytes> Weighter<K, V> for Weight {
    fn weight(&self, _: &K, value: &V) -> u64 {
        value.bytes()
    }
}

/// The entries of one kind.
pub(super) struct MeteredCache<K, V> {
    cache: Cache<K, V, Weight>,
    bytes_max: u64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl<K: Eq + Hash + Clone, V: Bytes + Clone> MeteredCache<K, V> {
    /// Returns an empty cache of `bytes_max` bytes, for entries of about `bytes_of_one` bytes.
    pub(super) fn new(bytes_max: u64, bytes_of_one: u64) -> Self {
        let count = usize::try_from(bytes_max / bytes_of_one.max(1)).unwrap_or(usize::MAX);
        Self {
            cache: Cache::with_weighter(count.max(16), bytes_max, Weight),
            bytes_max,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        let found = self.cache.get(key);
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(super) fn insert(&self, key: K, value: V) {
        self.cache.insert(key, value);
    }

    pub(super) fn used(&self) -> MemoryUse {
        MemoryUse {
            bytes: self.cache.weight(),
            bytes_max: self.bytes_max,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}

impl<K, V> fmt::Debug for MeteredCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredCache")
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_bounded_and_its_use_is_counted() {
        let kept: MeteredCache<u64, f64> = MeteredCache::new(64 * 100, 64);
        assert_eq!(kept.get(&1), None);
        for number in 0..10_000 {
            kept.insert(number, 0.5);
        }
        kept.insert(1, 0.25);
        let used = kept.used();
        assert!(used.bytes <= used.bytes_max, "{used:?}");
        assert_eq!((used.hits, used.misses), (0, 1));
        let found = (0..10_000)
            .filter(|number| kept.get(number).is_some())
            .count() as u64;
        assert!(found > 0 && found <= 100, "{found}");
        assert_eq!(kept.used().hits, found);
    }

    #[test]
    fn the_parts_of_the_memory_add_up_to_its_limit() {
        let uses = ReportMemory::new(2_400_000).uses();
        let bytes: u64 = uses.iter().map(|(_, used)| used.bytes_max).sum();
        assert_eq!(bytes, 2_400_000);
    }
}
