//! How much of an agent's work is still there when its pull request is merged.
//!
//! The unit is a file of a commit that is attributed to a call whose Session is observed at the
//! commit. The commit is a member of a merged pull request if one of the request's heads reaches it
//! and the base does not, or if CI says so. This works for merges, squashes and rebases alike,
//! because it never compares with the merged commit. A member's added lines are then searched for
//! in the file at the final head, and at the commit that holds the merged work. Absence proves
//! nothing: if it is unknown whether a commit is a member, or what a file contains, a closed reason
//! is counted.
//!
//! 1. [`Candidates::new`] takes the attributed files, the merges, and the evidence that links them.
//!    [`Candidates::ancestry`] returns the ancestry questions, one per repository.
//! 2. [`Candidates::join`] takes the answers. [`FileScoring::files`] returns the files whose texts are
//!    needed.
//! 3. [`source_text`], [`file_text`] and [`renamed_to`] interpret what a mirror returned. [`left`]
//!    compares one pair of texts, [`score`] combines the results at the head and at the merge,
//!    [`FileScoring::add`] takes each score, and [`FileScoring::finish`] sums up.

mod membership;
mod scoring;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_model::id::{FactId, SessionId};
use svc_model::reports::{Counts, MembershipSkip, ScoringSkip};
use svc_model::repository::{CommitSha, RepositoryDecline};

pub use self::membership::{AncestryQuestion, Candidates, ReachedFrom};
pub use self::scoring::{
    FileAt, FileScoring, JoinedFile, Scores, TextRetention, file_text, left, renamed_to, score,
    source_text,
};
use svc_engine_fact::Lifetime;

use super::attribution::Attribution;
use super::lifecycle::{self, MergeEvidence};

/// Maximum size in bytes of a file that is compared, at the head or at the merge.
pub const FILE_BYTES_MAX: u64 = 1_000_000;

/// A pull request that was merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The id of the fact.
    pub merge_id: FactId,
    /// The repository that it was merged into.
    pub repository: Lifetime,
    /// The repository of its head, or why it cannot be determined.
    pub head_repository: Result<Lifetime, RepositoryDecline>,
    /// Its number.
    pub pr_number: i64,
    /// The final head.
    pub head_sha: CommitSha,
    /// The commit of the base branch that it was merged into.
    pub base_sha: CommitSha,
    /// The commit that holds the merged work.
    pub merge_commit_sha: CommitSha,
}

/// A head that a pull request had before its last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The repository that the pull request targets.
    pub repository: Lifetime,
    /// Its number.
    pub pr_number: i64,
    /// The head.
    pub head_sha: CommitSha,
    /// The head before it.
    pub previous_head_sha: Option<CommitSha>,
}

/// A CI run on a commit for a pull request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CiMembership {
    /// The repository.
    pub repository: Lifetime,
    /// The number of the pull request.
    pub pr_number: i64,
    /// The commit.
    pub commit_sha: CommitSha,
}

/// An observation of a Session at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedEdge {
    /// The id of the observation.
    pub observation_id: FactId,
    /// The repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The Session.
    pub session_id: SessionId,
}

/// What merge retention is derived from. The order of each list does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The attributed files.
    pub attributions: Vec<Attribution>,
    /// The observed edges.
    pub observed: Vec<ObservedEdge>,
    /// The merged pull requests, each once.
    pub merges: Vec<Merge>,
    /// Their earlier heads.
    pub revisions: Vec<Revision>,
    /// What CI says about them.
    pub ci: Vec<CiMembership>,
    /// Observations, and over all history facts of pull requests, whose repository cannot be
    /// determined.
    pub declined: Counts<RepositoryDecline>,
    /// Repositories that a merge, a revision or a CI outcome may belong to whose own repository
    /// cannot be determined, with the pull requests that these facts name, if any.
    pub unresolved: BTreeMap<Lifetime, BTreeSet<i64>>,
}

/// One attributed file of a merged pull request, scored.
#[derive(Clone, Debug, PartialEq)]
pub struct RetentionRow {
    /// The file, its call and its commit.
    pub attribution: Attribution,
    /// The observations of the Session at the commit, sorted.
    pub observation_ids: Vec<FactId>,
    /// The pull request.
    pub merge: Arc<Merge>,
    /// How much is left.
    pub scores: Scores,
}

/// The result of the derivation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeRetention {
    /// Number of attributed files with an observed edge.
    pub candidates: u64,
    /// Those in exactly one merged pull request, in the order of rows.
    pub joined: Vec<lifecycle::LifecycleFile>,
    /// The others, by reason.
    pub membership: Counts<MembershipSkip>,
    /// The pull requests that prevented a membership check, by repository.
    pub unchecked: BTreeMap<Lifetime, BTreeSet<i64>>,
    /// Joined files without a score, and other skips such as unreadable sections.
    pub skipped: Counts<ScoringSkip>,
    /// Joined files with a score, by repository, number, commit, path and call.
    pub rows: Vec<RetentionRow>,
    /// Number of pull requests with a joined file.
    pub joined_pull_requests: u64,
    /// Number of pull requests with a row.
    pub scored_pull_requests: u64,
}

impl MergeRetention {
    /// Returns the part of it that the lifecycle report uses.
    pub fn evidence(self) -> MergeEvidence {
        MergeEvidence {
            candidates: self.candidates,
            joined: self.joined,
            membership: self.membership,
            scoring_skips: self.skipped,
        }
    }
}

#[cfg(test)]
mod tests;
