//! Numbers and identities in what others send: numbers may be spelled in any way and be of any
//! size.

use svc_model::id::{IdentityError, identity_text};
use svc_model::json::{Number, Text};

/// The number of characters that are kept of a device's or an account's id.
pub(super) const DEVICE_CHARACTERS: usize = 12;

/// Returns an integer truncated toward zero, if it is in the range of `i64`.
pub(super) fn truncated(number: &Number) -> Option<i64> {
    if number.is_integer() {
        number.as_i64()
    } else {
        whole(number.as_f64())
    }
}

/// Returns a double truncated toward zero, if it is in the range of `i64`.
pub(super) fn whole(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let whole = value.trunc();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and in range"
    )]
    (-END..END).contains(&whole).then_some(whole as i64)
}

/// Returns a number truncated toward zero, if it is in the range of `u64`.
pub(super) fn truncated_unsigned(number: &Number) -> Option<u64> {
    const END: f64 = 18_446_744_073_709_551_616.0;
    if number.is_integer() {
        return number.as_u64();
    }
    let whole = number.as_f64().trunc();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    (0.0..END).contains(&whole).then_some(whole as u64)
}

/// Returns the identity in a text, trimmed; `None` if it is blank.
///
/// # Errors
///
/// If it is not blank and cannot be an identity.
pub(super) fn identity(text: &Text) -> Result<Option<&str>, IdentityError> {
    match identity_text(text) {
        Ok(identity) => Ok(Some(identity)),
        Err(IdentityError::Blank) => Ok(None),
        Err(error @ (IdentityError::NotScalar | IdentityError::TooLong)) => Err(error),
    }
}

/// Returns the user for a Claude Code device id, which is 64 hexadecimal digits. Requests and
/// telemetry spell the device differently but must give the same user.
pub(super) fn device(id: &str) -> Option<String> {
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| format!("device_{}", &id[..DEVICE_CHARACTERS]))
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    #[test]
    fn a_number_is_truncated_toward_zero_and_in_range() {
        for (spelling, signed, unsigned) in [
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("1.9", Some(1), Some(1)),
            ("-1.9", Some(-1), None),
            ("-0.9", Some(0), Some(0)),
            ("1e3", Some(1_000), Some(1_000)),
            ("9223372036854775807", Some(i64::MAX), Some(i64::MAX as u64)),
            ("9223372036854775808", None, Some(1 << 63)),
            ("-9223372036854775808", Some(i64::MIN), None),
            ("-9223372036854775809", None, None),
            ("-9.3e18", None, None),
            ("18446744073709551615", None, Some(u64::MAX)),
            ("18446744073709551616", None, None),
            ("1.9e19", None, None),
            ("1e400", None, None),
            ("NaN", None, None),
            ("-Infinity", None, None),
        ] {
            let number = Number::parse(spelling).unwrap();
            assert_eq!(truncated(&number), signed, "{spelling}");
            assert_eq!(truncated_unsigned(&number), unsigned, "{spelling}");
        }
    }

    #[test]
    fn a_blank_identity_is_absent_and_a_malformed_one_is_refused() {
        let text = |text: &str| {
            let json = Json::parse(text.as_bytes()).unwrap();
            json.into_text().unwrap()
        };
        assert_eq!(identity(&text("\" a \"")), Ok(Some("a")));
        assert_eq!(identity(&text("\" \\u001f\"")), Ok(None));
        for (broken, error) in [
            ("\"a\\u0000\"", IdentityError::NotScalar),
            ("\"\\ud800\"", IdentityError::NotScalar),
        ] {
            assert_eq!(identity(&text(broken)), Err(error));
        }
        let long = Text::from("x".repeat(1_025));
        assert_eq!(identity(&long), Err(IdentityError::TooLong));
    }
}
