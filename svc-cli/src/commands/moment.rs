//! Moments, as a person names them.

use svc_model::time::Instant;

use crate::error::CommandError;

const MICROSECONDS: i64 = 1_000_000;

/// Reads an RFC 3339 moment with an offset, or how long before the present it was: `-7d`.
pub(crate) fn moment(option: &str, text: &str, now: Instant) -> Result<Instant, CommandError> {
    if let Some(length) = text.strip_prefix('-') {
        return before(length, now).ok_or_else(|| {
            CommandError::argument(option, "must be like -30m, -12h, -7d or -2w, since 1970")
        });
    }
    Instant::parse(text).map_err(|rule| {
        CommandError::argument(option, rule)
            .hint("a moment is like 2026-01-31T09:30:00Z, or like -7d for seven days ago")
    })
}

/// Reads the moment of an option that may be absent.
pub(crate) fn optional_moment(
    option: &str,
    text: Option<&str>,
    now: Instant,
) -> Result<Option<Instant>, CommandError> {
    text.map(|text| moment(option, text, now)).transpose()
}

fn before(length: &str, now: Instant) -> Option<Instant> {
    let (unit_at, unit) = length.char_indices().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &length[..unit_at];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: i64 = digits.parse().ok()?;
    let microseconds = count.checked_mul(seconds)?.checked_mul(MICROSECONDS)?;
    Instant::from_microseconds(now.microseconds().checked_sub(microseconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_absolute_or_before_the_present() {
        let now = Instant::parse("2026-01-31T09:30:00Z").unwrap();
        for (text, expected) in [
            ("2026-01-31T09:30:00+01:00", "2026-01-31T08:30:00Z"),
            ("-30s", "2026-01-31T09:29:30Z"),
            ("-30m", "2026-01-31T09:00:00Z"),
            ("-12h", "2026-01-30T21:30:00Z"),
            ("-7d", "2026-01-24T09:30:00Z"),
            ("-2w", "2026-01-17T09:30:00Z"),
            ("-0d", "2026-01-31T09:30:00Z"),
        ] {
            assert_eq!(moment("--since", text, now).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
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
            "2026-01-31",
            "2026-01-31T09:30:00",
            "yesterday",
        ] {
            let error = moment("--since", text, now).unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{text}");
        }
    }
}
