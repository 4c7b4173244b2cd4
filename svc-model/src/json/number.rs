//! Numbers, kept as they are spelled.

use std::fmt;

use super::compact::Compact;

/// The maximum number of digits of an integer. Numbers with a fraction or an exponent have no such
/// limit, because every reader treats them as doubles.
pub const INTEGER_DIGITS_MAX: usize = 4300;

const NAN: &str = "NaN";
const INFINITY: &str = "Infinity";
const NEGATIVE_INFINITY: &str = "-Infinity";

/// A number, kept as its spelling: `1.10`, `1E5`, forty digits, `-0`.
///
/// The tokens `NaN`, `Infinity` and `-Infinity` are numbers too; see [`Number::is_finite`]. Two
/// numbers are equal if their spellings are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(Compact);

impl Number {
    /// Reads one JSON number or non-finite token, with nothing around it.
    pub fn parse(spelling: &str) -> Option<Self> {
        let end = lexeme(spelling.as_bytes()).ok()?;
        (end == spelling.len()).then(|| Self::from_lexeme(spelling))
    }

    /// Takes a spelling that [`lexeme`] has measured.
    pub(super) fn from_lexeme(spelling: &str) -> Self {
        Self(spelling.into())
    }

    /// Returns a double, spelled with the fewest digits that read back as the same double: without
    /// an exponent from 1e-4 up to 1e16, with one otherwise.
    pub fn from_f64(value: f64) -> Self {
        match non_finite(value) {
            Some(token) => Self(token.into()),
            None => Self(spell(&format!("{value:e}")).into()),
        }
    }

    /// Returns a single-precision number, spelled as [`Number::from_f64`] spells a double.
    pub fn from_f32(value: f32) -> Self {
        match non_finite(value.into()) {
            Some(token) => Self(token.into()),
            None => Self(spell(&format!("{value:e}")).into()),
        }
    }

    /// Returns the spelling.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether the number is neither a non-finite token nor too large for a double. An
    /// integer is exact, so it is always finite.
    pub fn is_finite(&self) -> bool {
        is_finite(self.as_str())
    }

    /// Returns whether the spelling has neither a fraction nor an exponent.
    pub fn is_integer(&self) -> bool {
        is_integer(self.as_str())
    }

    /// Returns the value, if it is an integer in the range of `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_str().parse().ok()
    }

    /// Returns the value, if it is an integer in the range of `u64`.
    pub fn as_u64(&self) -> Option<u64> {
        match self.as_str() {
            "-0" => Some(0),
            spelling => spelling.parse().ok(),
        }
    }

    /// Returns the nearest double: infinity if the number is too large, NaN for that token.
    pub fn as_f64(&self) -> f64 {
        self.as_str().parse().unwrap_or(f64::NAN)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(value.to_string().into())
    }
}

/// The spelling.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The spelling.
impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why no number could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LexemeError {
    Malformed,
    TooLong,
}

/// Returns the length of the number or non-finite token that `bytes` begin with. What follows is
/// not checked, except for a digit after a leading zero.
pub(super) fn lexeme(bytes: &[u8]) -> Result<usize, LexemeError> {
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let unsigned = &bytes[sign..];
    let integer = sign + digits(unsigned);
    match unsigned {
        [b'0', b'0'..=b'9', ..] => return Err(LexemeError::Malformed),
        [b'0'..=b'9', ..] => {}
        _ if unsigned.starts_with(INFINITY.as_bytes()) => return Ok(sign + INFINITY.len()),
        _ if bytes.starts_with(NAN.as_bytes()) => return Ok(NAN.len()),
        _ => return Err(LexemeError::Malformed),
    }
    let mut end = integer;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(&bytes[end + 1..]);
        if fraction == 0 {
            return Err(LexemeError::Malformed);
        }
        end += 1 + fraction;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(&bytes[end + 1 + sign..]);
        if exponent == 0 {
            return Err(LexemeError::Malformed);
        }
        end += 1 + sign + exponent;
    }
    if end == integer && integer - sign > INTEGER_DIGITS_MAX {
        return Err(LexemeError::TooLong);
    }
    Ok(end)
}

fn digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

fn is_integer(spelling: &str) -> bool {
    spelling
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

pub(super) fn is_finite(spelling: &str) -> bool {
    is_integer(spelling) || spelling.parse().is_ok_and(f64::is_finite)
}

fn non_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some(NAN)
    } else if value.is_infinite() {
        Some(if value > 0.0 {
            INFINITY
        } else {
            NEGATIVE_INFINITY
        })
    } else {
        None
    }
}

/// Arranges the shortest digits, which are given in the form `-1.25e-7`.
fn spell(scientific: &str) -> String {
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a small integer");
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    match usize::try_from(exponent + 1) {
        Ok(point) if point > 0 => {
            let digits = format!("{digits:0<width$}", width = point + 1);
            let (whole, fraction) = digits.split_at(point);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!(
            "{sign}0.{digits:0>width$}",
            width = digits.len() + exponent.unsigned_abs() as usize - 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_keep_their_spelling() {
        let forty = "1234567890123456789012345678901234567890";
        let spellings = [
            "0",
            "-0",
            "7",
            "-12",
            "1.10",
            "0.0",
            "-0.0",
            "1E5",
            "1e5",
            "1e+05",
            "2.50E-10",
            "1e400",
            "1e-400",
            "NaN",
            "Infinity",
            "-Infinity",
            forty,
        ];
        for spelling in spellings {
            let number = Number::parse(spelling).unwrap();
            assert_eq!(number.as_str(), spelling);
            assert_eq!(number.to_string(), spelling);
        }
    }

    #[test]
    fn malformed_numbers_are_refused() {
        let spellings = [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "00",
            ".5",
            "1.",
            "1.e5",
            "1e",
            "1e+",
            "1.5.5",
            "0x10",
            "1_000",
            " 1",
            "1 ",
            "nan",
            "inf",
            "-NaN",
            "+Infinity",
            "--1",
            "infinity",
            "Infinity1",
            "١",
        ];
        for spelling in spellings {
            assert_eq!(Number::parse(spelling), None, "{spelling:?}");
        }
    }

    #[test]
    fn only_integers_have_a_limit_of_digits() {
        let longest = "9".repeat(INTEGER_DIGITS_MAX);
        assert!(Number::parse(&longest).is_some_and(|number| number.is_finite()));
        assert!(Number::parse(&format!("-{longest}")).is_some());
        assert_eq!(Number::parse(&format!("{longest}0")), None);
        assert_eq!(
            lexeme(format!("-{longest}0").as_bytes()),
            Err(LexemeError::TooLong)
        );
        assert!(Number::parse(&format!("{longest}0.0")).is_some());
        assert!(Number::parse(&format!("0.{longest}0")).is_some());
    }

    #[test]
    fn numbers_in_the_range_of_a_double_and_all_integers_are_finite() {
        let long = "1".repeat(400);
        for finite in [
            "0",
            "-0",
            "1e308",
            "-1.7e308",
            "1e-400",
            "123456789012345678901234567890",
            &long,
        ] {
            assert!(Number::parse(finite).unwrap().is_finite(), "{finite}");
        }
        for other in [
            "NaN",
            "Infinity",
            "-Infinity",
            "1e400",
            "-1e309",
            "1e99999999999",
            &format!("{long}.0"),
        ] {
            assert!(!Number::parse(other).unwrap().is_finite(), "{other}");
        }
    }

    #[test]
    fn integers_are_read_only_from_integer_spellings() {
        let integers = |spelling| {
            let number = Number::parse(spelling).unwrap();
            (number.is_integer(), number.as_i64(), number.as_u64())
        };
        assert_eq!(integers("12"), (true, Some(12), Some(12)));
        assert_eq!(integers("-12"), (true, Some(-12), None));
        assert_eq!(integers("-0"), (true, Some(0), Some(0)));
        assert_eq!(
            integers("18446744073709551615"),
            (true, None, Some(u64::MAX))
        );
        assert_eq!(
            integers("-9223372036854775808"),
            (true, Some(i64::MIN), None)
        );
        assert_eq!(integers("18446744073709551616"), (true, None, None));
        assert_eq!(integers("1.0"), (false, None, None));
        assert_eq!(integers("1e2"), (false, None, None));
        assert_eq!(integers("NaN"), (false, None, None));
        assert_eq!(integers("-Infinity"), (false, None, None));
    }

    #[test]
    fn doubles_are_read_from_every_spelling() {
        let double = |spelling| Number::parse(spelling).unwrap().as_f64().to_bits();
        assert_eq!(double("1.10"), 1.1_f64.to_bits());
        assert_eq!(double("1e400"), f64::INFINITY.to_bits());
        assert_eq!(double("-Infinity"), f64::NEG_INFINITY.to_bits());
        assert_eq!(double("NaN"), f64::NAN.to_bits());
    }

    #[test]
    fn doubles_are_spelled_with_the_fewest_digits() {
        let table = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100_000.0, "100000.0"),
            (0.1, "0.1"),
            (0.000_1, "0.0001"),
            (0.000_123, "0.000123"),
            (0.000_01, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (123.456, "123.456"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e22, "1e+22"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, spelling) in table {
            assert_eq!(Number::from_f64(value).as_str(), spelling);
        }
        assert_eq!(Number::from_f32(0.1).as_str(), "0.1");
        assert_eq!(Number::from_f32(f32::NAN).as_str(), "NaN");
        assert_eq!(Number::from(-5_i64).as_str(), "-5");
        assert_eq!(Number::from(u64::MAX).as_str(), "18446744073709551615");
    }

    proptest! {
        #[test]
        fn a_double_is_read_back_from_its_spelling(value in any::<f64>()) {
            let number = Number::from_f64(value);
            prop_assert_eq!(Number::parse(number.as_str()), Some(number.clone()));
            prop_assert!(number.as_f64().to_bits() == value.to_bits() || value.is_nan());
            prop_assert_eq!(number.is_finite(), value.is_finite());
        }
    }
}
