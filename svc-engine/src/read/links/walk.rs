//! Follows the links from a commit, a generation of commits at a time.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_derive::commit_message::{ClaimedMerge, claimed_merges, named_commits};
use svc_engine_fact::{Lifetime, PullRequestMerge};
use svc_engine_mirror::CommitObject;
use svc_engine_store::Snapshot;
use svc_model::limit::{
    COMMIT_LINK_DEPTH_MAX, LINKED_COMMITS_MAX, PULL_REQUEST_COMMITS_MAX, REPORT_FACTS_MAX,
};
use svc_model::problem::Decline;
use svc_model::query::{LinkSkip, LinkedCommit, MergeMethod, NamedCommit, ThroughPullRequest};
use svc_model::reports::Counts;
use svc_model::repository::{CommitSha, RepositoryName};
use svc_model::time::Instant;

use super::landing::{Landing, MergedAs, landing};
use super::{CommitLinks, LinkBounds, LinkedPlace};
use crate::error::Error;
use crate::read::reports::{OpenMirror, OpenMirrors, minutes_later, moment};
use crate::read::repository::{TouchedRepositories, of_base, of_head};

/// How long before a commit a merge that copied it may have been received, by wrong clocks.
const SKEW_MINUTES: i64 = 60;
/// How long after a commit a merge that copied it may be received.
const RECEIPT_MINUTES: i64 = 3 * 24 * 60;
/// How far the time of a copied commit may be from that of the merge.
const COPYING_MINUTES: i64 = 10;
/// The maximum number of merges near a commit that are searched.
const MERGES_NEAR_MAX: usize = 1_000;

/// The links that are followed from one commit of a repository.
#[derive(Debug)]
pub(super) struct Walk<'w> {
    mirrors: &'w OpenMirrors<'w>,
    repository: &'w Lifetime,
    names: &'w [RepositoryName],
    bounds: LinkBounds,
    /// How many more commits may be linked.
    left: usize,
    /// The repositories of the branches that were merged.
    head_repositories: BTreeSet<Lifetime>,
    /// The commits of messages that the mirror has.
    pub(super) mirrored: BTreeSet<CommitSha>,
    pub(super) skipped: Counts<LinkSkip>,
}

/// What is known of a merge, by a fact or by the mirror alone.
struct KnownMerge {
    pr_number: i64,
    merge_commit_sha: CommitSha,
    head: CommitSha,
    earlier_heads: Vec<CommitSha>,
    base: Option<CommitSha>,
    merged_at: Option<Instant>,
    head_repository: Option<Lifetime>,
}

/// How the generations of a walk are followed.
#[derive(Clone, Copy)]
struct Generation<'g> {
    depth: usize,
    /// Whether a commit may be a copy that is not the last one of its pull request. A pull
    /// request's own commits are compared with the last ones only.
    may_be_copies: bool,
    /// The commits that led here.
    path: &'g [CommitSha],
}

impl<'w> Walk<'w> {
    pub(super) fn new(
        mirrors: &'w OpenMirrors<'w>,
        place: LinkedPlace<'w>,
        bounds: LinkBounds,
    ) -> Self {
        Self {
            mirrors,
            repository: place.repository,
            names: place.names,
            bounds,
            left: LINKED_COMMITS_MAX,
            head_repositories: BTreeSet::new(),
            mirrored: BTreeSet::new(),
            skipped: Counts::default(),
        }
    }

    /// Returns whether a repository is the one that is walked, or one that a branch came from.
    pub(super) fn covers(&self, repository: &Lifetime) -> bool {
        repository == self.repository || self.head_repositories.contains(repository)
    }

    /// Returns the links from a commit, without Sessions.
    pub(super) fn from(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        place: LinkedPlace<'_>,
    ) -> Result<CommitLinks, Error> {
        let commits = [place.commit_sha.clone()];
        let generation = Generation {
            depth: 0,
            may_be_copies: true,
            path: &commits,
        };
        let mirrors = self.mirrors;
        let mut skip = LinkSkip::MirrorAbsent;
        let walked = mirrors.with(self.repository, |mirror| {
            self.follow(snapshot, &mut Some(mirror), &commits, generation)
        });
        let walked = match walked {
            Err(Error::Mirrors(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(mirror = %self.repository, error, "commit.mirror_unreadable");
                skip = LinkSkip::MirrorUnreadable;
                None
            }
            walked => walked?,
        };
        let found = if let Some(found) = walked {
            found
        } else {
            if place.is_named {
                self.skipped.add(skip, 1);
            }
            self.follow(snapshot, &mut None, &commits, generation)?
        };
        let links = found
            .into_iter()
            .next()
            .unwrap_or_else(|| LinkedCommit::new(place.commit_sha.clone()));
        Ok(CommitLinks {
            through: links.through_pull_requests,
            named: links.named_commits,
            skipped: Counts::default(),
        })
    }

    /// Returns these commits with their links.
    fn follow(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut Option<&mut OpenMirror>,
        commits: &[CommitSha],
        generation: Generation<'_>,
    ) -> Result<Vec<LinkedCommit>, Error> {
        snapshot
            .deadline()
            .check()
            .map_err(svc_engine_store::StoreError::from)?;
        let mut found: Vec<LinkedCommit> = commits.iter().cloned().map(LinkedCommit::new).collect();
        if commits.is_empty() {
            return Ok(found);
        }
        let objects = match mirror {
            Some(mirror) => mirror.read(|reader| reader.commits(commits))?,
            None => None,
        };
        let objects = objects.unwrap_or_else(|| vec![None; commits.len()]);
        let merges = self.merges(snapshot, mirror, commits, &objects, generation)?;
        if generation.depth == COMMIT_LINK_DEPTH_MAX {
            let of_merges = merges.iter().map(|merge| &merge.merge_commit_sha);
            let mut linked: BTreeSet<&CommitSha> = of_merges.collect();
            let named = commits.iter().zip(&objects).filter(|(_, object)| {
                let message = object.as_ref().map(|object| object.message.as_slice());
                !named_commits(message.unwrap_or_default()).is_empty()
            });
            linked.extend(named.map(|(commit_sha, _)| commit_sha));
            self.skipped.add(LinkSkip::TooDeep, linked.len() as u64);
            return Ok(found);
        }
        for merge in merges {
            self.land(snapshot, mirror, &merge, &mut found, generation)?;
        }
        for (commit, object) in found.iter_mut().zip(&objects) {
            commit
                .through_pull_requests
                .sort_by_key(|link| link.pr_number);
            if let Some(object) = object {
                commit.named_commits = self.named(snapshot, mirror, object, generation)?;
            }
        }
        Ok(found)
    }

    /// Returns the merges that these commits may come from.
    fn merges(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut Option<&mut OpenMirror>,
        commits: &[CommitSha],
        objects: &[Option<CommitObject>],
        generation: Generation<'_>,
    ) -> Result<Vec<KnownMerge>, Error> {
        let asked: Vec<&CommitSha> = commits.iter().collect();
        let mut facts = snapshot.merges_at(&asked, self.bounds.boundary, REPORT_FACTS_MAX)?;
        if facts.len() >= REPORT_FACTS_MAX {
            return Err(Decline::RepositoryEvidenceLimit.into());
        }
        if let Some(mirror) = mirror.as_mut().filter(|_| generation.may_be_copies) {
            for (commit_sha, object) in commits.iter().zip(objects) {
                if let Some(object) = object {
                    facts.extend(self.merges_near(snapshot, mirror, commit_sha, object)?);
                }
            }
        }
        let mut merges = self.known(snapshot, facts)?;
        let Some(mirror) = mirror else {
            return Ok(merges);
        };
        for (commit_sha, object) in commits.iter().zip(objects) {
            let Some(object) = object else {
                continue;
            };
            for claimed in self.claimed(snapshot, mirror, commit_sha, object)? {
                let is_known = |known: &KnownMerge| {
                    known.pr_number == claimed.pr_number && known.merge_commit_sha == *commit_sha
                };
                if !merges.iter().any(is_known) {
                    merges.push(claimed);
                }
            }
        }
        Ok(merges)
    }

    /// Returns the merges at whose time a commit was made, as a forge does when it rebases, and that
    /// lead back to it.
    fn merges_near(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut OpenMirror,
        commit_sha: &CommitSha,
        commit: &CommitObject,
    ) -> Result<Vec<PullRequestMerge>, Error> {
        let Some(made_at) = commit.committed_at.and_then(moment) else {
            return Ok(Vec::new());
        };
        let received = (
            minutes_later(made_at, -SKEW_MINUTES),
            minutes_later(made_at, RECEIPT_MINUTES).min(self.bounds.boundary),
        );
        let merges =
            snapshot.first_merges(self.repository, self.names, received, MERGES_NEAR_MAX + 1)?;
        if merges.len() > MERGES_NEAR_MAX {
            self.skipped.add(LinkSkip::TooManyMerges, 1);
            return Ok(Vec::new());
        }
        let mut near = Vec::new();
        for merge in merges {
            if merge.merge_commit_sha != *commit_sha
                && is_near(made_at, merge.merged_at)
                && leads_back(mirror, &merge, commit_sha)?
            {
                near.push(merge);
            }
        }
        Ok(near)
    }

    /// Returns the merges of this repository among these facts, each once, with what else facts say
    /// of their pull requests.
    fn known(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        facts: Vec<PullRequestMerge>,
    ) -> Result<Vec<KnownMerge>, Error> {
        let facts: BTreeMap<_, _> = facts
            .into_iter()
            .map(|merge| (merge.merge_id, merge))
            .collect();
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let mut touched = TouchedRepositories::default();
        for merge in facts.values() {
            touched.add(of_base(&merge.pull_request));
            touched.add(of_head(&merge.pull_request));
        }
        let repositories = touched.read(snapshot, self.bounds.boundary)?;
        let mut merges = Vec::new();
        for merge in facts.into_values() {
            let PullRequestMerge { pull_request, .. } = &merge;
            if repositories.of(of_base(pull_request)).as_ref() != Ok(self.repository) {
                continue;
            }
            let revisions =
                snapshot.revisions_of(pull_request, self.bounds.boundary, REPORT_FACTS_MAX)?;
            if revisions.len() >= REPORT_FACTS_MAX {
                return Err(Decline::RepositoryEvidenceLimit.into());
            }
            let mut heads = BTreeSet::new();
            for revision in revisions {
                heads.insert(revision.pull_request.head_sha);
                heads.extend(revision.previous_head_sha);
            }
            heads.remove(&pull_request.head_sha);
            merges.push(KnownMerge {
                pr_number: pull_request.pr_number,
                head_repository: repositories.of(of_head(pull_request)).ok(),
                merge_commit_sha: merge.merge_commit_sha,
                head: merge.pull_request.head_sha,
                earlier_heads: heads.into_iter().collect(),
                base: Some(merge.pull_request.base_sha),
                merged_at: Some(merge.merged_at),
            });
        }
        Ok(merges)
    }

    /// Returns the merges that a commit says it is, if the forge's refs have their heads.
    fn claimed(
        &self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut OpenMirror,
        commit_sha: &CommitSha,
        commit: &CommitObject,
    ) -> Result<Vec<KnownMerge>, Error> {
        // What happened later is not known yet.
        let made_at = commit.committed_at.and_then(moment);
        let is_later = |as_of| made_at.is_none_or(|made_at| made_at > as_of);
        if self.bounds.as_of.is_some_and(is_later) {
            return Ok(Vec::new());
        }
        let mut merges = Vec::new();
        for claimed in claimed_merges(&commit.message) {
            let (ClaimedMerge::Merge(number) | ClaimedMerge::Squash(number)) = claimed;
            let head = mirror
                .read(|reader| reader.pull_request_head(number))?
                .flatten();
            let (Some(head), Ok(pr_number)) = (head, i64::try_from(number)) else {
                continue;
            };
            // Cheap to tell, and what most of them are not.
            let is_merge = commit.parents.get(1) == Some(&head);
            let is_meant = match claimed {
                ClaimedMerge::Merge(_) => is_merge,
                ClaimedMerge::Squash(_) => is_merge || commit.parents.len() == 1,
            };
            if !is_meant || self.is_merged_elsewhere(snapshot, pr_number, commit_sha)? {
                continue;
            }
            merges.push(KnownMerge {
                pr_number,
                merge_commit_sha: commit_sha.clone(),
                head,
                earlier_heads: Vec::new(),
                base: None,
                merged_at: None,
                head_repository: None,
            });
        }
        Ok(merges)
    }

    /// Returns whether a fact says that a pull request was merged as another commit.
    fn is_merged_elsewhere(
        &self,
        snapshot: &mut Snapshot<'_>,
        pr_number: i64,
        commit_sha: &CommitSha,
    ) -> Result<bool, Error> {
        let merge = snapshot.merge_of(self.repository, pr_number, self.bounds.boundary)?;
        Ok(merge.is_some_and(|merge| merge.merge_commit_sha != *commit_sha))
    }

    /// Adds the link to a merged pull request to those of these commits that come from it.
    fn land(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut Option<&mut OpenMirror>,
        merge: &KnownMerge,
        found: &mut [LinkedCommit],
        generation: Generation<'_>,
    ) -> Result<(), Error> {
        let landing = self.landing(mirror, merge)?;
        let Some(mut landing) = landing else {
            return Ok(());
        };
        landing
            .commits
            .retain(|commit| !generation.path.contains(commit));
        let is_rebased = landing.method == Some(MergeMethod::Rebase);
        let places: Vec<(usize, Vec<CommitSha>)> = (0..)
            .zip(&*found)
            .filter_map(|(place, commit)| {
                let commits = if is_rebased {
                    vec![landing.copies.get(&commit.commit_sha)?.clone()]
                } else if commit.commit_sha == merge.merge_commit_sha {
                    landing.commits.clone()
                } else {
                    return None;
                };
                Some((place, commits)).filter(|(_, commits)| !commits.is_empty())
            })
            .collect();
        for (place, commits) in places {
            if !self.take(commits.len()) {
                continue;
            }
            self.head_repositories.extend(merge.head_repository.clone());
            let path = [generation.path, &commits].concat();
            let next = Generation {
                depth: generation.depth + 1,
                may_be_copies: false,
                path: &path,
            };
            let commits = self.follow(snapshot, mirror, &commits, next)?;
            found[place].through_pull_requests.push(ThroughPullRequest {
                pr_number: merge.pr_number,
                merge_method: landing.method.map(Into::into),
                merge_commit_sha: merge.merge_commit_sha.clone(),
                merged_at: merge.merged_at,
                commits,
            });
        }
        Ok(())
    }

    /// Reads how a pull request was merged; `None` if no commits of it can be named.
    fn landing(
        &mut self,
        mirror: &mut Option<&mut OpenMirror>,
        merge: &KnownMerge,
    ) -> Result<Option<Landing>, Error> {
        if merge.head == merge.merge_commit_sha {
            // Its commits are on the branch themselves.
            return Ok(None);
        }
        let merged = MergedAs {
            merge_commit_sha: &merge.merge_commit_sha,
            head: &merge.head,
            earlier_heads: &merge.earlier_heads,
            base: merge.base.as_ref(),
            pr_number: merge.pr_number,
            is_fact: merge.merged_at.is_some(),
        };
        let read = match mirror {
            Some(mirror) => match landing(mirror, &merged)? {
                Err(LinkSkip::HeadUnavailable) => self.landing_of_fork(merge, &merged)?,
                read => Some(read),
            },
            None => self.landing_of_fork(merge, &merged)?,
        };
        match read {
            Some(Ok(landing)) => {
                self.skipped
                    .add(LinkSkip::HeadUnavailable, landing.lost_heads);
                let is_certain = merged.is_fact
                    || matches!(
                        landing.method,
                        Some(MergeMethod::Merge | MergeMethod::Squash)
                    );
                Ok(is_certain.then_some(landing))
            }
            _ if !merged.is_fact => Ok(None),
            unread => {
                if let Some(Err(skip)) = unread {
                    self.skipped.add(skip, 1);
                }
                // The facts name the heads, which are commits of the pull request.
                let heads = merge.earlier_heads.iter().chain([&merge.head]);
                Ok(Some(Landing {
                    commits: heads.cloned().collect(),
                    ..Landing::default()
                }))
            }
        }
    }

    /// Reads the commits of a pull request from the mirror of its branch's repository; `None` if
    /// there is none.
    fn landing_of_fork(
        &mut self,
        merge: &KnownMerge,
        merged: &MergedAs<'_>,
    ) -> Result<Option<Result<Landing, LinkSkip>>, Error> {
        let fork = merge.head_repository.as_ref();
        let unread = Ok(Some(Err(LinkSkip::HeadUnavailable)));
        let Some(fork) = fork.filter(|fork| *fork != self.repository) else {
            return unread;
        };
        match self.mirrors.with(fork, |mirror| landing(mirror, merged)) {
            Err(Error::Mirrors(_)) | Ok(None) => unread,
            read => read,
        }
    }

    /// Returns the commits that the message of a commit names, with their links.
    fn named(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        mirror: &mut Option<&mut OpenMirror>,
        commit: &CommitObject,
        generation: Generation<'_>,
    ) -> Result<Vec<NamedCommit>, Error> {
        let mut named = named_commits(&commit.message);
        named.retain(|(_, commit_sha)| !generation.path.contains(commit_sha));
        if named.is_empty() || !self.take(named.len()) {
            return Ok(Vec::new());
        }
        let commits: Vec<CommitSha> = named.iter().map(|(_, sha)| sha.clone()).collect();
        if let Some(mirror) = mirror {
            let read = mirror.read(|reader| reader.commits(&commits))?;
            let read = commits.iter().zip(read.unwrap_or_default());
            let mirrored = read.filter(|(_, commit)| commit.is_some());
            self.mirrored.extend(mirrored.map(|(sha, _)| sha.clone()));
        }
        let path = [generation.path, &commits].concat();
        let next = Generation {
            depth: generation.depth + 1,
            may_be_copies: true,
            path: &path,
        };
        let commits = self.follow(snapshot, mirror, &commits, next)?;
        let relations = named.into_iter().map(|(relation, _)| relation.into());
        Ok(relations
            .zip(commits)
            .map(|(relation, commit)| NamedCommit { relation, commit })
            .collect())
    }

    /// Returns whether this many more commits may be linked.
    fn take(&mut self, commits: usize) -> bool {
        let left = self.left.checked_sub(commits);
        if left.is_none() {
            self.skipped.add(LinkSkip::TooManyCommits, 1);
        }
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// Returns whether a commit of one time may have been made by a merge of another.
fn is_near(made_at: Instant, merged_at: Instant) -> bool {
    let around =
        minutes_later(merged_at, -COPYING_MINUTES)..=minutes_later(merged_at, COPYING_MINUTES);
    around.contains(&made_at)
}

/// Returns whether the commit of a merge descends from another one over commits of the time of the
/// merge.
fn leads_back(
    mirror: &mut OpenMirror,
    merge: &PullRequestMerge,
    commit_sha: &CommitSha,
) -> Result<bool, Error> {
    let mut next = merge.merge_commit_sha.clone();
    for _ in 0..PULL_REQUEST_COMMITS_MAX {
        let Some(commit) = mirror.read(|reader| reader.commit(&next))?.flatten() else {
            return Ok(false);
        };
        let made_at = commit.committed_at.and_then(moment);
        let is_near = made_at.is_some_and(|made_at| is_near(made_at, merge.merged_at));
        let Some(parent) = commit.parents.first().filter(|_| is_near) else {
            return Ok(false);
        };
        if parent == commit_sha {
            return Ok(true);
        }
        next = parent.clone();
    }
    Ok(false)
}
