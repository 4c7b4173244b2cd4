//! Prose in lines of the terminal's width.

use super::table;

/// The longest line, because longer ones are hard to read.
const CHARACTERS_MAX: usize = 100;

/// Breaks a text between words into lines of the terminal's width, all but the first after so many
/// blanks. Without a terminal, it stays one line.
pub(crate) fn fill(text: &str, indent: usize) -> String {
    match table::columns() {
        Some(columns) => within(text, indent, usize::from(columns).min(CHARACTERS_MAX)),
        None => text.to_owned(),
    }
}

fn within(text: &str, indent: usize, characters: usize) -> String {
    let (mut filled, mut used) = (String::new(), 0);
    for (place, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > characters {
            filled.push('\n');
            filled.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if place > 0 {
            filled.push(' ');
            used += 1;
        }
        filled.push_str(word);
        used += length;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole() {
        for (text, indent, expected) in [
            ("one two three", 0, "one two\nthree"),
            ("one two three", 2, "one two\n  three"),
            ("a-word-that-is-long b", 0, "a-word-that-is-long\nb"),
            ("  two", 0, "  two"),
            ("", 2, ""),
        ] {
            assert_eq!(within(text, indent, 8), expected, "{text}");
        }
        assert_eq!(fill("one two", 0), "one two");
    }
}
