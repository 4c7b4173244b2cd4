//! Decimal numbers as exact integers of a smaller unit.

use super::number::Number;

/// The most digits of an `i64`.
const DIGITS_MAX: usize = 19;

impl Number {
    /// Returns the number times ten to the power of `places`: exact, then rounded half up. `None` if
    /// it is negative, not finite or too large.
    pub fn scaled(&self, places: i64) -> Option<i64> {
        let (digits, exponent) = decimal(self.as_str())?;
        if digits.is_empty() {
            return Some(0);
        }
        let shift = exponent.checked_add(places)?;
        if shift >= 0 {
            let zeros = usize::try_from(shift).ok()?;
            // More digits are too large a number, and might be too many to write down.
            let is_short = zeros <= DIGITS_MAX;
            return is_short.then(|| digits + &"0".repeat(zeros))?.parse().ok();
        }
        let dropped = usize::try_from(shift.unsigned_abs()).ok()?;
        let (whole, rest) = digits.split_at(digits.len().saturating_sub(dropped));
        let is_half = dropped <= digits.len() && rest.starts_with(|first: char| first >= '5');
        let whole: i64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        whole.checked_add(i64::from(is_half))
    }
}

/// Returns the digits of a number that is not negative, without leading zeros, and the power of ten
/// that they are multiplied with.
fn decimal(spelling: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = match spelling.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (spelling, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.strip_prefix('-').unwrap_or(whole));
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.is_empty() {
        return None;
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if whole.starts_with('-') && !digits.is_empty() {
        return None;
    }
    let places = i64::try_from(fraction.len()).ok()?;
    Some((digits, exponent.checked_sub(places)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_smaller_units_is_exact_and_rounded_half_up() {
        for (spelling, places, expected) in [
            ("5.0000000000000004e-08", 15, Some(50_000_000)),
            ("2.0000000000000002e-07", 15, Some(200_000_000)),
            ("5e-16", 15, Some(1)),
            ("4.9e-16", 15, Some(0)),
            ("1", 15, Some(1_000_000_000_000_000)),
            ("3.75", 9, Some(3_750_000_000)),
            ("0.0", 0, Some(0)),
            ("200000.0", 0, Some(200_000)),
            ("2e5", 0, Some(200_000)),
            ("-0.0", 15, Some(0)),
            ("-1e-9", 15, None),
            ("9223372036854775807", 0, Some(i64::MAX)),
            ("9223372036854775808", 0, None),
            ("1e-9223372036854775808", 0, Some(0)),
            ("NaN", 15, None),
            ("-Infinity", 15, None),
        ] {
            let number = Number::parse(spelling).unwrap();
            assert_eq!(number.scaled(places), expected, "{spelling} {places}");
        }
    }
}
