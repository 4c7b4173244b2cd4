//! Rates across repositories: adjusted for where the work was done, and shrunk to their mean.

use super::{Proportion, real};

/// A relative difference up to this is attributed to rounding. The rounding error of a sum over
/// thousands of cells is smaller.
const NOISE: f64 = 1e-12;

/// One repository in which two sides have cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// One side.
    pub left: Proportion,
    /// The other side.
    pub right: Proportion,
}

/// The difference between two sides, adjusted for the strata.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustedRate {
    /// The weighted mean of the differences within the strata.
    pub delta: f64,
    /// The sum of the weights; greater than zero.
    pub weight_sum: f64,
}

/// Returns the Mantel-Haenszel risk difference; `None` if no stratum has cases on both sides.
pub fn mantel_haenszel(strata: &[Stratum]) -> Option<AdjustedRate> {
    let (mut weighted, mut weight_sum) = (0.0, 0.0);
    for Stratum { left, right } in strata {
        let (Some(left_rate), Some(right_rate)) = (left.rate(), right.rate()) else {
            continue;
        };
        let (n_left, n_right) = (real(left.denominator), real(right.denominator));
        let weight = n_left * n_right / (n_left + n_right);
        weighted += weight * (left_rate - right_rate);
        weight_sum += weight;
    }
    (weight_sum > 0.0).then(|| AdjustedRate {
        delta: weighted / weight_sum,
        weight_sum,
    })
}

/// How strongly the rates of cells are shrunk to the common mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooling {
    /// The rate of all cells together.
    pub grand_mean: f64,
    /// How many cases the mean counts as.
    pub strength: f64,
}

/// The rate of one cell, shrunk to the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PooledRate {
    /// The shrunk rate, between the cell's own and the mean.
    pub rate: f64,
    /// The weight of the cell's own rate in it.
    pub weight: f64,
}

/// Returns how strongly to shrink the cells to their mean, by the method of moments: the less they
/// differ beyond chance, the more. Cells without cases do not count; `None` if there are no others.
pub fn pool(cells: &[Proportion]) -> Option<Pooling> {
    let cells: Vec<(Proportion, f64)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.rate()?)))
        .collect();
    let all = cells
        .iter()
        .fold(Proportion::default(), |sum, (cell, _)| Proportion {
            numerator: sum.numerator + cell.numerator,
            denominator: sum.denominator + cell.denominator,
        });
    let grand_mean = all.rate()?;
    let total = real(all.denominator);
    let binomial = grand_mean * (1.0 - grand_mean);
    let variance = cells
        .iter()
        .map(|(cell, rate)| real(cell.denominator) * (rate - grand_mean) * (rate - grand_mean))
        .sum::<f64>()
        / total;
    let by_chance = real(cells.len() as u64) * binomial / total;
    // If cells differ exactly as much as by chance, rounding leaves some noise.
    let between = variance - by_chance;
    let strength = if between > NOISE * by_chance && binomial > 0.0 {
        (binomial / between - 1.0).max(0.0)
    } else {
        total
    };
    Some(Pooling {
        grand_mean,
        strength,
    })
}

impl Pooling {
    /// Returns the shrunk rate of a cell. A cell without cases gets the mean.
    pub fn shrink(self, cell: Proportion) -> PooledRate {
        let Some(rate) = cell.rate() else {
            return PooledRate {
                rate: self.grand_mean,
                weight: 0.0,
            };
        };
        let n = real(cell.denominator);
        let weight = n / (n + self.strength);
        PooledRate {
            rate: weight * rate + (1.0 - weight) * self.grand_mean,
            weight,
        }
    }
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

    fn check(cells: &[(u64, u64)], grand_mean: f64, strength: f64, shrunk: &[f64]) -> Pooling {
        let cells: Vec<Proportion> = cells.iter().map(|(x, n)| Proportion::new(*x, *n)).collect();
        let pooling = pool(&cells).unwrap();
        close(pooling.grand_mean, grand_mean);
        close(pooling.strength, strength);
        for (cell, expected) in cells.iter().zip(shrunk) {
            close(pooling.shrink(*cell).rate, *expected);
        }
        pooling
    }

    #[test]
    fn rates_shrink_to_the_mean_as_in_the_table() {
        let pooling = check(
            &[(9, 10), (1, 10)],
            0.5,
            0.851_851_851_851_851_4,
            &[0.868_600_682_593_856_6, 0.131_399_317_406_143_33],
        );
        close(
            pooling.shrink(Proportion::new(9, 10)).weight,
            0.921_501_706_484_641_7,
        );
        let pooling = check(&[(1, 1), (0, 1)], 0.5, 2.0, &[2.0 / 3.0, 1.0 / 3.0]);
        close(pooling.shrink(Proportion::new(1, 1)).weight, 1.0 / 3.0);
        check(&[(5, 10), (5, 10)], 0.5, 20.0, &[0.5, 0.5]);
        let pooling = check(&[(1, 1)], 1.0, 1.0, &[1.0]);
        close(pooling.shrink(Proportion::new(1, 1)).weight, 0.5);
        check(
            &[(8, 10), (30, 40), (1, 5)],
            0.709_090_909_090_909_1,
            12.725_254_949_010_205,
            &[
                0.749_094_460_695_970_6,
                0.740_126_579_529_034_8,
                0.565_484_819_769_373_8,
            ],
        );
        assert_eq!(pool(&[Proportion::new(0, 0)]), None);
    }

    #[test]
    fn cells_with_one_case_each_vary_no_more_than_by_chance() {
        for passed in 1..40 {
            for failed in 1..40 {
                let cells = [vec![(1, 1); passed], vec![(0, 1); failed]].concat();
                let total = real(cells.len() as u64);
                let mean = real(passed as u64) / total;
                let weight = 1.0 / (1.0 + total);
                check(&cells, mean, total, &[weight + (1.0 - weight) * mean]);
            }
        }
    }

    #[test]
    fn a_difference_is_adjusted_for_its_strata() {
        let stratum = |left: (u64, u64), right: (u64, u64)| Stratum {
            left: Proportion::new(left.0, left.1),
            right: Proportion::new(right.0, right.1),
        };
        let strata = [stratum((9, 10), (4, 5)), stratum((1, 10), (5, 15))];
        let adjusted = mantel_haenszel(&strata).unwrap();
        close(adjusted.weight_sum, 9.333_333_333_333_334);
        close(adjusted.delta, -0.114_285_714_285_714_28);
        assert_eq!(mantel_haenszel(&[stratum((1, 1), (0, 0))]), None);
    }
}
