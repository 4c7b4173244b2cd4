//! The accepted calls by one property at a time.

use std::collections::{BTreeMap, BTreeSet};

use svc_model::reports::{Counts, Dimension, Stratum, StratumSkip};

use crate::derive::ci::CiRun;
use crate::derive::cohort::{Cohort, Evidence, Work};
use crate::fact::Lifetime;

/// A value of a dimension, in the order in which they are shown: that of dimensions is that of their
/// names, and values without a repository come before all others.
type Key<'e> = (Dimension, Option<&'e Lifetime>, String);

/// Counts the accepted calls of each value. A call with no value of a dimension, or with several, is
/// counted under a reason instead, so each is in one place of each dimension.
pub(super) fn derive(
    evidence: &Evidence<'_>,
    cohort: &Cohort<'_>,
) -> (Vec<Stratum>, Counts<StratumSkip>) {
    let mut strata: BTreeMap<Key<'_>, u64> = BTreeMap::new();
    let mut skips = Counts::default();
    for work in cohort.calls.iter().filter(|work| work.is_accepted()) {
        for placed in places(work, cohort) {
            match placed {
                Ok(key) => *strata.entry(key).or_default() += 1,
                Err(skip) => skips.add(skip, 1),
            }
        }
    }
    let strata = strata
        .into_iter()
        .map(|((dimension, repository, value), accepted_calls)| {
            let place = repository.map(|repository| evidence.place(repository));
            let repo = place.as_ref().map(|place| place.repo.clone());
            let value = match dimension {
                Dimension::Repository => repo.clone().unwrap_or(value),
                Dimension::AgentHarness | Dimension::Model | Dimension::Workflow => value,
            };
            Stratum {
                dimension: dimension.into(),
                value,
                accepted_calls,
                repo,
                repository_identity: place.and_then(|place| place.identity),
            }
        })
        .collect();
    (strata, skips)
}

/// Returns where a call is counted in each dimension.
fn places<'e>(work: &Work<'e>, cohort: &Cohort<'e>) -> [Result<Key<'e>, StratumSkip>; 4] {
    let harness = only(
        work.decisions.iter().map(|decision| decision.agent_harness),
        // An accepted call has a decision, so this is never counted.
        StratumSkip::MultipleAgentHarnesses,
        StratumSkip::MultipleAgentHarnesses,
    );
    let model = work.call.model.clone().ok_or(StratumSkip::MissingModel);
    let commits = || work.observed().map(|commit| &cohort.commits[commit]);
    let repository = only(
        commits().map(|commit| commit.repository),
        StratumSkip::MissingRepository,
        StratumSkip::MultipleRepositories,
    );
    let workflow = only(
        commits().flat_map(|commit| {
            let runs = commit.ci.map_or(&[][..], |ci| &ci.runs);
            runs.iter().map(|run| (commit.repository, workflow(run)))
        }),
        StratumSkip::MissingWorkflow,
        StratumSkip::MultipleWorkflows,
    );
    [
        harness.map(|agent| (Dimension::AgentHarness, None, agent.as_str().to_owned())),
        model.map(|model| (Dimension::Model, None, model)),
        repository.map(|place| (Dimension::Repository, Some(place), String::new())),
        workflow.map(|(repository, text)| (Dimension::Workflow, Some(repository), text)),
    ]
}

/// Returns the one value that there is.
fn only<T: Ord>(
    values: impl Iterator<Item = T>,
    missing: StratumSkip,
    multiple: StratumSkip,
) -> Result<T, StratumSkip> {
    let mut values: BTreeSet<T> = values.collect();
    match values.len() {
        0 | 1 => values.pop_first().ok_or(missing),
        _ => Err(multiple),
    }
}

fn workflow(run: &CiRun) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    let workflow = &run.workflow;
    [
        run.provider.as_str().to_owned(),
        known(&workflow.id),
        known(&workflow.path),
        known(&workflow.name),
    ]
    .join("|")
}
