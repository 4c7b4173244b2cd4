//! What remained in merged pull requests, in the form of the report.

use std::collections::HashSet;

use svc_model::id::{FactId, OrgId};
use svc_model::reports::{
    AttributionSkip, Counts, MergeRetentionReport, RetentionRepositorySkips, UncheckedPullRequests,
};

use super::decision::Decisions;
use super::merge_retention::{MergeRetention, RetentionRow};
use super::policy::Policy;
use super::retention_scores::scores;

/// The parts of a retention report that are not derived from merges.
#[derive(Clone, Copy, Debug)]
pub struct RetentionParts<'b> {
    /// The organization.
    pub org_id: &'b OrgId,
    /// The high-water mark of the quarantine log.
    pub quarantine_revision: u64,
    /// What has no Attribution, by reason.
    pub attribution_skips: &'b Counts<AttributionSkip>,
    /// The decisions of the Sessions.
    pub decisions: &'b Decisions,
    /// Facts whose repository cannot be determined.
    pub repository_skipped: &'b RetentionRepositorySkips,
    /// The pull requests that make it unknown which commits were merged.
    pub unchecked_pull_requests: &'b [UncheckedPullRequests],
}

/// Returns the report of an organization.
pub fn report(retention: &MergeRetention, others: RetentionParts<'_>) -> MergeRetentionReport {
    let accepted: HashSet<FactId> = others
        .decisions
        .attached()
        .filter(|(decision, _)| decision.accepted && decision.explicit)
        .map(|(_, call)| call)
        .collect();
    let rows: Vec<&RetentionRow> = retention
        .rows
        .iter()
        .filter(|row| accepted.contains(&row.attribution.inference_call_id))
        .collect();
    let all = |score: fn(&RetentionRow) -> f64| scores(retention.rows.iter().map(score).collect());
    let of_accepted = |score: fn(&RetentionRow) -> f64| {
        scores(rows.iter().map(|row| score(row)).collect()).thresholds
    };
    MergeRetentionReport {
        org_id: others.org_id.clone(),
        attributed_file_candidates: retention.candidates,
        candidates_joined_to_merge: retention.joined.len() as u64,
        scored_rows: retention.rows.len() as u64,
        joined_pull_requests: retention.joined_pull_requests,
        scored_pull_requests: retention.scored_pull_requests,
        membership: retention.membership.clone(),
        scoring_skips: retention.skipped.clone(),
        attribution_skips: others.attribution_skips.clone(),
        decision_attachment_skips: others.decisions.skipped.clone(),
        head: all(|row| row.scores.head),
        merge: all(|row| row.scores.merge),
        explicit_accept_rows: rows.len() as u64,
        explicit_accept_head_thresholds: of_accepted(|row| row.scores.head),
        explicit_accept_merge_thresholds: of_accepted(|row| row.scores.merge),
        attribution_provenance: Policy::Attribution.provenance(others.quarantine_revision),
        merge_retention_provenance: Policy::MergeRetention.provenance(others.quarantine_revision),
        repository_skipped: others.repository_skipped.clone(),
        unchecked_pull_requests: Some(others.unchecked_pull_requests.to_vec()),
    }
}

#[cfg(test)]
mod tests;
