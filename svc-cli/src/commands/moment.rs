//! Parses moments on the command line.

use svc_model::time::Instant;
use svc_view::{age, before, is_date, midnight};

use crate::error::CommandError;

const AGE: &str = "must be a number and a unit of s, m, h, d or w, such as 30m, 12h, 7d or 2w";

/// Parses an RFC 3339 moment with an offset; a date, which means midnight UTC; or an age such as
/// `7d` or `-7d`.
pub(crate) fn moment(option: &str, text: &str, now: Instant) -> Result<Instant, CommandError> {
    let hint = "give a moment such as 2026-01-31T09:30:00Z, a date such as 2026-01-31, or an age such \
                as 7d for seven days ago";
    exact(option, &midnight(text), now, hint)
}

/// Parses an RFC 3339 moment with an offset, or an age. The hint says what the option takes.
fn exact(option: &str, text: &str, now: Instant, hint: &str) -> Result<Instant, CommandError> {
    let length = text.strip_prefix('-').unwrap_or(text);
    if is_length(length) || length.len() < text.len() {
        let ago = age(length).ok_or(AGE).and_then(|age| before(now, age));
        return ago.map_err(|rule| CommandError::misuse(option, rule));
    }
    Instant::parse(text).map_err(|rule| CommandError::misuse(option, rule).hint(hint))
}

/// Returns whether a text has the form of a duration: digits and a unit.
fn is_length(text: &str) -> bool {
    let digits = text.strip_suffix(|unit: char| unit.is_ascii_lowercase());
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Parses the moment of an option that may be absent.
pub(crate) fn optional_moment(
    option: &str,
    text: Option<&str>,
    now: Instant,
) -> Result<Option<Instant>, CommandError> {
    text.map(|text| moment(option, text, now)).transpose()
}

/// Which bound of an inclusive range is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeBound {
    First,
    Last,
}

/// Parses an inclusive bound. A date is refused, because it leaves open which end of the day is
/// meant.
pub(crate) fn boundary(
    option: &str,
    text: &str,
    bound: RangeBound,
    now: Instant,
) -> Result<Instant, CommandError> {
    if is_date(text) {
        let error = CommandError::argument(option, "must have a time and an offset");
        return Err(error.hint(match bound {
            RangeBound::First => format!("the beginning of that day in UTC: {text}T00:00:00Z"),
            RangeBound::Last => format!("the end of that day in UTC: {text}T23:59:59.999999Z"),
        }));
    }
    let hint =
        "give a moment such as 2026-01-31T09:30:00Z, or an age such as 7d for seven days ago";
    exact(option, text, now, hint)
}

/// Parses a bound that may be absent.
pub(crate) fn optional_boundary(
    option: &str,
    text: Option<&str>,
    now: Instant,
) -> Result<Option<Instant>, CommandError> {
    text.map(|text| boundary(option, text, RangeBound::Last, now))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_absolute_or_relative_to_now() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        for (text, expected) in [
            ("2026-01-31T09:30:00+01:00", "2026-01-31T08:30:00Z"),
            ("-30s", "2026-01-31T09:29:30Z"),
            ("-30m", "2026-01-31T09:00:00Z"),
            ("-12h", "2026-01-30T21:30:00Z"),
            ("-7d", "2026-01-24T09:30:00Z"),
            ("-2w", "2026-01-17T09:30:00Z"),
            ("-0d", "2026-01-31T09:30:00Z"),
            ("7d", "2026-01-24T09:30:00Z"),
            ("2h", "2026-01-31T07:30:00Z"),
            ("2026-01-30", "2026-01-30T00:00:00Z"),
        ] {
            assert_eq!(moment("--since", text, now).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_boundary_has_a_time_and_an_offset() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        for text in ["2026-01-30T00:00:00Z", "7d", "-2h"] {
            let moment = moment("--as-of", text, now).unwrap();
            assert_eq!(
                boundary("--as-of", text, RangeBound::Last, now).unwrap(),
                moment
            );
        }
        for text in ["2026-01-30", "2026-01-30T00:00:00", "30"] {
            let error = boundary("--as-of", text, RangeBound::Last, now).unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{text}");
        }
        assert_eq!(optional_boundary("--as-of", None, now).unwrap(), None);
    }

    #[test]
    fn an_invalid_duration_names_the_valid_units() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        let message = |text| {
            let error = moment("--since", text, now).unwrap_err();
            error.message().to_owned()
        };
        for text in ["30x", "-30x", "-7", "-d"] {
            assert_eq!(
                message(text),
                "--since must be a number and a unit of s, m, h, d or w, such as 30m, 12h, 7d or 2w"
            );
        }
        assert_eq!(message("3000w"), "--since must not be before 1970");
    }

    #[test]
    fn an_invalid_moment_is_refused() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        for text in [
            "",
            "-",
            "-d",
            "-7",
            "-7y",
            "--7d",
            "-+7d",
            "-1é",
            "-99999999999d",
            "-3000w",
            "7",
            "7y",
            "2026-13-01",
            "2026-1-31",
            "2026-01-31T09:30:00",
            "yesterday",
        ] {
            let error = moment("--since", text, now).unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{text}");
        }
    }
}
