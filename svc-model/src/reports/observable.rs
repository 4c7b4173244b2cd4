//! What a report could not have seen. A rate of zero is one only if something else could have been
//! observed.

use super::{Counts, LifecycleReport, MembershipSkip, ModelReport, ModelRow, Stage};
use crate::closed_set;

closed_set! {
    /// Why something is unknown rather than zero. Of several reasons for a call, the first is given.
    pub enum Unobservable {
        /// What was written was erased, so nobody can tell whether it is in a commit.
        ContentErased = "content_erased",
        /// A push was received and its mirror was read, but no diff of its commits.
        NoDiff = "commit_diff_unavailable",
        /// A push was received, but the mirror of its repository, which was fetched once, is missing.
        LostMirrors = "mirror_lost",
        /// A push was received, but its repository has no mirror, or the mirror lacks the push.
        NoMirror = "mirror_absent",
        /// A push was received, but its repository cannot be determined.
        NoRepository = "repository_undetermined",
        /// No push was received.
        NoPush = "push_absent",
        /// No Session was observed at a commit.
        NoObservation = "session_commit_unobserved",
        /// No merged pull request was received that may contain the files.
        NoMerge = "merge_absent",
        /// Which pull requests contain the files could not be checked.
        MergesUnchecked = "merges_unchecked",
        /// No CI verdict was received for a commit that counts.
        NoCi = "ci_verdict_absent",
    }
}

impl Unobservable {
    /// Says of a rate or a stage that it is unknown, although it reads as 0.
    pub fn sentence(self, what: &str) -> String {
        let reason = self.reason();
        format!("{what} is not observable: {reason}. It is unknown, not 0.")
    }

    /// Says what is lacking.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ContentErased => "what was written was erased",
            Self::NoDiff => "no diff of a commit pushed near the calls was readable",
            Self::LostMirrors => "no mirror was readable, although there was one",
            Self::NoMirror => "no mirror of what was pushed near the calls was readable",
            Self::NoRepository => "no repository of a push near the calls could be determined",
            Self::NoPush => "no push was received near the calls",
            Self::NoObservation => {
                "no Session was observed at a commit: no push or no note was received, or no mirror was readable"
            }
            Self::NoMerge => "no merged pull request with these files was received",
            Self::MergesUnchecked => "the merged pull requests could not be checked",
            Self::NoCi => "no CI verdict was received",
        }
    }
}

impl ModelRow {
    /// Returns why the Attribution rate of this model is unknown, if it is: it has calls, but a
    /// commit of none of them could have been seen. Then a rate of 0 is none.
    pub fn unobservable(&self) -> Option<Unobservable> {
        most(&self.attribution_unobservable).filter(|_| self.observable_cases() == 0)
    }
}

impl ModelReport {
    /// Returns why the Attribution rates of all models are unknown, if they are, as
    /// [`ModelRow::unobservable`] does.
    pub fn unobservable(&self) -> Option<Unobservable> {
        let is_seen = |row: &ModelRow| row.observable_cases() > 0;
        most(&self.attribution_unobservable()).filter(|_| !self.rows.iter().any(is_seen))
    }

    /// Counts the calls of all rows of which no commit could have been seen.
    pub fn attribution_unobservable(&self) -> Counts<Unobservable> {
        let of_rows = self.rows.iter().map(|row| &row.attribution_unobservable);
        of_rows.flat_map(Counts::iter).collect()
    }
}

/// Returns the reason with the highest count, if there is one.
fn most(reasons: &Counts<Unobservable>) -> Option<Unobservable> {
    // The last of equals is taken, so the first reason has to come last.
    let mut reasons: Vec<_> = reasons.iter().collect();
    reasons.reverse();
    let most = reasons.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(reason, _)| reason)
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
