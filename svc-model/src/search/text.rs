//! The text of a part that is searched, and how a long one is cut.

use std::ops::Range;

use crate::evidence::Part;
use crate::json::{Json, Object, Text};
use crate::limit::SEARCH_PASSAGE_CHARACTERS_MAX;

/// Returns the text of a part that is searched, and in which the offsets of an excerpt count bytes.
///
/// This is the content of a text or of reasoning. For a tool call, it is the name of the tool and,
/// behind a line feed, the lines of the arguments, or what was sent in their place. For the result
/// of a tool call, it is the result if that is a string, and else its lines. A member of an object
/// is the line `NAME: VALUE` if its value is scalar, and otherwise the line `NAME` and the lines of
/// its value. Elements of arrays follow one another. Strings stand as they are, numbers as they are
/// spelled.
pub fn search_text(part: &Part) -> Text {
    let mut lines = Lines::default();
    match part {
        Part::Text { content } | Part::Reasoning { content } => return content.clone(),
        Part::ToolCall {
            name,
            arguments,
            sent,
            ..
        } => {
            lines.line(None, name.as_bytes());
            lines.members(arguments);
            if let Some(sent) = sent {
                lines.line(None, sent.as_bytes());
            }
        }
        Part::ToolCallResponse { result, .. } => match result {
            Json::String(text) => return text.clone(),
            result => lines.value(None, result),
        },
    }
    // Two surrogates that a line ends and begins with are apart by its line feed.
    Text::from_wtf8(lines.0).unwrap_or_default()
}

#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn line(&mut self, name: Option<&[u8]>, value: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b'\n');
        }
        if let Some(name) = name {
            self.0.extend_from_slice(name);
            self.0.extend_from_slice(b": ");
        }
        self.0.extend_from_slice(value);
    }

    fn members(&mut self, object: &Object) {
        for (name, value) in object {
            self.value(Some(name.as_bytes()), value);
        }
    }

    fn value(&mut self, name: Option<&[u8]>, value: &Json) {
        match value {
            Json::Null => self.line(name, b"null"),
            Json::Bool(true) => self.line(name, b"true"),
            Json::Bool(false) => self.line(name, b"false"),
            Json::Number(number) => self.line(name, number.as_str().as_bytes()),
            Json::String(text) => self.line(name, text.as_bytes()),
            Json::Array(items) => {
                if let Some(name) = name {
                    self.line(None, name);
                }
                for item in items {
                    self.value(None, item);
                }
            }
            Json::Object(object) => {
                if let Some(name) = name {
                    self.line(None, name);
                }
                self.members(object);
            }
        }
    }
}

/// Returns the bytes of each passage of a search text, in order. A text of at most 2,000 characters
/// is one passage. A longer one is cut after the last white space of each 2,000 characters, or at
/// 2,000 characters if that white space is not beyond the 1,000th.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let end = passage_end(rest).map_or(text.len(), |end| start + end);
        found.push(start..end);
        start = end;
    }
    found
}

/// Returns where the first passage of a text ends, unless it is the whole text.
fn passage_end(text: &str) -> Option<usize> {
    if text.len() <= SEARCH_PASSAGE_CHARACTERS_MAX {
        return None;
    }
    let mut after_blank = None;
    for (count, (at, character)) in text.char_indices().enumerate() {
        if count == SEARCH_PASSAGE_CHARACTERS_MAX {
            return Some(after_blank.unwrap_or(at));
        }
        if character.is_whitespace() && count + 1 > SEARCH_PASSAGE_CHARACTERS_MAX / 2 {
            after_blank = Some(at + character.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn part(text: &str) -> Part {
        json::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_text_of_a_tool_call_is_lines() {
        let call = part(
            r#"{"type":"tool_call","id":"t","name":"Edit","arguments":{"file_path":"src/pager.rs","edits":[{"old":"a","new":"b"}],"count":2}}"#,
        );
        let expected = "Edit\nfile_path: src/pager.rs\nedits\nold: a\nnew: b\ncount: 2";
        assert_eq!(search_text(&call).as_str(), Some(expected));
        let result =
            part(r#"{"type":"tool_call_response","id":"t","result":[1.0,null,{"a":[]},"x"]}"#);
        assert_eq!(search_text(&result).as_str(), Some("1.0\nnull\na\nx"));
        let result = part(r#"{"type":"tool_call_response","id":"t","result":"a\nb"}"#);
        assert_eq!(search_text(&result).as_str(), Some("a\nb"));
    }

    #[test]
    fn a_long_text_is_cut_at_white_space() {
        let text = "word ".repeat(900);
        assert_eq!(passages(&text), [0..2_000, 2_000..4_000, 4_000..4_500]);
        let other = text.replacen("word", "wörd", 1);
        assert_eq!(passages(&other), [0..2_001, 2_001..4_001, 4_001..4_501]);
        assert_eq!(passages(&"x".repeat(2_001)), [0..2_000, 2_000..2_001]);
        assert_eq!(passages(&"x".repeat(2_000)), vec![0..2_000]);
        let early = format!("{} {}", "x".repeat(900), "x".repeat(3_000));
        assert_eq!(passages(&early)[0], 0..2_000);
        let late = format!("{} {}", "x".repeat(1_500), "x".repeat(3_000));
        assert_eq!(passages(&late)[0], 0..1_501);
        assert!(passages("").is_empty());
    }
}
