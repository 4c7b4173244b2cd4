use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_engine_fact::deadline::Passed;
use svc_model::id::{FactId, SessionId};
use svc_model::reports::{Counts, MembershipSkip, ScoringSkip};
use svc_model::repository::CommitSha;

use super::scoring::{FileScoring, JoinedFile};
use super::{Inputs, Merge, MergeRetention, ObservedEdge, Revision};
use crate::attribution::Attribution;

/// A question: which commits of a repository can be reached from which others?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AncestryQuestion {
    /// Repositories that pull requests came from, whose mirrors may also have the heads.
    pub head_repositories: BTreeSet<Lifetime>,
    /// The commits that may be reached.
    pub commits: BTreeSet<CommitSha>,
    /// The commits to start from: the heads and the bases of the pull requests.
    pub tips: BTreeSet<CommitSha>,
}

/// For one commit, returns whether it is an ancestor of, or equal to, a tip of its repository's
/// question; `None` if this cannot be checked because no mirror has the tip.
pub type ReachedFrom<'r> = Box<dyn Fn(&CommitSha) -> Option<bool> + 'r>;

/// Attributed files, and the merged pull requests that may contain their commits.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// Files of the same commit are adjacent.
    files: Vec<(Attribution, Vec<FactId>)>,
    merges: BTreeMap<Lifetime, Vec<PullRequest>>,
    /// The pull requests that CI names for each commit.
    ci: BTreeMap<Lifetime, BTreeMap<CommitSha, BTreeSet<i64>>>,
    unresolved: BTreeMap<Lifetime, BTreeSet<i64>>,
    /// What has no score: facts whose repository cannot be determined, and pairs of a commit and a
    /// Session without an observation.
    skipped: Counts<ScoringSkip>,
}

#[derive(Clone, Debug)]
struct PullRequest {
    merge: Arc<Merge>,
    /// Every head that it has had.
    heads: BTreeSet<CommitSha>,
}

/// Whether a commit belongs to a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    Yes,
    No,
    Unchecked,
}

impl Candidates {
    /// Selects the files with an observed edge, and the pull requests of their repositories.
    pub fn new(inputs: Inputs) -> Self {
        type Edge = (Lifetime, CommitSha, SessionId);
        let mut observed: HashMap<Edge, BTreeSet<FactId>, RandomState> = HashMap::default();
        for edge in inputs.observed {
            let ObservedEdge {
                observation_id,
                repository,
                commit_sha,
                session_id,
            } = edge;
            observed
                .entry((repository, commit_sha, session_id))
                .or_default()
                .insert(observation_id);
        }
        let mut files = Vec::new();
        let mut unobserved = BTreeSet::new();
        for attribution in inputs.attributions {
            let edge = (
                attribution.repository.clone(),
                attribution.commit_sha.clone(),
                attribution.session_id.clone(),
            );
            match observed.get(&edge) {
                Some(observations) => {
                    files.push((attribution, observations.iter().copied().collect()));
                }
                None => {
                    unobserved.insert(edge);
                }
            }
        }
        // Attributions are derived in this order, so there is little to sort.
        files.sort_by(|(left, _), (right, _)| left.place().cmp(&right.place()));
        let repositories = files
            .chunk_by(|(left, _), (right, _)| left.repository == right.repository)
            .map(|files| &files[0].0.repository);
        let repositories: BTreeSet<&Lifetime> = repositories.collect();
        let mut merges: BTreeMap<Lifetime, Vec<PullRequest>> = BTreeMap::new();
        let mut heads = heads(inputs.revisions);
        for merge in inputs.merges {
            if !repositories.contains(&merge.repository) {
                continue;
            }
            let mut heads = heads
                .remove(&(merge.repository.clone(), merge.pr_number))
                .unwrap_or_default();
            heads.insert(merge.head_sha.clone());
            let of_repository = merges.entry(merge.repository.clone()).or_default();
            of_repository.push(PullRequest {
                merge: Arc::new(merge),
                heads,
            });
        }
        for pull_requests in merges.values_mut() {
            pull_requests.sort_by_key(|pull_request| {
                (pull_request.merge.pr_number, pull_request.merge.merge_id)
            });
        }
        let mut ci: BTreeMap<Lifetime, BTreeMap<CommitSha, BTreeSet<i64>>> = BTreeMap::new();
        for membership in inputs.ci {
            let of_repository = ci.entry(membership.repository).or_default();
            let numbers = of_repository.entry(membership.commit_sha).or_default();
            numbers.insert(membership.pr_number);
        }
        let declined = inputs.declined.iter();
        let mut skipped: Counts<_> = declined.map(|(why, count)| (why.into(), count)).collect();
        skipped.add(
            ScoringSkip::SessionCommitUnobserved,
            unobserved.len() as u64,
        );
        Self {
            files,
            merges,
            ci,
            unresolved: inputs.unresolved,
            skipped,
        }
    }

    /// Returns what must be known about the history of each repository.
    pub fn ancestry(&self) -> BTreeMap<Lifetime, AncestryQuestion> {
        let mut questions: BTreeMap<Lifetime, AncestryQuestion> = BTreeMap::new();
        for (repository, pull_requests) in &self.merges {
            let question = questions.entry(repository.clone()).or_default();
            for PullRequest { merge, heads } in pull_requests {
                question.tips.insert(merge.base_sha.clone());
                question.tips.extend(heads.iter().cloned());
                question
                    .head_repositories
                    .extend(merge.head_repository.iter().cloned());
            }
            question.head_repositories.remove(repository);
        }
        for files in self.files.chunk_by(are_of_one_commit) {
            let (file, _) = &files[0];
            if let Some(question) = questions.get_mut(&file.repository) {
                question.commits.insert(file.commit_sha.clone());
            }
        }
        questions
    }

    /// Finds the pull request of each file. `reached` is called once per commit, and its result is
    /// then asked about tips.
    ///
    /// # Errors
    ///
    /// If `check` fails, which is called for every commit.
    pub fn join<'r>(
        mut self,
        reached: &dyn Fn(&Lifetime, &CommitSha) -> ReachedFrom<'r>,
        check: &dyn Fn() -> Result<(), Passed>,
    ) -> Result<FileScoring, Passed> {
        let mut result = MergeRetention {
            candidates: self.files.len() as u64,
            skipped: std::mem::take(&mut self.skipped),
            ..MergeRetention::default()
        };
        let files = std::mem::take(&mut self.files);
        let mut memberships = Vec::new();
        for files in files.chunk_by(are_of_one_commit) {
            check()?;
            let (repository, commit_sha, _) = files[0].0.place();
            let reached_from = reached(repository, commit_sha);
            let (membership, unchecked) = self.membership(repository, commit_sha, &reached_from);
            if !unchecked.is_empty() {
                let of_repository = result.unchecked.entry(repository.clone());
                of_repository.or_default().extend(unchecked);
            }
            memberships.push((files.len(), membership));
        }
        let memberships = memberships
            .into_iter()
            .flat_map(|(files, membership)| std::iter::repeat_n(membership, files));
        let mut joined = Vec::new();
        for ((attribution, observation_ids), membership) in files.into_iter().zip(memberships) {
            match membership {
                Ok(merge) => joined.push(JoinedFile {
                    attribution,
                    observation_ids,
                    merge,
                }),
                Err(skip) => result.membership.add(skip, 1),
            }
        }
        Ok(FileScoring::new(result, joined))
    }

    /// Returns the pull request that a commit belongs to, and those that could not be checked.
    fn membership(
        &self,
        repository: &Lifetime,
        commit_sha: &CommitSha,
        reached_from: &ReachedFrom<'_>,
    ) -> (Result<Arc<Merge>, MembershipSkip>, BTreeSet<i64>) {
        let of_repository = self.ci.get(repository);
        let named = of_repository.and_then(|commits| commits.get(commit_sha));
        let mut unchecked = BTreeSet::new();
        let mut holding = Vec::new();
        for pull_request in self.merges.get(repository).into_iter().flatten() {
            match pull_request.holds(named, reached_from) {
                Membership::Yes => holding.push(&pull_request.merge),
                Membership::No => {}
                Membership::Unchecked => {
                    unchecked.insert(pull_request.merge.pr_number);
                }
            }
        }
        let unresolved = self.unresolved.get(repository);
        unchecked.extend(unresolved.into_iter().flatten());
        let is_unknown = unresolved.is_some() || !unchecked.is_empty();
        let membership = match holding[..] {
            _ if is_unknown => Err(MembershipSkip::AncestryCheckFailed),
            [] => Err(MembershipSkip::WithoutMerge),
            [one] => Ok(Arc::clone(one)),
            _ => Err(MembershipSkip::Ambiguous),
        };
        (membership, unchecked)
    }
}

impl PullRequest {
    /// `named` are the pull requests that CI names for the commit.
    fn holds(&self, named: Option<&BTreeSet<i64>>, reached_from: &ReachedFrom<'_>) -> Membership {
        if named.is_some_and(|numbers| numbers.contains(&self.merge.pr_number)) {
            return Membership::Yes;
        }
        // It is unknown whose head this is, so no mirror's answer counts.
        if self.merge.head_repository.is_err() {
            return Membership::Unchecked;
        }
        let mut held = Membership::No;
        for head in &self.heads {
            match reached_from(head) {
                // Most commits belong to another pull request, so the base need not be asked about.
                Some(false) => {}
                Some(true) => match reached_from(&self.merge.base_sha) {
                    Some(true) => {}
                    Some(false) => return Membership::Yes,
                    None => held = Membership::Unchecked,
                },
                None => held = Membership::Unchecked,
            }
        }
        held
    }
}

fn are_of_one_commit(
    (left, _): &(Attribution, Vec<FactId>),
    (right, _): &(Attribution, Vec<FactId>),
) -> bool {
    left.commit_sha == right.commit_sha && left.repository == right.repository
}

/// Collects the heads of each pull request.
fn heads(revisions: Vec<Revision>) -> BTreeMap<(Lifetime, i64), BTreeSet<CommitSha>> {
    let mut heads: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for revision in revisions {
        let of_one = heads
            .entry((revision.repository, revision.pr_number))
            .or_default();
        of_one.insert(revision.head_sha);
        of_one.extend(revision.previous_head_sha);
    }
    heads
}
