//! The model report: what became of the calls of each model.
//!
//! A CI outcome counts only for a commit at which the call's Session was observed. Similarity
//! alone, however high, never links an outcome to a call.

mod funnel;
mod pairs;
mod rows;
mod stratification;

use svc_model::reports::{
    AttributionAlert, AttributionShareRow, AttributionSkip, Counts, ModelReport,
    ModelRepositorySkips,
};

pub use pairs::MODEL_PAIRS_MAX;

use super::cohort::{Cohort, CohortEvidence};
use super::fate;
use super::observed::ObservedEdges;
use super::policy::Policy;
use super::session_status::SessionStatuses;
use rows::Model;

/// The parts of a model report that are not derived from its cohort.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelParts {
    /// The shares of the organization's commits that notes tie to calls.
    pub shares: Vec<AttributionShareRow>,
    /// Signs that notes are no longer written.
    pub alerts: Vec<AttributionAlert>,
    /// Why commits are in no share.
    pub shares_skipped: Counts<AttributionSkip>,
    /// Facts whose repository cannot be determined.
    pub repository_skipped: ModelRepositorySkips,
    /// Repositories whose mirror was fetched once and is now missing; `None` if there are none.
    pub lost_mirrors: Option<u64>,
}

/// Why there is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelReportError {
    /// Every two models are compared in each repository where both have cases, and there are too
    /// many.
    #[error("too many pairs of models")]
    TooManyPairs,
}

/// The part of the report that is derived from the cohort alone.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortPart(ModelReport);

/// Derives what follows from the cohort. `since_days` is its length in days, rounded up; `None` for
/// all history.
///
/// # Errors
///
/// If there are more than [`MODEL_PAIRS_MAX`] pairs of models with cases in the same repository:
/// the reply would be too large.
pub fn derive(
    evidence: &CohortEvidence<'_>,
    since_days: Option<u64>,
) -> Result<CohortPart, ModelReportError> {
    let observed = ObservedEdges::new(evidence.observations);
    let cohort = Cohort::new(evidence, &observed);
    let models = Model::all(evidence, &cohort);
    let revision = evidence.quarantine_revision;
    let statuses = SessionStatuses::new(&evidence.decisions.all, evidence.observations);
    Ok(CohortPart(ModelReport {
        rows: models
            .iter()
            .map(|model| model.row(since_days, revision))
            .collect(),
        stratification: stratification::derive(evidence, &models)?,
        signal_funnel: models
            .iter()
            .map(|model| funnel::derive(model, &cohort, since_days))
            .collect(),
        abandonment: statuses.summary(revision),
        fate_skipped: fate::skipped(evidence.erased_edits),
        repository_skipped: ModelRepositorySkips::default(),
        ci_skipped: evidence.ci.skipped.clone(),
        fate_provenance: Policy::Fate.provenance(revision),
        attribution_share: Vec::new(),
        attribution_alerts: Vec::new(),
        attribution_share_skipped: Counts::default(),
        lost_mirrors: None,
        comparison: None,
        non_inferiority: None,
    }))
}

impl CohortPart {
    /// Returns the whole report.
    pub fn finish(self, others: ModelParts) -> ModelReport {
        ModelReport {
            repository_skipped: others.repository_skipped,
            attribution_share: others.shares,
            attribution_alerts: others.alerts,
            attribution_share_skipped: others.shares_skipped,
            lost_mirrors: others.lost_mirrors,
            ..self.0
        }
    }
}

#[cfg(test)]
mod tests;
