//! Instants: UTC, microseconds, 1970-01-01 to 2262-01-01.

mod reader;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use self::reader::Standard;
use crate::field::{FieldKind, FromField, Violation};
use crate::json::Json;

/// The end of the accepted range: 2262-01-01T00:00:00Z.
const END_MICROSECONDS: i64 = 9_214_646_400_000_000;

/// A moment in UTC, to the microsecond, from 1970 to 2261.
///
/// On the wire it is RFC 3339 with `Z`: without a fraction if the microseconds are 0, and with six
/// digits otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// A number of a Unix time above this is in milliseconds, any other in seconds.
pub const UNIX_SECONDS_MAX: f64 = 2e10;

impl Instant {
    /// The last instant in range.
    pub const MAX: Self = Self(END_MICROSECONDS - 1);

    /// Returns the moment that is this many microseconds after 1970-01-01T00:00:00Z, if it is in
    /// range.
    pub const fn from_microseconds(microseconds: i64) -> Option<Self> {
        if microseconds >= 0 && microseconds < END_MICROSECONDS {
            Some(Self(microseconds))
        } else {
            None
        }
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub const fn microseconds(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339 text with an offset.
    ///
    /// Digits beyond microseconds are cut off, the seconds may be missing, and a space may stand in
    /// place of `T`.
    ///
    /// # Errors
    ///
    /// [`InstantError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, InstantError> {
        reader::read(text, Standard::Rfc3339)
    }

    /// Parses ISO 8601 text, as forges write it: as [`Instant::parse`] does, but `T` and `Z` must be
    /// in upper case, and the offset may be hours alone, such as `+02`.
    ///
    /// # Errors
    ///
    /// [`InstantError`] says what is wrong.
    #[cfg(feature = "service")]
    pub fn parse_iso_8601(text: &str) -> Result<Self, InstantError> {
        reader::read(text, Standard::Iso8601)
    }

    /// Parses Unix time: seconds, or milliseconds if the number is above 2e10.
    fn from_unix(text: &str) -> Result<Self, InstantError> {
        let seconds: f64 = text.parse().map_err(|_| InstantError::Malformed)?;
        if !seconds.is_finite() {
            return Err(InstantError::OutOfRange);
        }
        let seconds = if seconds.abs() > UNIX_SECONDS_MAX {
            seconds / 1_000.0
        } else {
            seconds
        };
        let microseconds = (seconds * 1e6).round();
        if !(0.0..9.3e15).contains(&microseconds) {
            return Err(InstantError::OutOfRange);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be in range above"
        )]
        Self::from_microseconds(microseconds as i64).ok_or(InstantError::OutOfRange)
    }
}

/// Why a value is not a moment in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstantError {
    /// It does not have the form of RFC 3339.
    #[error("must be an RFC 3339 instant")]
    Malformed,
    /// It is a date without a time.
    #[error("must have a time and an offset")]
    NoTime,
    /// It has no offset.
    #[error("must have an offset")]
    NoOffset,
    /// It is before 1970 or after 2261.
    #[error("must be from 1970 to 2261")]
    OutOfRange,
}

impl From<InstantError> for Violation {
    fn from(error: InstantError) -> Self {
        match error {
            InstantError::Malformed => {
                Self::new(FieldKind::DatetimeParsing, "must be an RFC 3339 instant")
            }
            InstantError::NoTime => {
                Self::new(FieldKind::TimezoneAware, "must have a time and an offset")
            }
            InstantError::NoOffset => Self::new(FieldKind::TimezoneAware, "must have an offset"),
            InstantError::OutOfRange => Self::rule("must be from 1970 to 2261"),
        }
    }
}

impl TryFrom<SystemTime> for Instant {
    type Error = InstantError;
    fn try_from(time: SystemTime) -> Result<Self, InstantError> {
        let since = time.duration_since(UNIX_EPOCH);
        let since = since.map_err(|_| InstantError::OutOfRange)?;
        i64::try_from(since.as_micros())
            .ok()
            .and_then(Self::from_microseconds)
            .ok_or(InstantError::OutOfRange)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        if self.0 % 1_000_000 == 0 {
            write!(f, "{timestamp:.0}")
        } else {
            write!(f, "{timestamp:.6}")
        }
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Instant {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Instant".into()
    }
    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment in RFC 3339. The service writes UTC with `Z`, without a fraction when the microseconds are zero and with six digits otherwise; it reads any offset.",
        })
    }
}

impl crate::parameter::ParameterValue for Instant {
    fn to_parameter(&self) -> String {
        self.to_string()
    }
}

impl FromField for Instant {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let result = match value {
            Json::Number(number) => Self::from_unix(number.as_str()),
            Json::String(text) => match text.as_str() {
                Some(text)
                    if text
                        .bytes()
                        .all(|byte| byte.is_ascii_digit() || byte == b'.') =>
                {
                    Self::from_unix(text)
                }
                Some(text) => Self::parse(text),
                None => Err(InstantError::Malformed),
            },
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => {
                return Err(Violation::new(
                    FieldKind::DatetimeType,
                    "must be an RFC 3339 instant",
                ));
            }
        };
        result.map_err(Violation::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_with_an_offset_and_written_in_utc() {
        for (text, written) in [
            (
                "2026-01-02T05:04:05.678901+02:00",
                "2026-01-02T03:04:05.678901Z",
            ),
            ("2026-01-02 03:04:05.12Z", "2026-01-02T03:04:05.120000Z"),
            (
                "2026-01-02T03:04:05.1234569z",
                "2026-01-02T03:04:05.123456Z",
            ),
            ("2026-01-02T03:04Z", "2026-01-02T03:04:00Z"),
            ("2026-01-02t03:04-23:59", "2026-01-03T03:03:00Z"),
            ("2026-01-02T03:04:05+0200", "2026-01-02T01:04:05Z"),
            (
                "2026-01-02T03:04:05.12345678901234567890Z",
                "2026-01-02T03:04:05.123456Z",
            ),
            (
                "2024-02-29T23:59:59.9999999-00:00",
                "2024-02-29T23:59:59.999999Z",
            ),
            ("1970-01-01T00:59:00+00:59", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(Instant::parse(text).unwrap().to_string(), written, "{text}");
        }
    }

    #[test]
    fn texts_that_only_resemble_an_instant_are_malformed() {
        for text in [
            "",
            "yesterday",
            "20990101T000000Z",
            "2099-01-01T00Z",
            "2099-01-01T0000Z",
            "2099-01-01T00:00:00,5Z",
            "2099-01-01T00:00:00.Z",
            "2099-01-01T00:00.5Z",
            "2099-01-01T00:00:00Z[UTC]",
            "2099-01-01T00:00:00+00:00[UTC]",
            "2099-01-01T00:00:00+24:00",
            "2099-01-01T00:00:00+00:60",
            "2099-01-01T00:00:00+02",
            "2099-01-01T00:00:00+2:00",
            "2099-01-01T00:00:00+02:00:00",
            "2099-01-01T00:00:00 Z",
            "2099-01-01  00:00:00Z",
            "2099-01-01_00:00:00Z",
            " 2099-01-01T00:00:00Z",
            "2099-01-01T00:00:00Z ",
            "2099-01-01T00:00:60Z",
            "2099-01-01T24:00:00Z",
            "2099-01-01T00:60:00Z",
            "2099-02-29T00:00:00Z",
            "2099-13-01T00:00:00Z",
            "+002099-01-01T00:00:00Z",
            "-2099-01-01T00:00:00Z",
            "99-01-01T00:00:00Z",
            "2099-1-1T00:00:00Z",
            "2099-01-01Z",
            "2099-01",
            "2099-01-01T",
            "２099-01-01T00:00:00Z",
        ] {
            assert_eq!(
                Instant::parse(text),
                Err(InstantError::Malformed),
                "{text:?}"
            );
        }
    }

    #[test]
    #[cfg(feature = "service")]
    fn iso_8601_has_upper_case_letters_and_offsets_of_hours_alone() {
        for text in ["2026-01-02T03:04Z", "2026-01-02 03:04:05.5+02:00"] {
            let read = Instant::parse_iso_8601(text);
            assert_eq!(read, Instant::parse(text), "{text}");
        }
        for text in ["2026-01-02t03:04:05Z", "2026-01-02T03:04:05z"] {
            assert!(Instant::parse(text).is_ok(), "{text}");
            let read = Instant::parse_iso_8601(text);
            assert_eq!(read, Err(InstantError::Malformed), "{text}");
        }
        for (text, written) in [
            ("2026-01-02T03:04:05+00", "2026-01-02T03:04:05Z"),
            ("2026-01-02 03:04-11", "2026-01-02T14:04:00Z"),
        ] {
            assert_eq!(Instant::parse(text), Err(InstantError::Malformed), "{text}");
            let read = Instant::parse_iso_8601(text).unwrap();
            assert_eq!(read.to_string(), written, "{text}");
        }
        for text in [
            "2026-01-02T03:04+",
            "2026-01-02T03:04+2",
            "2026-01-02T03:04+02:",
            "2026-01-02T03:04+24",
        ] {
            let read = Instant::parse_iso_8601(text);
            assert_eq!(read, Err(InstantError::Malformed), "{text}");
        }
    }

    #[test]
    fn each_broken_rule_has_its_error() {
        assert_eq!(
            Instant::parse("2026-01-02T03:04:05"),
            Err(InstantError::NoOffset)
        );
        assert_eq!(
            Instant::parse("2026-01-02 03:04"),
            Err(InstantError::NoOffset)
        );
        assert_eq!(Instant::parse("2026-01-02"), Err(InstantError::NoTime));
        assert_eq!(
            Instant::parse("1969-12-31T23:59:59Z"),
            Err(InstantError::OutOfRange)
        );
        assert_eq!(
            Instant::parse("2262-01-01T00:00:00Z"),
            Err(InstantError::OutOfRange)
        );
        assert!(Instant::parse("2261-12-31T23:59:59.999999Z").is_ok());
        assert_eq!(
            Instant::parse("9999-12-31T23:59:59-23:59"),
            Err(InstantError::OutOfRange)
        );
        assert_eq!(
            Instant::parse("0000-01-01T00:00:00+23:59"),
            Err(InstantError::OutOfRange)
        );
    }

    #[test]
    fn a_field_may_hold_unix_time() {
        let read = |text: &str| Instant::from_field(&Json::parse(text.as_bytes()).unwrap());
        assert_eq!(
            read("1767323045.5").unwrap().to_string(),
            "2026-01-02T03:04:05.500000Z"
        );
        assert_eq!(
            read("\"1767323045000\"").unwrap().to_string(),
            "2026-01-02T03:04:05Z"
        );
        assert!(read("-1").is_err());
        assert!(read("1e400").is_err());
        for neither in ["null", "true", "[]", "{}"] {
            let violation = read(neither).unwrap_err().at(Vec::new());
            assert_eq!(violation.kind, FieldKind::DatetimeType, "{neither}");
        }
    }
}
