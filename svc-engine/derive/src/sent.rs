//! Arguments of tool calls that are no JSON object, as they were sent: mostly the beginning of one.

use svc_model::json::Text;

/// Returns what a text says whose escapes cannot be decoded, because it is no whole JSON: breaks of
/// lines and tabs become blanks, and the other backslashes are dropped.
pub(super) fn unescaped(sent: &Text) -> Vec<u8> {
    let mut bytes = sent.as_bytes().iter().copied();
    let mut read = Vec::with_capacity(sent.len());
    while let Some(byte) = bytes.next() {
        read.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n' | b'r' | b't') | None => b' ',
                Some(other) => other,
            },
            byte => byte,
        });
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_an_escape_are_words() {
        let sent = Text::from(r#"{"a": "one\ntwo\"three\\four\"#);
        assert_eq!(unescaped(&sent), br#"{"a": "one two"three\four "#);
    }
}
