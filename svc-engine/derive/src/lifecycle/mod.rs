//! The lifecycle report: what became of accepted work, panel by panel.
//!
//! Each panel has its own unit and its own denominator, and counts what it does not cover.

mod accepted_work;
mod edit_retention;
mod examples;
mod merge_durability;
mod rework;
mod session_attrition;
mod strata;

use svc_model::id::{FactId, SessionId};
use svc_model::reports::{
    Counts, LifecyclePolicy, LifecycleProvenance, LifecycleReport, LifecycleRepositorySkips,
    MembershipSkip, ScoringSkip, Stratum, StratumSkip,
};

pub use examples::EXAMPLE_SESSIONS_MAX;

use super::cohort::{Cohort, CohortEvidence};
use super::observed::ObservedEdges;
use super::policy::Policy;
use super::session_status::SessionStatuses;
use edit_retention::RetentionPanel;

/// What merged pull requests say about the attributed files at observed commits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeEvidence {
    /// The number of attributed files at observed commits.
    pub candidates: u64,
    /// Those in exactly one merged pull request.
    pub joined: Vec<LifecycleFile>,
    /// Why the others are in none, one reason each.
    pub membership: Counts<MembershipSkip>,
    /// What has no score, by reason.
    pub scoring_skips: Counts<ScoringSkip>,
}

/// An attributed file in exactly one merged pull request.
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleFile {
    /// The call.
    pub inference_call_id: FactId,
    /// Its Session.
    pub session_id: SessionId,
    /// How much of it remained, if known.
    pub scores: Option<FileScores>,
}

/// How much of an added text remained, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileScores {
    /// At the final head of the pull request.
    pub head: f64,
    /// At the merged commit.
    pub merge: f64,
}

/// The parts of a lifecycle report that are not derived from its cohort.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LifecycleParts {
    /// What merged pull requests say.
    pub merges: MergeEvidence,
    /// How many retry linkages the cohort's Sessions have.
    pub retry_linkages: u64,
    /// Facts whose repository cannot be determined.
    pub repository_skipped: LifecycleRepositorySkips,
}

/// What is derived from a cohort independently of merges.
#[derive(Debug)]
pub struct BeforeMerges<'e> {
    evidence: CohortEvidence<'e>,
    cohort: Cohort<'e>,
    statuses: SessionStatuses,
    strata: Vec<Stratum>,
    stratum_skips: Counts<StratumSkip>,
    edit_retention: RetentionPanel,
}

impl<'e> BeforeMerges<'e> {
    /// Derives it. `observed` has the edges of the evidence.
    pub fn new(evidence: CohortEvidence<'e>, observed: &'e ObservedEdges<'_>) -> Self {
        let cohort = Cohort::new(&evidence, observed);
        let (strata, stratum_skips) = strata::derive(&evidence, &cohort);
        Self {
            statuses: SessionStatuses::new(&evidence.decisions.all, evidence.observations),
            edit_retention: edit_retention::derive(&evidence),
            evidence,
            cohort,
            strata,
            stratum_skips,
        }
    }

    /// Derives the report. The caller adds lost mirrors, which are only known after mirrors were
    /// read.
    pub fn finish(self, others: LifecycleParts) -> LifecycleReport {
        let Self {
            evidence,
            cohort,
            statuses,
            strata,
            stratum_skips,
            edit_retention,
        } = self;
        LifecycleReport {
            org_id: evidence.org_id.clone(),
            accepted_work: accepted_work::derive(&evidence, &cohort, &others.merges.joined),
            rework: rework::derive(
                &evidence,
                &cohort,
                &statuses,
                &edit_retention,
                others.retry_linkages,
            ),
            edit_retention: edit_retention.panel,
            merge_durability: merge_durability::derive(others.merges),
            session_attrition: session_attrition::derive(&statuses),
            strata,
            stratum_skips,
            policy: LifecyclePolicy {
                example_session_limit: EXAMPLE_SESSIONS_MAX as u64,
                policy_version: Policy::Lifecycle.version().to_owned(),
            },
            provenance: provenance(evidence.quarantine_revision),
            repository_skipped: others.repository_skipped,
            lost_mirrors: None,
        }
    }
}

fn provenance(quarantine_revision: u64) -> LifecycleProvenance {
    let of = |policy: Policy| policy.provenance(quarantine_revision);
    LifecycleProvenance {
        lifecycle: of(Policy::Lifecycle),
        attribution: of(Policy::Attribution),
        abandonment: of(Policy::Abandonment),
        fate: of(Policy::Fate),
        ci_resolution: of(Policy::CiResolution),
        merge_retention: of(Policy::MergeRetention),
    }
}

#[cfg(test)]
mod tests;
