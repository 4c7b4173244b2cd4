//! What became of the calls of a cohort: read once, and counted by every report that asks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_derive::attribution::AssessedCommit;
use svc_engine_derive::call_outcome::{self, CallOutcomes, OutcomeInputs, ReachedCommit};
use svc_engine_derive::ci::CiResolution;
use svc_engine_derive::decision::CallOwner;
use svc_engine_derive::pull_requests::{
    self, CommitsOf, KnownPullRequest, Memberships, PullRequests,
};
use svc_engine_derive::repository::Names;
use svc_engine_derive::reverts;
use svc_engine_fact::{Lifetime, PullRequest, PullRequestMerge, PullRequestRevision};
use svc_engine_store::{CohortCall, Snapshot};
use svc_model::id::{FactId, SessionId};
use svc_model::limit::REPORT_FACTS_MAX;
use svc_model::reports::{AttributionSkip, Counts, LifecycleRepositorySkips, Unobservable};
use svc_model::repository::{CommitSha, RepositoryName};

use super::merges::Ancestries;
use super::population::{owners, up_to};
use super::reverts::PushedReverts;
use super::{CohortFacts, DerivedOf, Diffs, Extent, Gathered, Reader, ReportSources, ci};
use crate::error::Error;
use crate::read::repository::{of_base, of_head};

/// What became of the calls of a cohort, and what it was derived from.
pub(in crate::read) struct ReadOutcomes {
    /// The calls, in the order of observation.
    pub(in crate::read) calls: Vec<CohortCall>,
    pub(in crate::read) outcomes: CallOutcomes,
    /// The indices of the commits that a later commit reverts, or whose merge it reverts.
    pub(in crate::read) reverted: HashSet<usize, RandomState>,
    /// The calls of which no commit could have been seen.
    pub(in crate::read) unobservable: Vec<(FactId, Unobservable)>,
    /// Every commit that some call could have led to.
    pub(in crate::read) assessed: Vec<AssessedCommit>,
    /// The state of the store, with the names of repositories.
    pub(in crate::read) of: DerivedOf,
    pub(in crate::read) repository_skipped: LifecycleRepositorySkips,
    pub(in crate::read) attribution_skipped: Counts<AttributionSkip>,
    /// The number of repositories whose mirror was fetched before and cannot be found now.
    pub(in crate::read) lost_mirrors: Option<u64>,
}

/// Reads what became of the calls of a cohort. `further` are Sessions without a call in it whose
/// commits are wanted as well.
///
/// # Errors
///
/// [`Error::ReportBound`] if there are too many calls, or too many facts about them.
pub(in crate::read) fn read(
    snapshot: &mut Snapshot<'_>,
    sources: ReportSources<'_>,
    extent: &Extent,
    further: &[SessionId],
) -> Result<ReadOutcomes, Error> {
    let Gathered {
        mut cohort,
        mut reader,
    } = Gathered::new(snapshot, sources, extent, Diffs::Once, further)?;
    let mut commits = commits(&cohort);
    let reverts = PushedReverts::read(&mut reader, &cohort.pushes, &commits)?;
    reverts.add_to(&mut commits);
    let pull_requests = read_pull_requests(snapshot, &mut reader, extent, &commits)?;
    let memberships = memberships(&reader, &cohort, &pull_requests, &commits)?;
    let merge_ci = merge_ci(snapshot, &mut reader, &memberships)?;
    let edit_owners = edit_owners(snapshot, &cohort, extent)?;
    let pushed_at: HashMap<_, _, RandomState> = (cohort.attributions.commits.iter())
        .map(|commit| (commit.push_id, commit.pushed_at))
        .collect();
    let state = DerivedOf::read(snapshot, &reader)?;
    let outcomes = cohort.derived(&state, |evidence| {
        let inputs = OutcomeInputs {
            pushed_at: &pushed_at,
            memberships: &memberships,
            merge_ci: &merge_ci,
            edit_owners: &edit_owners,
        };
        call_outcome::derive(evidence, inputs)
    });
    let reverted = reverted(&outcomes, &reverts, &memberships, &pull_requests);
    Ok(ReadOutcomes {
        reverted,
        calls: std::mem::take(&mut cohort.population.calls),
        outcomes,
        of: state,
        repository_skipped: LifecycleRepositorySkips {
            session_observations: cohort.declined.observations.clone(),
            attribution_sources: cohort.declined.attribution_sources(),
            ci_population_outcomes: cohort.declined.outcomes.clone(),
        },
        unobservable: std::mem::take(&mut cohort.attributions.unobservable),
        assessed: std::mem::take(&mut cohort.attributions.commits),
        attribution_skipped: cohort.attributions.skipped,
        lost_mirrors: reader.lost_mirrors(snapshot)?,
    })
}

/// Returns the indices of the commits that a later commit reverts, or whose merge it reverts.
fn reverted(
    outcomes: &CallOutcomes,
    pushed: &PushedReverts,
    memberships: &Memberships,
    pull_requests: &PullRequests,
) -> HashSet<usize, RandomState> {
    let mut all = HashSet::default();
    let numbered: Vec<(usize, &ReachedCommit)> = outcomes.commits.iter().enumerate().collect();
    // The commits are sorted by repository.
    for of_repository in numbered.chunk_by(|(_, one), (_, next)| one.repository == next.repository)
    {
        let repository = &of_repository[0].1.repository;
        let known = pull_requests.get(repository).into_iter().flatten();
        let base_branches: BTreeSet<String> = known
            .flat_map(|known| known.base_branches.iter().cloned())
            .collect();
        let reverts = pushed.of(repository, memberships, &base_branches);
        let reverted = reverts::reverted(&reverts);
        let is_reverted = |commit: &ReachedCommit| {
            let merge = commit.pull_request.as_ref();
            let merge = merge.and_then(|of| of.merge_commit_sha.as_ref());
            reverted.contains(&commit.commit_sha)
                || merge.is_some_and(|merge| reverted.contains(merge))
        };
        let of_repository = of_repository.iter();
        all.extend(
            of_repository
                .filter(|(_, commit)| is_reverted(commit))
                .map(|(number, _)| *number),
        );
    }
    all
}

/// Returns the commits that the work reached, by repository.
fn commits(cohort: &CohortFacts) -> CommitsOf {
    let mut commits = CommitsOf::new();
    let attributed = cohort.attributions.rows.iter();
    let attributed = attributed.map(|file| (&file.repository, &file.commit_sha));
    let observed = cohort.observations.iter();
    let observed =
        observed.filter_map(|seen| Some((seen.repository.as_ref().ok()?, &seen.commit_sha)));
    for (repository, commit_sha) in attributed.chain(observed) {
        // Files of one commit are adjacent, so few texts are copied in vain.
        let of_repository = match commits.get_mut(repository) {
            Some(known) => known,
            None => commits.entry(repository.clone()).or_default(),
        };
        if !of_repository.contains(commit_sha) {
            of_repository.insert(commit_sha.clone());
        }
    }
    commits
}

/// Reads the pull requests of the repositories that the work reached.
fn read_pull_requests(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    extent: &Extent,
    commits: &CommitsOf,
) -> Result<PullRequests, Error> {
    let boundary = reader.boundary;
    let repositories: Vec<&Lifetime> = commits.keys().collect();
    let names: BTreeSet<RepositoryName> = repositories
        .iter()
        .filter_map(|repository| reader.resolving.repositories().names(repository))
        .flat_map(|names| Names::all(&names).clone())
        .collect();
    let names: Vec<&RepositoryName> = names.iter().collect();
    let mut merges: Vec<PullRequestMerge> = Vec::new();
    let mut take = up_to(&mut merges, REPORT_FACTS_MAX);
    snapshot.merges_of_repositories(&repositories, &names, boundary, |merge| {
        if merge.merged_at <= extent.as_of {
            take(merge)?;
        }
        Ok(())
    })?;
    drop(take);
    let mut revisions: Vec<PullRequestRevision> = Vec::new();
    let take = up_to(&mut revisions, REPORT_FACTS_MAX);
    snapshot.revisions_of_repositories(&repositories, &names, boundary, take)?;
    for pull_request in (merges.iter().map(|merge| &merge.pull_request))
        .chain(revisions.iter().map(|revision| &revision.pull_request))
    {
        reader.resolving.touch(of_base(pull_request));
        reader.resolving.touch(of_head(pull_request));
    }
    reader.resolving.read(snapshot, boundary)?;

    let mut known: BTreeMap<(Lifetime, i64), KnownPullRequest> = BTreeMap::new();
    for merge in &merges {
        add(&mut known, reader, &merge.pull_request, |known| {
            known.base_sha = merge.pull_request.base_sha.clone();
            known.merge_commit_sha = Some(merge.merge_commit_sha.clone());
        });
    }
    revisions.sort_by_key(|revision| (revision.captured_at, revision.revision_id));
    for revision in &revisions {
        add(&mut known, reader, &revision.pull_request, |known| {
            known.heads.extend(revision.previous_head_sha.clone());
            if known.merge_commit_sha.is_none() {
                known.base_sha = revision.pull_request.base_sha.clone();
            }
        });
    }
    let mut pull_requests = PullRequests::new();
    for ((repository, _), pull_request) in known {
        let of_repository = pull_requests.entry(repository).or_default();
        of_repository.push(pull_request);
    }
    Ok(pull_requests)
}

/// Adds what a fact says of a pull request. A fact whose repository cannot be determined says
/// nothing.
fn add(
    known: &mut BTreeMap<(Lifetime, i64), KnownPullRequest>,
    reader: &Reader<'_>,
    pull_request: &PullRequest,
    say: impl FnOnce(&mut KnownPullRequest),
) {
    let Ok(repository) = reader.resolving.of(of_base(pull_request)) else {
        return;
    };
    let number = pull_request.pr_number;
    let known = known
        .entry((repository, number))
        .or_insert_with(|| KnownPullRequest {
            pr_number: number,
            head_repositories: BTreeSet::new(),
            head_declined: None,
            heads: BTreeSet::new(),
            base_sha: pull_request.base_sha.clone(),
            base_branches: BTreeSet::new(),
            merge_commit_sha: None,
        });
    match reader.resolving.of(of_head(pull_request)) {
        Ok(head) => drop(known.head_repositories.insert(head)),
        Err(decline) => known.head_declined = Some(decline),
    }
    known.heads.insert(pull_request.head_sha.clone());
    let base = pull_request.base_ref.as_str().to_owned();
    known.base_branches.insert(base);
    say(known);
}

/// Finds the pull request of each commit, reading mirrors but not the store.
fn memberships(
    reader: &Reader<'_>,
    cohort: &CohortFacts,
    pull_requests: &PullRequests,
    commits: &CommitsOf,
) -> Result<Memberships, Error> {
    let questions = pull_requests::ancestry(pull_requests, commits);
    let ancestries = Ancestries::read(&reader.history, questions)?;
    let reached =
        |repository: &Lifetime, commit: &CommitSha| ancestries.reached(repository, commit);
    let ci = &cohort.ci.pull_requests;
    Ok(Memberships::new(pull_requests, commits, ci, &reached))
}

/// Reads what CI said of the commits that hold merged work.
fn merge_ci(
    snapshot: &mut Snapshot<'_>,
    reader: &mut Reader<'_>,
    memberships: &Memberships,
) -> Result<CiResolution, Error> {
    let commits: BTreeSet<&CommitSha> = memberships
        .merge_commits()
        .map(|(_, commit_sha)| commit_sha)
        .collect();
    let ci = ci::read(snapshot, &mut reader.resolving, reader.boundary, &commits)?;
    Ok(ci.resolution)
}

/// Returns the calls that own the tool calls of edits.
fn edit_owners(
    snapshot: &mut Snapshot<'_>,
    cohort: &CohortFacts,
    extent: &Extent,
) -> Result<Vec<CallOwner>, Error> {
    let edits = cohort.population.edits.iter();
    let ids: BTreeSet<_> = edits.map(|edit| Arc::clone(&edit.call_id)).collect();
    let ids: Vec<Arc<str>> = ids.into_iter().collect();
    owners(snapshot, &ids, &cohort.population.calls, extent.as_of)
}
