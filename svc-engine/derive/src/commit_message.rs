//! What the message of a commit says of other commits and of pull requests, in the words that git
//! and forges write themselves.

use svc_model::query::CommitRelation;
use svc_model::repository::CommitSha;

/// The beginning of the subject of a commit that merges a pull request.
const MERGE: &str = "Merge pull request ";
const CHERRY_PICKED: &str = "(cherry picked from commit ";
const REVERTS: &str = "This reverts commit ";
/// The maximum number of pull requests that a subject is read for.
const NUMBERS_MAX: usize = 8;

/// A pull request that a commit says it merges. Anybody can write so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimedMerge {
    /// It says to be the merge of the pull request with this number.
    Merge(u64),
    /// It says to be the squashed pull request with this number.
    Squash(u64),
}

/// Returns the pull requests that the subject of a message says are merged.
pub fn claimed_merges(message: &[u8]) -> Vec<ClaimedMerge> {
    let message = String::from_utf8_lossy(message);
    let subject = message
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end();
    if let Some(rest) = subject.strip_prefix(MERGE) {
        let numbers = rest.split('#').skip(1).filter_map(leading_number);
        return numbers.take(NUMBERS_MAX).map(ClaimedMerge::Merge).collect();
    }
    let squashed = subject
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once("(#"));
    let number = squashed.and_then(|(_, digits)| number(digits));
    number.map(ClaimedMerge::Squash).into_iter().collect()
}

/// Returns the commits that a message names as copied or taken back, each once, in its order.
pub fn named_commits(message: &[u8]) -> Vec<(CommitRelation, CommitSha)> {
    let mut named = Vec::new();
    for line in String::from_utf8_lossy(message).lines() {
        let line = line.trim();
        let found = copied(line).or_else(|| reverted(line));
        named.extend(found.filter(|found| !named.contains(found)));
    }
    named
}

fn copied(line: &str) -> Option<(CommitRelation, CommitSha)> {
    let id = line.strip_prefix(CHERRY_PICKED)?.strip_suffix(')')?;
    Some((CommitRelation::CherryPickedFrom, CommitSha::new(id)?))
}

fn reverted(line: &str) -> Option<(CommitRelation, CommitSha)> {
    let rest = line.strip_prefix(REVERTS)?;
    // The revert of a merge goes on with the parent that is kept.
    let id = match rest.split_once(", reversing") {
        Some((id, _)) => id,
        None => rest.strip_suffix('.')?,
    };
    Some((CommitRelation::Reverts, CommitSha::new(id)?))
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|character: char| !character.is_ascii_digit());
    number(&text[..end.unwrap_or(text.len())])
}

fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_request_of_a_subject_is_read_as_forges_write_it() {
        let read = |message: &str| claimed_merges(message.as_bytes());
        let merge = ClaimedMerge::Merge;
        assert_eq!(
            read("Merge pull request #16 from own/work\n\nTitle (#3)"),
            [merge(16)]
        );
        assert_eq!(
            read("Merge pull request 'Undo #4' (#16) from work into main\n"),
            [merge(4), merge(16)]
        );
        let squash = ClaimedMerge::Squash;
        assert_eq!(read("Title (#16)\n\nbody (#17)"), [squash(16)]);
        assert_eq!(read("Revert \"Title (#16)\" (#17)  \r\n"), [squash(17)]);
        for none in [
            "",
            "Title #16",
            "Title (#16) now",
            "Title (#0)",
            "Title (#x)",
            "Title (#)",
        ] {
            assert_eq!(read(none), [], "{none}");
        }
        assert_eq!(claimed_merges(b"\xff (#9)"), [squash(9)]);
    }

    #[test]
    fn commits_are_named_by_their_full_ids_only() {
        let (one, two) = ("1".repeat(40), "2".repeat(64));
        let sha = |text: &str| CommitSha::new(text).unwrap();
        let read = |message: String| named_commits(message.as_bytes());
        assert_eq!(
            read(format!(
                "Revert \"x\"\n\nThis reverts commit {one}.\n  (cherry picked from commit {two})\r\n\
                 This reverts commit {one}.\n"
            )),
            [
                (CommitRelation::Reverts, sha(&one)),
                (CommitRelation::CherryPickedFrom, sha(&two)),
            ]
        );
        assert_eq!(
            read(format!(
                "Revert\n\nThis reverts commit {one}, reversing\nchanges made to {two}.\n"
            )),
            [(CommitRelation::Reverts, sha(&one))]
        );
        for none in [
            format!("This reverts commit {}.", &one[..12]),
            format!("This reverts commit {one}"),
            format!("Maybe this reverts commit {one}."),
            format!("(cherry picked from commit {one}"),
            format!("see (cherry picked from commit {one})"),
        ] {
            assert_eq!(read(none.clone()), [], "{none}");
        }
    }
}
