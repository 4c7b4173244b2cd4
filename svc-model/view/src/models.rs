//! The report of models.

use std::collections::BTreeMap;

use svc_model::reports::{Counts, ModelReport, ModelRow, Unobservable};

use crate::surface::Surface;

/// What `attribution_rate` is.
pub const ATTRIBUTION_RATE: &str = "calls whose output is found in a file of a pushed commit; a \
                                    lower bound on retention, since what was edited much is not \
                                    found again.";
/// What was said of something.
pub type Line = (String, String);

/// Returns how many calls of a model are attributed, and of how many: of those of which a commit
/// could have been seen. If there are none, the rate is unknown for a reason, and all count.
pub fn attribution(row: &ModelRow) -> (u64, u64, Option<Unobservable>) {
    let why = row.unobservable();
    let cases = match why {
        Some(_) => row.attribution_cases(),
        None => row.observable_cases(),
    };
    (row.attributed_inference_calls, cases, why)
}

impl Surface {
    /// Returns what a report leaves out, by where, each with its counts by reason.
    pub fn left_out_of_models(self, report: &ModelReport) -> Vec<Line> {
        let (ci, unknown) = (&report.ci_skipped, &report.repository_skipped);
        let line = |what: &str, counts: String| Some((what.to_owned(), counts));
        let all = [
            line("edits without a Fate", self.counts(&report.fate_skipped)),
            line("CI runs left out", self.counts(&ci.runs)),
            line("commits without one CI verdict", self.counts(&ci.commits)),
            self.some("CI outcomes", &ci.source_outcomes),
            self.of_unknown_repositories("pushes", &unknown.push_sources),
            self.of_unknown_repositories(
                "observations, of the shares too",
                &unknown.preload_session_observations,
            ),
            self.of_unknown_repositories("observations", &unknown.session_observations),
            self.of_unknown_repositories("edges", &unknown.attribution_edges),
            self.of_unknown_repositories("all of the rows", &unknown.assembly_sources),
        ];
        all.into_iter().flatten().collect()
    }

    /// Says of how many calls of a model no commit could have been seen, and why, if of any.
    pub fn unobservable_calls(self, row: &ModelRow) -> Option<String> {
        self.unobservable(row.attribution_cases(), &row.attribution_unobservable)
    }

    /// Says of how many calls of a report no commit could have been seen, and why, if of any.
    pub fn unobservable_calls_of_all(self, report: &ModelReport) -> Option<String> {
        let cases = report.rows.iter().map(ModelRow::attribution_cases).sum();
        self.unobservable(cases, &report.attribution_unobservable())
    }

    fn unobservable(self, calls: u64, reasons: &Counts<Unobservable>) -> Option<String> {
        let said =
            |(why, count): (Unobservable, u64)| format!("{} ({})", why.reason(), self.whole(count));
        let said: Vec<String> = reasons.iter().map(said).collect();
        let (all, unobservable) = (self.whole(calls), self.whole(reasons.total()));
        let said = said.join(", ");
        (!reasons.is_empty())
            .then(|| format!("of {all} calls, {unobservable} not observable: {said}"))
    }

    /// Says that no CI verdict counts for a model, if it has attributed calls and none does.
    pub fn unjudged_calls(self, row: &ModelRow) -> Option<String> {
        let attributed = row.attributed_inference_calls;
        (row.ci_linked == 0 && attributed > 0).then(|| {
            format!(
                "ci_pass_rate not observable: no CI verdict counts for the commits of {} attributed calls",
                self.whole(attributed)
            )
        })
    }

    /// Returns the mean similarity of a model's attributed calls.
    pub fn similarity(self, row: &ModelRow) -> String {
        let is_attributed = row.attributed_inference_calls > 0;
        self.decimal(is_attributed.then_some(row.mean_similarity))
    }

    /// Returns failures by workflow.
    pub fn workflows(self, failures: &BTreeMap<String, u64>) -> String {
        if failures.is_empty() {
            return "none".to_owned();
        }
        let failures: Vec<String> = failures
            .iter()
            .map(|(name, count)| format!("{} {}", self.escape(name), self.whole(*count)))
            .collect();
        failures.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONSOLE, SHELL};

    fn row(attributed: u64, reasons: &[(Unobservable, u64)]) -> ModelRow {
        let row = serde_json::json!({
            "model": "m", "since_days": null, "completions": 1_205,
            "attributed_inference_calls": attributed, "attribution_rate": 0.0,
            "attribution_rate_ci": [0.0, 0.0], "ci_linked": 0, "ci_passed": 0, "ci_pass_rate": 0.0,
            "ci_pass_rate_ci": [0.0, 0.0], "explicit_accepts": 0, "explicit_rejects": 0,
            "mean_similarity": 0.0, "grain": "commit", "ci_failures_by_workflow": {},
            "provenance": {"policy_version": "3", "quarantine_revision": 0, "policy_digest": null},
            "explicit_rejects_by_agent_harness": {}, "fates": {}, "explicit_accept_fates": {},
            "fates_with_external_changes": {}, "session_commit_unobserved": 0,
            "session_commit_observation_ids": [], "completions_skipped": {"content_erased": 5},
        });
        let mut row: ModelRow = serde_json::from_value(row).unwrap();
        row.attribution_unobservable = reasons.iter().copied().collect();
        row
    }

    #[test]
    fn a_rate_is_of_the_calls_that_could_have_been_observed() {
        let (push, mirror) = (Unobservable::NoPush, Unobservable::NoMirror);
        assert_eq!(attribution(&row(2, &[])), (2, 1_200, None));
        assert_eq!(attribution(&row(2, &[(push, 1_100)])), (2, 100, None));
        let none = row(0, &[(push, 1_150), (mirror, 50)]);
        assert_eq!(attribution(&none), (0, 1_200, Some(push)));
        assert_eq!(
            SHELL.unobservable_calls(&none).as_deref(),
            Some(
                "of 1200 calls, 1200 not observable: no mirror of what was pushed near the calls was \
                 readable (50), no push was received near the calls (1150)"
            )
        );
        let said = CONSOLE.unobservable_calls(&row(2, &[(push, 1_100)]));
        assert_eq!(
            said.as_deref(),
            Some(
                "of 1\u{202f}200 calls, 1\u{202f}100 not observable: no push was received near the calls (1\u{202f}100)"
            )
        );
        assert_eq!(SHELL.unobservable_calls(&row(2, &[])), None);
    }

    #[test]
    fn attributed_calls_without_a_verdict_are_named() {
        let said = SHELL.unjudged_calls(&row(2, &[]));
        assert!(said.is_some_and(|said| said.ends_with("commits of 2 attributed calls")));
        assert_eq!(SHELL.unjudged_calls(&row(0, &[])), None);
    }
}
