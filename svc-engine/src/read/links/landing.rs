//! How the commits of a pull request became those of the branch that it was merged into, as far as
//! a mirror shows.

use std::collections::BTreeMap;

use svc_engine_derive::commit_message::{ClaimedMerge, claimed_merges};
use svc_engine_derive::patch;
use svc_engine_mirror::{CommitObject, DiffQuestion};
use svc_model::limit::PULL_REQUEST_COMMITS_MAX;
use svc_model::query::{LinkSkip, MergeMethod};
use svc_model::repository::CommitSha;

use crate::error::Error;
use crate::read::reports::OpenMirror;

/// The maximum size of a diff that is compared.
const DIFF: DiffQuestion = DiffQuestion {
    bytes_max: 4 * 1024 * 1024,
    files_max: 3_000,
};

/// A commit that a pull request was merged as, and what was merged.
#[derive(Clone, Debug)]
pub(super) struct MergedAs<'m> {
    pub(super) merge_commit_sha: &'m CommitSha,
    /// The head at the merge.
    pub(super) head: &'m CommitSha,
    /// Heads that the pull request had before.
    pub(super) earlier_heads: &'m [CommitSha],
    /// Where the base branch was, if a fact says so.
    pub(super) base: Option<&'m CommitSha>,
    pub(super) pr_number: i64,
    /// Whether a fact says that it was merged.
    pub(super) is_fact: bool,
}

/// How a pull request was merged.
#[derive(Debug, Default)]
pub(super) struct Landing {
    pub(super) method: Option<MergeMethod>,
    /// The commits of the pull request, oldest first.
    pub(super) commits: Vec<CommitSha>,
    /// If it was rebased: the commits of the pull request, by their copies.
    pub(super) copies: BTreeMap<CommitSha, CommitSha>,
    /// How many earlier heads the mirror lacks.
    pub(super) lost_heads: u64,
}

/// A commit with its id.
type Commit = (CommitSha, CommitObject);

/// Reads how a pull request was merged.
///
/// # Errors
///
/// If the mirror cannot be read any more. The inner error is why this pull request cannot be read.
pub(super) fn landing(
    mirror: &mut OpenMirror,
    merged: &MergedAs<'_>,
) -> Result<Result<Landing, LinkSkip>, Error> {
    let ends = [merged.merge_commit_sha.clone(), merged.head.clone()];
    let Some(read) = mirror.read(|reader| reader.commits(&ends))? else {
        return Ok(Err(LinkSkip::HistoryUnavailable));
    };
    let [merge, head] = [&read[0], &read[1]];
    let Some(head) = head else {
        return Ok(Err(LinkSkip::HeadUnavailable));
    };
    let earlier = present(mirror, merged.earlier_heads)?;
    let mut landing = Landing {
        lost_heads: (merged.earlier_heads.len() - earlier.len()) as u64,
        ..Landing::default()
    };
    let onto = merge.as_ref().and_then(|merge| merge.parents.first());
    let bases: Vec<CommitSha> = onto.into_iter().chain(merged.base).cloned().collect();
    let bases = present(mirror, &bases)?;
    // What was merged before cannot be told from what the pull request brought.
    if bases.is_empty() || onto.is_some_and(|onto| !bases.contains(onto)) {
        return Ok(Err(LinkSkip::HistoryUnavailable));
    }
    let last = match commits_of(mirror, std::slice::from_ref(merged.head), &bases)? {
        Ok(commits) => commits,
        Err(skip) => return Ok(Err(skip)),
    };
    landing.commits = last
        .iter()
        .map(|(commit_sha, _)| commit_sha.clone())
        .collect();
    if !earlier.is_empty() {
        let heads: Vec<CommitSha> = earlier.into_iter().chain([merged.head.clone()]).collect();
        match commits_of(mirror, &heads, &bases)? {
            Ok(all) => landing.commits = all.into_iter().map(|(sha, _)| sha).collect(),
            Err(skip) => return Ok(Err(skip)),
        }
    }
    if let Some(merge) = merge {
        let merge = (merged.merge_commit_sha.clone(), merge.clone());
        landing.copies = copies(mirror, &merge, &last)?;
        landing.method = method(mirror, merged, &merge.1, head, &last, &landing)?;
    }
    Ok(Ok(landing))
}

/// Returns those of the commits that the mirror has.
fn present(mirror: &mut OpenMirror, commits: &[CommitSha]) -> Result<Vec<CommitSha>, Error> {
    let read = mirror.read(|reader| reader.commits(commits))?;
    let found = commits.iter().zip(read.unwrap_or_default());
    Ok(found
        .filter(|(_, commit)| commit.is_some())
        .map(|(commit_sha, _)| commit_sha.clone())
        .collect())
}

/// Returns the commits that these heads reach and the bases do not, oldest first.
fn commits_of(
    mirror: &mut OpenMirror,
    heads: &[CommitSha],
    bases: &[CommitSha],
) -> Result<Result<Vec<Commit>, LinkSkip>, Error> {
    let commits =
        mirror.read(|reader| reader.reached_beyond(heads, bases, PULL_REQUEST_COMMITS_MAX))?;
    let commits = match commits {
        Some(Some(commits)) => commits,
        Some(None) => return Ok(Err(LinkSkip::TooManyCommits)),
        None => return Ok(Err(LinkSkip::HistoryUnavailable)),
    };
    let read = mirror.read(|reader| reader.commits(&commits))?;
    let read = read.unwrap_or_default().into_iter().flatten();
    let read: Vec<Commit> = commits.iter().cloned().zip(read).collect();
    Ok(if read.len() == commits.len() {
        Ok(read)
    } else {
        Err(LinkSkip::HistoryUnavailable)
    })
}

/// Returns how the merge was made, if it is certain.
fn method(
    mirror: &mut OpenMirror,
    merged: &MergedAs<'_>,
    merge: &CommitObject,
    head: &CommitObject,
    last: &[Commit],
    landing: &Landing,
) -> Result<Option<MergeMethod>, Error> {
    let is_squash = match merge.parents.as_slice() {
        [_, others @ ..] if !others.is_empty() => {
            let is_merge = others == std::slice::from_ref(merged.head);
            return Ok(is_merge.then_some(MergeMethod::Merge));
        }
        [onto] if landing.copies.is_empty() => {
            merged.is_fact && names(merge, merged.pr_number)
                || is_all_of_it(mirror, merged, (onto, merge), head, last)?
        }
        [_] => return Ok(Some(MergeMethod::Rebase)),
        _ => false,
    };
    Ok(is_squash.then_some(MergeMethod::Squash))
}

/// Returns whether a commit says that it is the squashed pull request.
fn names(commit: &CommitObject, pr_number: i64) -> bool {
    let claimed = ClaimedMerge::Squash(pr_number.unsigned_abs());
    claimed_merges(&commit.message).contains(&claimed)
}

/// Returns whether a commit brings exactly what the pull request has, and not nothing.
fn is_all_of_it(
    mirror: &mut OpenMirror,
    merged: &MergedAs<'_>,
    (onto, merge): (&CommitSha, &CommitObject),
    head: &CommitObject,
    last: &[Commit],
) -> Result<bool, Error> {
    let brought = mirror
        .read(|reader| reader.diff_between(onto, merged.merge_commit_sha, DIFF))?
        .flatten();
    let Some(brought) = brought.filter(|brought| brought.files > 0) else {
        return Ok(false);
    };
    if merge.tree == head.tree {
        return Ok(true);
    }
    // A branch into which its base was merged has no one beginning.
    let is_plain = last.iter().all(|(_, commit)| commit.parents.len() == 1);
    let begin = last.first().and_then(|(_, commit)| commit.parents.first());
    let Some(begin) = begin.filter(|_| is_plain) else {
        return Ok(false);
    };
    let all = mirror
        .read(|reader| reader.diff_between(begin, merged.head, DIFF))?
        .flatten();
    Ok(all.is_some_and(|all| patch::are_same(&all.bytes, &brought.bytes)))
}

/// Follows the merge back, as long as each commit is a copy of one of the pull request, from its
/// last one on. Returns the originals by their copies.
fn copies(
    mirror: &mut OpenMirror,
    merge: &Commit,
    last: &[Commit],
) -> Result<BTreeMap<CommitSha, CommitSha>, Error> {
    let mut copies = BTreeMap::new();
    let mut landed = merge.clone();
    // A rebase leaves out merges.
    let originals = last.iter().filter(|(_, commit)| commit.parents.len() == 1);
    for original in originals.rev() {
        let (_, commit) = &landed;
        if landed.0 == original.0 || !is_copy(mirror, &landed, original)? {
            break;
        }
        let parent = commit.parents.first().cloned();
        copies.insert(landed.0, original.0.clone());
        let Some(parent) = parent else {
            break;
        };
        let read = mirror.read(|reader| reader.commit(&parent))?.flatten();
        let Some(read) = read else {
            break;
        };
        landed = (parent, read);
    }
    Ok(copies)
}

/// Returns whether one commit is a copy of the other: it has the author and the message, and either
/// the time of writing or the change.
fn is_copy(mirror: &mut OpenMirror, copy: &Commit, original: &Commit) -> Result<bool, Error> {
    let [(_, one), (_, other)] = [copy, original];
    let is_said = one.parents.len() == 1
        && !one.author.is_empty()
        && one.author == other.author
        && one.message == other.message;
    if !is_said {
        return Ok(false);
    }
    if one.authored_at.is_some() && one.authored_at == other.authored_at {
        return Ok(true);
    }
    let mut change = |(commit_sha, commit): &Commit| -> Result<_, Error> {
        let Some(parent) = commit.parents.first() else {
            return Ok(None);
        };
        let diff = mirror.read(|reader| reader.diff_between(parent, commit_sha, DIFF))?;
        Ok(diff.flatten())
    };
    let (Some(one), Some(other)) = (change(copy)?, change(original)?) else {
        return Ok(false);
    };
    Ok(one.files > 0 && patch::are_same(&one.bytes, &other.bytes))
}
