//! External text, times and numbers, formatted for people.

use std::fmt::Write as _;

use maud::{Markup, html};
use svc_model::json::Text;
use svc_model::reports::Counts;
use svc_model::time::Instant;
use svc_view::{CONSOLE, Line, clock};

/// The placeholder for an absent value.
pub(super) const NONE: &str = CONSOLE.none;

/// Returns an external text on one line, with control characters made visible.
pub(super) fn inert(text: &str) -> String {
    CONSOLE.escape(text)
}

/// Returns an external text that may be absent.
pub(super) fn any(text: Option<&str>) -> String {
    CONSOLE.or_none(inert(text.unwrap_or_default()))
}

/// Returns the beginning of a captured text as one line.
pub(super) fn line(text: &Text, characters_max: usize) -> String {
    CONSOLE.or_none(CONSOLE.line(text, characters_max))
}

/// Returns a number with its thousands separated.
pub(super) fn whole(number: u64) -> String {
    CONSOLE.whole(number)
}

/// Returns the date of a moment, in UTC.
pub(super) fn day(at: Instant) -> String {
    at.to_string().chars().take("2026-01-31".len()).collect()
}

/// Shows the age of a moment, with the exact time as a tooltip.
pub(super) fn ago(at: Instant, now: Instant) -> Markup {
    let exact = clock(at) + " UTC";
    html! { time datetime=(at.to_string()) title=(exact) { (CONSOLE.relative(at, now)) } }
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
    CONSOLE.word(word)
}

/// Returns counts by reason as one line.
pub(super) fn counts<K: Copy + Ord + std::fmt::Display>(counts: &Counts<K>) -> String {
    CONSOLE.counts(counts)
}

/// Returns a phrase with a capital letter, as the beginning of a sentence.
pub(super) fn capital(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// Shows what was said of something as items of a list.
pub(super) fn items(lines: &[Line]) -> Markup {
    html! {
        @for (what, said) in lines { li { (capital(what)) ": " (said) } }
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
    fn what_is_absent_has_a_placeholder() {
        assert_eq!(line(&Text::from(" a\n b  c"), 3), "a b…");
        assert_eq!(line(&Text::from(" \n"), 3), NONE);
        assert_eq!(any(Some("")), NONE);
        assert_eq!(any(None), NONE);
    }

    #[test]
    fn a_day_and_a_sentence_begin_as_they_should() {
        let now = Instant::from_microseconds(10_000_000_000_000).unwrap();
        assert_eq!(day(now), "1970-04-26");
        assert_eq!(capital("éa"), "éa");
        assert_eq!(capital("left out"), "Left out");
    }
}
