use std::collections::BTreeSet;
use std::ops::Range;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{FromField, Violation, scalar_text, whole_number};
use crate::json::Json;
use crate::limit::{
    CONTEXT_REPLY_BYTES_DEFAULT, CONTEXT_REPLY_BYTES_HIGH, CONTEXT_REPLY_BYTES_LOW, QUERY_BYTES_MAX,
};

/// Words that are ignored in a query. In the searched text, they match nothing.
const STOP_WORDS: [&str; 34] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from", "how",
    "i", "in", "is", "it", "of", "on", "or", "that", "the", "this", "to", "was", "were", "what",
    "when", "where", "which", "who", "why", "with",
];

/// Returns whether a word in lower case is ignored in a query.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

/// The role of a byte in a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Separates tokens.
    Separator,
    /// Begins or continues an identifier.
    Letter,
    /// Begins or continues a run of digits, or continues an identifier.
    Digit,
}

/// The class of each byte. A table, because every byte of every searched part is looked up.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Separator; 256];
    let mut byte = 0;
    while byte < 128 {
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        let character = byte as u8;
        if character.is_ascii_digit() {
            classes[byte] = Class::Digit;
        } else if character.is_ascii_alphabetic() || character == b'_' {
            classes[byte] = Class::Letter;
        }
        byte += 1;
    }
    classes
};

/// Calls `each` with the range of every token of `text`: an identifier `[A-Za-z_][A-Za-z0-9_]*` or
/// a run of digits. All other bytes separate tokens. Tokens are compared in ASCII lower case.
pub fn tokens(text: &[u8], mut each: impl FnMut(Range<usize>)) {
    let class = |at: usize| {
        text.get(at)
            .map_or(Class::Separator, |byte| CLASSES[usize::from(*byte)])
    };
    let mut start = 0;
    while start < text.len() {
        let mut end = start + 1;
        match class(start) {
            Class::Separator => {
                start = end;
                continue;
            }
            Class::Digit => {
                while class(end) == Class::Digit {
                    end += 1;
                }
            }
            Class::Letter => {
                while class(end) != Class::Separator {
                    end += 1;
                }
            }
        }
        each(start..end);
        start = end;
    }
}

/// Keywords in English or from code: at most 2,048 bytes of UTF-8, with at least one token that is
/// not a stop word. A token is an identifier or a run of digits, in ASCII; letter case does not
/// matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(extend(
    "minLength" = 1,
    "maxLength" = QUERY_BYTES_MAX,
    "examples" = ["connection pool timeout"],
)))]
pub struct Query {
    text: String,
    tokens: BTreeSet<String>,
}

impl Query {
    /// Returns the query, or a message that says what is expected.
    ///
    /// # Errors
    ///
    /// If the text is too long, or has no token that is not a stop word.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > QUERY_BYTES_MAX {
            return Err("must have at most 2048 bytes of UTF-8");
        }
        let mut found = BTreeSet::new();
        tokens(text.as_bytes(), |token| {
            let token = text[token].to_ascii_lowercase();
            if !is_stop_word(&token) {
                found.insert(token);
            }
        });
        if found.is_empty() {
            return Err("must hold a meaningful keyword");
        }
        Ok(Self {
            text: text.to_owned(),
            tokens: found,
        })
    }

    /// Returns the text, as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the distinct tokens that are not stop words, in lower case.
    pub fn tokens(&self) -> &BTreeSet<String> {
        &self.tokens
    }
}

impl TryFrom<String> for Query {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::new(&text)
    }
}

impl From<Query> for String {
    fn from(query: Query) -> Self {
        query.text
    }
}

impl FromField for Query {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Self::new(scalar_text(value)?).map_err(Violation::rule)
    }
}

/// The maximum size of a whole context reply in bytes: 4,096 to 65,536, by default 16,384.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "u64", into = "u64")]
#[cfg_attr(feature = "schema", schemars(extend(
    "minimum" = CONTEXT_REPLY_BYTES_LOW,
    "maximum" = CONTEXT_REPLY_BYTES_HIGH,
)))]
pub struct MaxBytes(u64);

impl MaxBytes {
    /// Returns the limit if it is in range.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes >= CONTEXT_REPLY_BYTES_LOW && bytes <= CONTEXT_REPLY_BYTES_HIGH {
            Some(Self(bytes))
        } else {
            None
        }
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Default for MaxBytes {
    fn default() -> Self {
        Self(CONTEXT_REPLY_BYTES_DEFAULT)
    }
}

impl TryFrom<u64> for MaxBytes {
    type Error = &'static str;
    fn try_from(bytes: u64) -> Result<Self, &'static str> {
        Self::new(bytes).ok_or("must be from 4096 to 65536")
    }
}

impl From<MaxBytes> for u64 {
    fn from(bytes: MaxBytes) -> Self {
        bytes.0
    }
}

impl FromField for MaxBytes {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        let range = CONTEXT_REPLY_BYTES_LOW..=CONTEXT_REPLY_BYTES_HIGH;
        whole_number(value, range, "must be from 4096 to 65536").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        tokens(text.as_bytes(), |token| {
            found.push(text[token].to_ascii_lowercase());
        });
        found
    }

    #[test]
    fn tokens_are_identifiers_and_runs_of_digits() {
        assert_eq!(
            split("snake_case camelCase HTTPServer2"),
            ["snake_case", "camelcase", "httpserver2"]
        );
        assert_eq!(
            split("2fast x9y 3.14 1e+30"),
            ["2", "fast", "x9y", "3", "14", "1", "e", "30"]
        );
        assert_eq!(split("__init__ _ a-b"), ["__init__", "_", "a", "b"]);
        assert_eq!(split("na\u{ef}ve \u{4e2d}\u{6587}"), ["na", "ve"]);
    }

    #[test]
    fn a_query_needs_a_meaningful_token_within_its_bytes() {
        for text in ["", "  ", "the", "how do i", "!!!", "\u{e9}", "What IS it"] {
            assert!(Query::new(text).is_err(), "{text:?}");
        }
        assert!(Query::new(&"x".repeat(2_048)).is_ok());
        assert!(Query::new(&"x".repeat(2_049)).is_err());
        assert!(Query::new(&("\u{e9}".repeat(1_023) + "xx")).is_ok());
        assert!(Query::new(&("\u{e9}".repeat(1_024) + "x")).is_err());
        let query = Query::new("The Mango mango RIPE").unwrap();
        assert_eq!(query.tokens().iter().collect::<Vec<_>>(), ["mango", "ripe"]);
    }

    #[test]
    fn max_bytes_is_a_strict_integer_in_range() {
        let read = |text: &str| MaxBytes::from_field(&Json::parse(text.as_bytes()).unwrap());
        assert_eq!(read("4096").unwrap().get(), 4_096);
        assert_eq!(read("65536").unwrap().get(), 65_536);
        for wrong in [
            "4095", "65537", "4096.0", "true", "\"4096\"", "null", "-1", "1e5",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
