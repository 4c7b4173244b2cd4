//! Escapes external text for a terminal.
//!
//! Captured text may contain escape sequences that recolour, overwrite or hijack a terminal, marks
//! that reorder text, and invisible characters. They are printed in escaped form.

use std::fmt::Write as _;

use svc_model::display::{escaped, is_hidden};
use svc_model::json::Text;

/// Returns the text with its control characters escaped, line breaks included.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    text.chars()
        .for_each(|character| push(character, &mut escaped));
    escaped
}

/// Returns a captured text with its control characters and lone surrogates escaped, except line
/// breaks and tabs.
pub(crate) fn escape_text(text: &Text) -> String {
    escaped(text, push)
}

/// Returns the beginning of a captured text as one line of at most this many characters.
pub(crate) fn one_line(text: &Text, characters_max: usize) -> String {
    let line: Vec<_> = escape_text(text)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let line = line.join(" ");
    match line.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn push(character: char, escaped: &mut String) {
    match character {
        '\n' => escaped.push_str("\\n"),
        '\r' => escaped.push_str("\\r"),
        '\t' => escaped.push_str("\\t"),
        other if is_hidden(other) => {
            write!(escaped, "\\u{{{:x}}}", u32::from(other)).expect("a string takes everything");
        }
        other => escaped.push(other),
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    fn text(json: &str) -> Text {
        Json::parse(json.as_bytes()).unwrap().into_text().unwrap()
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            escape("a\u{1b}[2Jb\n\u{7f}\u{9b}\u{202e}c\u{200b}\u{feff}"),
            "a\\u{1b}[2Jb\\n\\u{7f}\\u{9b}\\u{202e}c\\u{200b}\\u{feff}"
        );
        assert_eq!(escape("caf\u{e9} \u{4e2d}"), "caf\u{e9} \u{4e2d}");
    }

    #[test]
    fn line_breaks_are_kept_and_surrogates_are_escaped() {
        let text = text(r#""a\n\tb\r\u0000\ud800\u00e9\udfff""#);
        assert_eq!(escape_text(&text), "a\n\tb\\r\\u{0}\\ud800\u{e9}\\udfff");
    }

    #[test]
    fn one_line_is_shortened_to_its_limit() {
        assert_eq!(one_line(&text(r#"" a\n\n b\tc ""#), 9), "a b c");
        assert_eq!(one_line(&text(r#""abcdef""#), 3), "abc…");
        assert_eq!(one_line(&text(r#""abc""#), 3), "abc");
    }
}
