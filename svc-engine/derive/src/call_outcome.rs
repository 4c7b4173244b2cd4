//! What became of each call of a cohort: whether its text is in a commit, whether that commit was
//! merged and what CI said of it, and else what is known of its edits and of its Session.
//!
//! Each call has one [`Outcome`], the first that applies. Missing evidence is never a negative one:
//! it says only that there is no evidence of a commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, SessionId};
use svc_model::query::AttributionSource;
use svc_model::reports::Fate;
use svc_model::repository::CommitSha;
use svc_model::time::Instant;

use super::attribution::Attribution;
use super::ci::{CiResolution, CommitCi, Verdict};
use super::cohort::CohortEvidence;
use super::decision::CallOwner;
use super::pull_requests::{Memberships, PullRequestMembership};

/// What became of a call. The first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Its text is in a commit of a merged pull request.
    Merged,
    /// Its text is in a commit; no merge is known.
    Committed,
    /// An edit of it was kept, at least in part; no commit is known.
    EditsKept,
    /// Each of its edits with a Fate was deleted before the end of the Session.
    EditsDeleted,
    /// A person rejected what it proposed, and nobody accepted any of it.
    Rejected,
    /// Its Session was observed at a commit.
    SessionCommitted,
    /// There is no evidence of a commit.
    NoCommitEvidence,
}

/// Who accepted what a call proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Acceptance {
    /// A person.
    Explicit,
    /// A rule or a setting.
    Implicit,
}

/// A commit that the work of a cohort reached: one that calls are attributed to, or at which their
/// Sessions were observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedCommit {
    /// The repository.
    pub repository: Lifetime,
    /// The commit.
    pub commit_sha: CommitSha,
    /// The pull request that it belongs to, if one is known.
    pub pull_request: Option<PullRequestMembership>,
    /// What CI said of it.
    pub verdict: Option<Verdict>,
    /// What CI says now of its work.
    pub landed: Landed,
}

/// What CI says now of the work of a commit: of the commit that holds the merged work, if it says
/// anything of it; else of the commit itself.
///
/// A commit of which one workflow failed and another passed has failed here, as on its forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The commit that CI speaks of.
    pub commit_sha: CommitSha,
    /// Whether it holds merged work, and is not the commit itself.
    pub is_merge: bool,
    /// What CI says.
    pub verdict: Option<Verdict>,
    /// The names of the workflows that failed, sorted; a workflow without a name has none.
    pub failed_workflows: BTreeSet<String>,
}

impl Landed {
    fn of(commit_sha: &CommitSha, is_merge: bool, ci: Option<&CommitCi>) -> Self {
        let failed = ci.map(CommitCi::failed_workflows).unwrap_or_default();
        Self {
            commit_sha: commit_sha.clone(),
            is_merge,
            verdict: match failed.first() {
                Some(_) => Some(Verdict::Failed),
                None => ci.and_then(|ci| ci.verdict),
            },
            failed_workflows: failed.iter().filter_map(|it| it.name.clone()).collect(),
        }
    }
}

impl ReachedCommit {
    /// Returns whether it is a commit of a merged pull request.
    pub fn is_merged(&self) -> bool {
        self.pull_request
            .as_ref()
            .is_some_and(|pull_request| pull_request.is_merged)
    }
}

/// What is known of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// What became of it.
    pub outcome: Outcome,
    /// How it was attributed: by a note if any file was, else by similarity; `None` without a
    /// commit.
    pub source: Option<AttributionSource>,
    /// The index of the commit of the earliest push, then of the smallest id.
    pub commit: Option<usize>,
    /// The indices of every commit that it is attributed to.
    pub commits: Vec<usize>,
    /// Who accepted what it proposed.
    pub acceptance: Option<Acceptance>,
    /// Whether its content was erased, so that nobody can tell whether it is in a commit.
    pub is_erased: bool,
}

/// What became of the calls of a cohort.
#[derive(Clone, Debug, Default)]
pub struct CallOutcomes {
    /// The commits that the work reached, by repository and id.
    pub commits: Vec<ReachedCommit>,
    /// Every call.
    pub calls: HashMap<FactId, CallOutcome, RandomState>,
    /// The indices of the commits at which each Session was observed, in order. A Session without
    /// one is absent.
    pub sessions: HashMap<SessionId, Vec<usize>, RandomState>,
}

/// What is needed besides the evidence of a cohort.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeInputs<'i> {
    /// When the push was received that brought each attributed commit.
    pub pushed_at: &'i HashMap<FactId, Instant, RandomState>,
    /// The pull request of each commit.
    pub memberships: &'i Memberships,
    /// What CI said of the commits that hold merged work.
    pub merge_ci: &'i CiResolution,
    /// The calls that own the tool calls of edits.
    pub edit_owners: &'i [CallOwner],
}

/// What decisions and edits say of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Handling {
    acceptance: Option<Acceptance>,
    is_rejected: bool,
    is_kept: bool,
    is_deleted: bool,
}

/// Derives what became of the calls of a cohort.
pub fn derive(evidence: &CohortEvidence<'_>, inputs: OutcomeInputs<'_>) -> CallOutcomes {
    let places = places(evidence);
    let commits = places
        .keys()
        .map(|(repository, commit_sha)| reached(evidence, inputs, repository, commit_sha))
        .collect::<Vec<ReachedCommit>>();
    let sessions = sessions(evidence, &places);
    let handled = handled(evidence, inputs.edit_owners);
    let mut attributed: HashMap<FactId, Vec<&Attribution>, RandomState> = HashMap::default();
    for file in evidence.attributions {
        attributed
            .entry(file.inference_call_id)
            .or_default()
            .push(file);
    }
    let calls = evidence.calls.iter().map(|call| {
        let id = call.inference_call_id;
        let files = attributed.get(&id).map_or(&[][..], Vec::as_slice);
        let handling = handled.get(&id).copied().unwrap_or_default();
        let mut of_call: Vec<usize> = files
            .iter()
            .map(|file| places[&(&file.repository, &file.commit_sha)])
            .collect();
        of_call.sort_unstable();
        of_call.dedup();
        let first = files.iter().min_by_key(|file| {
            let pushed_at = inputs.pushed_at.get(&file.push_id).copied();
            (pushed_at.unwrap_or(Instant::MAX), &file.commit_sha)
        });
        let is_noted = files
            .iter()
            .any(|file| file.source == AttributionSource::GitNotes);
        let outcome = CallOutcome {
            outcome: outcome(
                &of_call,
                &commits,
                handling,
                sessions.contains_key(&call.session_id),
            ),
            source: first.map(|_| {
                if is_noted {
                    AttributionSource::GitNotes
                } else {
                    AttributionSource::Jaccard
                }
            }),
            commit: first.map(|file| places[&(&file.repository, &file.commit_sha)]),
            commits: of_call,
            acceptance: handling.acceptance,
            is_erased: call.is_erased,
        };
        (id, outcome)
    });
    CallOutcomes {
        calls: calls.collect(),
        commits,
        sessions,
    }
}

/// The index of each commit.
type Places<'e> = BTreeMap<(&'e Lifetime, &'e CommitSha), usize>;

/// Numbers the commits that the work reached.
fn places<'e>(evidence: &CohortEvidence<'e>) -> Places<'e> {
    let attributed = evidence.attributions.iter();
    let attributed = attributed.map(|file| (&file.repository, &file.commit_sha));
    let observed = evidence.observations.iter();
    let observed =
        observed.filter_map(|seen| Some((seen.repository.as_ref().ok()?, &seen.commit_sha)));
    let all: BTreeSet<_> = attributed.chain(observed).collect();
    all.into_iter().zip(0..).collect()
}

fn reached(
    evidence: &CohortEvidence<'_>,
    inputs: OutcomeInputs<'_>,
    repository: &Lifetime,
    commit_sha: &CommitSha,
) -> ReachedCommit {
    let pull_request = inputs.memberships.of(repository, commit_sha).cloned();
    let own_ci = evidence.ci.of(repository, commit_sha);
    let own = Landed::of(commit_sha, false, own_ci);
    let merge = pull_request.as_ref();
    let merge = merge.and_then(|pull_request| pull_request.merge_commit_sha.as_ref());
    let merged = merge.filter(|merge| *merge != commit_sha);
    let merged = merged.and_then(|merge| {
        let ci = inputs.merge_ci.of(repository, merge)?;
        ci.has_verdicts().then(|| Landed::of(merge, true, Some(ci)))
    });
    ReachedCommit {
        repository: repository.clone(),
        commit_sha: commit_sha.clone(),
        pull_request,
        verdict: own_ci.and_then(|ci| ci.verdict),
        landed: merged.unwrap_or(own),
    }
}

/// Returns the commits at which each Session was observed.
fn sessions(
    evidence: &CohortEvidence<'_>,
    places: &Places<'_>,
) -> HashMap<SessionId, Vec<usize>, RandomState> {
    let mut sessions: HashMap<SessionId, Vec<usize>, RandomState> = HashMap::default();
    for seen in evidence.observations {
        if let Ok(repository) = &seen.repository {
            let of_session = sessions.entry(seen.session_id.clone()).or_default();
            of_session.push(places[&(repository, &seen.commit_sha)]);
        }
    }
    for of_session in sessions.values_mut() {
        of_session.sort_unstable();
        of_session.dedup();
    }
    sessions
}

/// Returns what decisions and edits say of each call.
fn handled(
    evidence: &CohortEvidence<'_>,
    edit_owners: &[CallOwner],
) -> HashMap<FactId, Handling, RandomState> {
    let mut handled: HashMap<FactId, Handling, RandomState> = HashMap::default();
    for (decision, call) in evidence.decisions.attached() {
        let handling = handled.entry(call).or_default();
        if decision.accepted {
            let by = if decision.explicit {
                Acceptance::Explicit
            } else {
                Acceptance::Implicit
            };
            handling.acceptance = Some(handling.acceptance.map_or(by, |known| known.min(by)));
        } else if decision.explicit {
            handling.is_rejected = true;
        }
    }
    let owners = sole_owners(edit_owners);
    for edit in evidence.edits {
        let owner = owners.get(&*edit.call_id).copied().flatten();
        if let Some(owner) = owner.filter(|owner| owner.session_id == edit.session_id) {
            let handling = handled.entry(owner.inference_call_id).or_default();
            match edit.fate {
                Fate::Deleted => handling.is_deleted = true,
                Fate::Unmodified | Fate::PartiallyModified => handling.is_kept = true,
            }
        }
    }
    handled
}

/// Returns the owner of each id; `None` for an id that several calls own.
fn sole_owners(owners: &[CallOwner]) -> HashMap<&str, Option<&CallOwner>, RandomState> {
    let mut sole: HashMap<&str, Option<&CallOwner>, RandomState> = HashMap::default();
    for owner in owners {
        sole.entry(&owner.call_id)
            .and_modify(|known| {
                *known = known.filter(|known| known.inference_call_id == owner.inference_call_id);
            })
            .or_insert(Some(owner));
    }
    sole
}

fn outcome(
    of_call: &[usize],
    commits: &[ReachedCommit],
    handling: Handling,
    is_session_observed: bool,
) -> Outcome {
    if of_call.iter().any(|commit| commits[*commit].is_merged()) {
        Outcome::Merged
    } else if !of_call.is_empty() {
        Outcome::Committed
    } else if handling.is_kept {
        Outcome::EditsKept
    } else if handling.is_deleted {
        Outcome::EditsDeleted
    } else if handling.is_rejected && handling.acceptance.is_none() {
        Outcome::Rejected
    } else if is_session_observed {
        Outcome::SessionCommitted
    } else {
        Outcome::NoCommitEvidence
    }
}

impl CallOutcomes {
    /// Returns what CI said of the commit that a call is attributed to, else of the only commit of
    /// its Session.
    pub fn verdict(&self, call: Option<&CallOutcome>, session_id: &SessionId) -> Option<Verdict> {
        let of_call = call.and_then(|call| call.commit);
        let only = || match self.sessions.get(session_id).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        };
        self.commits[of_call.or_else(only)?].verdict
    }

    /// Returns what CI says now of the commits that a call is attributed to: failed if it says so of
    /// any of them, passed if it says so of one and of none that it failed.
    pub fn verdict_now(&self, call: &CallOutcome) -> Option<Verdict> {
        let verdicts = call.commits.iter();
        let verdicts = verdicts.filter_map(|commit| self.commits[*commit].landed.verdict);
        verdicts.max()
    }
}

#[cfg(test)]
mod tests;
