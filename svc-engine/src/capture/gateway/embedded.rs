//! JSON documents that a payload carries inside of strings.

use svc_model::json::{Json, Object, Text};

/// Returns the document that a text is, blanks around it allowed; nothing when it is none, or is
/// nested too deep to be read.
///
/// Most texts that are asked about are none: prose, source code, listings of files. Their first and
/// last byte say so.
pub(super) fn document(text: &Text) -> Option<Json> {
    let bytes = trimmed(text.as_bytes());
    let fits = match bytes.first()? {
        b'{' => bytes.ends_with(b"}"),
        b'[' => bytes.ends_with(b"]"),
        b'"' => bytes.len() > 1 && bytes.ends_with(b"\""),
        b'-' | b'0'..=b'9' => bytes.ends_with(b"y") || bytes.last()?.is_ascii_digit(),
        b't' | b'f' | b'n' | b'N' | b'I' => bytes.len() <= b"Infinity".len(),
        _ => false,
    };
    // A text is text: a NUL at its beginning must not make the parser take it for UTF-16.
    let fits = fits && !bytes.iter().take(4).any(|byte| *byte == 0);
    fits.then(|| Json::parse(bytes).ok())?
}

/// Returns the object that a text is.
pub(in crate::capture) fn object(text: &Text) -> Option<Object> {
    if trimmed(text.as_bytes()).first() != Some(&b'{') {
        return None;
    }
    document(text)?.into_object()
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = bytes
        .iter()
        .position(|byte| !is_blank(byte))
        .unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|byte| !is_blank(byte))
        .map_or(start, |last| last + 1);
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_document_is_read_with_blanks_around() {
        for text in [
            "{}",
            "[]",
            "{\"a\":[1]}",
            "\"q\"",
            "\"\"",
            "5",
            "-0",
            "1.50",
            "1e5",
            "true",
            "false",
            "null",
            "NaN",
            "Infinity",
            "-Infinity",
            "\"\\ud800\"",
        ] {
            let padded = format!("\n\t {text} \r\n");
            let expected = Json::parse(text.as_bytes()).unwrap();
            assert_eq!(document(&Text::from(padded)), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_documents() {
        for text in [
            "",
            " ",
            "{",
            "{bad}",
            "[1",
            "\"",
            "1 2",
            "1.",
            "nul",
            "nil",
            "True",
            "N",
            "{} {}",
            "\u{feff}{}",
            "1\0",
            "\u{a0}1",
            "'a'",
            "01",
            "{\"a\":1,}",
        ] {
            assert_eq!(document(&Text::from(text)), None, "{text:?}");
        }
    }

    #[test]
    fn a_document_that_is_nested_too_deep_is_none() {
        let nested = |depth: usize| Text::from("[".repeat(depth) + &"]".repeat(depth));
        assert!(document(&nested(512)).is_some());
        assert!(document(&nested(513)).is_none());
        assert!(document(&nested(100_000)).is_none());
    }
}
