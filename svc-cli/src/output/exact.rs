//! Replies that are passed on unchanged, without being parsed again.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use svc_client::RawReply;
use svc_model::json::RawJson;

/// A reply inside a larger JSON value.
#[derive(Debug)]
pub(crate) struct Exact<T> {
    pub(crate) value: T,
    raw: RawJson,
}

impl<T> Serialize for Exact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<T> From<RawReply<T>> for Exact<T> {
    fn from(reply: RawReply<T>) -> Self {
        Self {
            value: reply.value,
            raw: RawJson::from_canonical(printable(&reply.bytes).into_owned()),
        }
    }
}

/// Returns a JSON document in printable ASCII. Other characters in strings are escaped, because a
/// terminal might act on them. The document must be valid JSON, so that unescaped control
/// characters occur only between values.
pub(super) fn printable(json: &[u8]) -> Cow<'_, [u8]> {
    if json.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(json);
    }
    let text = String::from_utf8_lossy(json);
    let mut printable = String::with_capacity(json.len());
    for char in text.trim_start_matches('\u{feff}').chars() {
        match char {
            ' '..='~' => printable.push(char),
            '\n' | '\r' | '\t' => printable.push(' '),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    printable.extend([format!("\\u{unit:04x}")]);
                }
            }
        }
    }
    Cow::Owned(printable.into_bytes())
}

#[cfg(test)]
mod tests {
    use svc_model::json::Json;

    use super::*;

    #[test]
    fn ascii_is_printed_unchanged() {
        let json = br#"{"a": [1.10, "\u202e"], "b":NaN}"#;
        assert!(matches!(printable(json), Cow::Borrowed(same) if same == json));
    }

    #[test]
    fn control_characters_in_json_are_escaped_without_changing_its_meaning() {
        let json = "\u{feff}{\"a\u{7f}\":\r\n\t\"\u{202e}\u{1f642}\u{9b}\",\n\"b\":1.10}";
        let printed = printable(json.as_bytes());
        assert!(printed.iter().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(Json::parse(&printed), Json::parse(json.as_bytes()));
    }
}
