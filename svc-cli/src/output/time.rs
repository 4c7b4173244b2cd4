//! Times, as a person reads them in a table.

use svc_model::time::Instant;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns how long before the present a moment was, in its largest whole unit. Hours are counted to
/// two days.
pub(crate) fn relative(at: Instant, now: Instant) -> String {
    let ahead = at > now;
    let seconds = at.microseconds().abs_diff(now.microseconds()) / 1_000_000;
    let length = match seconds {
        0..MINUTE => return "just now".to_owned(),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    };
    if ahead {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_by_its_largest_unit() {
        let at = |seconds: i64| Instant::from_microseconds(seconds * 1_000_000).unwrap();
        let now = at(10_000_000);
        for (before, told) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1m ago"),
            (3_599, "59m ago"),
            (3_600, "1h ago"),
            (172_799, "47h ago"),
            (172_800, "2d ago"),
            (8_640_000, "100d ago"),
            (-59, "just now"),
            (-7_200, "in 2h"),
        ] {
            assert_eq!(relative(at(10_000_000 - before), now), told);
        }
    }
}
