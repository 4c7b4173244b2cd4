//! The links from a commit to other commits, with the Sessions observed there: to the commits of
//! the pull request that was merged as it, and to those that its message names.
//!
//! A merge is known by a fact, which the forge signed, or by the mirror alone, if the commit brings
//! exactly what the head of the pull request that it names has. What a message says is never enough
//! for that. The work is bounded by the pull requests and by the time around a commit, never by
//! history. What could not be looked at is counted by a closed reason.

mod landing;
mod observed;
mod walk;

use svc_engine_fact::Lifetime;
use svc_engine_store::Snapshot;
use svc_model::query::{LinkSkip, NamedCommit, ThroughPullRequest};
use svc_model::reports::Counts;
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::time::Instant;

use super::reports::OpenMirrors;
use crate::error::Error;

/// A commit in a repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkedPlace<'p> {
    pub(super) repository: &'p Lifetime,
    /// Every name of the repository.
    pub(super) names: &'p [RepositoryName],
    pub(super) commit_sha: &'p CommitSha,
    /// Whether a stored fact of the repository names the commit.
    pub(super) is_named: bool,
}

/// What a commit leads to.
#[derive(Debug, Default)]
pub(super) struct CommitLinks {
    pub(super) through: Vec<ThroughPullRequest>,
    pub(super) named: Vec<NamedCommit>,
    /// Why links were not followed, or not all of them.
    pub(super) skipped: Counts<LinkSkip>,
}

impl CommitLinks {
    /// Returns whether a Session was observed at any commit that is linked.
    pub(super) fn have_sessions(&self) -> bool {
        let mut have = false;
        let mut look = |commit: &svc_model::query::LinkedCommit| {
            have |= !commit.observed_sessions.is_empty();
        };
        for commit in self.through.iter().flat_map(|link| &link.commits) {
            commit.visit(&mut look);
        }
        for named in &self.named {
            named.commit.visit(&mut look);
        }
        have
    }
}

/// Which facts and commits count.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkBounds {
    /// The latest time of receipt.
    pub(super) boundary: Instant,
    /// The moment that was asked about, if any. What a mirror alone shows of a merge counts if it
    /// was made by then.
    pub(super) as_of: Option<Instant>,
}

/// Returns what a commit leads to, by facts received by the boundary and by the mirrors.
///
/// # Errors
///
/// If too many facts are about the linked commits, or the deadline passes.
pub(super) fn links(
    snapshot: &mut Snapshot<'_>,
    mirrors: &OpenMirrors<'_>,
    place: LinkedPlace<'_>,
    bounds: LinkBounds,
) -> Result<CommitLinks, Error> {
    let mut walk = walk::Walk::new(mirrors, place, bounds);
    let mut links = walk.from(snapshot, place)?;
    observed::fill(snapshot, &walk, &mut links, bounds.boundary)?;
    links.skipped = walk.skipped;
    Ok(links)
}
