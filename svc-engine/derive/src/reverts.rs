//! Which commits later commits take back, for good.
//!
//! A revert counts if it has landed where the work did, and if nothing takes it back in turn.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::repository::CommitSha;

/// A commit whose message says that it reverts another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revert {
    /// The commit.
    pub by: CommitSha,
    /// The commit that it reverts.
    pub of: CommitSha,
    /// The commit that holds its merged work, if a pull request brought it.
    pub merge_commit_sha: Option<CommitSha>,
    /// Whether it is known to be where the work is: merged, or pushed to a branch that pull requests
    /// go to.
    pub has_landed: bool,
}

/// Returns the commits of one repository that are reverted.
pub fn reverted(reverts: &[Revert]) -> BTreeSet<&CommitSha> {
    let mut of: BTreeMap<&CommitSha, Vec<&Revert>> = BTreeMap::new();
    for revert in reverts.iter().filter(|revert| revert.has_landed) {
        of.entry(&revert.of).or_default().push(revert);
    }
    let mut known = BTreeMap::new();
    let all: Vec<&CommitSha> = of.keys().copied().collect();
    all.into_iter()
        .filter(|commit| is_reverted(commit, &of, &mut known))
        .collect()
}

/// A message that names a commit is part of a younger commit, so names never run in a circle; what
/// lies is taken as not reverted.
fn is_reverted<'r>(
    commit: &'r CommitSha,
    of: &BTreeMap<&'r CommitSha, Vec<&'r Revert>>,
    known: &mut BTreeMap<&'r CommitSha, bool>,
) -> bool {
    if let Some(known) = known.get(commit) {
        return *known;
    }
    known.insert(commit, false);
    let mut reverts = of.get(commit).into_iter().flatten();
    let stands = |revert: &&&'r Revert, known: &mut BTreeMap<&'r CommitSha, bool>| {
        let merge = revert.merge_commit_sha.as_ref();
        !is_reverted(&revert.by, of, known)
            && !merge.is_some_and(|merge| is_reverted(merge, of, known))
    };
    let is_reverted = reverts.any(|revert| stands(&revert, known));
    known.insert(commit, is_reverted);
    is_reverted
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::commit;

    use super::*;

    fn revert(by: char, of: char) -> Revert {
        Revert {
            by: commit(by),
            of: commit(of),
            merge_commit_sha: None,
            has_landed: true,
        }
    }

    #[test]
    fn a_revert_counts_if_it_landed_and_stands() {
        let unmerged = || Revert {
            has_landed: false,
            ..revert('b', 'a')
        };
        let merged = || Revert {
            merge_commit_sha: Some(commit('c')),
            ..revert('b', 'a')
        };
        for (reverts, expected) in [
            (vec![], ""),
            (vec![revert('b', 'a')], "a"),
            (vec![unmerged()], ""),
            // Taken back, and taken back again.
            (vec![revert('b', 'a'), revert('c', 'b')], "b"),
            (
                vec![revert('b', 'a'), revert('c', 'b'), revert('d', 'c')],
                "ac",
            ),
            // The merge of the revert is taken back.
            (vec![merged(), revert('d', 'c')], "c"),
            (vec![merged(), revert('b', '0')], "0a"),
            // One of two reverts stands.
            (
                vec![revert('b', 'a'), revert('c', 'b'), revert('d', 'a')],
                "ab",
            ),
            // Lies in a circle.
            (vec![revert('b', 'a'), revert('a', 'b')], "b"),
        ] {
            let found: BTreeSet<CommitSha> = reverted(&reverts).into_iter().cloned().collect();
            let expected: BTreeSet<CommitSha> = expected.chars().map(commit).collect();
            assert_eq!(found, expected, "{reverts:?}");
        }
    }
}
