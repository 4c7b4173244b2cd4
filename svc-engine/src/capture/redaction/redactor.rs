use std::ops::Range;

use svc_model::json::{Json, Object, Text};

use super::counts::{Counts, Reason};
use super::known::Known;
use super::name::{self, Written};
use super::rewrite::{is_marked, replaced, rewritten};
use super::{MARKER, token};

/// Redacts the texts and values of one fact, and counts.
///
/// It may first be told values to [learn](Self::learn) from: what stands there under the name of a
/// credential is then replaced wherever it stands alone, too.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Known,
    counts: Counts,
}

impl Redactor {
    /// Returns how much was replaced so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Remembers what stands under the name of a credential.
    pub fn learn(&mut self, value: &Json) {
        match value {
            Json::Object(object) => self.learn_object(object),
            Json::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }

    /// Remembers what stands under the name of a credential.
    pub fn learn_object(&mut self, object: &Object) {
        let attribute = is_attribute(object);
        for (name, value) in object {
            match value {
                Json::String(text) if names_credential(name, attribute) => {
                    self.known.add(text.as_bytes());
                }
                Json::Object(inner) if attribute && *name == "value" => {
                    if let Some(text) = inner.get("stringValue").and_then(Json::as_text) {
                        self.known.add(text.as_bytes());
                    }
                }
                value => self.learn(value),
            }
        }
    }

    /// Redacts a text.
    pub fn text(&mut self, text: &mut Text) {
        if !self.known.is_empty() {
            let places = self.known.lines(text.as_bytes());
            self.replace(text, &places);
        }
        if let Some(redacted) = rewritten(text.as_bytes(), &mut self.counts) {
            *text = text_of(redacted);
        }
    }

    /// Redacts a structured value.
    pub fn json(&mut self, value: &mut Json) {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
            Json::String(text) => self.leaf(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Json::Object(object) => self.object(object),
        }
    }

    /// Redacts a structured value.
    pub fn object(&mut self, object: &mut Object) {
        let attribute = is_attribute(object);
        for (name, value) in object.iter_mut() {
            match value {
                Json::String(text) => {
                    if names_credential(name, attribute) {
                        self.credential(text);
                    } else {
                        self.secret(name, text);
                        self.leaf(text);
                    }
                }
                Json::Object(inner) if attribute && *name == "value" => {
                    if let Some(Json::String(text)) = inner.get_mut("stringValue") {
                        self.credential(text);
                    }
                    self.object(inner);
                }
                value => self.json(value),
            }
        }
    }

    fn leaf(&mut self, text: &mut Text) {
        if !self.known.is_empty() {
            let places = self.known.quoted(text.as_bytes());
            self.replace(text, &places);
        }
        self.text(text);
    }

    /// Replaces what stands under the name of a credential.
    fn credential(&mut self, text: &mut Text) {
        let value = text.as_bytes();
        if !is_marked(value) {
            let place = token::whole_bearer(value).unwrap_or(0..value.len());
            self.replace(text, &[place]);
        }
    }

    /// Replaces what stands under a name like `token`, when it looks like a credential.
    fn secret(&mut self, name: &Text, text: &mut Text) {
        let value = text.as_bytes();
        if name::is_secret(name.as_bytes())
            .is_some_and(|secret| secret.looks_real(value, Written::Quoted))
        {
            self.counts.add(Reason::SecretAssignment, 1);
            *text = MARKER.into();
        }
    }

    fn replace(&mut self, text: &mut Text, places: &[Range<usize>]) {
        if !places.is_empty() {
            self.counts.add(Reason::StructuredCredential, places.len());
            *text = text_of(replaced(text.as_bytes(), places));
        }
    }
}

/// Returns whether an object is an attribute with the name of a credential:
/// `{"key": "api_key", "value": ...}`.
fn is_attribute(object: &Object) -> bool {
    const MEMBERS_MAX: usize = 8;
    (2..=MEMBERS_MAX).contains(&object.len())
        && ["key", "name"]
            .iter()
            .filter_map(|member| object.get(member)?.as_text())
            .any(|text| name::is_credential(text.as_bytes()))
}

fn names_credential(name: &Text, attribute: bool) -> bool {
    name::is_credential(name.as_bytes()) || (attribute && *name == "value")
}

/// Places begin and end beside ASCII, so replacing them leaves whole characters.
fn text_of(bytes: Vec<u8>) -> Text {
    Text::from_wtf8(bytes).unwrap_or_else(|| MARKER.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.replace('#', MARKER).as_bytes()).unwrap()
    }

    fn check(value: &str, expected: &str) -> Counts {
        let mut value = json(value);
        let mut redactor = Redactor::default();
        redactor.json(&mut value);
        assert_eq!(value, json(expected));
        redactor.counts()
    }

    #[test]
    fn a_string_under_the_name_of_a_credential_is_replaced_whole() {
        let counts = check(
            r#"{"x-api-key":"hunter2","Authorization":"Bearer qwertyqwertyqwerty","deep":[{"service_api_key":"abc"}],
                "api_key":5,"authorization":{"a":"b"},"apikey":["c"],"other":"hunter2","n":1.10}"#,
            r##"{"x-api-key":"#","Authorization":"Bearer #","deep":[{"service_api_key":"#"}],
                "api_key":5,"authorization":{"a":"b"},"apikey":["c"],"other":"hunter2","n":1.10}"##,
        );
        assert_eq!(counts.structured_credential, 3);
    }

    #[test]
    fn only_a_whole_bearer_token_keeps_its_prefix() {
        for (value, expected) in [
            ("bearer \\tabcdefghijklmnop==", "bearer \\t#"),
            ("Bearer short", "#"),
            ("Bearer abcdefghijklmnop and more", "#"),
            ("Basic abcdefghijklmnop", "#"),
            ("Bearer #", "Bearer #"),
            ("#", "#"),
            ("", "#"),
        ] {
            check(
                &format!(r#"{{"authorization":"{value}"}}"#),
                &format!(r#"{{"authorization":"{expected}"}}"#),
            );
        }
    }

    #[test]
    fn an_attribute_is_redacted_by_its_key() {
        let counts = check(
            r#"[{"key":"api_key","value":"x"},{"name":"Authorization","value":"Bearer abcdefghijklmnop"},
                {"key":"x-api-key","value":{"stringValue":"y"}},{"key":"other","value":"z"},{"key":"api_key"}]"#,
            r##"[{"key":"api_key","value":"#"},{"name":"Authorization","value":"Bearer #"},
                {"key":"x-api-key","value":{"stringValue":"#"}},{"key":"other","value":"z"},{"key":"api_key"}]"##,
        );
        assert_eq!(counts.structured_credential, 3);
    }

    #[test]
    fn other_strings_are_redacted_as_texts_and_keys_never_change() {
        check(
            r#"{"sk-abcdefghijklmnopqrst":"sk-abcdefghijklmnopqrst","token":"a1b2c3d4e5f6a7b8","max_tokens":"100"}"#,
            r##"{"sk-abcdefghijklmnopqrst":"#","token":"#","max_tokens":"100"}"##,
        );
    }

    #[test]
    fn what_was_learnt_is_replaced_where_it_stands_alone() {
        let mut redactor = Redactor::default();
        redactor.learn(&json(
            r##"[{"api_key":"hunter2"},{"authorization":"Bearer s3"},{"api_key":" "},{"api_key":"#"},{"key":"api_key","value":"listed"}]"##,
        ));
        for (text, expected) in [
            ("hunter2", "#"),
            (
                "first\nhunter2\nnot hunter2 here",
                "first\n#\nnot hunter2 here",
            ),
            ("s3\r\nBearer s3\r\nlisted", "#\r\nBearer s3\r\n#"),
            (" hunter2", " hunter2"),
            ("\n \n", "\n \n"),
            ("say \"hunter2\"", "say \"hunter2\""),
        ] {
            let mut text = Text::from(text);
            redactor.text(&mut text);
            assert_eq!(text, Text::from(expected.replace('#', MARKER)));
        }
        let mut leaf =
            Json::from(r#"{"echo":"hunter2","s":"{\"k\":\"hunter2\"}","not":"a hunter2"}"#);
        redactor.json(&mut leaf);
        let expected = r##"{"echo":"#","s":"{\"k\":\"#\"}","not":"a hunter2"}"##;
        assert_eq!(leaf, Json::from(expected.replace('#', MARKER)));
    }

    #[test]
    fn nul_and_surrogates_around_a_credential_stay() {
        check(
            r#"["\u0000 \ud800 sk-abcdefghijklmnopqrst \udfff", {"api_key":"\ud800"}]"#,
            r##"["\u0000 \ud800 # \udfff", {"api_key":"#"}]"##,
        );
    }
}
