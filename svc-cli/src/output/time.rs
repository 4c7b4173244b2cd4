//! Times in tables, for people.

use svc_model::time::Instant;
use svc_view::SHELL;
pub(crate) use svc_view::clock;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns the age of a moment in its largest whole unit. Hours are used up to two days.
pub(crate) fn relative(at: Instant, now: Instant) -> String {
    SHELL.relative(at, now)
}

/// The length of the date in a formatted moment.
const DAY_CHARACTERS: usize = 10;

/// Returns the time of a moment, with its date if that differs from the previous moment's.
pub(crate) fn time_of_day(before: Instant, at: Instant) -> String {
    let text = clock(at);
    let same_day = clock(before).get(..DAY_CHARACTERS) == text.get(..DAY_CHARACTERS);
    match text.get(DAY_CHARACTERS + 1..) {
        Some(time) if same_day => time.to_owned(),
        _ => text,
    }
}

/// Returns how much later a moment is than another, in words and in its largest whole unit: `3
/// minutes`. `None` if it is less than a second.
pub(crate) fn later(before: Instant, at: Instant) -> Option<String> {
    let seconds = at.microseconds().abs_diff(before.microseconds()) / 1_000_000;
    let (count, unit) = match seconds {
        0 => return None,
        1..MINUTE => (seconds, "second"),
        MINUTE..HOUR => (seconds / MINUTE, "minute"),
        HOUR..172_800 => (seconds / HOUR, "hour"),
        _ => (seconds / DAY, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    Some(format!("{count} {unit}{plural}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_in_words() {
        let at = |text: &str| Instant::parse(text).unwrap();
        let begin = at("2026-01-31T23:59:00.25Z");
        for (text, expected, time) in [
            ("2026-01-31T23:59:01Z", None, "23:59:01"),
            ("2026-01-31T23:59:02Z", Some("1 second"), "23:59:02"),
            (
                "2026-02-01T00:02:00.25Z",
                Some("3 minutes"),
                "2026-02-01 00:02:00",
            ),
            (
                "2026-02-01T01:00:00Z",
                Some("1 hour"),
                "2026-02-01 01:00:00",
            ),
            (
                "2026-02-03T00:00:00Z",
                Some("2 days"),
                "2026-02-03 00:00:00",
            ),
        ] {
            assert_eq!(later(begin, at(text)).as_deref(), expected, "{text}");
            assert_eq!(time_of_day(begin, at(text)), time);
        }
        assert_eq!(clock(begin), "2026-01-31 23:59:00");
    }
}
