//! The distinct words of a part, ready to be asked for.

use svc_model::context::tokens;
use svc_model::evidence::Part;
use svc_model::json::{Json, Object};

/// The distinct tokens of one part, in lower case, sorted. Asking for one is a binary search, so a
/// part is scanned once however often it is queried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenSet {
    /// The tokens one after another.
    text: Box<[u8]>,
    /// Where each token ends.
    ends: Box<[u32]>,
}

impl TokenSet {
    /// Returns the searched tokens of a part. Of a tool call these are the words of its name and of
    /// the keys, strings, numbers and literals of its arguments; of a result the same; of reasoning
    /// none. Strings are searched as decoded, not as escaped.
    pub fn of(part: &Part) -> Self {
        let mut found = Found::default();
        match part {
            Part::Text { content } => found.scan(content.as_bytes()),
            Part::Reasoning { .. } => {}
            Part::ToolCall {
                name, arguments, ..
            } => {
                found.scan(name.as_bytes());
                found.members(arguments);
            }
            Part::ToolCallResponse { result, .. } => found.value(result),
        }
        found.finish()
    }

    /// Returns whether a token, in lower case, is among them.
    pub fn contains(&self, token: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(token) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        false
    }

    /// Returns how many bytes of memory the set takes.
    pub fn size(&self) -> usize {
        self.text.len() + self.ends.len() * 4
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1] as usize
        };
        &self.text[start..self.ends[index] as usize]
    }
}

#[derive(Default)]
struct Found {
    /// All tokens one after another, in lower case.
    text: Vec<u8>,
    /// Start and end of each.
    spans: Vec<(u32, u32)>,
}

impl Found {
    fn scan(&mut self, text: &[u8]) {
        tokens(text, |token| {
            let start = self.text.len();
            self.text.extend(token.iter().map(u8::to_ascii_lowercase));
            let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.text.len()))
            else {
                return;
            };
            self.spans.push((start, end));
        });
    }

    fn members(&mut self, object: &Object) {
        for (name, value) in object {
            self.scan(name.as_bytes());
            self.value(value);
        }
    }

    fn value(&mut self, value: &Json) {
        match value {
            Json::Null => self.scan(b"null"),
            Json::Bool(true) => self.scan(b"true"),
            Json::Bool(false) => self.scan(b"false"),
            Json::Number(number) => self.scan(number.as_str().as_bytes()),
            Json::String(text) => self.scan(text.as_bytes()),
            Json::Array(items) => items.iter().for_each(|item| self.value(item)),
            Json::Object(object) => self.members(object),
        }
    }

    fn finish(mut self) -> TokenSet {
        let text = &self.text;
        let token = |span: &(u32, u32)| &text[span.0 as usize..span.1 as usize];
        self.spans.sort_unstable_by(|a, b| token(a).cmp(token(b)));
        self.spans.dedup_by(|a, b| token(a) == token(b));
        let mut distinct =
            Vec::with_capacity(self.spans.iter().map(|(a, b)| (b - a) as usize).sum());
        let mut ends = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            distinct.extend_from_slice(token(span));
            ends.push(u32::try_from(distinct.len()).unwrap_or(u32::MAX));
        }
        TokenSet {
            text: distinct.into(),
            ends: ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_model::json::Text;

    use super::*;

    fn arguments(text: &str) -> Object {
        Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn text_is_searched_by_words_without_case() {
        let set = TokenSet::of(&Part::Text {
            content: Text::from("Mango, mango; RIPE_2 3.14"),
        });
        for token in ["mango", "ripe_2", "3", "14"] {
            assert!(set.contains(token.as_bytes()), "{token}");
        }
        for token in ["Mango", "rip", "ripe", "31", ""] {
            assert!(!set.contains(token.as_bytes()), "{token}");
        }
    }

    #[test]
    fn tool_strings_are_searched_as_decoded() {
        let set = TokenSet::of(&Part::ToolCall {
            id: "secret_id".to_owned(),
            name: Text::from("read_file"),
            arguments: arguments(r#"{"path":"a\nfoo","n":[1.5,true,null]}"#),
        });
        for token in ["read_file", "path", "foo", "1", "5", "true", "null", "n"] {
            assert!(set.contains(token.as_bytes()), "{token}");
        }
        for token in ["secret_id", "nfoo", "tool_call"] {
            assert!(!set.contains(token.as_bytes()), "{token}");
        }
    }

    #[test]
    fn reasoning_is_not_searched() {
        let set = TokenSet::of(&Part::Reasoning {
            content: Text::from("mango"),
        });
        assert!(!set.contains(b"mango"));
    }
}
