use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read as _};

use foldhash::fast::RandomState;
use svc_model::repository::CommitSha;

use super::{MirrorReader, ReadDecline, ReadError};
use crate::bare::lines;
use crate::object_id::ObjectId;
use crate::process::Input;

/// The number of commits that are walked for one question.
const COMMITS_MAX: usize = 2_000_000;
/// The number of tips that one walk covers.
const TIPS_MAX: usize = 1_024;
/// The maximum bytes of a line, which holds a commit and its parents.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// The tips that reach a commit, with a bit for each tip.
type Tips = Vec<u64>;

/// Which commits are reached from which tips, for every commit and tip of the question.
#[derive(Clone, Debug, Default)]
pub struct Ancestry {
    /// The tips that the mirror has, each with the walk that starts from it and its number in that
    /// walk.
    tips: HashMap<CommitSha, (usize, usize), RandomState>,
    walks: Vec<HashMap<CommitSha, Tips, RandomState>>,
}

/// The tips of the question that reach one of its commits.
#[derive(Clone, Debug)]
pub struct ReachingTips<'a> {
    ancestry: &'a Ancestry,
    /// For each walk, the tips that reach the commit. `None` where no tip does.
    walks: Vec<Option<&'a Tips>>,
}

impl Ancestry {
    /// Returns whether the mirror has `tips` tips, which is the number of tips in the question. If
    /// so, the answer never changes.
    pub fn is_final(&self, tips: usize) -> bool {
        self.tips.len() == tips
    }

    /// Returns the approximate size in bytes, for caches.
    pub fn bytes(&self) -> usize {
        let words = |walk: &HashMap<CommitSha, Tips, RandomState>| {
            walk.values()
                .map(|tips| 128 + 8 * tips.len())
                .sum::<usize>()
        };
        160 * self.tips.len() + self.walks.iter().map(words).sum::<usize>()
    }

    /// Returns what reaches a commit of the question. The commit is looked up once, however many
    /// tips are asked about.
    pub fn of(&self, commit: &CommitSha) -> ReachingTips<'_> {
        ReachingTips {
            ancestry: self,
            walks: self.walks.iter().map(|walk| walk.get(commit)).collect(),
        }
    }
}

impl ReachingTips<'_> {
    /// Returns whether the commit is the tip or one of its ancestors, or `None` if the mirror lacks
    /// the tip. A commit that the mirror lacks is not an ancestor of one that it has.
    pub fn from(&self, tip: &CommitSha) -> Option<bool> {
        let (walk, number) = self.ancestry.tips.get(tip)?;
        let reached = self.walks[*walk];
        Some(reached.is_some_and(|tips| tips[number / 64] >> (number % 64) & 1 == 1))
    }
}

impl MirrorReader {
    /// Returns which of these commits are reached from which of these tips. One walk covers 1,024
    /// tips, and ends when nothing is left to find.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooManyCommits`] for a history of more than 2,000,000 commits, and see
    /// [`ReadError`].
    pub fn ancestry<'c>(
        &mut self,
        commits: impl IntoIterator<Item = &'c CommitSha>,
        tips: impl IntoIterator<Item = &'c CommitSha>,
    ) -> Result<Ancestry, ReadError> {
        let mut tips: Vec<ObjectId> = tips.into_iter().map(ObjectId::of).collect();
        tips.sort_unstable();
        tips.dedup();
        self.learn(tips.iter().copied())?;
        tips.retain(|tip| self.is_known(*tip));
        let wanted: HashSet<ObjectId> = commits.into_iter().map(ObjectId::of).collect();
        let mut ancestry = Ancestry::default();
        for (walk, tips) in tips.chunks(TIPS_MAX).enumerate() {
            let numbered = || tips.iter().enumerate().map(|(number, tip)| (*tip, number));
            let reached = self.reached_from(&numbered().collect(), &wanted)?;
            let reached = reached.into_iter().map(|(id, tips)| (id.commit(), tips));
            ancestry.walks.push(reached.collect());
            let places = numbered().map(|(tip, number)| (tip.commit(), (walk, number)));
            ancestry.tips.extend(places);
        }
        Ok(ancestry)
    }

    /// Returns the tips that reach each wanted commit. Commits that no tip reaches are left out.
    fn reached_from(
        &self,
        tips: &HashMap<ObjectId, usize>,
        wanted: &HashSet<ObjectId>,
    ) -> Result<HashMap<ObjectId, Tips>, ReadError> {
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let (input, _) = lines(tips.keys());
        let mut found = None;
        let walked = self
            .call("rev-list")
            .args(["rev-list", "--topo-order", "--parents"])
            .args(["--ignore-missing", "--stdin"])
            .run(Input::Bytes(input), &self.allowance, |output| {
                found = Some(walk(output, tips, wanted)?);
                Ok(())
            });
        match (found, walked) {
            // Git fails if its answer is not read to the end.
            (Some(WalkEnd::Found(reached)), Err(error)) if error.is_failure() => Ok(reached),
            (Some(WalkEnd::Declined(decline)), Err(error)) if error.is_failure() => {
                Err(ReadError::Declined(decline))
            }
            (_, Err(error)) => Err(error.into()),
            (Some(WalkEnd::Found(reached) | WalkEnd::Ended(reached)), Ok(())) => Ok(reached),
            (Some(WalkEnd::Declined(decline)), Ok(())) => Err(ReadError::Declined(decline)),
            (None, Ok(())) => Ok(HashMap::new()),
        }
    }
}

/// How a walk through a history ended.
enum WalkEnd {
    /// Every wanted commit was found, so the rest was not read.
    Found(HashMap<ObjectId, Tips>),
    /// The history was read to its end.
    Ended(HashMap<ObjectId, Tips>),
    /// The history cannot be read.
    Declined(ReadDecline),
}

/// Reads commits, each before its parents, and passes on to the parents which tips reach them. Only
/// the edge of the walk and the answer are kept in memory.
fn walk(
    output: &mut dyn BufRead,
    tips: &HashMap<ObjectId, usize>,
    wanted: &HashSet<ObjectId>,
) -> io::Result<WalkEnd> {
    let words = tips.len().div_ceil(64);
    let mut edge: HashMap<ObjectId, Tips> = HashMap::new();
    let mut reached = HashMap::new();
    let mut line = Vec::new();
    for _ in 0..COMMITS_MAX {
        line.clear();
        let length = output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(WalkEnd::Ended(reached));
        }
        if line.pop() != Some(b'\n') {
            return Ok(WalkEnd::Declined(ReadDecline::Malformed));
        }
        let mut ids = line.split(|byte| *byte == b' ').map(ObjectId::parse);
        let Some(Some(commit)) = ids.next() else {
            return Ok(WalkEnd::Declined(ReadDecline::Malformed));
        };
        let mut bits = edge.remove(&commit).unwrap_or_else(|| vec![0; words]);
        if let Some(tip) = tips.get(&commit) {
            bits[tip / 64] |= 1 << (tip % 64);
        }
        for parent in ids.flatten() {
            let parent = edge.entry(parent).or_insert_with(|| vec![0; words]);
            for (word, bits) in parent.iter_mut().zip(&bits) {
                *word |= bits;
            }
        }
        if wanted.contains(&commit) {
            reached.insert(commit, bits);
            if reached.len() == wanted.len() {
                return Ok(WalkEnd::Found(reached));
            }
        }
    }
    Ok(WalkEnd::Declined(ReadDecline::TooManyCommits))
}
