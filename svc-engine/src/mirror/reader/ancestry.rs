use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read as _};

use svc_model::repository::CommitSha;

use super::{MirrorReader, ReadDecline, ReadError};
use crate::mirror::bare::lines;
use crate::mirror::object_id::ObjectId;
use crate::mirror::process::Input;

/// Commits of a history that are walked for one question.
const COMMITS_MAX: usize = 2_000_000;
/// Commits whose histories are walked for one question.
const TIPS_MAX: usize = 1_024;
/// Bytes of one line: a commit and its parents.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// The tips that reach a commit, a bit each.
type Tips = Vec<u64>;

impl MirrorReader {
    /// Returns of each pair whether the first is the second or an ancestor of it. What the mirror
    /// lacks is no ancestor and has none. All pairs are answered by one walk, which ends once nothing
    /// is left to find.
    ///
    /// # Errors
    ///
    /// [`ReadDecline::TooManyPairs`] for more than 1,024 different descendants,
    /// [`ReadDecline::TooManyCommits`] for a history of more than 2,000,000, and see [`ReadError`].
    pub fn are_ancestors(&self, pairs: &[(CommitSha, CommitSha)]) -> Result<Vec<bool>, ReadError> {
        let ids = |(ancestor, descendant): &(CommitSha, CommitSha)| {
            (ObjectId::of(ancestor), ObjectId::of(descendant))
        };
        let pairs: Vec<(ObjectId, ObjectId)> = pairs.iter().map(ids).collect();
        let mut tips = HashMap::new();
        for (_, descendant) in &pairs {
            let number = tips.len();
            tips.entry(*descendant).or_insert(number);
        }
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        if tips.len() > TIPS_MAX {
            return Err(ReadError::Declined(ReadDecline::TooManyPairs));
        }
        let wanted: HashSet<ObjectId> = pairs.iter().map(|(ancestor, _)| *ancestor).collect();
        let (input, _) = lines(tips.keys());
        let mut found = None;
        let walked = self
            .call("rev-list")
            .args(["rev-list", "--topo-order", "--parents"])
            .args(["--ignore-missing", "--stdin"])
            .run(Input::Bytes(input), &self.allowance, |output| {
                found = Some(walk(output, &tips, &wanted)?);
                Ok(())
            });
        let reached = match (found, walked) {
            // It ends without success when the rest of its answer is not read.
            (Some(reached), Ok(())) => reached,
            (Some(reached), Err(error)) if error.is_failure() => reached,
            (_, Err(error)) => return Err(error.into()),
            (None, Ok(())) => Ok(HashMap::new()),
        };
        let reached = reached.map_err(ReadError::Declined)?;
        let is_ancestor = |(ancestor, descendant): &(ObjectId, ObjectId)| {
            let tip = tips[descendant];
            let tips = reached.get(ancestor);
            tips.is_some_and(|tips| tips[tip / 64] >> (tip % 64) & 1 == 1)
        };
        Ok(pairs.iter().map(is_ancestor).collect())
    }
}

/// Reads commits, each before its parents, and hands down to the parents which tips reach them. What
/// is kept is the edge of the walk, and the answer.
fn walk(
    output: &mut dyn BufRead,
    tips: &HashMap<ObjectId, usize>,
    wanted: &HashSet<ObjectId>,
) -> io::Result<Result<HashMap<ObjectId, Tips>, ReadDecline>> {
    let words = tips.len().div_ceil(64);
    let mut edge: HashMap<ObjectId, Tips> = HashMap::new();
    let mut reached = HashMap::new();
    let mut line = Vec::new();
    for _ in 0..COMMITS_MAX {
        line.clear();
        let length = output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(Ok(reached));
        }
        if line.pop() != Some(b'\n') {
            return Ok(Err(ReadDecline::Malformed));
        }
        let mut ids = line.split(|byte| *byte == b' ').map(ObjectId::parse);
        let Some(Some(commit)) = ids.next() else {
            return Ok(Err(ReadDecline::Malformed));
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
                return Ok(Ok(reached));
            }
        }
    }
    Ok(Err(ReadDecline::TooManyCommits))
}
