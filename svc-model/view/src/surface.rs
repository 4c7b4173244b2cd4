//! How each surface writes external text, numbers and times.

use std::fmt::Display;

use svc_model::json::Text;
use svc_model::reports::Counts;
use svc_model::time::Instant;

use crate::text::{escaped, is_hidden};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How a surface writes what differs between surfaces.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// Adds a character of an external text, visibly.
    push: fn(char, &mut String),
    /// What stands between the parts of a word of a closed set.
    space: char,
    /// What separates thousands.
    thousands: &'static str,
    /// The placeholder for an absent value.
    pub none: &'static str,
    /// What is written for the rate of nothing.
    no_rate: &'static str,
    /// The minus sign.
    pub(crate) minus: char,
    /// The units of minutes, hours and days.
    units: [&'static str; 3],
    percent: &'static str,
}

/// The shell: plain characters, and words as programs write them.
pub const SHELL: Surface = Surface {
    push: |character, shown| match character {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        other => push(other, shown),
    },
    space: '_',
    thousands: "",
    none: "-",
    no_rate: "-",
    minus: '-',
    units: ["m", "h", "d"],
    percent: "%",
};

/// The console: typographic characters, and words as people write them.
pub const CONSOLE: Surface = Surface {
    push,
    space: ' ',
    // A narrow no-break space.
    thousands: "\u{202f}",
    none: "–",
    no_rate: "no rate",
    minus: '−',
    units: [" min", " h", " d"],
    percent: " %",
};

fn push(character: char, shown: &mut String) {
    if is_hidden(character) {
        shown.extend(character.escape_unicode());
    } else {
        shown.push(character);
    }
}

impl Surface {
    /// Returns an external text on one line, with control characters made visible.
    pub fn escape(self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        text.chars()
            .for_each(|character| (self.push)(character, &mut shown));
        shown
    }

    /// Returns a captured text as [`Surface::escape`] does, but keeps line breaks and tabs, and
    /// shows lone surrogates.
    pub fn escape_text(self, text: &Text) -> String {
        escaped(text, self.push)
    }

    /// Returns the beginning of a captured text as one line of at most this many characters.
    pub fn line(self, text: &Text, characters_max: usize) -> String {
        let text = self.escape_text(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(characters_max) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// Returns a word of a closed set.
    pub fn word(self, word: &str) -> String {
        self.escape(word)
            .replace('_', self.space.encode_utf8(&mut [0; 4]))
    }

    /// Returns a text, or the placeholder if it is empty.
    pub fn or_none(self, text: String) -> String {
        if text.is_empty() {
            self.none.to_owned()
        } else {
            text
        }
    }

    /// Returns external texts as a list.
    pub fn list<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> String {
        let texts: Vec<String> = texts.into_iter().map(|text| self.escape(text)).collect();
        self.or_none(texts.join(", "))
    }

    /// Returns a number, with its thousands separated.
    pub fn whole(self, number: u64) -> String {
        let digits = number.to_string();
        let mut shown = String::with_capacity(digits.len() + digits.len() / 3 * 3);
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                shown.push_str(self.thousands);
            }
            shown.push(digit);
        }
        shown
    }

    /// Returns a number with four digits after the point, which may be absent.
    pub fn decimal(self, number: Option<f64>) -> String {
        number.map_or_else(|| self.none.to_owned(), |number| format!("{number:.4}"))
    }

    /// Returns a rate as a percentage.
    pub fn percent(self, rate: f64) -> String {
        format!("{:.1}{}", rate * 100.0, self.percent)
    }

    /// Returns a share with its counts. Without a total, there is no rate.
    pub fn part(self, count: u64, total: u64) -> String {
        let counts = format!("{} of {}", self.whole(count), self.whole(total));
        format!("{} ({counts})", self.rate_of(count, total))
    }

    /// Returns a share with its counts and its 95 % interval. Without a total, there is no rate.
    pub fn rate(self, count: u64, total: u64, [low, high]: [f64; 2]) -> String {
        if total == 0 {
            return self.part(count, total);
        }
        let (low, high) = (self.percent(low), self.percent(high));
        let counts = format!("{} of {}", self.whole(count), self.whole(total));
        format!("{} ({counts}; {low} to {high})", self.rate_of(count, total))
    }

    fn rate_of(self, count: u64, total: u64) -> String {
        if total == 0 {
            return self.no_rate.to_owned();
        }
        #[expect(clippy::cast_precision_loss, reason = "a percentage has four digits")]
        let rate = count as f64 / total as f64;
        self.percent(rate)
    }

    /// Returns counts by reason as one line.
    pub fn counts<K: Copy + Ord + Display>(self, counts: &Counts<K>) -> String {
        let all = counts
            .iter()
            .map(|(key, count)| format!("{} {}", self.escape(&key.to_string()), self.whole(count)));
        let all: Vec<String> = all.collect();
        if all.is_empty() {
            "none".to_owned()
        } else {
            all.join(", ")
        }
    }

    /// Says how many mirrors a report did not find.
    pub fn lost_mirrors(self, lost: u64) -> String {
        format!(
            "Mirrors that cannot be found now: {}. No call is linked to the commits of these \
             repositories, so rates are too low.",
            self.whole(lost)
        )
    }

    /// Returns the age of a moment in its largest whole unit. Hours are used up to two days.
    pub fn relative(self, at: Instant, now: Instant) -> String {
        let seconds = at.microseconds().abs_diff(now.microseconds()) / 1_000_000;
        if seconds < MINUTE {
            return "just now".to_owned();
        }
        let length = self.length(seconds);
        if at > now {
            format!("in {length}")
        } else {
            format!("{length} ago")
        }
    }

    /// Returns a length of time in its largest whole unit, and at least a minute. Hours are used up
    /// to two days.
    pub(crate) fn length(self, seconds: u64) -> String {
        let [minutes, hours, days] = self.units;
        match seconds {
            0..HOUR => format!("{}{minutes}", (seconds / MINUTE).max(1)),
            HOUR..172_800 => format!("{}{hours}", seconds / HOUR),
            _ => format!("{}{days}", seconds / DAY),
        }
    }
}

/// Returns the date and time of a moment, in UTC and to the second: `2026-01-31 09:30:00`.
pub fn clock(at: Instant) -> String {
    let text = at.to_string().replacen('T', " ", 1);
    text.chars().take("2026-01-31 09:30:00".len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        let text = "a\u{1b}[2J\u{202e}b\n\t\u{0}\u{200b}é";
        assert_eq!(
            CONSOLE.escape(text),
            "a\\u{1b}[2J\\u{202e}b\\u{a}\\u{9}\\u{0}\\u{200b}é"
        );
        assert_eq!(
            SHELL.escape(text),
            "a\\u{1b}[2J\\u{202e}b\\n\\t\\u{0}\\u{200b}é"
        );
    }

    #[test]
    fn line_breaks_are_kept_and_surrogates_are_escaped() {
        let text = Text::from_wtf8(b"a\n\tb\r\0\xed\xa0\x80\xc3\xa9\xe2\x81\xa6".to_vec()).unwrap();
        assert_eq!(
            SHELL.escape_text(&text),
            "a\n\tb\\r\\u{0}\\ud800\u{e9}\\u{2066}"
        );
        assert_eq!(
            CONSOLE.escape_text(&text),
            "a\n\tb\\u{d}\\u{0}\\ud800\u{e9}\\u{2066}"
        );
    }

    #[test]
    fn one_line_is_shortened_to_its_limit() {
        for (text, characters_max, shown) in [
            (" a\n\n b\tc ", 9, "a b c"),
            ("abcdef", 3, "abc…"),
            ("abc", 3, "abc"),
            (" \n", 3, ""),
        ] {
            assert_eq!(SHELL.line(&Text::from(text), characters_max), shown);
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1\u{202f}000"),
            (12_345_678, "12\u{202f}345\u{202f}678"),
        ] {
            assert_eq!(CONSOLE.whole(number), shown);
            assert_eq!(SHELL.whole(number), number.to_string());
        }
    }

    #[test]
    fn a_rate_is_shown_with_its_counts_and_its_interval() {
        let interval = [0.301, 0.954];
        assert_eq!(SHELL.rate(3, 4, interval), "75.0% (3 of 4; 30.1% to 95.4%)");
        assert_eq!(
            CONSOLE.rate(3, 4, interval),
            "75.0 % (3 of 4; 30.1 % to 95.4 %)"
        );
        assert_eq!(SHELL.rate(0, 0, [0.0, 0.0]), "- (0 of 0)");
        assert_eq!(CONSOLE.part(0, 0), "no rate (0 of 0)");
        assert_eq!(SHELL.part(1, 3), "33.3% (1 of 3)");
    }

    #[test]
    fn a_moment_is_shown_in_its_largest_unit() {
        let at = |seconds: i64| Instant::from_microseconds(seconds * 1_000_000).unwrap();
        let now = at(10_000_000);
        for (before, shell, console) in [
            (59, "just now", "just now"),
            (60, "1m ago", "1 min ago"),
            (3_599, "59m ago", "59 min ago"),
            (3_600, "1h ago", "1 h ago"),
            (172_799, "47h ago", "47 h ago"),
            (172_800, "2d ago", "2 d ago"),
            (-59, "just now", "just now"),
            (-7_200, "in 2h", "in 2 h"),
        ] {
            assert_eq!(SHELL.relative(at(10_000_000 - before), now), shell);
            assert_eq!(CONSOLE.relative(at(10_000_000 - before), now), console);
        }
        assert_eq!(clock(now), "1970-04-26 17:46:40");
    }
}
