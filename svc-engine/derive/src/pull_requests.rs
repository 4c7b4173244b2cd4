//! Which pull request a commit belongs to, merged or not.
//!
//! A commit is a member of a pull request if a CI run says so, if one of the request's heads reaches
//! it and the base does not, or if it is the commit that holds the merged work. What cannot be
//! checked is no evidence: the commit is then in no pull request that is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::repository::{CommitSha, RepositoryDecline};

use super::merge_retention::{AncestryQuestion, CiMembership, ReachedFrom};

/// A pull request, as far as its facts tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPullRequest {
    /// Its number.
    pub pr_number: i64,
    /// The repositories of its heads, as far as they can be determined.
    pub head_repositories: BTreeSet<Lifetime>,
    /// Why the repository of a head cannot be determined. Then no mirror's answer counts.
    pub head_declined: Option<RepositoryDecline>,
    /// Every head that it has had.
    pub heads: BTreeSet<CommitSha>,
    /// The commit of the base branch.
    pub base_sha: CommitSha,
    /// The branches that it was to be merged into.
    pub base_branches: BTreeSet<String>,
    /// The commit that holds the merged work; `None` if no merge is known.
    pub merge_commit_sha: Option<CommitSha>,
}

/// The pull request of a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PullRequestMembership {
    /// Its number.
    pub pr_number: i64,
    /// Whether it is known to be merged.
    pub is_merged: bool,
    /// The commit that holds the merged work.
    pub merge_commit_sha: Option<CommitSha>,
}

/// The pull requests of each repository.
pub type PullRequests = BTreeMap<Lifetime, Vec<KnownPullRequest>>;

/// Commits, by repository.
pub type CommitsOf = BTreeMap<Lifetime, BTreeSet<CommitSha>>;

/// The pull request of each commit that has one.
#[derive(Clone, Debug, Default)]
pub struct Memberships(BTreeMap<Lifetime, HashMap<CommitSha, PullRequestMembership, RandomState>>);

/// Returns what must be known about the history of each repository.
pub fn ancestry(
    pull_requests: &PullRequests,
    commits: &CommitsOf,
) -> BTreeMap<Lifetime, AncestryQuestion> {
    let mut questions = BTreeMap::new();
    for (repository, commits) in commits {
        let Some(pull_requests) = pull_requests.get(repository) else {
            continue;
        };
        let mut question = AncestryQuestion {
            commits: commits.clone(),
            ..AncestryQuestion::default()
        };
        for pull_request in pull_requests {
            question.tips.insert(pull_request.base_sha.clone());
            question.tips.extend(pull_request.heads.iter().cloned());
            let of_heads = pull_request.head_repositories.iter();
            question.head_repositories.extend(of_heads.cloned());
        }
        question.head_repositories.remove(repository);
        questions.insert(repository.clone(), question);
    }
    questions
}

impl Memberships {
    /// Finds the pull request of each commit: of several the first that is merged, then the one
    /// with the smallest number. `reached` is called once for each commit.
    pub fn new<'r>(
        pull_requests: &PullRequests,
        commits: &CommitsOf,
        ci: &[CiMembership],
        reached: &dyn Fn(&Lifetime, &CommitSha) -> ReachedFrom<'r>,
    ) -> Self {
        let mut named: HashMap<(&Lifetime, &CommitSha), BTreeSet<i64>, RandomState> =
            HashMap::default();
        for membership in ci {
            let commit = (&membership.repository, &membership.commit_sha);
            named
                .entry(commit)
                .or_default()
                .insert(membership.pr_number);
        }
        let mut found = Self::default();
        for (repository, commits) in commits {
            let known = pull_requests.get(repository).map_or(&[][..], Vec::as_slice);
            let of_repository = found.0.entry(repository.clone()).or_default();
            for commit_sha in commits {
                let named = named.get(&(repository, commit_sha));
                let reached_from = reached(repository, commit_sha);
                let holding = known
                    .iter()
                    .filter(|known| known.holds(commit_sha, named, &reached_from))
                    .map(KnownPullRequest::membership);
                // A run may name a pull request of which no other fact was received.
                let only_named = named.into_iter().flatten().filter_map(|number| {
                    let is_known = known.iter().any(|known| known.pr_number == *number);
                    (!is_known).then_some(PullRequestMembership {
                        pr_number: *number,
                        is_merged: false,
                        merge_commit_sha: None,
                    })
                });
                let first = holding
                    .chain(only_named)
                    .min_by_key(|membership| (!membership.is_merged, membership.pr_number));
                if let Some(first) = first {
                    of_repository.insert(commit_sha.clone(), first);
                }
            }
        }
        found
    }

    /// Returns the pull request of a commit, if one is known.
    pub fn of(
        &self,
        repository: &Lifetime,
        commit_sha: &CommitSha,
    ) -> Option<&PullRequestMembership> {
        self.0.get(repository)?.get(commit_sha)
    }

    /// Returns the commits that hold the work of merged pull requests, by repository.
    pub fn merge_commits(&self) -> impl Iterator<Item = (&Lifetime, &CommitSha)> {
        self.0.iter().flat_map(|(repository, commits)| {
            let merged = commits.values();
            merged.filter_map(move |membership| {
                Some((repository, membership.merge_commit_sha.as_ref()?))
            })
        })
    }
}

impl KnownPullRequest {
    fn membership(&self) -> PullRequestMembership {
        PullRequestMembership {
            pr_number: self.pr_number,
            is_merged: self.merge_commit_sha.is_some(),
            merge_commit_sha: self.merge_commit_sha.clone(),
        }
    }

    /// `named` are the pull requests that CI names for the commit.
    fn holds(
        &self,
        commit_sha: &CommitSha,
        named: Option<&BTreeSet<i64>>,
        reached_from: &ReachedFrom<'_>,
    ) -> bool {
        if named.is_some_and(|numbers| numbers.contains(&self.pr_number))
            || self.merge_commit_sha.as_ref() == Some(commit_sha)
            || self.heads.contains(commit_sha)
        {
            return true;
        }
        self.head_declined.is_none()
            && self
                .heads
                .iter()
                .any(|head| reached_from(head) == Some(true))
            && reached_from(&self.base_sha) == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{commit, repository};

    use super::*;

    fn home() -> Lifetime {
        Lifetime::Identified(repository(1))
    }

    fn pull_request(pr_number: i64, heads: &str, merge: Option<char>) -> KnownPullRequest {
        KnownPullRequest {
            pr_number,
            head_repositories: BTreeSet::new(),
            head_declined: None,
            heads: heads.chars().map(commit).collect(),
            base_sha: commit('0'),
            base_branches: BTreeSet::new(),
            merge_commit_sha: merge.map(commit),
        }
    }

    /// Finds the pull request of a commit, where each head reaches itself and the commits that
    /// follow it in one of these texts.
    fn found(
        known: Vec<KnownPullRequest>,
        histories: &'static [&'static str],
        named: &[i64],
        sha: char,
    ) -> Option<(i64, bool)> {
        let pull_requests = PullRequests::from([(home(), known)]);
        let commits = CommitsOf::from([(home(), BTreeSet::from([commit(sha)]))]);
        let question = &ancestry(&pull_requests, &commits)[&home()];
        assert!(question.tips.contains(&commit('0')));
        let ci: Vec<CiMembership> = named
            .iter()
            .map(|pr_number| CiMembership {
                repository: home(),
                pr_number: *pr_number,
                commit_sha: commit(sha),
            })
            .collect();
        let reached = |_: &Lifetime, sha: &CommitSha| -> ReachedFrom<'_> {
            let sha = sha.clone();
            Box::new(move |tip| {
                let of_tip =
                    |history: &&&str| history.chars().next().map(commit).as_ref() == Some(tip);
                let history = histories.iter().find(of_tip)?;
                Some(history.chars().map(commit).any(|known| known == sha))
            })
        };
        let memberships = Memberships::new(&pull_requests, &commits, &ci, &reached);
        let membership = memberships.of(&home(), &commit(sha))?;
        Some((membership.pr_number, membership.is_merged))
    }

    #[test]
    fn a_commit_belongs_to_the_first_merged_pull_request_whose_heads_reach_it() {
        const HISTORIES: &[&str] = &["cba0", "ba0", "0"];
        let open = || pull_request(3, "c", None);
        let merged = || pull_request(7, "b", Some('e'));
        for (known, sha, expected) in [
            (vec![open()], 'a', Some((3, false))),
            (vec![open(), merged()], 'a', Some((7, true))),
            (
                vec![open(), pull_request(2, "c", None)],
                'a',
                Some((2, false)),
            ),
            // The head is newer than the merged one.
            (vec![open(), merged()], 'c', Some((3, false))),
            // The commit that holds the merged work.
            (vec![merged()], 'e', Some((7, true))),
            // The base has it already.
            (vec![open()], '0', None),
            // No mirror has the head.
            (vec![pull_request(3, "d", None)], 'a', None),
            (vec![pull_request(3, "d", None)], 'd', Some((3, false))),
        ] {
            assert_eq!(found(known, HISTORIES, &[], sha), expected, "{sha}");
        }
    }

    #[test]
    fn a_run_tells_the_pull_request_of_its_commit_whatever_mirrors_have() {
        let known = || vec![pull_request(3, "d", Some('e'))];
        assert_eq!(found(known(), &[], &[3], 'a'), Some((3, true)));
        assert_eq!(found(known(), &[], &[5], 'a'), Some((5, false)));
        assert_eq!(found(known(), &[], &[], 'a'), None);
    }

    #[test]
    fn the_head_of_an_unknown_repository_reaches_nothing() {
        let unknown = KnownPullRequest {
            head_declined: Some(RepositoryDecline::IdentityUnresolved),
            ..pull_request(3, "c", None)
        };
        assert_eq!(found(vec![unknown], &["ca0", "0"], &[], 'a'), None);
    }
}
