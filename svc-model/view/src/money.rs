//! Amounts of money, which are kept as whole micro-dollars and rounded only here.

/// The micro-dollars from which an amount has two decimals instead of four.
const LARGE: u64 = 100_000_000;

/// Returns an amount in dollars: with four decimals below $100, and with two above. It is rounded
/// half up.
pub fn usd(micros: i64) -> String {
    let amount = micros.unsigned_abs();
    let sign = if micros < 0 { "-" } else { "" };
    let (unit, decimals) = if amount < LARGE {
        (100, 4)
    } else {
        (10_000, 2)
    };
    let units = (amount + unit / 2) / unit;
    let whole = 1_000_000 / unit;
    let (dollars, rest) = (units / whole, units % whole);
    format!("{sign}${dollars}.{rest:0decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_rounded_half_up_to_four_decimals_or_two() {
        for (micros, shown) in [
            (0, "$0.0000"),
            (49, "$0.0000"),
            (50, "$0.0001"),
            (1_234_549, "$1.2345"),
            (1_234_550, "$1.2346"),
            (-1_234_550, "-$1.2346"),
            (41_200_000, "$41.2000"),
            (99_999_949, "$99.9999"),
            (100_000_000, "$100.00"),
            (100_004_999, "$100.00"),
            (100_005_000, "$100.01"),
            (i64::MAX, "$9223372036854.78"),
            (i64::MIN, "-$9223372036854.78"),
        ] {
            assert_eq!(usd(micros), shown, "{micros}");
        }
    }
}
