//! A key that changes when the calls within reach of a commit change.
//!
//! A commit's rows follow from what it adds, which never changes, and from the calls within reach:
//! those near its push and those of the Sessions that notes on it name. So whoever remembers what a
//! commit was tied to can reuse it for as long as the same calls are within reach.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;

use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, SessionId};
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionSkip, Counts};
use svc_model::repository::CommitSha;

use super::plan::{RankedCalls, within};
use super::{Call, Similarity};

/// The calls within reach of a commit, as a sum with one number per call. Two different sets
/// collide with a chance of 2⁻¹²⁸, even if the calls are chosen by an attacker who does not know
/// the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallReach(u128);

/// The secret key from which one process derives these numbers.
#[derive(Clone, Debug, Default)]
pub struct ReachKey([RandomState; 2]);

impl ReachKey {
    fn number(&self, of: impl std::hash::Hash) -> u128 {
        let [high, low] = &self.0;
        u128::from(high.hash_one(&of)) << 64 | u128::from(low.hash_one(&of))
    }

    fn call(&self, call: &Call) -> u128 {
        self.number((call.inference_call_id, call.observed_at))
    }
}

/// Prefix sums over all calls, and over the calls of each Session.
pub(super) struct Sums<'c> {
    calls: &'c RankedCalls,
    key: &'c ReachKey,
    all: Vec<u128>,
    of_session: Vec<Vec<u128>>,
}

impl<'c> Sums<'c> {
    pub(super) fn new(calls: &'c RankedCalls, key: &'c ReachKey) -> Self {
        let numbers: Vec<u128> = calls.all.iter().map(|call| key.call(call)).collect();
        let of_session = calls.of_session.iter().map(|places| {
            let numbers = places.iter().map(|place| numbers[*place as usize]);
            sums(numbers)
        });
        Self {
            of_session: of_session.collect(),
            all: sums(numbers.iter().copied()),
            calls,
            key,
        }
    }

    /// Returns what is within reach of a commit: the calls near its push, and those in the week of
    /// its push whose Sessions are named by notes on it.
    pub(super) fn reach<'s>(
        &self,
        near: &Range<u32>,
        week: &Range<u32>,
        sessions: impl Iterator<Item = &'s u32>,
    ) -> CallReach {
        let near = between(&self.all, near.start as usize..near.end as usize);
        let noted = sessions.map(|session| {
            let session = *session as usize;
            let places = within(&self.calls.of_session[session], week);
            between(&self.of_session[session], places)
        });
        let noted = noted.fold(0, u128::wrapping_add);
        CallReach(self.key.number((near, noted)))
    }
}

/// Returns the sum before the first number, and after each.
fn sums(numbers: impl Iterator<Item = u128>) -> Vec<u128> {
    let after = numbers.scan(0_u128, |sum, number| {
        *sum = sum.wrapping_add(number);
        Some(*sum)
    });
    std::iter::once(0).chain(after).collect()
}

fn between(sums: &[u128], places: Range<usize>) -> u128 {
    sums[places.end].wrapping_sub(sums[places.start])
}

/// What a commit was tied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitTies {
    /// Its files that are tied to a call.
    pub(super) files: Vec<TiedFile>,
    /// Reasons for its other files and sections.
    pub(super) skipped: Counts<AttributionSkip>,
    /// Its files with a guess that an erased call of a noted Session may have written.
    pub(super) notes_hidden: u64,
}

/// A file of a commit, and the call that wrote the added lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TiedFile {
    pub(super) path: String,
    pub(super) inference_call_id: FactId,
    pub(super) session_id: SessionId,
    pub(super) similarity: Similarity,
    pub(super) source: AttributionSource,
}

impl CommitTies {
    /// Returns what led to its rows: a note if any file has one, otherwise a guess; `None` without
    /// rows.
    pub(super) fn source(&self) -> Option<AttributionSource> {
        let mut sources = self.files.iter().map(|file| file.source);
        let notes = AttributionSource::GitNotes;
        let first = sources.next()?;
        Some(if first == notes || sources.any(|source| source == notes) {
            notes
        } else {
            first
        })
    }

    /// Returns roughly how many bytes it takes, for a cache.
    pub fn bytes(&self) -> usize {
        let file = |file: &TiedFile| {
            size_of::<TiedFile>() + file.path.len() + file.session_id.as_str().len()
        };
        size_of::<Self>() + self.files.iter().map(file).sum::<usize>()
    }
}

/// A commit that was read, what was within its reach, and what it was tied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TiedCommit {
    /// The repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The calls that were within its reach.
    pub reach: CallReach,
    /// What it was tied to.
    pub tied: Arc<CommitTies>,
}
