//! The posterior of two proportions given their counts, with a uniform (Beta(1, 1)) prior.
//!
//! The parameters are integers, so nothing has to be sampled: the probability that one rate exceeds
//! the other is a tail of a hypergeometric distribution, and the distribution function of a rate is
//! a tail of a binomial one.

use super::{Proportion, real};

/// The posterior of two rates, A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posteriors {
    /// The mean of A.
    pub mean_a: f64,
    /// The mean of B.
    pub mean_b: f64,
    /// The probability that A is greater than B.
    pub probability_a_greater: f64,
    /// The ends of the central 95 % interval of A minus B.
    pub interval: [f64; 2],
}

/// Returns the posterior of two rates; `None` if a side has no cases, because the result would only
/// repeat the prior.
pub fn posteriors(a: Proportion, b: Proportion) -> Option<Posteriors> {
    if a.denominator == 0 || b.denominator == 0 {
        return None;
    }
    let (a, b) = (Beta::after(a), Beta::after(b));
    Some(Posteriors {
        mean_a: a.mean(),
        mean_b: b.mean(),
        probability_a_greater: a.greater_than(b),
        interval: a.less(b),
    })
}

/// The probability that lies outside the interval, on each side.
const TAIL: f64 = 0.025;

/// A term this small relative to the largest cannot change a printed digit, even in a sum.
const NEGLIGIBLE: f64 = 1e-22;

/// How often an interval from -1 to 1 is halved to get below the resolution of an `f64`.
const HALVINGS: u32 = 54;

/// How many deviations around its mean a density is integrated. Its slowest tails fall as
/// `exp(-x)`.
const REACH: f64 = 50.0;

/// Quadrature panels per deviation.
const PANELS: f64 = 2.0;

/// The nodes of eight-point Gauss-Legendre quadrature, with their weights. Both are symmetric.
const NODES: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// A Beta distribution with integer parameters, each at least 1.
#[derive(Clone, Copy, Debug)]
struct Beta {
    a: u64,
    b: u64,
}

impl Beta {
    const fn after(counts: Proportion) -> Self {
        Self {
            a: counts.numerator + 1,
            b: counts.denominator.saturating_sub(counts.numerator) + 1,
        }
    }

    fn mean(self) -> f64 {
        real(self.a) / real(self.a + self.b)
    }

    fn deviation(self) -> f64 {
        (self.mean() * (1.0 - self.mean()) / real(self.a + self.b + 1)).sqrt()
    }

    /// Returns the probability that this is greater than the other. This is distributed as the a-th
    /// smallest of a + b - 1 uniform points, and the other as that of its own points. Which of the
    /// two comes first depends on how many of the first points of both sets together are the
    /// other's.
    fn greater_than(self, other: Self) -> f64 {
        let own = self.a + self.b - 1;
        let others = other.a + other.b - 1;
        let first = self.a + other.a - 1;
        let ratio =
            |k: u64| real(others - k) / real(k + 1) * real(first - k) / real(own + k + 1 - first);
        let lowest = first.saturating_sub(own);
        let highest = first.min(others);
        let mode = (real(first + 1) * real(others + 1) / real(own + others + 2)).floor();
        upper_tail(lowest, highest, mode, other.a, ratio)
    }

    /// Returns the probability of a value below `x`: that of at least `a` successes in a + b - 1
    /// trials.
    fn below(self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        if x >= 1.0 {
            return 1.0;
        }
        let trials = self.a + self.b - 1;
        let odds = x / (1.0 - x);
        let ratio = |k: u64| real(trials - k) / real(k + 1) * odds;
        upper_tail(0, trials, (real(trials + 1) * x).floor(), self.a, ratio)
    }

    /// Returns the density at `x`, from 0 to 1, relative to its maximum.
    fn density(self, x: f64) -> f64 {
        let power = |base: f64, top: f64, exponent: u64| {
            if exponent == 0 {
                0.0
            } else {
                real(exponent) * libm::log(base / top)
            }
        };
        let (up, down) = (self.a - 1, self.b - 1);
        let both = up + down;
        if both == 0 {
            return 1.0;
        }
        let top = real(up) / real(both);
        libm::exp(power(x, top, up) + power(1.0 - x, 1.0 - top, down))
    }

    /// Returns the ends of the central 95 % interval of this minus the other.
    fn less(self, other: Self) -> [f64; 2] {
        if self.deviation() < other.deviation() {
            // Integrates over the narrower one; relative to it, the other one is smooth.
            let [low, high] = other.less(self);
            return [-high, -low];
        }
        let end = |share: f64| {
            let (mut low, mut high) = (-1.0, 1.0);
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(low, high);
                if self.less_below(other, middle) < share {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            f64::midpoint(low, high)
        };
        [end(TAIL), end(1.0 - TAIL)]
    }

    /// Returns the probability that this minus the other is below `difference`.
    fn less_below(self, other: Self, difference: f64) -> f64 {
        let (mean, deviation) = (other.mean(), other.deviation());
        let (mut below, mut all) = (0.0, 0.0);
        let mut add = |from: f64, to: f64| {
            let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
            for (node, weight) in NODES {
                for x in [middle - half * node, middle + half * node] {
                    let mass = half * weight * other.density(x);
                    if mass > NEGLIGIBLE * deviation {
                        all += mass;
                        below += mass * self.below(x + difference);
                    }
                }
            }
        };
        let last = (mean + REACH * deviation).min(1.0);
        let mut from = (mean - REACH * deviation).max(0.0);
        while from < last {
            let mut to = (from + deviation / PANELS).min(last);
            // The integrand is not smooth where the other's range begins and ends, so a panel ends
            // there.
            for edge in [-difference, 1.0 - difference] {
                if from < edge && edge < to {
                    to = edge;
                }
            }
            add(from, to);
            from = to;
        }
        below / all
    }
}

/// Returns the probability of `from` and above in a distribution over integers. The terms rise up
/// to the mode and fall after it; `ratio` is that of the next term to the one at a place. Starting
/// at the largest term avoids overflow and underflow.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the mode is a place among the integers"
)]
fn upper_tail(lowest: u64, highest: u64, mode: f64, from: u64, ratio: impl Fn(u64) -> f64) -> f64 {
    let mode = (mode as u64).clamp(lowest, highest);
    let (mut above, mut below) = (0.0, 0.0);
    let mut add = |place: u64, term: f64| {
        if place >= from {
            above += term;
        } else {
            below += term;
        }
    };
    add(mode, 1.0);
    let (mut place, mut term) = (mode, 1.0);
    while place < highest && term > NEGLIGIBLE {
        term *= ratio(place);
        place += 1;
        add(place, term);
    }
    (place, term) = (mode, 1.0);
    while place > lowest && term > NEGLIGIBLE {
        place -= 1;
        term /= ratio(place);
        add(place, term);
    }
    above / (above + below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: [u64; 4]) -> Posteriors {
        let [xa, na, xb, nb] = counts;
        posteriors(Proportion::new(xa, na), Proportion::new(xb, nb)).unwrap()
    }

    /// Computed with integer fractions, from the polynomials that these distributions are.
    const EXACT: [([u64; 4], f64, [f64; 2]); 5] = [
        (
            [8, 10, 5, 10],
            0.908_668_730_650_154_7,
            [-0.122_449_091_488_661_57, 0.592_262_028_822_560_2],
        ),
        (
            [0, 3, 4, 4],
            0.007_936_507_936_507_936,
            [-0.946_780_820_212_481_4, -0.136_255_062_834_536_03],
        ),
        ([1, 2, 0, 1], 0.7, [-0.5, 0.752_069_322_410_747_5]),
        (
            [45, 50, 30, 50],
            0.999_753_024_584_98,
            [0.129_361_688_512_361_18, 0.444_565_975_504_033_9],
        ),
        (
            [1, 1, 20, 60],
            0.881_720_430_107_526_9,
            [-0.192_265_315_919_499_36, 0.687_026_544_060_145_7],
        ),
    ];

    #[test]
    fn posteriors_are_exact() {
        for (counts, greater, interval) in EXACT {
            let result = of(counts);
            assert!(
                (result.probability_a_greater - greater).abs() < 1e-12,
                "{counts:?}: {result:?}"
            );
            for (actual, expected) in result.interval.into_iter().zip(interval) {
                assert!((actual - expected).abs() < 1e-9, "{counts:?}: {result:?}");
            }
        }
        let drawn = of([8, 10, 5, 10]);
        assert!((drawn.mean_a - 0.75).abs() < 1e-15);
        assert!((drawn.mean_b - 0.5).abs() < 1e-15);
    }

    #[test]
    fn without_cases_on_both_sides_there_is_no_posterior() {
        for [xa, na, xb, nb] in [[0, 0, 0, 0], [3, 4, 0, 0], [0, 0, 3, 4]] {
            let sides = (Proportion::new(xa, na), Proportion::new(xb, nb));
            assert_eq!(posteriors(sides.0, sides.1), None);
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_the_posterior() {
        for (counts, _, _) in EXACT {
            let [xa, na, xb, nb] = counts;
            let (there, back) = (of(counts), of([xb, nb, xa, na]));
            let sum = there.probability_a_greater + back.probability_a_greater;
            assert!((sum - 1.0).abs() < 1e-12);
            assert!((there.interval[0] + back.interval[1]).abs() < 1e-9);
        }
    }

    #[test]
    fn the_posterior_of_a_large_cohort_is_nearly_normal() {
        let result = of([30_000, 50_000, 29_800, 50_000]);
        let error = ((0.6 * 0.4 + 0.596 * 0.404) / 50_000.0_f64).sqrt();
        assert!((result.probability_a_greater - super::super::phi(0.004 / error)).abs() < 1e-4);
        let reach = super::super::Z_975 * error;
        assert!((result.interval[0] - (0.004 - reach)).abs() < 1e-5);
        assert!((result.interval[1] - (0.004 + reach)).abs() < 1e-5);
        let apart = of([0, 50_000, 50_000, 50_000]);
        assert!(apart.probability_a_greater < 1e-15);
        assert!(apart.interval[1] < -0.999);
        let uneven = of([1, 1, 10, 50_000]);
        assert!((uneven.probability_a_greater - 1.0).abs() < 1e-6);
    }
}
