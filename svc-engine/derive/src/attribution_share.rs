//! The share of commits possibly written by agents that notes tie to them.
//!
//! The unit is a commit that a call near its push, or a call of a noted Session in the week before,
//! could have led to. If the share is zero although there are such commits, or if it fell below its
//! baseline with enough commits to be sure, notes are no longer being written. The share does not
//! measure how much agents write. A commit that no note ties and that is not settled counts
//! nowhere, because a note may yet tie it.
//!
//! Each window is derived from an Attribution of its own, over the window's pushes and all calls
//! within their reach: a commit counts once in each window that has a push of it.

use std::collections::{BTreeMap, BTreeSet};

use svc_engine_fact::Lifetime;
use svc_model::query::AttributionSource;
use svc_model::reports::{AttributionAlertKind, AttributionSkip, Counts};
use svc_model::time::Instant;

use super::attribution::{AssessedCommit, Attributions};
use super::statistics::Proportion;

/// Length of the current window in days; it ends with a repository's last push.
pub const WINDOW_DAYS: i64 = 7;
/// Length in days of the baseline, which ends where the current window starts.
pub const BASELINE_DAYS: i64 = 28;
/// How many commits both windows need before a decline is reported, unless a margin is given:
/// enough for a margin of 0.1.
pub const DECLINE_CASES_MIN: u64 = 97;

const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

/// When pushes were received, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub start: Instant,
    /// The last moment.
    pub end: Instant,
}

impl Window {
    /// Returns the window of `days` days that ends at `end`.
    pub fn days_before(end: Instant, days: i64) -> Self {
        let start = end.microseconds() - days.saturating_mul(DAY_MICROSECONDS);
        Self {
            // Nothing was received before the first instant.
            start: Instant::from_microseconds(start.max(0)).unwrap_or(end),
            end,
        }
    }

    /// Returns whether a push received at this time is in the window.
    pub fn holds(self, pushed_at: Instant) -> bool {
        self.start <= pushed_at && pushed_at <= self.end
    }

    /// Returns whether a push received at this time is in the baseline before the window.
    pub fn is_baseline(self, pushed_at: Instant) -> bool {
        Self::days_before(self.start, BASELINE_DAYS).holds(pushed_at) && pushed_at < self.start
    }
}

/// One repository's commits in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// The repository.
    pub repository: Lifetime,
    /// The window.
    pub window: Window,
    /// Commits with a file that a note ties to a call.
    pub git_notes: u64,
    /// Of the others, commits with a file that is tied by a guess.
    pub jaccard: u64,
    /// The rest, including commits without code.
    pub unattributed: u64,
}

impl ShareRow {
    /// Returns the number of commits that agents may have written.
    pub const fn agent_plausible(&self) -> u64 {
        self.git_notes + self.jaccard + self.unattributed
    }

    /// Returns the share of them that notes tie.
    pub const fn share(&self) -> Proportion {
        Proportion::new(self.git_notes, self.agent_plausible())
    }
}

/// A repository whose notes deserve a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Why.
    pub kind: AttributionAlertKind,
    /// The current window.
    pub current: ShareRow,
    /// The baseline, if it has a row.
    pub baseline: Option<ShareRow>,
}

/// Counts each repository's commits by what ties them, sorted by repository. A repository without a
/// window, or without a settled commit that an agent may have written, has no row.
pub fn shares(
    commits: &[AssessedCommit],
    window: impl Fn(&Lifetime) -> Option<Window>,
) -> Vec<ShareRow> {
    let mut rows: BTreeMap<&Lifetime, ShareRow> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let counted = |commit: &&AssessedCommit| commit.is_plausible && commit.is_settled;
    for commit in commits.iter().filter(counted) {
        let Some(window) = window(&commit.repository) else {
            continue;
        };
        if !window.holds(commit.pushed_at) || !seen.insert((&commit.repository, &commit.commit_sha))
        {
            continue;
        }
        let row = rows.entry(&commit.repository).or_insert_with(|| ShareRow {
            repository: commit.repository.clone(),
            window,
            git_notes: 0,
            jaccard: 0,
            unattributed: 0,
        });
        let count = match commit.source {
            Some(AttributionSource::GitNotes) => &mut row.git_notes,
            Some(AttributionSource::Jaccard) => &mut row.jaccard,
            None => &mut row.unattributed,
        };
        *count += 1;
    }
    rows.into_values().collect()
}

/// Counts what an Attribution could not look at. Commits may be missing from every row because of
/// it.
pub fn unseen(attributions: &Attributions) -> Counts<AttributionSkip> {
    let is_unseen = |reason: &AttributionSkip| match reason {
        AttributionSkip::CommitDiffUnavailable
        | AttributionSkip::ContentErased
        | AttributionSkip::MalformedDiffSection
        | AttributionSkip::MirrorAbsent
        | AttributionSkip::RepositoryIdentityAbsent
        | AttributionSkip::RepositoryIdentityConflict
        | AttributionSkip::RepositoryIdentityUnresolved
        | AttributionSkip::RepositoryMirrorIdentityUnresolved
        | AttributionSkip::RepositorySourceAbsent => true,
        AttributionSkip::NoCodeDiff
        | AttributionSkip::NoInferenceCallCandidates
        | AttributionSkip::NoMatch
        | AttributionSkip::UnsupportedDiffSection => false,
    };
    let skipped = attributions.skipped.iter();
    let mut unseen: Counts<_> = skipped.filter(|(reason, _)| is_unseen(reason)).collect();
    unseen.add(AttributionSkip::ContentErased, attributions.notes_hidden);
    unseen
}

/// Counts what could not be looked at in commits that were reached. A commit may be missing from
/// its row because of it. Pushes whose commits were not reached are not included.
pub fn unsettled(attributions: &Attributions) -> Counts<AttributionSkip> {
    let unseen = unseen(attributions);
    let reasons = [
        AttributionSkip::CommitDiffUnavailable,
        AttributionSkip::ContentErased,
        AttributionSkip::MalformedDiffSection,
    ];
    let counts = reasons.map(|reason| (reason, unseen.get(reason)));
    counts.into_iter().collect()
}

/// Returns the alerts, at most one per row and in the order of rows. A decline takes at least
/// `cases_min` commits in both windows.
pub fn alerts(current: &[ShareRow], baseline: &[ShareRow], cases_min: u64) -> Vec<Alert> {
    let baselines: BTreeMap<&Lifetime, &ShareRow> =
        baseline.iter().map(|row| (&row.repository, row)).collect();
    let alert = |row: &ShareRow| {
        let baseline = baselines.get(&row.repository).copied();
        let kind = if row.agent_plausible() > 0 && row.git_notes == 0 {
            AttributionAlertKind::ZeroShare
        } else if baseline.is_some_and(|before| has_declined(row, before, cases_min)) {
            AttributionAlertKind::SustainedDecline
        } else {
            return None;
        };
        Some(Alert {
            kind,
            current: row.clone(),
            baseline: baseline.cloned(),
        })
    };
    current.iter().filter_map(alert).collect()
}

fn has_declined(current: &ShareRow, baseline: &ShareRow, cases_min: u64) -> bool {
    let (now, before) = (current.share(), baseline.share());
    now.denominator.min(before.denominator) >= cases_min
        && now.rate_or_zero() < before.rate_or_zero()
        && now.wilson()[1] < before.wilson()[0]
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::{at, id, repository};
    use svc_model::repository::CommitSha;

    use super::*;
    use crate::statistics::cases_for_margin;

    const DAY: i64 = 24 * 60 * 60;

    fn lifetime(number: u32) -> Lifetime {
        Lifetime::Identified(repository(number))
    }

    fn commit(of: u32, number: u32, source: Option<AttributionSource>) -> AssessedCommit {
        AssessedCommit {
            repository: lifetime(of),
            commit_sha: CommitSha::new(&format!("{number:040x}")).unwrap(),
            push_id: id(1),
            pushed_at: at(40 * DAY),
            is_plausible: true,
            source,
            is_settled: true,
        }
    }

    fn window() -> Window {
        Window::days_before(at(40 * DAY), WINDOW_DAYS)
    }

    fn row(git_notes: u64, jaccard: u64, unattributed: u64) -> ShareRow {
        ShareRow {
            repository: lifetime(1),
            window: window(),
            git_notes,
            jaccard,
            unattributed,
        }
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn each_plausible_commit_is_in_exactly_one_class() {
        let (notes, jaccard) = (AttributionSource::GitNotes, AttributionSource::Jaccard);
        let mut commits = vec![
            commit(2, 1, Some(notes)),
            commit(1, 1, Some(notes)),
            commit(1, 2, Some(jaccard)),
            commit(1, 3, None),
            commit(1, 3, None),
            commit(3, 1, Some(notes)),
        ];
        let mut unlikely = commit(1, 4, None);
        unlikely.is_plausible = false;
        let mut earlier = commit(1, 5, None);
        earlier.pushed_at = at(33 * DAY - 1);
        let mut first = commit(1, 6, None);
        first.pushed_at = at(33 * DAY);
        let mut unread = commit(1, 7, None);
        unread.is_settled = false;
        commits.extend([unlikely, earlier, first, unread]);
        let of = |repository: &Lifetime| (*repository != lifetime(3)).then(window);
        let rows = shares(&commits, of);
        assert_eq!(rows[0], row(1, 1, 2));
        assert_eq!(rows[1].repository, lifetime(2));
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].agent_plausible(), 4);
        assert_eq!(shares(&[], of), []);
    }

    #[test]
    fn the_share_and_its_interval_follow_from_the_counts() {
        let half = row(1, 1, 0).share();
        assert_near(half.rate_or_zero(), 0.5);
        assert_near(half.wilson()[0], 0.094_531_205_734_230_73);
        assert_near(half.wilson()[1], 0.905_468_794_265_769_4);
    }

    #[test]
    fn a_decline_raises_an_alert_if_there_are_enough_commits() {
        let (current, baseline) = ([row(2, 0, 8)], [row(9, 1, 0)]);
        let raised = alerts(&current, &baseline, cases_for_margin(0.5));
        assert_eq!(raised.len(), 1);
        assert_eq!(raised[0].kind, AttributionAlertKind::SustainedDecline);
        assert_eq!(raised[0].baseline.as_ref(), Some(&baseline[0]));
        assert_eq!(cases_for_margin(0.1), DECLINE_CASES_MIN);
        assert_eq!(alerts(&current, &baseline, DECLINE_CASES_MIN), []);
        assert_eq!(alerts(&current, &[], 1), []);
        let grown = alerts(&[row(9, 1, 0)], &[row(2, 0, 8)], 1);
        assert_eq!(grown, []);
        // The intervals touch.
        assert_eq!(alerts(&[row(5, 0, 5)], &baseline, 1), []);
        let of_another = ShareRow {
            repository: lifetime(2),
            ..row(9, 1, 0)
        };
        assert_eq!(alerts(&current, &[of_another], 1), []);
    }

    #[test]
    fn a_share_of_zero_raises_an_alert_even_without_a_baseline() {
        let raised = alerts(&[row(0, 1, 0)], &[], 1_000);
        assert_eq!(raised[0].kind, AttributionAlertKind::ZeroShare);
        assert_eq!(raised[0].baseline, None);
        let raised = alerts(&[row(0, 0, 9)], &[row(9, 1, 0)], 1);
        assert_eq!(raised.len(), 1);
        assert_eq!(raised[0].kind, AttributionAlertKind::ZeroShare);
        assert_eq!(raised[0].baseline, Some(row(9, 1, 0)));
    }

    #[test]
    fn the_baseline_ends_at_the_start_of_the_window() {
        let window = window();
        assert_eq!(window.start, at(33 * DAY));
        for (seconds, current, baseline) in [
            (40 * DAY, true, false),
            (40 * DAY + 1, false, false),
            (33 * DAY, true, false),
            (33 * DAY - 1, false, true),
            (5 * DAY, false, true),
            (5 * DAY - 1, false, false),
        ] {
            assert_eq!(window.holds(at(seconds)), current, "{seconds}");
            assert_eq!(window.is_baseline(at(seconds)), baseline, "{seconds}");
        }
        let first = Instant::from_microseconds(5).unwrap();
        assert_eq!(Window::days_before(first, 7).start.microseconds(), 0);
        assert_eq!(Window::days_before(first, i64::MAX).start.microseconds(), 0);
    }
}
