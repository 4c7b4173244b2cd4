//! The calls that a report covers, with the evidence about each.
//!
//! Each call is tied once to the commits of its Attributions, to the observations behind them and
//! to the decisions about it; panels only count. What a panel does not count has one reason, so
//! each population adds up, and nothing that is absent is a negative.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_model::id::{FactId, OrgId, SessionId};
use svc_model::reports::Unobservable;

use super::attribution::Attribution;
use super::ci::{CiResolution, CommitCi};
use super::decision::{Decision, Decisions};
use super::fate::EditFate;
use super::observed::{ObservedCommit, ObservedEdges};
use super::place::RepositoryLabel;
use super::repository::Repositories;

/// A call of the cohort, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CohortCall {
    /// Its id.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
    /// The model, if known.
    pub model: Option<String>,
    /// Whether its content was erased.
    pub is_erased: bool,
}

/// The evidence that both reports are derived from, up to one boundary and from one snapshot. The
/// order of each list does not matter, and neither do duplicates.
#[derive(Clone, Copy, Debug)]
pub struct CohortEvidence<'e> {
    /// The organization.
    pub org_id: &'e OrgId,
    /// The high-water mark of the quarantine log.
    pub quarantine_revision: u64,
    /// The names of the repositories.
    pub repositories: &'e Repositories,
    /// The calls.
    pub calls: &'e [CohortCall],
    /// The Attributions to them. Those to other calls are ignored.
    pub attributions: &'e [Attribution],
    /// The calls of which no commit could have been seen, with the reason. Attributions prevail.
    pub unobservable: &'e [(FactId, Unobservable)],
    /// The observations of their Sessions.
    pub observations: &'e [ObservedCommit],
    /// The decisions of their Sessions.
    pub decisions: &'e Decisions,
    /// The edits of their Sessions.
    pub edits: &'e [EditFate],
    /// How many further edits there are whose texts were erased.
    pub erased_edits: u64,
    /// What CI says about the commits.
    pub ci: &'e CiResolution,
}

impl CohortEvidence<'_> {
    /// Returns how a repository is shown.
    pub(super) fn place(&self, repository: &Lifetime) -> RepositoryLabel {
        RepositoryLabel::of(self.repositories, repository)
    }
}

/// A commit that a call of the cohort is tied to.
#[derive(Debug)]
pub(super) struct CohortCommit<'e> {
    pub(super) repository: &'e Lifetime,
    pub(super) ci: Option<&'e CommitCi>,
}

impl CohortCommit<'_> {
    /// Returns what CI says, if any run counts.
    pub(super) fn evidence(&self) -> Option<&CommitCi> {
        self.ci.filter(|ci| !ci.runs.is_empty())
    }
}

/// A commit and a call's Session, tied by files of the commit.
#[derive(Debug)]
pub(super) struct Edge<'e> {
    /// The index of the commit.
    pub(super) commit: usize,
    /// The observations that back it; empty for a guess.
    pub(super) observations: &'e [FactId],
}

/// A call, with the evidence about it.
#[derive(Debug)]
pub(super) struct CallEvidence<'e> {
    pub(super) call: &'e CohortCall,
    /// The commits that it is tied to, each once, in order.
    pub(super) edges: Vec<Edge<'e>>,
    /// The sum of the similarities of its files, and their number. Added in the order of commits
    /// and paths, so that the sum is always the same.
    pub(super) similarities: (f64, u64),
    /// The decisions attached to it, in order.
    pub(super) decisions: Vec<&'e Decision>,
    /// Why no commit of it could have been seen, if so.
    pub(super) unobservable: Option<Unobservable>,
}

impl<'e> CallEvidence<'e> {
    /// Returns the commits at which its Session was observed.
    pub(super) fn observed(&self) -> impl Iterator<Item = usize> {
        self.edges
            .iter()
            .filter(|edge| !edge.observations.is_empty())
            .map(|edge| edge.commit)
    }

    /// Returns the edges that no observation backs.
    pub(super) fn unobserved(&self) -> impl Iterator<Item = (usize, &'e SessionId)> {
        let session_id = &self.call.session_id;
        self.edges
            .iter()
            .filter(|edge| edge.observations.is_empty())
            .map(move |edge| (edge.commit, session_id))
    }

    /// Returns whether nobody can tell any more what it wrote. Such a call is not a case of any
    /// rate that needs its text: an erasure must not look like work that was not kept.
    pub(super) fn is_unknown(&self) -> bool {
        self.call.is_erased && self.edges.is_empty()
    }

    /// Returns whether a person accepted it.
    pub(super) fn is_accepted(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.accepted && decision.explicit)
    }
}

/// The calls of a report, with the evidence about each.
#[derive(Debug)]
pub(super) struct Cohort<'e> {
    /// The calls, by id.
    pub(super) calls: Vec<CallEvidence<'e>>,
    /// The commits that they are tied to, by repository and id.
    pub(super) commits: Vec<CohortCommit<'e>>,
    places: HashMap<FactId, usize, RandomState>,
}

impl<'e> Cohort<'e> {
    pub(super) fn new(evidence: &CohortEvidence<'e>, observed: &'e ObservedEdges<'_>) -> Self {
        let mut calls: Vec<CallEvidence<'e>> = evidence
            .calls
            .iter()
            .map(|call| CallEvidence {
                call,
                edges: Vec::new(),
                similarities: (0.0, 0),
                decisions: Vec::new(),
                unobservable: None,
            })
            .collect();
        calls.sort_unstable_by_key(|work| work.call.inference_call_id);
        calls.dedup_by_key(|work| work.call.inference_call_id);
        let places = calls
            .iter()
            .enumerate()
            .map(|(place, work)| (work.call.inference_call_id, place))
            .collect();
        let mut cohort = Self {
            calls,
            commits: Vec::new(),
            places,
        };
        cohort.tie(evidence, observed);
        cohort.leave_unobservable(evidence);
        for (decision, call) in evidence.decisions.attached() {
            if let Some(place) = cohort.place(call) {
                cohort.calls[place].decisions.push(decision);
            }
        }
        cohort
    }

    /// Returns the index of a call; `None` if it is not in the cohort.
    pub(super) fn place(&self, call: FactId) -> Option<usize> {
        self.places.get(&call).copied()
    }

    fn tie(&mut self, evidence: &CohortEvidence<'e>, observed: &'e ObservedEdges<'_>) {
        let mut files: Vec<(&Attribution, usize)> = evidence
            .attributions
            .iter()
            .filter_map(|file| Some((file, self.place(file.inference_call_id)?)))
            .collect();
        let key = |file: &'e Attribution| (&file.repository, &file.commit_sha, &file.file_path);
        files.sort_unstable_by(|(first, a), (second, b)| {
            key(first).cmp(&key(second)).then_with(|| a.cmp(b))
        });
        files.dedup_by(|(first, a), (second, b)| key(first) == key(second) && a == b);
        for of_commit in files.chunk_by(|(first, _), (second, _)| {
            first.repository == second.repository && first.commit_sha == second.commit_sha
        }) {
            let (first, _) = of_commit[0];
            let commit = self.commits.len();
            self.commits.push(CohortCommit {
                repository: &first.repository,
                ci: evidence.ci.of(&first.repository, &first.commit_sha),
            });
            for (file, place) in of_commit {
                let work = &mut self.calls[*place];
                work.similarities.0 += file.similarity.value();
                work.similarities.1 += 1;
                if work.edges.last().is_none_or(|last| last.commit != commit) {
                    let observations =
                        observed.of(&file.repository, &file.commit_sha, &work.call.session_id);
                    work.edges.push(Edge {
                        commit,
                        observations,
                    });
                }
            }
        }
    }

    /// Marks the calls without a commit of which none could have been seen.
    fn leave_unobservable(&mut self, evidence: &CohortEvidence<'_>) {
        for (call, why) in evidence.unobservable {
            if let Some(place) = self.place(*call) {
                let work = &mut self.calls[place];
                work.unobservable = work.edges.is_empty().then_some(*why);
            }
        }
    }

    /// Returns the calls of each model, by model. Calls without a model are left out.
    pub(super) fn models(&self) -> BTreeMap<&'e str, Vec<&CallEvidence<'e>>> {
        let mut models: BTreeMap<&str, Vec<&CallEvidence<'e>>> = BTreeMap::new();
        for work in &self.calls {
            if let Some(model) = &work.call.model {
                models.entry(model).or_default().push(work);
            }
        }
        models
    }
}

#[cfg(test)]
pub(super) mod world;
