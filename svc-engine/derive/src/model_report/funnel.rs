//! How far the calls of a model get.

use svc_model::reports::SignalFunnel;

use super::rows::Model;
use crate::cohort::{CallEvidence, Cohort};
use crate::statistics::Proportion;

/// Counts the calls of a model that reach each signal.
pub(super) fn derive(
    model: &Model<'_>,
    cohort: &Cohort<'_>,
    since_days: Option<u64>,
) -> SignalFunnel {
    let attributed: Vec<&CallEvidence<'_>> = model
        .calls
        .iter()
        .copied()
        .filter(|work| !work.edges.is_empty())
        .collect();
    let has_evidence = |work: &CallEvidence<'_>| {
        work.observed()
            .any(|commit| cohort.commits[commit].evidence().is_some())
    };
    let has_verdict = |work: &CallEvidence<'_>| {
        work.observed()
            .filter_map(|commit| cohort.commits[commit].ci)
            .any(|ci| ci.verdict.is_some())
    };
    let is_decided =
        |work: &CallEvidence<'_>| work.decisions.iter().any(|decision| decision.explicit);
    let retained = |is_retained: &dyn Fn(&CallEvidence<'_>) -> bool| {
        let count = attributed.iter().filter(|work| is_retained(work)).count();
        Proportion::new(count as u64, attributed.len() as u64)
    };
    let ci_linked = retained(&has_evidence);
    let has_decision = retained(&is_decided);
    let eligible = retained(&|work| is_decided(work) || has_verdict(work));
    SignalFunnel {
        model: model.name.to_owned(),
        since_days,
        completions_total: model.calls.len() as u64,
        attributed: model.attributed.numerator,
        attribution_rate: model.attributed.rate_or_zero(),
        ci_linked: ci_linked.numerator,
        ci_linked_retention_rate: ci_linked.rate_or_zero(),
        has_decision: has_decision.numerator,
        has_decision_retention_rate: has_decision.rate_or_zero(),
        training_row_eligible: eligible.numerator,
        training_row_eligible_retention_rate: eligible.rate_or_zero(),
        session_commit_unobserved: model.unobserved.len() as u64,
        completions_skipped: model.skipped.clone(),
    }
}
