//! Whether models compare the same way within repositories.

use svc_model::reports::{AdjustedComparison, ModelRate, RateComparison, Reversal};

use crate::surface::Surface;

impl Surface {
    /// Says how two models differ over all, and within repositories.
    pub fn adjusted(self, compared: &AdjustedComparison) -> String {
        format!(
            "{}: {:+.4} over all ({}), {:+.4} within {} repositories",
            self.two(&compared.left_model, &compared.right_model),
            compared.naive_delta,
            cases(&compared.aggregate_left, &compared.aggregate_right),
            compared.adjusted_delta,
            compared.compared_repos
        )
    }

    /// Says that two models differ the other way round in a repository: what comes before its name,
    /// and what comes after.
    pub fn reversed(self, compared: &RateComparison, reversal: &Reversal) -> [String; 2] {
        let two = self.two(&compared.left_model, &compared.right_model);
        let differences = format!(
            ": {:+.4} ({}), {:+.4} over all ({})",
            reversal.repo_delta,
            cases(&reversal.left, &reversal.right),
            reversal.aggregate_delta,
            cases(&reversal.aggregate_left, &reversal.aggregate_right)
        );
        [format!("{two}: the other way round in "), differences]
    }

    fn two(self, left: &str, right: &str) -> String {
        let (left, right) = (self.escape(left), self.escape(right));
        format!("{left} {} {right}", self.minus)
    }
}

/// Returns how many cases a difference is based on.
fn cases(left: &ModelRate, right: &ModelRate) -> String {
    let of = |rate: &ModelRate| format!("{} of {}", rate.numerator, rate.denominator);
    format!("{} and {}", of(left), of(right))
}
