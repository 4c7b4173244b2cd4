//! The statistics of reports: intervals, tests, posteriors, pooled rates.
//!
//! All of it is computed from integer counts, in a fixed order, by functions that agree to the last
//! digit on every machine ([`libm`]), so the same counts give the same bytes.

mod beta;
mod comparison;
mod distribution;
mod normal;
mod pooling;
mod proportion;

pub use beta::{Posteriors, posteriors};
pub use comparison::{
    ALPHA, BONFERRONI_ALPHA, FAMILY_SIZE, NonInferiority, SMALL_N, TwoProportions, compare,
    is_small, non_inferiority,
};
pub use distribution::{Summary, Threshold, quantile, summarize};
pub use normal::{Z_80, Z_95, Z_975, phi};
pub use pooling::{AdjustedRate, PooledRate, Pooling, Stratum, mantel_haenszel, pool};
pub use proportion::{Proportion, cases_for_margin};

/// Returns a count as an `f64`. This is exact up to 2^53, and counts of facts are far below.
#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) const fn real(count: u64) -> f64 {
    count as f64
}
