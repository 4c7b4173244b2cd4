//! The comparison of two models.

use svc_model::reports::{ModelRow, NonInferiorityTest, RateTest, Unobservable};

use crate::surface::Surface;

/// What has to be said of significance.
pub const LOOK_ONCE: &str = "Look once: every further look at growing data makes a false \
                             difference more likely.";
/// What has to be said where non-inferiority is not shown.
pub const NOT_SHOWN: &str = "Not shown is not the same as worse: it may take more cases.";

/// Returns the metrics that are observable, with their names.
pub fn known<T: Clone>(
    tests: [T; 2],
    why: Option<Unobservable>,
) -> impl Iterator<Item = (&'static str, T)> + Clone {
    let names = ["ci_pass_rate", "attribution_rate"];
    let count = if why.is_some() { 1 } else { 2 };
    names.into_iter().zip(tests).take(count)
}

/// Returns the first of two models of which nothing could have been observed, and why.
pub fn unknown_of<'r>(rows: &'r [ModelRow], models: [&str; 2]) -> Option<(&'r str, Unobservable)> {
    let row = |model| rows.iter().find(|row| row.model == model);
    let mut rows = models.into_iter().filter_map(row);
    rows.find_map(|row| Some((row.model.as_str(), row.unobservable()?)))
}

/// Returns the interval of a difference, if there is one. Newcombe's is named.
pub fn interval(test: &RateTest) -> Option<String> {
    let (low, high) = test.interval()?;
    let kind = if test.is_without_variance() {
        " (Newcombe)"
    } else {
        ""
    };
    Some(format!("{low:.4} to {high:.4}{kind}"))
}

/// Says how small a difference is found with the cases of a test, if that can be said.
pub fn least_difference(test: &RateTest) -> Option<String> {
    Some(match test.minimum_detectable_effect {
        // If both rates are 0 or 1, there is no error to derive it from.
        _ if test.degenerate_se => {
            "every case has the same result, so nothing says how small a difference is found."
                .to_owned()
        }
        Some(effect) if effect <= 1.0 => format!(
            "with this many cases, a difference of {effect:.4} is found four times out of five."
        ),
        Some(_) => "with so few cases, hardly any difference is found.".to_owned(),
        None => return None,
    })
}

impl Surface {
    /// Says whether a difference is significant.
    pub fn significance(self, test: &RateTest) -> String {
        if test.insufficient_data {
            // Nothing was tested.
            self.none.to_owned()
        } else if test.significant_after_bonferroni {
            "corrected".to_owned()
        } else if test.significant_at_alpha {
            self.word("raw_only")
        } else {
            "no".to_owned()
        }
    }

    /// Says whether model B is worse than A by at most the margin.
    pub fn answer(self, test: &NonInferiorityTest) -> &'static str {
        if test.insufficient_data || test.is_non_inferior && test.lower_bound().is_none() {
            self.none
        } else if test.is_non_inferior {
            "yes"
        } else {
            "not shown"
        }
    }
}
