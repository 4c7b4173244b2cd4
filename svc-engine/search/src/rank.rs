//! Ranks passages, parts and Sessions: policy `search-2`. Nothing here reads a file.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::part::FREQUENCIES;

/// How quickly further occurrences of a word add less to a score.
const SATURATION: f64 = 1.2;
/// How much the length of a passage counts.
const LENGTH: f64 = 0.75;
/// What the best parts of a Session add to its score, best first.
const SESSION_WEIGHTS: [f64; 3] = [1.0, 0.3, 0.1];
/// How much of its weight a word keeps that stands for one with a typing error.
pub(crate) const TYPING_ERROR: f64 = 0.7;

/// Returns the weight of a word that `found` of `all` passages contain.
#[expect(clippy::cast_precision_loss, reason = "a weight need not be exact")]
pub(crate) fn word_weight(found: u64, all: u64) -> f64 {
    let (found, all) = (found as f64, all.max(found) as f64);
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
}

/// Returns what a word adds to the score of a passage, per weight of the word. `marks` says how
/// frequent it is there.
pub(crate) fn passage_share(marks: usize, length: u16, mean_length: f64) -> f64 {
    let frequency = FREQUENCIES[marks.min(FREQUENCIES.len() - 1)];
    let relative = f64::from(length) / mean_length;
    let divisor = frequency + SATURATION * (1.0 - LENGTH + LENGTH * relative);
    frequency * (SATURATION + 1.0) / divisor
}

/// Returns what of its score a part keeps that stands in so many Sessions: what all Sessions share
/// says little about one of them.
#[expect(clippy::cast_precision_loss, reason = "a weight need not be exact")]
pub(crate) fn part_share(sessions: usize) -> f64 {
    1.0 / (1.0 + (sessions.max(1) as f64).ln())
}

/// Returns the score of a Session whose parts have these scores, best first.
pub fn session_score(parts: impl Iterator<Item = f64>) -> f64 {
    parts
        .zip(SESSION_WEIGHTS)
        .map(|(score, weight)| score * weight)
        .sum()
}

/// The scores of passages, by row.
#[derive(Debug, Default)]
pub(crate) struct PassageScores(HashMap<i64, f64, RandomState>);

impl PassageScores {
    /// Adds to the score of a passage, which is new only if `is_open`.
    pub(crate) fn add(&mut self, row: i64, score: f64, is_open: bool) {
        if is_open {
            *self.0.entry(row).or_default() += score;
        } else if let Some(known) = self.0.get_mut(&row) {
            *known += score;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, row: i64) -> bool {
        self.0.contains_key(&row)
    }

    /// Returns the passages, best first, equal ones by row.
    pub(crate) fn sorted(&self) -> Vec<(i64, f64)> {
        let mut sorted: Vec<(i64, f64)> =
            self.0.iter().map(|(row, score)| (*row, *score)).collect();
        sorted.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_short_passages_count_for_more() {
        assert!(word_weight(1, 1_000) > word_weight(100, 1_000));
        assert!(word_weight(1_000, 1_000) > 0.0);
        assert!(word_weight(2, 1) > 0.0, "an estimate may be too high");
        assert!(passage_share(0, 10, 20.0) > passage_share(0, 40, 20.0));
        assert!(passage_share(2, 20, 20.0) > passage_share(1, 20, 20.0));
        assert!(passage_share(9, 20, 20.0) < SATURATION + 1.0);
    }

    #[test]
    fn the_second_and_the_third_part_add_to_a_session() {
        let score = |parts: &[f64]| session_score(parts.iter().copied());
        for (parts, expected) in [(vec![10.0], 10.0), (vec![10.0; 4], 14.0), (vec![], 0.0)] {
            assert!((score(&parts) - expected).abs() < 1e-9, "{parts:?}");
        }
    }

    #[test]
    fn what_many_sessions_share_counts_for_less() {
        assert!((part_share(1) - 1.0).abs() < 1e-9);
        assert!(part_share(100) < 0.2);
    }
}
