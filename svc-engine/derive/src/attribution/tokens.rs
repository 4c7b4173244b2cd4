use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;
use svc_model::context::tokens;
use svc_model::evidence::{Message, Part};
use svc_model::json::Json;

use crate::sent::unescaped;

/// How many fingerprints are collected before duplicates are removed.
const COMPACT_AT: usize = 64 * 1024;

/// Typical bytes per token in code, including the separator.
const BYTES_OF_TOKEN: usize = 8;

/// The distinct tokens of a text in ASCII lower case, each as a 64-bit fingerprint, sorted.
///
/// A token is an identifier `[A-Za-z_][A-Za-z0-9_]*` or a run of digits. Fingerprints need no table
/// shared by all texts: the set of a text that never changes can be cached forever, and sets are
/// compared as numbers. Two different tokens of a pair of texts collide with a chance of 2⁻⁶⁴.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeTokens(Box<[u64]>);

impl CodeTokens {
    /// Returns the tokens of a text.
    pub fn of_text(text: &str) -> Self {
        let mut found = TextFingerprints::default();
        found.text(text.as_bytes());
        found.finish()
    }

    /// Returns the tokens of a model's answer: of its texts, and of every string in the arguments
    /// of its tool calls, at any depth. Reasoning, tool results, numbers and member names do not
    /// count.
    pub fn of_output(messages: &[Message]) -> Self {
        let mut found = TextFingerprints::default();
        for part in messages.iter().flat_map(|message| &message.parts) {
            match part {
                Part::Text { content } => found.text(content.as_bytes()),
                Part::ToolCall {
                    arguments, sent, ..
                } => {
                    arguments.iter().for_each(|(_, value)| found.strings(value));
                    if let Some(sent) = sent {
                        found.text(&unescaped(sent));
                    }
                }
                Part::Reasoning { .. } | Part::ToolCallResponse { .. } => {}
            }
        }
        found.finish()
    }

    /// Returns the tokens of several texts together.
    pub fn union<'s>(sets: impl IntoIterator<Item = &'s Self>) -> Self {
        let mut found = TextFingerprints::default();
        for set in sets {
            found.fingerprints.extend_from_slice(&set.0);
        }
        found.finish()
    }

    /// Returns the fingerprints.
    pub fn fingerprints(&self) -> &[u64] {
        &self.0
    }

    /// Returns how many tokens there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Default)]
struct TextFingerprints {
    fingerprints: Vec<u64>,
    /// How many of them, from the first, are known to be distinct.
    distinct: usize,
    lower: Vec<u8>,
}

impl TextFingerprints {
    fn text(&mut self, text: &[u8]) {
        let state = FixedState::default();
        // Lower-casing the whole text at once handles many bytes per step.
        let mut lower = std::mem::take(&mut self.lower);
        lower.clear();
        lower.extend_from_slice(text);
        lower.make_ascii_lowercase();
        let likely = text.len() / BYTES_OF_TOKEN;
        self.fingerprints.reserve(likely.min(COMPACT_AT));
        tokens(&lower, |place| {
            let mut hasher = state.build_hasher();
            hasher.write(&lower[place]);
            hasher.write_u8(0xff);
            self.fingerprints.push(hasher.finish());
            // Keeps a text that repeats itself from taking memory for each repetition.
            if self.fingerprints.len() >= 2 * self.distinct + COMPACT_AT {
                self.compact();
            }
        });
        self.lower = lower;
    }

    fn strings(&mut self, value: &Json) {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
            Json::String(text) => self.text(text.as_bytes()),
            Json::Array(items) => items.iter().for_each(|item| self.strings(item)),
            Json::Object(object) => object.iter().for_each(|(_, value)| self.strings(value)),
        }
    }

    fn compact(&mut self) {
        self.fingerprints.sort_unstable();
        self.fingerprints.dedup();
        self.distinct = self.fingerprints.len();
    }

    fn finish(mut self) -> CodeTokens {
        self.compact();
        CodeTokens(self.fingerprints.into())
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::testing::builders::text;
    use svc_model::json::Text;

    use super::*;

    fn set(words: &[&str]) -> CodeTokens {
        CodeTokens::of_text(&words.join(" "))
    }

    #[test]
    fn tokens_are_identifiers_and_runs_of_digits_in_lower_case() {
        for (written, tokens) in [
            ("3d_point 4.5e10", &["3", "d_point", "4", "5", "e10"][..]),
            ("\u{e9}t\u{e9}", &["t"]),
            ("0x1F", &["0", "x1f"]),
            ("Alpha alpha ALPHA", &["alpha"]),
            ("_a __init__", &["_a", "__init__"]),
            ("{}();", &[]),
        ] {
            let found = CodeTokens::of_text(written);
            assert_eq!(found.len(), tokens.len(), "{written}");
            assert_eq!(found, set(tokens), "{written}");
        }
        assert_ne!(set(&["a"]), set(&["b"]));
        assert_ne!(set(&["ab"]), set(&["a", "b"]));
    }

    fn arguments(json: &str) -> svc_model::json::Object {
        Json::parse(json.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn an_answer_is_read_from_its_texts_and_tool_call_strings() {
        let mut message = text("assistant", "Spoken words");
        message.parts.extend([
            Part::Reasoning {
                content: Text::from("thought"),
            },
            Part::ToolCall {
                id: "toolid".to_owned(),
                name: Text::from("toolname"),
                arguments: arguments(
                    r#"{"key":"outer","n":17,"b":true,"x":null,"in":{"deep":["inner",{"k":"a\nb"}]}}"#,
                ),
                sent: Some(Text::from(r#"{"cut": "\nwritten"#)),
            },
            Part::ToolCallResponse {
                id: "t".to_owned(),
                result: Json::from("result"),
            },
        ]);
        let second = text("assistant", "more");
        assert_eq!(
            CodeTokens::of_output(&[message, second]),
            set(&[
                "spoken", "words", "outer", "inner", "a", "b", "cut", "written", "more"
            ])
        );
        assert!(CodeTokens::of_output(&[]).is_empty());
    }

    #[test]
    fn the_tokens_of_a_whole_are_the_union_of_its_parts() {
        let parts = [set(&["a", "b"]), set(&["b", "c"]), set(&[])];
        assert_eq!(CodeTokens::union(&parts), set(&["a", "b", "c"]));
    }

    #[test]
    fn each_token_of_a_text_is_kept_once() {
        let long = "one two three ".repeat(100_000);
        assert_eq!(CodeTokens::of_text(&long), set(&["one", "two", "three"]));
        let many: Vec<String> = (0..200_000).map(|number| format!("t{number}")).collect();
        assert_eq!(CodeTokens::of_text(&many.join(" ")).len(), 200_000);
    }
}
