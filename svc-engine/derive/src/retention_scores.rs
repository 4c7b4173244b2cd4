//! Summaries of retention scores, in the form of replies.

use svc_model::reports::{RetentionScores, ScoreDistribution, ThresholdShare};

use super::statistics::summarize;

/// Thresholds; the scores below each are counted.
pub const THRESHOLDS: [f64; 3] = [0.8, 0.9, 1.0];

/// Summarizes scores from 0 to 1 in any order.
pub fn scores(scores: Vec<f64>) -> RetentionScores {
    let summary = summarize(scores, &THRESHOLDS);
    RetentionScores {
        distribution: ScoreDistribution {
            count: summary.count,
            mean: summary.mean,
            median: summary.median,
            p10: summary.p10,
            p90: summary.p90,
        },
        thresholds: summary
            .thresholds
            .into_iter()
            .map(|share| ThresholdShare {
                threshold: share.threshold,
                below: share.below.numerator,
                total: share.below.denominator,
                rate: share.below.rate(),
            })
            .collect(),
    }
}
