//! External text, times and numbers, formatted for people.

use std::fmt::Write as _;

use maud::{Markup, html};
use svc_model::display::{clock, escaped, is_hidden};
use svc_model::json::Text;
use svc_model::reports::Counts;
use svc_model::time::Instant;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The placeholder for an absent value.
pub(super) const NONE: &str = "–";

/// Returns an external text on one line, with control characters made visible.
pub(super) fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        push(character, &mut shown);
    }
    shown
}

/// Returns a captured text as [`inert`] does, but keeps line breaks and tabs, and shows lone
/// surrogates.
pub(super) fn inert_text(text: &Text) -> String {
    escaped(text, push)
}

fn push(character: char, shown: &mut String) {
    if is_hidden(character) {
        shown.extend(character.escape_unicode());
    } else {
        shown.push(character);
    }
}

/// Returns an external text that may be absent.
pub(super) fn any(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .map_or_else(|| NONE.to_owned(), inert)
}

/// Returns the beginning of a captured text as one line.
pub(super) fn line(text: &Text, characters_max: usize) -> String {
    let words = inert_text(text);
    let words: Vec<&str> = words.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => NONE.to_owned(),
        None => line,
    }
}

/// Returns a number with its thousands separated.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            // A narrow no-break space.
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

pub(super) fn percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

/// Returns a score that may be absent.
pub(super) fn score(score: Option<f64>) -> String {
    score.map_or_else(|| NONE.to_owned(), |score| format!("{score:.4}"))
}

/// Returns the age of a moment in its largest whole unit. Hours are used up to two days.
pub(super) fn relative(at: Instant, now: Instant) -> String {
    let seconds = at.microseconds().abs_diff(now.microseconds()) / 1_000_000;
    let length = match seconds {
        0..MINUTE => return "just now".to_owned(),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..172_800 => format!("{} h", seconds / HOUR),
        _ => format!("{} d", seconds / DAY),
    };
    if at > now {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

/// Returns the date of a moment, in UTC.
pub(super) fn day(at: Instant) -> String {
    at.to_string().chars().take("2026-01-31".len()).collect()
}

/// Shows the age of a moment, with the exact time as a tooltip.
pub(super) fn ago(at: Instant, now: Instant) -> Markup {
    let exact = clock(at) + " UTC";
    html! { time datetime=(at.to_string()) title=(exact) { (relative(at, now)) } }
}

/// Shows a moment exactly.
pub(super) fn moment(at: Instant) -> Markup {
    html! { time datetime=(at.to_string()) { (clock(at)) } }
}

/// Shows the age of a moment that may be absent.
pub(super) fn any_ago(at: Option<Instant>, now: Instant, otherwise: &str) -> Markup {
    html! {
        @if let Some(at) = at { (ago(at, now)) } @else { (otherwise) }
    }
}

/// Returns a word of a closed set, with spaces.
pub(super) fn words(word: &str) -> String {
    inert(word).replace('_', " ")
}

/// Returns counts by reason as one line.
pub(super) fn counts<K: Copy + Ord + std::fmt::Display>(counts: &Counts<K>) -> String {
    let all: Vec<String> = counts
        .iter()
        .map(|(key, count)| format!("{} {}", inert(&key.to_string()), whole(count)))
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hexadecimal<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> String {
    let mut digits = String::new();
    for byte in bytes {
        // Writing to a string never fails.
        let _written = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        assert_eq!(
            inert("a\u{1b}[2J\u{202e}b\n\u{0}\u{200b}é"),
            "a\\u{1b}[2J\\u{202e}b\\u{a}\\u{0}\\u{200b}é"
        );
        let text = Text::from("one\r\n\ttwo\u{2066}");
        assert_eq!(inert_text(&text), "one\\u{d}\n\ttwo\\u{2066}");
        let broken = Text::from_wtf8(b"a\xed\xa0\x80b".to_vec()).unwrap();
        assert_eq!(inert_text(&broken), "a\\ud800b");
        assert_eq!(line(&Text::from(" a\n b  c"), 3), "a b…");
        assert_eq!(line(&Text::from(" \n"), 3), NONE);
        assert_eq!(any(Some("")), NONE);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (12_345_678, "12\u{202f}345\u{202f}678"),
        ] {
            assert_eq!(whole(number), shown);
        }
        assert_eq!(percent(0.1234), "12.3 %");
    }

    #[test]
    fn a_moment_is_shown_in_its_largest_unit() {
        let at = |seconds: i64| Instant::from_microseconds(seconds * 1_000_000).unwrap();
        let now = at(10_000_000);
        for (before, expected) in [
            (59, "just now"),
            (60, "1 min ago"),
            (3_600, "1 h ago"),
            (172_800, "2 d ago"),
            (-7_200, "in 2 h"),
        ] {
            assert_eq!(relative(at(10_000_000 - before), now), expected);
        }
        assert_eq!(clock(now), "1970-04-26 17:46:40");
        assert_eq!(day(now), "1970-04-26");
    }
}
