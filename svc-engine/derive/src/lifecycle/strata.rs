//! The accepted calls, by one property at a time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use svc_engine_fact::Lifetime;
use svc_model::reports::{Counts, Dimension, Stratum, StratumSkip};

use crate::ci::CiRun;
use crate::cohort::{CallEvidence, Cohort, CohortEvidence};

/// A value of a dimension, in display order: by the name of the dimension, and values without a
/// repository first.
type StratumKey<'e> = (Dimension, Option<&'e Lifetime>, Cow<'e, str>);

/// Counts the accepted calls with each value. A call with no value, or with several, in a dimension
/// is counted under a reason instead, so each is counted once per dimension.
pub(super) fn derive(
    evidence: &CohortEvidence<'_>,
    cohort: &Cohort<'_>,
) -> (Vec<Stratum>, Counts<StratumSkip>) {
    let mut strata: BTreeMap<StratumKey<'_>, u64> = BTreeMap::new();
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
                Dimension::Repository => repo.clone().unwrap_or_default(),
                Dimension::AgentHarness | Dimension::Model | Dimension::Workflow => {
                    value.into_owned()
                }
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
fn places<'e>(
    work: &CallEvidence<'e>,
    cohort: &Cohort<'e>,
) -> [Result<StratumKey<'e>, StratumSkip>; 4] {
    let harness = only(
        work.decisions.iter().map(|decision| decision.agent_harness),
        PartialEq::eq,
        // Never counted, because an accepted call has a decision.
        StratumSkip::MultipleAgentHarnesses,
        StratumSkip::MultipleAgentHarnesses,
    );
    let model = work.call.model.as_deref();
    let model = model.ok_or(StratumSkip::MissingModel);
    let commits = || work.observed().map(|commit| &cohort.commits[commit]);
    let repository = only(
        commits().map(|commit| commit.repository),
        PartialEq::eq,
        StratumSkip::MissingRepository,
        StratumSkip::MultipleRepositories,
    );
    let workflow_of = only(
        commits().flat_map(|commit| {
            let runs = commit.ci.map_or(&[][..], |ci| &ci.runs);
            runs.iter().map(|run| (commit.repository, run))
        }),
        |(place, run), (other_place, other)| {
            let is_same = || run.provider == other.provider && run.workflow == other.workflow;
            place == other_place && (is_same() || workflow(run) == workflow(other))
        },
        StratumSkip::MissingWorkflow,
        StratumSkip::MultipleWorkflows,
    );
    [
        harness.map(|agent| (Dimension::AgentHarness, None, agent.as_str().into())),
        model.map(|model| (Dimension::Model, None, model.into())),
        repository.map(|place| (Dimension::Repository, Some(place), "".into())),
        workflow_of.map(|(place, run)| (Dimension::Workflow, Some(place), workflow(run).into())),
    ]
}

/// Returns the only value.
fn only<T>(
    mut values: impl Iterator<Item = T>,
    are_same: impl Fn(&T, &T) -> bool,
    missing: StratumSkip,
    multiple: StratumSkip,
) -> Result<T, StratumSkip> {
    let first = values.next().ok_or(missing)?;
    if values.all(|value| are_same(&first, &value)) {
        Ok(first)
    } else {
        Err(multiple)
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
