//! The distinct words of a part, ready to be searched.

use std::cmp::Ordering;
use std::ops::Range;

use svc_model::context::tokens;
use svc_model::evidence::Part;
use svc_model::json::{Json, Object};

use super::sent::unescaped;

/// The distinct tokens of one part, in lower case, sorted. A look-up is a binary search, so a part
/// is scanned once, however often it is queried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchTokens {
    /// The tokens, concatenated.
    text: Box<[u8]>,
    /// Where each token ends.
    ends: Box<[u32]>,
}

impl SearchTokens {
    /// Returns the searchable tokens of a part. For a tool call, these are the words of its name
    /// and of the keys, strings, numbers and literals of its arguments; for a result, the same; for
    /// reasoning, none. Strings are searched as decoded, not as escaped.
    pub fn of(part: &Part) -> Self {
        let mut found = TextTokens::default();
        match part {
            Part::Text { content } => found.scan(content.as_bytes()),
            Part::Reasoning { .. } => {}
            Part::ToolCall {
                name,
                arguments,
                sent,
                ..
            } => {
                found.scan(name.as_bytes());
                found.members(arguments);
                if let Some(sent) = sent {
                    found.scan(&unescaped(sent));
                }
            }
            Part::ToolCallResponse { result, .. } => found.value(result),
        }
        found.finish()
    }

    /// Returns whether it contains a token, given in lower case.
    pub fn contains(&self, token: &[u8]) -> bool {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(token) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return true,
                Ordering::Greater => high = middle,
            }
        }
        false
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
struct TextTokens {
    /// The searched texts, concatenated, in lower case.
    text: Vec<u8>,
    tokens: Vec<Token>,
}

/// One token of the searched texts. Tokens are ordered by their bytes.
#[derive(Clone, Copy)]
struct Token {
    /// Its first eight bytes, so that most comparisons need not touch the text.
    head: u64,
    start: u32,
    end: u32,
}

impl Token {
    fn new(text: &[u8], place: Range<usize>) -> Option<Self> {
        let mut head = [0; 8];
        let token = &text[place.clone()];
        let length = token.len().min(8);
        head[..length].copy_from_slice(&token[..length]);
        Some(Self {
            head: u64::from_be_bytes(head),
            start: u32::try_from(place.start).ok()?,
            end: u32::try_from(place.end).ok()?,
        })
    }

    fn bytes(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }

    fn cmp(self, other: Self, text: &[u8]) -> Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.bytes(text).cmp(other.bytes(text)))
    }
}

impl TextTokens {
    fn scan(&mut self, text: &[u8]) {
        let before = self.text.len();
        self.text.extend_from_slice(text);
        self.text[before..].make_ascii_lowercase();
        let found = &mut self.tokens;
        let all = &self.text;
        tokens(&all[before..], |place| {
            // A part is at most as large as a request body, far below the range.
            found.extend(Token::new(all, before + place.start..before + place.end));
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

    fn finish(mut self) -> SearchTokens {
        let text = &self.text;
        self.tokens.sort_unstable_by(|a, b| a.cmp(*b, text));
        self.tokens.dedup_by(|a, b| a.cmp(*b, text).is_eq());
        let length = self
            .tokens
            .iter()
            .map(|token| token.bytes(text).len())
            .sum();
        let mut distinct = Vec::with_capacity(length);
        let mut ends = Vec::with_capacity(self.tokens.len());
        for token in &self.tokens {
            distinct.extend_from_slice(token.bytes(text));
            ends.push(u32::try_from(distinct.len()).unwrap_or(u32::MAX));
        }
        SearchTokens {
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
    fn text_is_searched_by_words_ignoring_case() {
        let set = SearchTokens::of(&Part::Text {
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
    fn tool_strings_are_searched_in_their_decoded_form() {
        let set = SearchTokens::of(&Part::ToolCall {
            id: "secret_id".to_owned(),
            name: Text::from("read_file"),
            arguments: arguments(r#"{"path":"a\nfoo","n":[1.5,true,null]}"#),
            sent: Some(Text::from(r#"{"cut":"one\ntwo"#)),
        });
        let tokens = [
            "read_file",
            "path",
            "foo",
            "1",
            "5",
            "true",
            "null",
            "n",
            "cut",
            "one",
            "two",
        ];
        for token in tokens {
            assert!(set.contains(token.as_bytes()), "{token}");
        }
        for token in ["secret_id", "nfoo", "ntwo", "tool_call"] {
            assert!(!set.contains(token.as_bytes()), "{token}");
        }
    }

    #[test]
    fn reasoning_is_not_searched() {
        let set = SearchTokens::of(&Part::Reasoning {
            content: Text::from("mango"),
        });
        assert!(!set.contains(b"mango"));
    }
}
