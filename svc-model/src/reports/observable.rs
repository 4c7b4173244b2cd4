//! What a report could not have seen. A rate of zero is one only if something else could have been
//! observed.

use std::fmt::{Display, Formatter, Result};

use super::{AttributionSkip, Counts, LifecycleReport, MembershipSkip, ModelReport, Stage};

/// Why a rate is unknown rather than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub enum Unobservable {
    /// No CI verdict was received for a commit that counts.
    NoCi,
    /// Mirrors that were fetched once are missing.
    LostMirrors,
    /// No commit near the calls could be read: no push was received, or none with a mirror.
    NoCommit,
    /// The diffs of the commits near the calls could not be read.
    NoDiff,
    /// No Session of the report was observed at a commit.
    NoObservation,
    /// No merged pull request was received that may contain the files.
    NoMerge,
    /// Which pull requests contain the files could not be checked.
    MergesUnchecked,
}

impl Unobservable {
    /// Says of a rate or a stage that it is unknown, although it reads as 0.
    pub fn sentence(self, what: &str) -> String {
        format!("{what} is not observable: {self}. It is unknown, not 0.")
    }
}

impl Display for Unobservable {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.write_str(match self {
            Self::NoCi => "no CI verdict was received",
            Self::LostMirrors => "no mirror was readable",
            Self::NoCommit => "no push was received near the calls, or no mirror was readable",
            Self::NoDiff => "no diff of a pushed commit was readable",
            Self::NoObservation => {
                "no Session was observed at a commit: no push or no note was received, or no mirror was readable"
            }
            Self::NoMerge => "no merged pull request with these files was received",
            Self::MergesUnchecked => "the merged pull requests could not be checked",
        })
    }
}

impl ModelReport {
    /// Returns why the Attribution rates of this report are unknown, if they are: no commit that
    /// one of its calls may have led to could be looked at. Then a rate of 0 is none.
    pub fn unobservable(&self) -> Option<Unobservable> {
        let is_attributed = self
            .rows
            .iter()
            .any(|row| row.attributed_inference_calls > 0);
        if is_attributed || !self.attribution_share.is_empty() {
            return None;
        }
        Some(if self.lost_mirrors.is_some() {
            Unobservable::LostMirrors
        } else if diffs_unread(&self.attribution_share_skipped) {
            Unobservable::NoDiff
        } else {
            Unobservable::NoCommit
        })
    }
}

fn diffs_unread(skipped: &Counts<AttributionSkip>) -> bool {
    skipped.get(AttributionSkip::CommitDiffUnavailable) > 0
        || skipped.get(AttributionSkip::MalformedDiffSection) > 0
}

impl LifecycleReport {
    /// Returns why it is unknown which accepted work reached a commit, if it is.
    pub fn commits_unobservable(&self) -> Option<Unobservable> {
        let is_observed = self.session_attrition.committed > 0
            || self.merge_durability.attributed_file_candidates > 0;
        if is_observed {
            None
        } else if self.lost_mirrors.is_some() {
            Some(Unobservable::LostMirrors)
        } else {
            Some(Unobservable::NoObservation)
        }
    }

    /// Returns why it is unknown which files were merged, if it is.
    pub fn merges_unobservable(&self) -> Option<Unobservable> {
        let panel = &self.merge_durability;
        merges_unobservable(panel.unique_pull_request_membership, &panel.membership)
            .or_else(|| self.commits_unobservable())
            .filter(|_| panel.unique_pull_request_membership == 0)
    }

    /// Returns the stages of accepted work, each with why it is unknown, if it is.
    pub fn stages_unobservable(&self) -> [(&Stage, Option<Unobservable>); 4] {
        let work = &self.accepted_work;
        let none = |stage: &Stage| stage.count == 0;
        let unless = |stage: &Stage, why: Option<Unobservable>| why.filter(|_| none(stage));
        [
            (
                &work.attributed,
                unless(&work.attributed, self.commits_unobservable()),
            ),
            (
                &work.pull_request_membership,
                unless(&work.pull_request_membership, self.merges_unobservable()),
            ),
            (
                &work.ci_linked,
                unless(&work.ci_linked, Some(Unobservable::NoCi)),
            ),
            (
                &work.ci_verdict,
                unless(&work.ci_verdict, Some(Unobservable::NoCi)),
            ),
        ]
    }
}

/// Returns why it is unknown which files were merged, if it is, given the number of those that are
/// known to be, and why others are not.
pub fn merges_unobservable(
    joined: u64,
    membership: &Counts<MembershipSkip>,
) -> Option<Unobservable> {
    if joined > 0 || membership.is_empty() {
        None
    } else if membership.get(MembershipSkip::WithoutMerge) == membership.total() {
        Some(Unobservable::NoMerge)
    } else if membership.get(MembershipSkip::Ambiguous) > 0 {
        None
    } else {
        Some(Unobservable::MergesUnchecked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_are_unknown_if_nothing_is_known_to_be_merged() {
        let of = |skips: &[(MembershipSkip, u64)]| skips.iter().copied().collect();
        let without = (MembershipSkip::WithoutMerge, 2);
        for (joined, skips, expected) in [
            (0, &[][..], None),
            (1, &[without], None),
            (0, &[without], Some(Unobservable::NoMerge)),
            (0, &[without, (MembershipSkip::Ambiguous, 1)], None),
            (
                0,
                &[without, (MembershipSkip::AncestryCheckFailed, 1)],
                Some(Unobservable::MergesUnchecked),
            ),
        ] {
            assert_eq!(
                merges_unobservable(joined, &of(skips)),
                expected,
                "{skips:?}"
            );
        }
    }
}
