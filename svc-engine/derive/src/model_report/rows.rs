//! What is counted for one model.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use foldhash::fast::RandomState;
use svc_engine_fact::Lifetime;
use svc_engine_fact::threads::at_once;
use svc_model::facts::AgentHarness;
use svc_model::id::{FactId, SessionId};
use svc_model::reports::{CompletionSkip, Counts, Fate, ModelRow, OutcomeGrain, Unobservable};

use crate::ci::{CommitCi, Verdict};
use crate::cohort::{CallEvidence, Cohort, CohortEvidence};
use crate::fate::{ExternalLines, external_totals, ordered};
use crate::policy::Policy;
use crate::statistics::{Proportion, real};

/// The name given to workflows without one.
const UNNAMED: &str = "unnamed";

/// What is counted for one model.
#[derive(Debug, Default)]
pub(super) struct Model<'e> {
    pub(super) name: &'e str,
    pub(super) calls: Vec<&'e CallEvidence<'e>>,
    /// Calls with an Attribution, out of those for which this is known.
    pub(super) attributed: Proportion,
    /// Of these, the calls of which no commit could have been seen, by reason.
    unobservable: Counts<Unobservable>,
    /// The other calls, by reason.
    pub(super) skipped: Counts<CompletionSkip>,
    /// Commits that passed, out of those with a verdict, by repository.
    pub(super) cells: BTreeMap<&'e Lifetime, Proportion>,
    /// Edges of a commit and a Session that no observation backs, each once, in order.
    pub(super) unobserved: Vec<(usize, &'e SessionId)>,
    observations: Vec<FactId>,
    similarities: (f64, u64),
    failures: BTreeMap<String, u64>,
    explicit_accepts: u64,
    explicit_rejects: Counts<AgentHarness>,
    fates: Counts<Fate>,
    explicit_accept_fates: Counts<Fate>,
    fates_with_external_changes: Counts<Fate>,
}

impl<'e> Model<'e> {
    /// Counts for each model, by name.
    pub(super) fn all(evidence: &CohortEvidence<'e>, cohort: &'e Cohort<'e>) -> Vec<Self> {
        let calls: Vec<(&str, Vec<&CallEvidence<'_>>)> = cohort.models().into_iter().collect();
        let one = |(name, calls): &(&'e str, Vec<_>)| Ok(Self::one(name, calls.clone(), cohort));
        let Ok::<_, Infallible>(mut models) = at_once(&calls, one);
        add_fates(&mut models, evidence);
        models
    }

    fn one(name: &'e str, calls: Vec<&'e CallEvidence<'e>>, cohort: &'e Cohort<'e>) -> Self {
        let mut model = Self {
            name,
            ..Self::default()
        };
        let mut commits = Vec::new();
        for work in &calls {
            if work.is_unknown() {
                model.skipped.add(CompletionSkip::ContentErased, 1);
            } else {
                model.attributed.denominator += 1;
                model.attributed.numerator += u64::from(!work.edges.is_empty());
                if let Some(why) = work.unobservable {
                    model.unobservable.add(why, 1);
                }
            }
            commits.extend(work.observed());
            model.unobserved.extend(work.unobserved());
            for edge in &work.edges {
                model.observations.extend(edge.observations);
            }
            model.similarities.0 += work.similarities.0;
            model.similarities.1 += work.similarities.1;
            for decision in work.decisions.iter().filter(|decision| decision.explicit) {
                if decision.accepted {
                    model.explicit_accepts += 1;
                } else {
                    model.explicit_rejects.add(decision.agent_harness, 1);
                }
            }
        }
        for commit in distinct(commits) {
            let commit = &cohort.commits[commit];
            if let Some((ci, verdict)) = commit.ci.and_then(|ci| Some((ci, ci.verdict?))) {
                let cell = model.cells.entry(commit.repository).or_default();
                cell.denominator += 1;
                match verdict {
                    Verdict::Passed => cell.numerator += 1,
                    Verdict::Failed => model.add_failures(ci),
                }
            }
        }
        model.unobserved = distinct(model.unobserved);
        model.observations = distinct(model.observations);
        model.calls = calls;
        model
    }

    fn add_failures(&mut self, ci: &CommitCi) {
        let workflows: BTreeSet<_> = ci
            .runs
            .iter()
            .filter(|run| run.verdict == Some(Verdict::Failed))
            .map(|run| (run.provider, &run.workflow))
            .collect();
        for (_, workflow) in workflows {
            let name = workflow.name.as_deref().unwrap_or(UNNAMED);
            *self.failures.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Commits that passed, out of those with a verdict, in all repositories.
    pub(super) fn ci(&self) -> Proportion {
        self.cells
            .values()
            .fold(Proportion::default(), |sum, cell| Proportion {
                numerator: sum.numerator + cell.numerator,
                denominator: sum.denominator + cell.denominator,
            })
    }

    pub(super) fn row(&self, since_days: Option<u64>, quarantine_revision: u64) -> ModelRow {
        let ci = self.ci();
        let (similarity, files) = self.similarities;
        ModelRow {
            model: self.name.to_owned(),
            since_days,
            completions: self.calls.len() as u64,
            attributed_inference_calls: self.attributed.numerator,
            attribution_rate: self.attributed.rate_or_zero(),
            attribution_rate_ci: self.attributed.wilson(),
            ci_linked: ci.denominator,
            ci_passed: ci.numerator,
            ci_pass_rate: ci.rate_or_zero(),
            ci_pass_rate_ci: ci.wilson(),
            explicit_accepts: self.explicit_accepts,
            explicit_rejects: self.explicit_rejects.total(),
            mean_similarity: if files == 0 {
                0.0
            } else {
                similarity / real(files)
            },
            provenance: Policy::ModelReport.provenance(quarantine_revision),
            grain: OutcomeGrain::Commit.into(),
            ci_failures_by_workflow: self.failures.clone(),
            explicit_rejects_by_agent_harness: self.explicit_rejects.clone(),
            fates: self.fates.clone(),
            explicit_accept_fates: self.explicit_accept_fates.clone(),
            fates_with_external_changes: self.fates_with_external_changes.clone(),
            session_commit_unobserved: self.unobserved.len() as u64,
            session_commit_observation_ids: self.observations.clone(),
            completions_skipped: self.skipped.clone(),
            attribution_observable: (!self.unobservable.is_empty())
                .then(|| self.attributed.denominator - self.unobservable.total()),
            attribution_unobservable: self.unobservable.clone(),
        }
    }
}

/// Returns the values sorted, each once. Thousands of calls share the same values, and sorting is
/// cheaper than inserting them one by one.
fn distinct<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

/// Adds the Fates of edits to the models whose calls have a decision about them.
fn add_fates<'e>(models: &mut [Model<'e>], evidence: &CohortEvidence<'e>) {
    let mut decided: HashMap<_, (usize, bool), RandomState> = HashMap::default();
    for (place, model) in models.iter().enumerate() {
        for decision in model.calls.iter().flat_map(|work| &work.decisions) {
            if let Some(call_id) = &decision.call_id {
                let key = (decision.agent_harness, &decision.session_id, &**call_id);
                decided.entry(key).or_insert((place, false)).1 |=
                    decision.accepted && decision.explicit;
            }
        }
    }
    let edits = ordered(evidence.edits);
    for (edit, total) in edits.iter().zip(external_totals(&edits)) {
        let key = (edit.agent_harness, &edit.session_id, &*edit.call_id);
        let Some((place, is_explicit_accept)) = decided.get(&key) else {
            continue;
        };
        let model = &mut models[*place];
        model.fates.add(edit.fate, 1);
        if *is_explicit_accept {
            model.explicit_accept_fates.add(edit.fate, 1);
        }
        if total.is_some_and(ExternalLines::any) {
            model.fates_with_external_changes.add(edit.fate, 1);
        }
    }
}
