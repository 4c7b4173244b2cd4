//! Signs that work was done over.

use svc_model::reports::{ReworkComponent, ReworkGrain, ReworkName, SessionStatus};

use super::edit_retention::RetentionPanel;
use crate::ci::Verdict;
use crate::cohort::{Cohort, CohortEvidence};
use crate::session_status::SessionStatuses;
use crate::statistics::Proportion;

/// Derives the six components.
pub(super) fn derive(
    evidence: &CohortEvidence<'_>,
    cohort: &Cohort<'_>,
    statuses: &SessionStatuses,
    edits: &RetentionPanel,
    retry_linkages: u64,
) -> Vec<ReworkComponent> {
    let decisions = &evidence.decisions.all;
    let rejects = decisions
        .iter()
        .filter(|decision| decision.explicit && !decision.accepted)
        .count();
    let sessions = |status: SessionStatus| statuses.with(status).count() as u64;
    let abandoned = sessions(SessionStatus::Abandoned);
    let resolved: Vec<_> = cohort
        .commits
        .iter()
        .filter_map(|commit| commit.evidence())
        .collect();
    let failed = resolved
        .iter()
        .filter(|ci| ci.verdict == Some(Verdict::Failed))
        .count();
    [
        (
            ReworkName::ExplicitRejects,
            ReworkGrain::DeveloperDecision,
            Proportion::new(rejects as u64, decisions.len() as u64),
        ),
        (
            ReworkName::RetryLinkages,
            ReworkGrain::RetryLinkage,
            Proportion::new(retry_linkages, retry_linkages),
        ),
        (
            ReworkName::ModifiedOrDeletedEdits,
            ReworkGrain::EditObservation,
            edits.changed,
        ),
        (
            ReworkName::ExternalLineChanges,
            ReworkGrain::CountedEditObservation,
            edits.external,
        ),
        (
            ReworkName::AbandonedSessions,
            ReworkGrain::AcceptedSession,
            Proportion::new(abandoned, abandoned + sessions(SessionStatus::Committed)),
        ),
        (
            ReworkName::FailedCiResolutions,
            ReworkGrain::CiResolution,
            Proportion::new(failed as u64, resolved.len() as u64),
        ),
    ]
    .map(|(name, grain, proportion)| ReworkComponent {
        name: name.into(),
        grain: grain.into(),
        count: proportion.numerator,
        denominator: proportion.denominator,
        rate: proportion.rate(),
    })
    .to_vec()
}
