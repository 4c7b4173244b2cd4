#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AttributionSkip, Counts, DecisionSkip, MembershipSkip, Provenance, ScoringSkip};
use crate::id::OrgId;
use crate::query::LifetimeIdentity;
use crate::repository::RepositoryDecline;

/// How much of the text that attributed commits added is left in merged pull requests. It is a
/// lower bound on retention: text that was moved or reworded is not found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct MergeRetentionReport {
    /// The organization.
    pub org_id: OrgId,
    /// The number of attributed files of commits at which the Session of their call was observed.
    pub attributed_file_candidates: u64,
    /// How many of them are in exactly one merged pull request.
    pub candidates_joined_to_merge: u64,
    /// How many of those have a score.
    pub scored_rows: u64,
    /// The number of merged pull requests with such a file.
    pub joined_pull_requests: u64,
    /// The number of merged pull requests with a scored file.
    pub scored_pull_requests: u64,
    /// Candidates that are not known to be in exactly one merged pull request, by reason.
    pub membership: Counts<MembershipSkip>,
    /// What has no score, by reason. The units differ, so the counts must not be added.
    pub scoring_skips: Counts<ScoringSkip>,
    /// What has no Attribution, by reason. The units differ, so the counts must not be added.
    pub attribution_skips: Counts<AttributionSkip>,
    /// Decisions that are not attached to a call, by reason.
    pub decision_attachment_skips: Counts<DecisionSkip>,
    /// The share of the added text that is in the file at the final head of the pull request.
    pub head: RetentionScores,
    /// The share of the added text that is in the file at the merged commit.
    pub merge: RetentionScores,
    /// The number of scored files whose call has an attached accept by a person.
    pub explicit_accept_rows: u64,
    /// How many of their scores at the final head are below each threshold.
    pub explicit_accept_head_thresholds: Vec<ThresholdShare>,
    /// How many of their scores at the merged commit are below each threshold.
    pub explicit_accept_merge_thresholds: Vec<ThresholdShare>,
    /// The rules that files were attributed by.
    pub attribution_provenance: Provenance,
    /// The rules that membership and scores were derived by.
    pub merge_retention_provenance: Provenance,
    /// Facts whose repository cannot be determined, by kind. A fact may be in several kinds, so the
    /// counts must not be added.
    pub repository_skipped: RetentionRepositorySkips,
    /// The merged pull requests that could not be checked, by repository. Present only if they were
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_pull_requests: Option<Vec<UncheckedPullRequests>>,
}

/// Merged pull requests of one repository that could not be checked, because no mirror has their
/// head or their base. They may contain any commit of the repository, so it is unknown which of its
/// commits were merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct UncheckedPullRequests {
    /// A name of the repository.
    pub repo: String,
    /// The identity of the repository; null if the repository is known by name only.
    pub repository_identity: Option<LifetimeIdentity>,
    /// The numbers of the pull requests, sorted.
    pub pr_numbers: Vec<i64>,
}

/// The scores of files: each is the share of an added text that is in the file, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RetentionScores {
    /// The distribution of the scores.
    pub distribution: ScoreDistribution,
    /// How many scores are below 0.8, below 0.9 and below 1.
    pub thresholds: Vec<ThresholdShare>,
}

/// The distribution of scores. Percentiles are interpolated linearly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct ScoreDistribution {
    /// The number of scores.
    pub count: u64,
    /// The mean; null without a score.
    pub mean: Option<f64>,
    /// The median; null without a score.
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
    /// The threshold: 0.8, 0.9 or 1.
    pub threshold: f64,
    /// The number of scores below the threshold.
    pub below: u64,
    /// The number of all scores.
    pub total: u64,
    /// `below` divided by `total`; null without a score.
    pub rate: Option<f64>,
}

/// Facts of a retention report whose repository cannot be determined, by kind and reason. A fact
/// may be in several kinds, so the counts must not be added. A kind with nothing to count is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct RetentionRepositorySkips {
    /// Session commit observations.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub session_observations: Counts<RepositoryDecline>,
    /// Pairs of a commit and a Session.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub candidate_edges: Counts<RepositoryDecline>,
}
