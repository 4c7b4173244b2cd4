//! Moments as agents know them: a date, a time with an offset, or an age.

use svc_model::time::Instant;
use svc_view::{age, before, midnight};

/// What a moment may be.
const FORM: &str =
    "must be a date such as 2026-11-20, a time with an offset, or an age such as 7d or 24h";

/// Reads a moment. A date is its midnight in UTC.
///
/// # Errors
///
/// What is expected.
pub(crate) fn moment(text: &str, now: Instant) -> Result<Instant, &'static str> {
    let text = text.trim();
    match age(text.trim_start_matches('-')) {
        Some(age) => before(now, age),
        None => Instant::parse(&midnight(text)).map_err(|_| FORM),
    }
}

/// Writes a moment to the minute, which is all that a reader needs to tell two apart.
pub(crate) fn minute(moment: Instant) -> String {
    let mut text = moment.to_string();
    text.truncate("2026-11-20T10:05".len());
    text.push('Z');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_an_age() {
        let now = Instant::parse("2026-11-27T10:00:00Z").unwrap();
        for (text, expected) in [
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11-20T09:30:00+01:00", "2026-11-20T08:30:00Z"),
            ("7d", "2026-11-20T10:00:00Z"),
            ("-24h", "2026-11-26T10:00:00Z"),
            (" 30m ", "2026-11-27T09:30:00Z"),
            ("2w", "2026-11-13T10:00:00Z"),
        ] {
            assert_eq!(moment(text, now).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "yesterday",
            "d",
            "7",
            "2026-11-20T09:30:00",
            "2026-13-01",
            "7日",
        ] {
            assert_eq!(moment(text, now), Err(FORM), "{text}");
        }
        for text in ["99999d", "99999999999999999999999w"] {
            assert_eq!(moment(text, now), Err("must not be before 1970"), "{text}");
        }
        assert_eq!(minute(now), "2026-11-27T10:00Z");
    }
}
