//! What leads from a commit to other commits: the pull requests that it was merged with, and the
//! commits that its message names.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ObservedSession;
use crate::closed_set;
use crate::open::Open;
use crate::repository::CommitSha;
use crate::time::Instant;

closed_set! {
    /// How the commits of a pull request became commits of the branch that it was merged into.
    pub enum MergeMethod {
        /// By a merge commit, whose second parent is the head of the pull request.
        Merge = "merge",
        /// Each commit was copied, with its author and message.
        Rebase = "rebase",
        /// All commits became one.
        Squash = "squash",
    }
}

closed_set! {
    /// How a commit relates to another one that its message names.
    pub enum CommitRelation {
        /// It is a copy of the other commit, as `git cherry-pick -x` writes.
        CherryPickedFrom = "cherry_picked_from",
        /// It takes back the other commit, as `git revert` writes.
        Reverts = "reverts",
    }
}

closed_set! {
    /// Why links of a commit to other commits were not followed, or not all of them. Each reason
    /// has its own unit.
    pub enum LinkSkip {
        /// Heads of pull requests, earlier ones included, that no mirror has.
        HeadUnavailable = "head_unavailable",
        /// Pull requests whose commits cannot be told from those of their base, as the mirror lacks
        /// what they were merged onto or cannot read it.
        HistoryUnavailable = "history_unavailable",
        /// Repositories without a mirror.
        MirrorAbsent = "mirror_absent",
        /// Repositories whose mirror cannot be opened.
        MirrorUnreadable = "mirror_unreadable",
        /// Merges of pull requests at the commit whose repository cannot be determined.
        RepositoryUndetermined = "repository_undetermined",
        /// Commits that are linked over too many others, and have links themselves.
        TooDeep = "too_deep",
        /// Pull requests, or commits that messages name, that are too many or have too many
        /// commits.
        TooManyCommits = "too_many_commits",
        /// Commits that may be copies of a pull request's, near which too many were merged.
        TooManyMerges = "too_many_merges",
    }
}

/// A pull request that the commit was merged with. This is no observation at the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ThroughPullRequest {
    /// The number of the pull request.
    pub pr_number: i64,
    /// How it was merged; null if that is not certain.
    pub merge_method: Option<Open<MergeMethod>>,
    /// The commit that it was merged as: the last one, if it was rebased.
    pub merge_commit_sha: CommitSha,
    /// When it was merged, by the forge's clock. Absent if no fact says so, and only a mirror shows
    /// that it was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_at: Option<Instant>,
    /// The commits of the pull request, oldest first, with those of earlier heads: what one of its
    /// heads reaches and its base does not. If it was rebased, only the commit of which this one is
    /// a copy.
    pub commits: Vec<LinkedCommit>,
}

/// A commit that another one leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct LinkedCommit {
    /// The full id of the commit.
    pub commit_sha: CommitSha,
    /// The Sessions that were observed at it, ordered by id.
    pub observed_sessions: Vec<ObservedSession>,
    /// The pull requests that it was merged with itself, by number. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through_pull_requests: Vec<ThroughPullRequest>,
    /// The commits that its message names, in the order of the message. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_commits: Vec<NamedCommit>,
}

/// A commit that the message of another one names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct NamedCommit {
    /// How the commit with the message relates to the named one, by its message.
    pub relation: Open<CommitRelation>,
    /// The named commit.
    pub commit: LinkedCommit,
}

impl LinkedCommit {
    /// Returns a commit to which no Session and no other commit is linked yet.
    pub const fn new(commit_sha: CommitSha) -> Self {
        Self {
            commit_sha,
            observed_sessions: Vec::new(),
            through_pull_requests: Vec::new(),
            named_commits: Vec::new(),
        }
    }

    /// Calls `each` with this commit and with all that it leads to, from the nearest on.
    pub fn visit<'c>(&'c self, each: &mut dyn FnMut(&'c Self)) {
        each(self);
        visit_links(&self.through_pull_requests, &self.named_commits, each);
    }
}

/// Calls `each` with all commits that these links lead to.
pub(super) fn visit_links<'c>(
    through: &'c [ThroughPullRequest],
    named: &'c [NamedCommit],
    each: &mut dyn FnMut(&'c LinkedCommit),
) {
    for commit in through
        .iter()
        .flat_map(|pull_request| &pull_request.commits)
    {
        commit.visit(each);
    }
    for named in named {
        named.commit.visit(each);
    }
}
