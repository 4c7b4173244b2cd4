//! The standard normal distribution.

/// The quantile at 0.975, for two-sided 95 % intervals.
pub const Z_975: f64 = 1.959_963_984_540_054;

/// The quantile at 0.95, for one-sided 95 % bounds.
pub const Z_95: f64 = 1.644_853_626_951_472_7;

/// The quantile at 0.8, for a power of 80 %.
pub const Z_80: f64 = 0.841_621_233_572_914_2;

/// Returns the share of the standard normal distribution below `z`.
pub fn phi(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_normal_distribution() {
        for (z, share) in [(Z_975, 0.975), (Z_95, 0.95), (Z_80, 0.8), (0.0, 0.5)] {
            assert!((phi(z) - share).abs() < 1e-15, "{share}");
            assert!((phi(-z) - (1.0 - share)).abs() < 1e-15, "{share}");
        }
    }
}
