//! The time of an event, by the sender's clock.

use svc_model::json::Json;
use svc_model::time::Instant;

use crate::value::truncated_unsigned;

/// Returns the instant for a number of nanoseconds, truncated to microseconds: a positive JSON
/// number or a string of decimal digits. Zero means that the sender did not set it.
pub(super) fn instant(value: Option<&Json>) -> Option<Instant> {
    let nanoseconds = match value? {
        Json::Number(number) => truncated_unsigned(number)?,
        Json::String(text) => {
            let digits = text.as_str()?.trim();
            if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            digits.parse().ok()?
        }
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    let microseconds = i64::try_from(nanoseconds / 1_000).ok()?;
    Instant::from_microseconds(microseconds).filter(|_| nanoseconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        let value = Json::parse(value.as_bytes()).unwrap();
        instant(Some(&value)).map(|instant| instant.to_string())
    }

    #[test]
    fn nanoseconds_are_truncated_exactly() {
        for (value, expected) in [
            (r#""1783454255424000000""#, "2026-07-07T19:57:35.424000Z"),
            (r#""1783454255424123456""#, "2026-07-07T19:57:35.424123Z"),
            (r#""1783454255424123999""#, "2026-07-07T19:57:35.424123Z"),
            ("1783454255424123999", "2026-07-07T19:57:35.424123Z"),
            (r#"" 1783454255000000000\n""#, "2026-07-07T19:57:35Z"),
            ("1783454255e9", "2026-07-07T19:57:35Z"),
            (r#""1""#, "1970-01-01T00:00:00Z"),
            (r#""9214646399999999999""#, "2261-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(read(value).as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn an_invalid_time_is_dropped() {
        for value in [
            "0",
            r#""0""#,
            "-5",
            r#""-5""#,
            r#""+5""#,
            r#""""#,
            r#"" ""#,
            r#""x""#,
            r#""1.5""#,
            r#""1e9""#,
            "NaN",
            "Infinity",
            "0.5",
            "1e400",
            "true",
            "null",
            "[]",
            "{}",
            r#""\ud800""#,
            r#""9214646400000000000""#,
            r#""18446744073709551616""#,
            "99999999999999999999",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
        assert_eq!(instant(None), None);
    }
}
