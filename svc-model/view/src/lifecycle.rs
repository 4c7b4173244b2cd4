//! The report of accepted work, and that of merge retention.

use std::fmt::Display;

use svc_model::reports::{
    Counts, Coverage, EditRetention, LifecycleReport, MergeRetentionReport, Stage, Unobservable,
};

use crate::models::Line;
use crate::surface::Surface;

/// What has to be said where panels stand below each other.
pub const PANELS: &str =
    "Each panel has a unit of its own: counts of different panels do not add up.";
/// What has to be said of the stages.
pub const NOT_IN_A_STAGE: &str =
    "Accepts by rules do not count. Who is not in a stage did not fail it.";
/// What has to be said of the stages if content was erased.
pub const STAGE_WITHOUT_ERASED: &str =
    "Calls whose content was erased are in no stage and in no rate.";
/// What has to be said of pull requests.
pub const NOT_EVERY_PULL_REQUEST: &str = "the forge may not have reported every pull request; for \
                                          investigation only, not ranking.";
/// What has to be said of scores.
pub const SCORES: &str = "What is left of the added text, from 0 to 1: a lower bound on retention.";
/// What has to be said of the absence of a commit.
pub const NO_COMMIT: &str = "That no commit was observed does not mean that there was none";

/// Returns the stages of accepted work, with why a stage is unknown, if it is.
pub fn stages(
    report: &LifecycleReport,
) -> impl Iterator<Item = (&'static str, &Stage, Option<Unobservable>)> + Clone {
    let names = [
        "attributed to a commit",
        "in one merged pull request",
        "seen by CI",
        "with a CI verdict",
    ];
    let stages = names.into_iter().zip(report.stages_unobservable());
    stages.map(|(name, (stage, why))| (name, stage, why))
}

impl Surface {
    /// Returns counts by reason, if there are any.
    pub(crate) fn some<K: Copy + Ord + Display>(
        self,
        what: &str,
        counts: &Counts<K>,
    ) -> Option<Line> {
        (!counts.is_empty()).then(|| (what.to_owned(), self.counts(counts)))
    }

    /// Returns what is left out because its repository cannot be determined, if anything.
    pub(crate) fn of_unknown_repositories<K: Copy + Ord + Display>(
        self,
        what: &str,
        counts: &Counts<K>,
    ) -> Option<Line> {
        self.some(&format!("repository not known, {what}"), counts)
    }

    /// Returns what of a report of accepted work has no known repository.
    pub fn unknown_repositories(self, report: &LifecycleReport) -> Vec<Line> {
        let skipped = &report.repository_skipped;
        let all = [
            self.of_unknown_repositories("observations", &skipped.session_observations),
            self.of_unknown_repositories("sources of Attribution", &skipped.attribution_sources),
            self.of_unknown_repositories("CI outcomes", &skipped.ci_population_outcomes),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns what a panel has evidence of, and what it lacks.
    pub fn coverage<M: Copy + Ord + Display>(self, coverage: &Coverage<M>) -> Vec<Line> {
        let observed = ("evidence of".to_owned(), self.whole(coverage.observed));
        let lacking = [
            self.some("no evidence of", &coverage.missing),
            self.some(
                "an integration does not send",
                &coverage.unsupported_by_integration,
            ),
            self.some("ambiguous", &coverage.ambiguous),
        ];
        let lacking = lacking.into_iter().flatten();
        std::iter::once(observed).chain(lacking).collect()
    }

    /// Returns the Fates of edits, with the number of each.
    pub fn fates(self, panel: &EditRetention) -> [(String, u64); 3] {
        [
            ("unmodified", panel.unmodified),
            ("partially_modified", panel.partially_modified),
            ("deleted", panel.deleted),
        ]
        .map(|(fate, count)| (self.word(fate), count))
    }

    /// Says how many lines of edited files came from elsewhere.
    pub fn external_lines(self, panel: &EditRetention) -> String {
        format!(
            "{} added, {} removed, in {} edits that count them; not by whom",
            self.whole(panel.external_lines_added),
            self.whole(panel.external_lines_removed),
            self.whole(panel.known_external_line_counts)
        )
    }

    /// Returns what the report of merge retention does not count.
    pub fn not_counted(self, report: &MergeRetentionReport) -> Vec<Line> {
        let skipped = &report.repository_skipped;
        let line = |what: &str, counts: String| Some((what.to_owned(), counts));
        let all = [
            line(
                "without an Attribution",
                self.counts(&report.attribution_skips),
            ),
            line(
                "decisions of no call",
                self.counts(&report.decision_attachment_skips),
            ),
            self.of_unknown_repositories("observations", &skipped.session_observations),
            self.of_unknown_repositories("edges", &skipped.candidate_edges),
        ];
        all.into_iter().flatten().collect()
    }
}
