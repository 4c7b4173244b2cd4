//! Attributed files through merged pull requests.

use svc_model::reports::{
    Ambiguity, Counts, Coverage, CoverageQualification, MembershipSkip, MergeDurability, Population,
};

use super::{FileScores, MergeEvidence, examples};
use crate::retention_scores::scores;
use crate::statistics::Proportion;

/// Derives the panel.
pub(super) fn derive(merges: MergeEvidence) -> MergeDurability {
    let scored = || {
        merges
            .joined
            .iter()
            .filter_map(|file| Some((file, file.scores?)))
    };
    let summary = |score: fn(&FileScores) -> f64| {
        scores(scored().map(|(_, scores)| score(&scores)).collect())
    };
    let of_candidates = Proportion::new(merges.joined.len() as u64, merges.candidates);
    let of_joined = Proportion::new(scored().count() as u64, of_candidates.numerator);
    MergeDurability {
        coverage_qualification: CoverageQualification::PartialPullRequestHistory.into(),
        attributed_file_candidates: of_candidates.denominator,
        unique_pull_request_membership: of_candidates.numerator,
        scored_rows: of_joined.numerator,
        membership_rate: of_candidates.rate(),
        scoring_rate: of_joined.rate(),
        head: summary(|scores| scores.head),
        merge: summary(|scores| scores.merge),
        coverage: Coverage {
            observed: of_joined.numerator,
            missing: merges.scoring_skips.clone(),
            unsupported_by_integration: Counts::default(),
            ambiguous: Counts::from_iter([(
                Ambiguity::PullRequestMembership,
                merges.membership.get(MembershipSkip::Ambiguous),
            )]),
        },
        examples: vec![
            examples::of(
                Population::Joined,
                merges.joined.iter().map(|file| &file.session_id),
            ),
            examples::of(
                Population::Scored,
                scored().map(|(file, _)| &file.session_id),
            ),
        ],
        membership: merges.membership,
        scoring_skips: merges.scoring_skips,
    }
}
