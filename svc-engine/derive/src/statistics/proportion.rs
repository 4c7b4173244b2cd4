//! A part of a whole, with its rate and interval.

use super::{Z_975, real};

/// How many out of how many. The rate and the interval are computed here and nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// How many; at most the denominator.
    pub numerator: u64,
    /// Out of how many.
    pub denominator: u64,
}

impl Proportion {
    /// Returns `numerator` out of `denominator`.
    pub const fn new(numerator: u64, denominator: u64) -> Self {
        Self {
            numerator,
            denominator,
        }
    }

    /// Returns the rate; `None` if the denominator is zero.
    pub fn rate(self) -> Option<f64> {
        (self.denominator > 0).then(|| real(self.numerator) / real(self.denominator))
    }

    /// Returns the rate, or zero if the denominator is zero.
    pub fn rate_or_zero(self) -> f64 {
        self.rate().unwrap_or(0.0)
    }

    /// Returns Wilson's 95 % interval of the rate, from 0 to 1; `[0, 0]` if the denominator is
    /// zero.
    pub fn wilson(self) -> [f64; 2] {
        let Some(rate) = self.rate() else {
            return [0.0, 0.0];
        };
        let n = real(self.denominator);
        let squared = Z_975 * Z_975;
        let scale = 1.0 + squared / n;
        let centre = (rate + squared / (2.0 * n)) / scale;
        let half = Z_975 * ((rate * (1.0 - rate) + squared / (4.0 * n)) / n).sqrt() / scale;
        // For none and for all, one end is known exactly; rounding would only add noise.
        let low = if self.numerator == 0 {
            0.0
        } else {
            centre - half
        };
        let high = if self.numerator == self.denominator {
            1.0
        } else {
            centre + half
        };
        [low.clamp(0.0, 1.0), high.clamp(0.0, 1.0)]
    }
}

/// Returns how many cases a rate needs so that its 95 % interval extends at most `margin` to each
/// side, whatever the rate is. At least one, since without cases there is no interval. `margin`
/// must be greater than zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is positive, and one too large for the type is more than anybody has"
)]
pub fn cases_for_margin(margin: f64) -> u64 {
    // The square of a margin may underflow, and the quotient overflow; the cast saturates.
    (Z_975 * Z_975 * 0.25 / (margin * margin)).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_the_table() {
        for (numerator, denominator, low, high) in [
            (0, 1, 0.0, 0.793_450_685_622_762_6),
            (1, 1, 0.206_549_314_377_237_45, 1.0),
            (0, 2, 0.0, 0.657_619_772_493_346_9),
            (1, 2, 0.094_531_205_734_230_74, 0.905_468_794_265_769_4),
            (1, 4, 0.045_587_260_809_700_6, 0.699_358_157_417_598),
            (7, 10, 0.396_778_147_461_145_37, 0.892_208_732_593_698_9),
            (50, 100, 0.403_831_530_365_995_7, 0.596_168_469_634_004_4),
            (0, 100, 0.0, 0.036_993_498_206_985_66),
            (9, 10, 0.595_849_973_204_761_6, 0.982_123_786_904_927),
            (2, 10, 0.056_682_151_454_375_246, 0.509_837_528_463_358_2),
        ] {
            let [actual_low, actual_high] = Proportion::new(numerator, denominator).wilson();
            assert!(
                (actual_low - low).abs() < 1e-12,
                "{numerator}/{denominator}"
            );
            assert!(
                (actual_high - high).abs() < 1e-12,
                "{numerator}/{denominator}"
            );
        }
        assert_eq!(Proportion::new(0, 0).wilson().map(f64::to_bits), [0, 0]);
        assert_eq!(Proportion::new(0, 0).rate(), None);
    }

    #[test]
    fn an_interval_contains_its_rate() {
        for denominator in 1..200 {
            for numerator in 0..=denominator {
                let proportion = Proportion::new(numerator, denominator);
                let [low, high] = proportion.wilson();
                let rate = proportion.rate().unwrap();
                assert!(0.0 <= low && low <= rate && rate <= high && high <= 1.0);
            }
        }
    }

    #[test]
    fn the_cases_needed_for_a_margin_match_the_table() {
        for (margin, cases) in [
            (0.01, 9604),
            (0.05, 385),
            (0.1, 97),
            (0.2, 25),
            (0.5, 4),
            (0.9, 2),
            (1.0, 1),
            (1e200, 1),
            (f64::MAX, 1),
            (f64::INFINITY, 1),
            (1e-300, u64::MAX),
        ] {
            assert_eq!(cases_for_margin(margin), cases, "{margin}");
        }
    }
}
