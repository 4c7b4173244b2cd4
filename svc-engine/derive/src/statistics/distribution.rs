//! Summaries of scores from 0 to 1.

use super::{Proportion, real};

/// How many scores are below a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The threshold.
    pub threshold: f64,
    /// How many scores are below it, out of all.
    pub below: Proportion,
}

/// A summary of a set of scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of scores.
    pub count: u64,
    /// Their mean; `None` without scores.
    pub mean: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The 10th percentile.
    pub p10: Option<f64>,
    /// The 90th percentile.
    pub p90: Option<f64>,
    /// The requested thresholds, in their order.
    pub thresholds: Vec<Threshold>,
}

/// Summarizes scores in any order, none of which is NaN.
pub fn summarize(mut scores: Vec<f64>, thresholds: &[f64]) -> Summary {
    // Sorting also makes the sum independent of the original order.
    scores.sort_unstable_by(f64::total_cmp);
    let count = scores.len() as u64;
    let below = |threshold: f64| scores.partition_point(|score| *score < threshold) as u64;
    Summary {
        count,
        mean: (count > 0).then(|| scores.iter().sum::<f64>() / real(count)),
        median: quantile(&scores, 0.5),
        p10: quantile(&scores, 0.1),
        p90: quantile(&scores, 0.9),
        thresholds: thresholds
            .iter()
            .map(|&threshold| Threshold {
                threshold,
                below: Proportion::new(below(threshold), count),
            })
            .collect(),
    }
}

/// Returns the quantile of sorted values at `fraction`, from 0 to 1, with linear interpolation;
/// `None` without values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among the values, which is not negative"
)]
pub fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = real(last as u64) * fraction;
    let low = (position.floor() as usize).min(last);
    let (at, next) = (sorted[low], sorted[(low + 1).min(last)]);
    Some(at + (next - at) * (position - position.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scores: &[f64], expected: [f64; 4], below: [u64; 3]) {
        let mut scores = scores.to_vec();
        for _ in 0..scores.len() {
            scores.rotate_left(1);
            let summary = summarize(scores.clone(), &[0.8, 0.9, 1.0]);
            let actual = [summary.mean, summary.median, summary.p10, summary.p90];
            for (actual, expected) in actual.into_iter().zip(expected) {
                assert!((actual.unwrap() - expected).abs() < 1e-12);
            }
            let actual: Vec<u64> = summary
                .thresholds
                .iter()
                .map(|threshold| threshold.below.numerator)
                .collect();
            assert_eq!(actual, below);
        }
    }

    #[test]
    fn summaries_match_the_table() {
        check(&[0.5, 1.0], [0.75, 0.75, 0.55, 0.95], [1, 1, 1]);
        check(&[0.0, 0.5, 0.9, 1.0], [0.6, 0.7, 0.15, 0.97], [2, 2, 3]);
        let tenths: Vec<f64> = (1..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
        check(&tenths, [0.55, 0.55, 0.19, 0.91], [7, 8, 9]);
    }

    #[test]
    fn without_scores_there_is_no_mean_and_no_share() {
        let summary = summarize(Vec::new(), &[0.8]);
        assert_eq!((summary.count, summary.mean, summary.p90), (0, None, None));
        assert_eq!(summary.thresholds[0].below.rate(), None);
    }
}
