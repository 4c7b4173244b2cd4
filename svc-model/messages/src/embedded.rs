//! JSON documents in the strings of a payload.

use svc_model::json::{Json, NodeBudget, Object, Text};

/// The memory for a document that is only searched. It is enough for any document of ordinary
/// density that fits into a request body.
const LOOKED_INTO_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Returns the JSON document in a text, which may have blanks around it, or `None` if the text is
/// not JSON or is nested too deeply. Its memory is taken from a budget; a document that does not
/// fit uses the budget up.
///
/// Most texts are not documents but prose, source code or lists of files, which their first and
/// last bytes show.
pub fn document(text: &Text, memory: &NodeBudget) -> Option<Json> {
    let bytes = trimmed(text.as_bytes());
    let fits = match bytes.first()? {
        b'{' => bytes.ends_with(b"}"),
        b'[' => bytes.ends_with(b"]"),
        b'"' => bytes.len() > 1 && bytes.ends_with(b"\""),
        b'-' | b'0'..=b'9' => bytes.ends_with(b"y") || bytes.last()?.is_ascii_digit(),
        b't' | b'f' | b'n' | b'N' | b'I' => bytes.len() <= b"Infinity".len(),
        _ => false,
    };
    // A text is text: a NUL near its start must not make the parser assume UTF-16.
    let fits = fits && !bytes.iter().take(4).any(|byte| *byte == 0);
    fits.then(|| Json::parse_within(bytes, memory).ok())?
}

/// Returns the object in a text, to search it. `None` also if it has too many values.
pub fn object(text: &Text) -> Option<Object> {
    object_within(text, &NodeBudget::new(LOOKED_INTO_BYTES_MAX))
}

/// Returns the object in a text. It takes its memory from a budget, as [`document`] does.
pub fn object_within(text: &Text, memory: &NodeBudget) -> Option<Object> {
    if trimmed(text.as_bytes()).first() != Some(&b'{') {
        return None;
    }
    document(text, memory)?.into_object()
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

    fn document(text: &Text) -> Option<Json> {
        super::document(text, &NodeBudget::unlimited())
    }

    #[test]
    fn every_kind_of_json_document_is_read_even_between_blanks() {
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
    fn text_that_is_not_json_is_not_read_as_a_document() {
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
    fn an_embedded_document_is_charged_to_the_memory_budget() {
        let text = Text::from("[[],[],[]]");
        let memory = NodeBudget::new(1_000);
        assert!(super::document(&text, &memory).is_some());
        assert!(memory.left() < 1_000 && !memory.is_exhausted());
        let memory = NodeBudget::new(100);
        assert_eq!(super::document(&text, &memory), None);
        assert!(memory.is_exhausted());
        let dense = format!("{{\"a\":[{}0]}}", "[],".repeat(1_000_000));
        assert_eq!(object(&Text::from(dense)), None, "not worth its memory");
    }

    #[test]
    fn a_document_nested_too_deeply_is_not_read() {
        let nested = |depth: usize| Text::from("[".repeat(depth) + &"]".repeat(depth));
        assert!(document(&nested(512)).is_some());
        assert!(document(&nested(513)).is_none());
        assert!(document(&nested(100_000)).is_none());
    }
}
