//! Which of the commits that work reached later commits revert.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_engine_derive::commit_message::named_commits;
use svc_engine_derive::pull_requests::{CommitsOf, Memberships};
use svc_engine_derive::reverts::Revert;
use svc_engine_fact::Lifetime;
use svc_model::query::CommitRelation;
use svc_model::repository::CommitSha;

use super::history::History;
use super::{BranchPush, Reader};
use crate::error::Error;

/// The reverts of a repository: each with the branches that it was pushed to.
#[derive(Debug, Default)]
pub(super) struct PushedReverts(BTreeMap<Lifetime, Vec<PushedRevert>>);

#[derive(Debug)]
struct PushedRevert {
    by: CommitSha,
    of: CommitSha,
    branches: BTreeSet<String>,
}

impl PushedReverts {
    /// Reads the messages of everything that was pushed to the repositories of these commits.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        pushes: &[BranchPush],
        commits: &CommitsOf,
    ) -> Result<Self, Error> {
        let pushes = || {
            let of = |push: &BranchPush| commits.contains_key(&push.repository);
            pushes.iter().filter(move |push| of(push))
        };
        let history = &mut reader.history;
        history.read_ranges(pushes().map(|push| (&push.repository, push.push_id)))?;
        let mut pushed: BTreeMap<&Lifetime, BTreeMap<CommitSha, BTreeSet<String>>> =
            BTreeMap::new();
        for push in pushes() {
            let of_repository = pushed.entry(&push.repository).or_default();
            for commit in history.range(push.push_id).into_iter().flatten() {
                let branches = of_repository.entry(commit).or_default();
                branches.insert(push.branch.clone());
            }
        }
        let mut all = Self::default();
        for (repository, commits) in pushed {
            let known: Vec<CommitSha> = commits.keys().cloned().collect();
            let reverted = reverted(history, repository, &known)?;
            let of_repository = all.0.entry(repository.clone()).or_default();
            for ((by, branches), of) in commits.into_iter().zip(reverted) {
                of_repository.extend(of.iter().map(|of| PushedRevert {
                    by: by.clone(),
                    of: of.clone(),
                    branches: branches.clone(),
                }));
            }
        }
        Ok(all)
    }

    /// Adds the commits that revert others to those whose pull requests are asked for.
    pub(super) fn add_to(&self, commits: &mut CommitsOf) {
        for (repository, reverts) in &self.0 {
            let of_repository = commits.entry(repository.clone()).or_default();
            of_repository.extend(reverts.iter().map(|revert| revert.by.clone()));
        }
    }

    /// Returns the reverts of a repository. `base_branches` are those that pull requests go to.
    pub(super) fn of(
        &self,
        repository: &Lifetime,
        memberships: &Memberships,
        base_branches: &BTreeSet<String>,
    ) -> Vec<Revert> {
        let reverts = self.0.get(repository).into_iter().flatten();
        reverts
            .map(|revert| {
                let pull_request = memberships.of(repository, &revert.by);
                let is_merged = pull_request.is_some_and(|of| of.is_merged);
                let mut branches = revert.branches.iter();
                let is_on_base = branches.any(|branch| base_branches.contains(branch));
                Revert {
                    by: revert.by.clone(),
                    of: revert.of.clone(),
                    merge_commit_sha: pull_request.and_then(|of| of.merge_commit_sha.clone()),
                    has_landed: is_merged || is_on_base,
                }
            })
            .collect()
    }
}

/// Returns the commits that each of these says it reverts; none for a commit that cannot be read.
fn reverted(
    history: &History<'_>,
    repository: &Lifetime,
    commits: &[CommitSha],
) -> Result<Vec<Arc<[CommitSha]>>, Error> {
    let remembered = &history.memory().reverts;
    let place = |commit: &CommitSha| (repository.clone(), commit.clone());
    let mut found: Vec<Option<Arc<[CommitSha]>>> = commits
        .iter()
        .map(|commit| remembered.get(&place(commit)))
        .collect();
    let missing: Vec<usize> = (0..commits.len())
        .filter(|at| found[*at].is_none())
        .collect();
    if !missing.is_empty() {
        let wanted: Vec<CommitSha> = missing.iter().map(|at| commits[*at].clone()).collect();
        let read = history.mirrors.with(repository, |mirror| {
            mirror.read(|reader| reader.commits(&wanted))
        })?;
        for (at, commit) in missing
            .into_iter()
            .zip(read.flatten().into_iter().flatten())
        {
            let Some(commit) = commit else {
                continue;
            };
            let named = named_commits(&commit.message).into_iter();
            let of: Arc<[CommitSha]> = named
                .filter(|(relation, _)| *relation == CommitRelation::Reverts)
                .map(|(_, of)| of)
                .collect();
            remembered.insert(place(&commits[at]), Arc::clone(&of));
            found[at] = Some(of);
        }
    }
    Ok(found.into_iter().map(Option::unwrap_or_default).collect())
}
