//! Members of a reply as words of a text.

use std::fmt::Write as _;

use svc_model::json::{Json, Object, Text};
use svc_view::is_hidden;

/// The maximum number of characters in a quotation of what was found.
pub(super) const QUOTED_CHARACTERS_MAX: usize = 400;

/// Writes how many there are, with the noun in the right number.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{count} {noun}")
}

/// Returns a word or number from the service itself; anything else is quoted.
pub(super) fn plain(body: &Object, name: &str) -> String {
    match body.get(name) {
        Some(Json::String(text)) => match text.as_str() {
            Some(plain) if is_word(plain) => plain.to_owned(),
            _ => quote(text),
        },
        Some(value @ (Json::Null | Json::Bool(_) | Json::Number(_))) => {
            String::from_utf8_lossy(&value.to_canonical()).into_owned()
        }
        Some(Json::Array(_) | Json::Object(_)) | None => "-".to_owned(),
    }
}

/// Returns whether a text needs no quotes.
pub(super) fn is_word(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.');
    !text.is_empty() && text.bytes().all(plain)
}

/// Writes a value as one line of JSON.
pub(super) fn json(value: &Json) -> String {
    one_line(&String::from_utf8_lossy(&value.to_canonical()))
}

/// Escapes characters that JSON allows in a string and that are not shown as themselves.
pub(crate) fn one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(character);
        }
    }
    line
}

/// Quotes a text as JSON, truncated if it is long.
pub(super) fn quote(text: &Text) -> String {
    let whole = text.to_string_lossy();
    let cut: String = whole.chars().take(QUOTED_CHARACTERS_MAX).collect();
    let rest = whole.chars().count().saturating_sub(QUOTED_CHARACTERS_MAX);
    let quoted = one_line(&serde_json::Value::String(cut).to_string());
    if rest == 0 {
        quoted
    } else {
        format!("{quoted} and {rest} more characters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_hides_nothing_from_people() {
        let text = Text::from("a\u{202e}\u{2066}\u{200b}\u{e0041}\u{feff}\u{1b}\nb");
        let quoted = quote(&text);
        assert_eq!(
            quoted,
            r#""a\u202e\u2066\u200b\udb40\udc41\ufeff\u001b\nb""#
        );
        let read: String = serde_json::from_str(&quoted).unwrap();
        assert_eq!(Some(&*read), text.as_str());
    }
}
