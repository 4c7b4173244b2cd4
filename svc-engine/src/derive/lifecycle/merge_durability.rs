//! Attributed files through merged pull requests.

use svc_model::reports::{
    Ambiguity, Counts, Coverage, CoverageQualification, MembershipSkip, MergeDurability,
    Population, ScoringSkip,
};

use super::{MergeCandidate, examples};
use crate::derive::retention_scores::scores;
use crate::derive::statistics::Proportion;

/// Derives the panel. Each candidate is a member or has one reason why it is none.
pub(super) fn derive(
    candidates: &[MergeCandidate],
    scoring_skips: Counts<ScoringSkip>,
) -> MergeDurability {
    let membership: Counts<MembershipSkip> = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.membership.err()?, 1)))
        .collect();
    let joined: Vec<&MergeCandidate> = candidates
        .iter()
        .filter(|candidate| candidate.membership.is_ok())
        .collect();
    let scored: Vec<_> = joined
        .iter()
        .filter_map(|candidate| Some((&candidate.session_id, candidate.scores?)))
        .collect();
    let of_candidates = Proportion::new(joined.len() as u64, candidates.len() as u64);
    let of_joined = Proportion::new(scored.len() as u64, joined.len() as u64);
    MergeDurability {
        coverage_qualification: CoverageQualification::PartialPullRequestHistory,
        attributed_file_candidates: of_candidates.denominator,
        unique_pull_request_membership: of_candidates.numerator,
        scored_rows: of_joined.numerator,
        membership_rate: of_candidates.rate(),
        scoring_rate: of_joined.rate(),
        head: scores(scored.iter().map(|(_, scores)| scores.head).collect()),
        merge: scores(scored.iter().map(|(_, scores)| scores.merge).collect()),
        coverage: Coverage {
            observed: of_joined.numerator,
            missing: scoring_skips.clone(),
            unsupported_by_integration: Counts::default(),
            ambiguous: Counts::from_iter([(
                Ambiguity::PullRequestMembership,
                membership.get(MembershipSkip::Ambiguous),
            )]),
        },
        membership,
        scoring_skips,
        examples: vec![
            examples::of(
                Population::Joined,
                joined.iter().map(|candidate| &candidate.session_id),
            ),
            examples::of(
                Population::Scored,
                scored.iter().map(|(session, _)| *session),
            ),
        ],
    }
}
