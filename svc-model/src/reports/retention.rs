#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AttributionSkip, Counts, DecisionSkip, MembershipSkip, Provenance, ScoringSkip};
use crate::id::OrgId;
use crate::query::LifetimeIdentity;
use crate::repository::RepositoryDecline;

/// How much of what attributed commits added remained in merged pull requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct MergeRetentionReport {
    /// The organization.
    pub org_id: OrgId,
    /// Attributed files at commits at which their Session was observed.
    pub attributed_file_candidates: u64,
    /// Files in exactly one merged pull request.
    pub candidates_joined_to_merge: u64,
    /// Files with a score.
    pub scored_rows: u64,
    /// Pull requests with an attributed file.
    pub joined_pull_requests: u64,
    /// Pull requests with a scored file.
    pub scored_pull_requests: u64,
    /// Files that are not known to be in exactly one merged pull request, by reason.
    pub membership: Counts<MembershipSkip>,
    /// What has no score, by reason. The units differ.
    pub scoring_skips: Counts<ScoringSkip>,
    /// What has no Attribution, by reason. The units differ.
    pub attribution_skips: Counts<AttributionSkip>,
    /// Decisions that are not attached to a call, by reason.
    pub decision_attachment_skips: Counts<DecisionSkip>,
    /// How much of the added text is in the file at the final head of the pull request.
    pub head: RetentionScores,
    /// How much of the added text is in the file at the merged commit.
    pub merge: RetentionScores,
    /// Scored files whose call has an attached explicit accept.
    pub explicit_accept_rows: u64,
    /// Their scores at the head.
    pub explicit_accept_head_thresholds: Vec<ThresholdShare>,
    /// Their scores at the merged commit.
    pub explicit_accept_merge_thresholds: Vec<ThresholdShare>,
    /// The rules that files were attributed by.
    pub attribution_provenance: Provenance,
    /// The rules that membership and scores were derived by.
    pub merge_retention_provenance: Provenance,
    /// How many facts name a repository that cannot be determined. The units overlap and must not
    /// be added.
    pub repository_skipped: RetentionRepositorySkips,
    /// The pull requests that could not be checked, by repository; only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_pull_requests: Option<Vec<UncheckedPullRequests>>,
}

/// Pull requests of a repository because of which it cannot be told which commits were merged: no mirror
/// has their head or their base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct UncheckedPullRequests {
    /// A name of the repository.
    pub repo: String,
    /// Its identity; null if it is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// Their numbers, sorted.
    pub pr_numbers: Vec<i64>,
}

/// Scores, each the share of an added text that is in a file, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RetentionScores {
    /// Their distribution.
    pub distribution: ScoreDistribution,
    /// How many scores are below 0.8, 0.9 and 1.
    pub thresholds: Vec<ThresholdShare>,
}

/// The distribution of scores. Quantiles are interpolated linearly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ScoreDistribution {
    /// How many scores.
    pub count: u64,
    /// Their mean; null without a score.
    pub mean: Option<f64>,
    /// Their median; null without a score.
    pub median: Option<f64>,
    /// The 10th percentile; null without a score.
    pub p10: Option<f64>,
    /// The 90th percentile; null without a score.
    pub p90: Option<f64>,
}

/// How many scores are below a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ThresholdShare {
    /// The threshold.
    pub threshold: f64,
    /// Scores below it.
    pub below: u64,
    /// All scores.
    pub total: u64,
    /// `below` of `total`; null without a score.
    pub rate: Option<f64>,
}

/// Facts of a retention report that name a repository that cannot be determined, by kind. The units
/// overlap and must not be added; kinds without any are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RetentionRepositorySkips {
    /// Observations.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// Pairs of commit and Session.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub candidate_edges: Counts<RepositoryDecline>,
}
