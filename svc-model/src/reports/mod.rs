//! Reports: what became of the agents' work, computed from facts.
//!
//! A report is computed for each answer and not stored. Only recorded evidence counts: missing
//! evidence is never a negative outcome. What cannot be counted is counted as skipped, under a
//! reason of a closed set. Every rate comes with its denominator.

mod abandonment;
mod comparison;
mod counts;
mod envelope;
mod fate;
mod lifecycle;
mod model;
mod observable;
mod retention;
mod share;
mod skip;
mod stratification;
#[cfg(test)]
mod tests;

pub use abandonment::{AbandonmentReport, SessionOutcome};
pub use comparison::{
    Comparison, ModelNonInferiority, NonInferiorityTest, RatePosteriors, RateTest,
};
pub use counts::Counts;
pub use envelope::{AcceptedWorkLifecycle, ModelOutcomes, Provenance, ReportRequest, ReportScope};
pub use fate::Fate;
pub use lifecycle::{
    AcceptedWork, Ambiguity, Coverage, CoverageQualification, Dimension, EditRetention, Examples,
    LifecyclePolicy, LifecycleProvenance, LifecycleReport, LifecycleRepositorySkips,
    MergeDurability, Population, ReworkComponent, ReworkGrain, ReworkName, SessionAttrition,
    SessionStatus, Stage, Stratum, UnsupportedCapture,
};
pub use model::{
    AbandonmentSummary, CiSkips, ModelReport, ModelRepositorySkips, ModelRow, OutcomeGrain,
    SignalFunnel,
};
pub use observable::{Unobservable, merges_unobservable};
pub use retention::{
    MergeRetentionReport, RetentionRepositorySkips, RetentionScores, ScoreDistribution,
    ThresholdShare, UncheckedPullRequests,
};
pub use share::{
    AttributionAlert, AttributionAlertKind, AttributionShareReport, AttributionShareRow,
};
pub use skip::{
    AcceptedWorkSkip, AttributionSkip, CiCommitSkip, CiRunSkip, CompletionSkip, DecisionSkip,
    FateSkip, MembershipSkip, ScoringSkip, SessionSkip, StratumSkip,
};
pub use stratification::{
    AdjustedComparison, Metric, ModelRate, RateComparison, Reversal, ShrunkRate, ShrunkRates,
    Stratification, StratificationStatus,
};
