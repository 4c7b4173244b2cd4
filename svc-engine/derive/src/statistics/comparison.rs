//! Comparing two proportions.

use super::{Proportion, Z_80, Z_95, Z_975, phi, real};

/// The probability of a false alarm in one test.
pub const ALPHA: f64 = 0.05;

/// Number of tests in one comparison: one per metric.
pub const FAMILY_SIZE: u64 = 2;

/// [`ALPHA`] divided by the number of tests in a comparison.
pub const BONFERRONI_ALPHA: f64 = 0.025;

/// With fewer cases than this on either side, the normal approximation is unreliable.
pub const SMALL_N: u64 = 30;

/// The difference of two proportions, A and B. Neither denominator is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoProportions {
    /// The rate of A.
    pub proportion_a: f64,
    /// The rate of B.
    pub proportion_b: f64,
    /// The rate of A minus that of B.
    pub difference: f64,
    /// Cohen's h of A against B.
    pub cohens_h: f64,
    /// The rate of both together.
    pub baseline_p: f64,
    /// The difference in units of the pooled standard error; 0 if that error is 0.
    pub z_stat: f64,
    /// The two-sided probability of such a difference if there is none; 1 if the pooled error is 0.
    pub p_value: f64,
    /// The lower end of the 95 % interval of the difference, not clipped.
    pub ci_low: f64,
    /// The upper end.
    pub ci_high: f64,
    /// Newcombe's hybrid score 95 % interval of the difference.
    pub score_interval: [f64; 2],
    /// The smallest difference that is detected with a power of 80 %.
    pub minimum_detectable_effect: f64,
    /// Whether the pooled rate is 0 or 1, so that the pooled error is 0.
    pub degenerate_se: bool,
    /// Whether a side has fewer than [`SMALL_N`] cases.
    pub small_n: bool,
}

/// Compares two proportions; `None` if a side has no cases.
pub fn compare(a: Proportion, b: Proportion) -> Option<TwoProportions> {
    let (rate_a, rate_b) = (a.rate()?, b.rate()?);
    let pooled = Proportion::new(a.numerator + b.numerator, a.denominator + b.denominator);
    let baseline = pooled.rate()?;
    let degenerate_se = pooled.numerator == 0 || pooled.numerator == pooled.denominator;
    let pooled_error =
        (baseline * (1.0 - baseline) * (1.0 / real(a.denominator) + 1.0 / real(b.denominator)))
            .sqrt();
    let difference = rate_a - rate_b;
    let (z_stat, p_value, minimum_detectable_effect) = if degenerate_se {
        (0.0, 1.0, 0.0)
    } else {
        let z = difference / pooled_error;
        // Doubling the small tail is more precise than subtracting something near 1 from 1.
        (z, 2.0 * phi(-z.abs()), (Z_975 + Z_80) * pooled_error)
    };
    let reach = Z_975 * unpooled_error(a, b);
    Some(TwoProportions {
        proportion_a: rate_a,
        proportion_b: rate_b,
        difference,
        cohens_h: 2.0 * libm::asin(rate_a.sqrt()) - 2.0 * libm::asin(rate_b.sqrt()),
        baseline_p: baseline,
        z_stat,
        p_value,
        ci_low: difference - reach,
        ci_high: difference + reach,
        score_interval: score_interval(a, b)?,
        minimum_detectable_effect,
        degenerate_se,
        small_n: is_small(a, b),
    })
}

/// Returns Newcombe's hybrid score 95 % interval of the rate of A minus that of B, which combines
/// Wilson's intervals of both (Newcombe 1998, method 10); `None` if a side has no cases.
fn score_interval(a: Proportion, b: Proportion) -> Option<[f64; 2]> {
    let (rate_a, rate_b) = (a.rate()?, b.rate()?);
    let ([low_a, high_a], [low_b, high_b]) = (a.wilson(), b.wilson());
    let root = |a: f64, b: f64| (a * a + b * b).sqrt();
    let difference = rate_a - rate_b;
    let low = difference - root(rate_a - low_a, high_b - rate_b);
    let high = difference + root(high_a - rate_a, rate_b - low_b);
    Some([low.max(-1.0), high.min(1.0)])
}

/// Whether B is at most a margin worse than the baseline A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NonInferiority {
    /// The rate of A.
    pub proportion_a: f64,
    /// The rate of B.
    pub proportion_b: f64,
    /// The rate of B minus that of A.
    pub point_estimate: f64,
    /// The lower bound of that difference, with a one-sided confidence of 95 %.
    pub ci_lower_bound: f64,
    /// Whether the bound lies above the negative margin.
    pub is_non_inferior: bool,
    /// Whether a side has fewer than [`SMALL_N`] cases.
    pub small_n: bool,
}

/// Tests whether B is at most `margin` worse than A; `None` if a side has no cases.
pub fn non_inferiority(a: Proportion, b: Proportion, margin: f64) -> Option<NonInferiority> {
    let (rate_a, rate_b) = (a.rate()?, b.rate()?);
    let point_estimate = rate_b - rate_a;
    let ci_lower_bound = point_estimate - Z_95 * unpooled_error(a, b);
    Some(NonInferiority {
        proportion_a: rate_a,
        proportion_b: rate_b,
        point_estimate,
        ci_lower_bound,
        is_non_inferior: ci_lower_bound > -margin,
        small_n: is_small(a, b),
    })
}

fn unpooled_error(a: Proportion, b: Proportion) -> f64 {
    let variance = |proportion: Proportion| {
        let rate = proportion.rate_or_zero();
        rate * (1.0 - rate) / real(proportion.denominator)
    };
    (variance(a) + variance(b)).sqrt()
}

/// Returns whether a side has fewer than [`SMALL_N`] cases.
pub const fn is_small(a: Proportion, b: Proportion) -> bool {
    a.denominator < SMALL_N || b.denominator < SMALL_N
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() < 1e-9,
            "{actual} is not {expected}"
        );
    }

    fn sides(counts: [u64; 4]) -> (Proportion, Proportion) {
        let [xa, na, xb, nb] = counts;
        (Proportion::new(xa, na), Proportion::new(xb, nb))
    }

    /// Effect size, interval, z, p, pooled rate, detectable effect.
    const TABLE: [([u64; 4], [f64; 7]); 6] = [
        (
            [45, 50, 30, 50],
            [
                0.725_937_297_211_281_4,
                0.140_771_773_178_932_89,
                0.459_228_226_821_067_23,
                3.464_101_615_137_755_3,
                0.000_532_005_505_139_210_3,
                0.75,
                0.242_624_396_975_279_77,
            ],
        ),
        (
            [8, 10, 5, 10],
            [
                0.643_501_108_793_284,
                -0.096_862_459_358_981_19,
                0.696_862_459_358_981_3,
                1.406_421_692_816_549_9,
                0.159_598_942_442_648_72,
                0.65,
                0.597_598_550_795_501_3,
            ],
        ),
        (
            [1, 2, 0, 1],
            [
                1.570_796_326_794_896_8,
                -0.192_951_912_174_838_76,
                1.192_951_912_174_838_6,
                0.866_025_403_784_438_5,
                0.386_476_230_771_232_83,
                0.333_333_333_333_333_3,
                1.617_495_979_835_198_7,
            ],
        ),
        (
            [90, 100, 85, 100],
            [
                0.151_897_721_390_859,
                -0.041_406_635_071_036_88,
                0.141_406_635_071_036_96,
                1.069_044_967_649_698_5,
                0.285_049_407_402_612_4,
                0.875,
                0.131_032_150_325_363_4,
            ],
        ),
        (
            [60, 100, 40, 100],
            [
                0.402_715_841_580_661_54,
                0.064_209_711_910_859_39,
                0.335_790_288_089_140_5,
                2.828_427_124_746_189_4,
                0.004_677_734_981_047_177,
                0.5,
                0.198_101_990_579_967_25,
            ],
        ),
        ([10, 10, 10, 10], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]),
    ];

    #[test]
    fn comparisons_match_the_table() {
        for (counts, expected) in TABLE {
            let (a, b) = sides(counts);
            let result = compare(a, b).unwrap();
            for (actual, expected) in [
                result.cohens_h,
                result.ci_low,
                result.ci_high,
                result.z_stat,
                result.p_value,
                result.baseline_p,
                result.minimum_detectable_effect,
            ]
            .into_iter()
            .zip(expected)
            {
                close(actual, expected);
            }
            assert_eq!(result.degenerate_se, counts == [10, 10, 10, 10]);
            assert_eq!(result.small_n, counts[1] < 30);
        }
        let (a, b) = sides([3, 0, 1, 2]);
        assert_eq!(compare(a, b), None);
        assert_eq!(compare(b, a), None);
    }

    #[test]
    fn score_intervals_match_those_of_newcombe() {
        for (counts, low, high) in [
            ([56, 70, 48, 80], 0.0524, 0.3339),
            ([9, 10, 3, 10], 0.1705, 0.8090),
            ([10, 10, 0, 20], 0.6791, 1.0),
            ([10, 10, 0, 10], 0.6075, 1.0),
        ] {
            let (a, b) = sides(counts);
            let [there_low, there_high] = compare(a, b).unwrap().score_interval;
            let [back_low, back_high] = compare(b, a).unwrap().score_interval;
            let rounded = |end: f64| (end * 10_000.0).round() / 10_000.0;
            close(rounded(there_low), low);
            close(rounded(there_high), high);
            close(back_low, -there_high);
            close(back_high, -there_low);
        }
    }

    #[test]
    fn a_score_interval_contains_its_difference_and_is_never_a_point() {
        for (of_a, of_b) in (1..12).flat_map(|a| (1..12).map(move |b| (a, b))) {
            for (part_a, part_b) in (0..=of_a).flat_map(|a| (0..=of_b).map(move |b| (a, b))) {
                let (a, b) = sides([part_a, of_a, part_b, of_b]);
                let result = compare(a, b).unwrap();
                let [low, high] = result.score_interval;
                assert!(-1.0 <= low && low < high && high <= 1.0, "{a:?} {b:?}");
                assert!(low <= result.difference && result.difference <= high);
            }
        }
    }

    #[test]
    fn non_inferiority_matches_the_table() {
        for (counts, margin, point, lower, kept) in [
            (
                [45, 50, 43, 50],
                0.1,
                -0.04,
                -0.146_700_172_702_922_54,
                false,
            ),
            (
                [45, 50, 43, 50],
                0.2,
                -0.04,
                -0.146_700_172_702_922_54,
                true,
            ),
            ([8, 10, 5, 10], 0.1, -0.3, -0.633_057_474_946_760_3, false),
            (
                [90, 100, 92, 100],
                0.05,
                0.02,
                -0.046_530_211_865_738_774,
                true,
            ),
            ([10, 10, 10, 10], 0.1, 0.0, 0.0, true),
        ] {
            let (a, b) = sides(counts);
            let result = non_inferiority(a, b, margin).unwrap();
            close(result.point_estimate, point);
            close(result.ci_lower_bound, lower);
            assert_eq!(result.is_non_inferior, kept, "{counts:?} {margin}");
        }
        let (a, b) = sides([0, 0, 1, 2]);
        assert_eq!(non_inferiority(a, b, 0.1), None);
    }

    #[test]
    fn swapping_the_sides_of_a_comparison_changes_its_sign() {
        for (counts, _) in TABLE {
            let (a, b) = sides(counts);
            let (there, back) = (compare(a, b).unwrap(), compare(b, a).unwrap());
            close(there.difference, -back.difference);
            close(there.cohens_h, -back.cohens_h);
            close(there.p_value, back.p_value);
            close(there.ci_low, -back.ci_high);
        }
    }
}
