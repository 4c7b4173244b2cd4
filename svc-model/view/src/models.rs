//! The report of models.

use std::collections::BTreeMap;

use svc_model::reports::{ModelReport, ModelRow};

use crate::surface::Surface;

/// What `attribution_rate` is.
pub const ATTRIBUTION_RATE: &str = "calls whose output is found in a file of a pushed commit; a \
                                    lower bound on retention, since what was edited much is not \
                                    found again.";
/// What was said of something.
pub type Line = (String, String);

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
