//! How good a ranking is: where the right Session stands, and whether the right part is there.

use std::time::Duration;

use serde_json::{Value, json};

/// What became of one question.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// The place of the first right Session in the ranking, from 1.
    pub(crate) rank: Option<usize>,
    /// Whether the right part is in the answer; nothing if the question names no part.
    pub(crate) packed: Option<bool>,
    pub(crate) elapsed: Duration,
}

/// Returns the place of the first ranked Session that is right, from 1.
pub(crate) fn rank<'a>(
    ranking: impl IntoIterator<Item = &'a str>,
    is_right: impl Fn(&str) -> bool,
) -> Option<usize> {
    let mut ranking = ranking.into_iter();
    ranking.position(is_right).map(|before| before + 1)
}

/// The figures of some questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) count: usize,
    pub(crate) hit_1: f64,
    pub(crate) hit_5: f64,
    pub(crate) hit_8: f64,
    /// The mean of one divided by the rank; 0 for a question without the right Session.
    pub(crate) reciprocal: f64,
    /// The share of answers with the right part, of the questions that name one.
    pub(crate) packed: Option<f64>,
    pub(crate) median: Duration,
    pub(crate) p95: Duration,
}

impl Figures {
    /// Returns the figures of outcomes.
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        let share = |hits: usize, of: usize| hits as f64 / of.max(1) as f64;
        let within = |most: usize| {
            let ranks = outcomes.iter().filter_map(|outcome| outcome.rank);
            share(ranks.filter(|rank| *rank <= most).count(), outcomes.len())
        };
        let ranks = outcomes.iter().filter_map(|outcome| outcome.rank);
        // The sum of nothing would be -0.
        let reciprocals = ranks.fold(0.0, |sum, rank| sum + 1.0 / rank as f64);
        let packed: Vec<bool> = outcomes.iter().filter_map(|one| one.packed).collect();
        let packed_hits = packed.iter().filter(|hit| **hit).count();
        let mut times: Vec<Duration> = outcomes.iter().map(|one| one.elapsed).collect();
        times.sort_unstable();
        Self {
            count: outcomes.len(),
            hit_1: within(1),
            hit_5: within(5),
            hit_8: within(8),
            reciprocal: reciprocals / outcomes.len().max(1) as f64,
            packed: (!packed.is_empty()).then(|| share(packed_hits, packed.len())),
            median: percentile(&times, 0.5),
            p95: percentile(&times, 0.95),
        }
    }

    /// Returns the figures as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "n": self.count, "hit@1": self.hit_1, "hit@5": self.hit_5, "hit@8": self.hit_8,
            "mrr": self.reciprocal, "packed": self.packed,
            "median_ms": self.median.as_secs_f64() * 1e3, "p95_ms": self.p95.as_secs_f64() * 1e3,
        })
    }
}

/// Returns the value that a share of sorted values does not exceed (nearest rank).
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let place = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or_default()
}

/// Returns whether a text contains another one, if white space is all the same.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    squeezed(text).contains(&squeezed(part))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rank: Option<usize>, packed: Option<bool>, milliseconds: u64) -> Outcome {
        Outcome {
            rank,
            packed,
            elapsed: Duration::from_millis(milliseconds),
        }
    }

    #[test]
    fn a_rank_is_that_of_the_first_right_session() {
        let ranking = ["a", "b", "c"];
        assert_eq!(rank(ranking, |session| session != "a"), Some(2));
        assert_eq!(rank(ranking, |session| session == "x"), None);
    }

    #[test]
    fn figures_are_means_over_all_questions() {
        let figures = Figures::of(&[
            outcome(Some(1), Some(true), 1),
            outcome(Some(2), Some(false), 2),
            outcome(Some(8), None, 3),
            outcome(None, Some(false), 4),
        ]);
        assert_eq!(figures.count, 4);
        assert!((figures.hit_1 - 0.25).abs() < 1e-9);
        assert!((figures.hit_5 - 0.5).abs() < 1e-9);
        assert!((figures.hit_8 - 0.75).abs() < 1e-9);
        assert!((figures.reciprocal - (1.0 + 0.5 + 0.125) / 4.0).abs() < 1e-9);
        assert_eq!(figures.packed, Some(1.0 / 3.0));
        assert_eq!(figures.median, Duration::from_millis(2));
        assert_eq!(figures.p95, Duration::from_millis(4));
    }

    #[test]
    fn no_question_has_no_figures() {
        let figures = Figures::of(&[]);
        assert_eq!((figures.count, figures.packed), (0, None));
        assert!(figures.reciprocal.abs() < 1e-9 && figures.p95.is_zero());
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 0.5), Duration::from_millis(50));
        assert_eq!(percentile(&times, 0.99), Duration::from_millis(99));
        assert_eq!(percentile(&times, 1.0), Duration::from_millis(100));
    }

    #[test]
    fn white_space_does_not_matter() {
        assert!(contains("a\n  b c", "b\tc"));
        assert!(!contains("ab", "a b"));
    }
}
