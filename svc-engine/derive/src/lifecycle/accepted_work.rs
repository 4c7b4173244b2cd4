//! Accepted calls through commit, pull request and CI.

use std::collections::{BTreeSet, HashSet};

use svc_model::id::FactId;
use svc_model::reports::{
    AcceptedWork, AcceptedWorkSkip, Ambiguity, Counts, Coverage, DecisionSkip, Population, Stage,
    UnsupportedCapture,
};

use super::{LifecycleFile, examples};
use crate::ci::Verdict;
use crate::cohort::{CallEvidence, Cohort, CohortEvidence};
use crate::statistics::Proportion;

/// What CI says about a call, over the commits at which its Session was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallCi {
    /// No run names any of these commits.
    Missing,
    /// A commit has a run that contradicts itself, or runs that disagree.
    Ambiguous,
    /// A commit failed.
    Failed,
    /// A commit passed, and none failed.
    Passed,
    /// No commit has a verdict.
    NonVerdict,
}

impl CallCi {
    fn of(work: &CallEvidence<'_>, cohort: &Cohort<'_>) -> Self {
        let known: Vec<_> = work
            .observed()
            .filter_map(|commit| cohort.commits[commit].ci)
            .collect();
        let has = |verdict| known.iter().any(|ci| ci.verdict == Some(verdict));
        if known.is_empty() {
            Self::Missing
        } else if known.iter().any(|ci| ci.is_contradicted || ci.is_ambiguous) {
            Self::Ambiguous
        } else if has(Verdict::Failed) {
            Self::Failed
        } else if has(Verdict::Passed) {
            Self::Passed
        } else {
            Self::NonVerdict
        }
    }
}

/// Derives the panel.
pub(super) fn derive(
    evidence: &CohortEvidence<'_>,
    cohort: &Cohort<'_>,
    joined: &[LifecycleFile],
) -> AcceptedWork {
    let members: HashSet<FactId> = joined.iter().map(|file| file.inference_call_id).collect();
    let accepted: Vec<&CallEvidence<'_>> = cohort
        .calls
        .iter()
        .filter(|work| work.is_accepted())
        .collect();
    let attributed: Vec<&CallEvidence<'_>> = accepted
        .iter()
        .copied()
        .filter(|work| work.observed().next().is_some())
        .collect();
    let joined: Vec<(&CallEvidence<'_>, CallCi)> = attributed
        .iter()
        .filter(|work| members.contains(&work.call.inference_call_id))
        .map(|work| (*work, CallCi::of(work, cohort)))
        .collect();
    let count = |status: CallCi| joined.iter().filter(|(_, ci)| *ci == status).count() as u64;
    let erased = accepted.iter().filter(|work| work.is_unknown()).count() as u64;
    let unobserved: BTreeSet<_> = accepted.iter().flat_map(|work| work.unobserved()).collect();
    let (passed, failed) = (count(CallCi::Passed), count(CallCi::Failed));
    let totals = [
        accepted.len() as u64 - erased,
        attributed.len() as u64,
        joined.len() as u64,
        joined.len() as u64 - count(CallCi::Missing),
        passed + failed,
    ];
    let [
        _,
        attributed_stage,
        joined_stage,
        linked_stage,
        verdict_stage,
    ] = stages(totals);
    let ambiguous = count(CallCi::Ambiguous);
    let decision_skips = &evidence.decisions.skipped;
    let mut skips: Counts<AcceptedWorkSkip> = decision_skips
        .iter()
        .map(|(skip, count)| (skip.into(), count))
        .collect();
    for (skip, count) in [
        (
            AcceptedWorkSkip::SessionCommitUnobserved,
            unobserved.len() as u64,
        ),
        (
            AcceptedWorkSkip::AttributionUnavailable,
            totals[0] - totals[1],
        ),
        (
            AcceptedWorkSkip::PullRequestMembershipUnavailable,
            totals[1] - totals[2],
        ),
        (AcceptedWorkSkip::ContentErased, erased),
        (AcceptedWorkSkip::CiMissing, count(CallCi::Missing)),
        (AcceptedWorkSkip::CiNonVerdict, count(CallCi::NonVerdict)),
        (AcceptedWorkSkip::AmbiguousCiVerdict, ambiguous),
    ] {
        skips.add(skip, count);
    }
    let failed_calls = joined
        .iter()
        .filter(|(_, status)| *status == CallCi::Failed)
        .map(|(work, _)| &work.call.session_id);
    AcceptedWork {
        accepted_calls: accepted.len() as u64,
        attributed: attributed_stage,
        pull_request_membership: joined_stage,
        ci_linked: linked_stage,
        ci_verdict: verdict_stage,
        ci_passed: passed,
        ci_failed: failed,
        skips,
        coverage: Coverage {
            observed: accepted.len() as u64,
            missing: decision_skips
                .iter()
                .filter(|(skip, _)| *skip != DecisionSkip::Ambiguous)
                .collect(),
            unsupported_by_integration: examples::unsupported(
                UnsupportedCapture::CursorCalls,
                &evidence.decisions.all,
            ),
            ambiguous: Counts::from_iter([
                (
                    Ambiguity::DecisionCallId,
                    decision_skips.get(DecisionSkip::Ambiguous),
                ),
                (Ambiguity::CiVerdict, ambiguous),
            ]),
        },
        examples: vec![
            examples::of(
                Population::Accepted,
                accepted.iter().map(|work| &work.call.session_id),
            ),
            examples::of(
                Population::Attributed,
                attributed.iter().map(|work| &work.call.session_id),
            ),
            examples::of(
                Population::PullRequestMembership,
                joined.iter().map(|(work, _)| &work.call.session_id),
            ),
            examples::of(Population::CiFailed, failed_calls),
        ],
    }
}

/// Returns the stages for the number that reached each; the first is its own denominator.
fn stages(totals: [u64; 5]) -> [Stage; 5] {
    std::array::from_fn(|place| {
        let of_before = Proportion::new(totals[place], totals[place.saturating_sub(1)]);
        let of_first = Proportion::new(totals[place], totals[0]);
        Stage {
            count: of_before.numerator,
            denominator: of_before.denominator,
            rate: of_before.rate(),
            initial_denominator: of_first.denominator,
            initial_rate: of_first.rate(),
        }
    })
}
