use std::collections::HashSet;
use std::ops::Range;

use svc_model::json::{Json, Object, Text};

use super::clean::CleanTexts;
use super::configured::Secrets;
use super::counts::{Reason, RedactionCounts};
use super::known::KnownSecrets;
use super::looks::{is_random, is_reference};
use super::name::{self, Secret};
use super::rewrite::{is_marked, replaced, rewritten};
use super::{MARKER, header};

/// Redacts the texts and values of one fact, and counts the replacements.
///
/// A redactor can first [learn](Self::learn) from values. What they hold under the name of a
/// credential is then also replaced wherever it occurs by itself.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Secrets,
    known: KnownSecrets,
    counts: RedactionCounts,
}

impl Redactor {
    /// Creates a redactor that also redacts these secrets, wherever they occur.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            ..Self::default()
        }
    }

    /// Returns the number of replacements so far, by reason.
    pub fn counts(&self) -> RedactionCounts {
        self.counts
    }

    /// Remembers the values that stand under names of credentials.
    pub fn learn(&mut self, value: &Json) {
        match value {
            Json::Object(object) => self.learn_object(object),
            Json::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }

    /// Remembers the values that stand under names of credentials.
    pub fn learn_object(&mut self, object: &Object) {
        let attribute = attribute(object);
        for (name, value) in object {
            match value {
                Json::String(text) if names_credential(name, attribute) => {
                    self.known.add(text.as_bytes());
                }
                Json::Object(inner)
                    if attribute == Some(Attribute::Credential) && *name == "value" =>
                {
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
            self.replace(text, &places, Reason::StructuredCredential);
        }
        if let Some(redacted) = self.rewritten(text.as_bytes()) {
            *text = text_of(redacted);
        }
    }

    /// Redacts a string, such as a URL.
    pub fn string(&mut self, string: &mut String) {
        if let Some(redacted) = self.rewritten(string.as_bytes()) {
            *string = String::from_utf8(redacted).unwrap_or_else(|_| MARKER.to_owned());
        }
    }

    /// Returns the text without the service's secrets and without credentials, or `None` if it
    /// contains none.
    fn rewritten(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let Self {
            secrets, counts, ..
        } = self;
        let Some(digest) = CleanTexts::digest(text) else {
            return searched(secrets, counts, text);
        };
        let clean = secrets.clean_texts();
        if clean.is_some_and(|clean| clean.has(&digest)) {
            return None;
        }
        let rewritten = searched(secrets, counts, text);
        if rewritten.is_none()
            && let Some(clean) = clean
        {
            clean.remember(digest);
        }
        rewritten
    }

    /// Redacts a structured value.
    pub fn json(&mut self, value: &mut Json) {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
            Json::String(text) => self.leaf(text),
            Json::Array(items) => self.array(items),
            Json::Object(object) => self.object(object),
        }
    }

    /// Redacts a list. In a list of arguments, an option names the value after it: `--password`.
    fn array(&mut self, items: &mut [Json]) {
        let mut option: Option<Text> = None;
        for item in items {
            if let Json::String(text) = item {
                let before = option.take();
                option = text.as_bytes().starts_with(b"--").then(|| text.clone());
                match before.filter(|_| option.is_none()) {
                    Some(name) => self.named_leaf(&name, text, None),
                    None => self.leaf(text),
                }
            } else {
                self.json(item);
            }
        }
    }

    /// Redacts a structured value, including the names of its members.
    pub fn object(&mut self, object: &mut Object) {
        let attribute = attribute(object);
        let mut names = Vec::new();
        for (place, (name, value)) in object.iter_mut().enumerate() {
            match value {
                Json::String(text) => {
                    if names_credential(name, attribute) {
                        self.credential(text);
                    } else {
                        self.named_leaf(name, text, attribute);
                    }
                }
                Json::Object(inner) if attribute.is_some() && *name == "value" => {
                    if let Some(Json::String(text)) = inner.get_mut("stringValue") {
                        if attribute == Some(Attribute::Credential) {
                            self.credential(text);
                        } else {
                            self.secret(name, text, attribute);
                        }
                    }
                    self.object(inner);
                }
                value => self.json(value),
            }
            if let Some(redacted) = self.rewritten(name.as_bytes()) {
                names.push((place, text_of(redacted)));
            }
        }
        if !names.is_empty() {
            rename(object, names);
        }
    }

    /// Redacts a value under a name that may be that of a secret. What a search leaves of it may look
    /// like a secret where the whole did not, as an address does that loses its host.
    fn named_leaf(&mut self, name: &Text, text: &mut Text, attribute: Option<Attribute>) {
        self.secret(name, text, attribute);
        let before = self.counts;
        self.leaf(text);
        if self.counts != before {
            self.secret(name, text, attribute);
        }
    }

    fn leaf(&mut self, text: &mut Text) {
        if !self.known.is_empty() {
            let places = self.known.quoted(text.as_bytes());
            self.replace(text, &places, Reason::StructuredCredential);
        }
        self.text(text);
    }

    /// Replaces a value under the name of a credential, unless it refers to a variable.
    fn credential(&mut self, text: &mut Text) {
        let value = text.as_bytes();
        if is_reference(header::without_bearer(value)) {
            self.leaf(text);
        } else if !is_marked(value) {
            let place = header::whole_bearer(value).unwrap_or(0..value.len());
            self.replace(text, &[place], Reason::StructuredCredential);
        }
    }

    /// Replaces a value under a name such as `password`, if it is a credential.
    fn secret(&mut self, name: &Text, text: &mut Text, attribute: Option<Attribute>) {
        let secret = match attribute {
            Some(Attribute::Secret(secret)) if *name == "value" => Some(secret),
            _ => name::secret(name.as_bytes()),
        };
        let value = text.as_bytes();
        let is_one = secret.is_some_and(|secret| secret.is_kept_in(value))
            || (name::holds_random(name.as_bytes(), true, false) && is_random(value));
        if is_one && !is_marked(value) {
            self.counts.add(Reason::SecretAssignment, 1);
            *text = MARKER.into();
        }
    }

    fn replace(&mut self, text: &mut Text, places: &[Range<usize>], reason: Reason) {
        if !places.is_empty() {
            self.counts.add(reason, places.len());
            *text = text_of(replaced(text.as_bytes(), places));
        }
    }
}

/// Searches a text, whether or not it was clean before.
fn searched(secrets: &Secrets, counts: &mut RedactionCounts, text: &[u8]) -> Option<Vec<u8>> {
    let places = secrets.places(text);
    if places.is_empty() {
        return rewritten(text, counts);
    }
    counts.add(Reason::ConfiguredSecret, places.len());
    let text = replaced(text, &places);
    Some(rewritten(&text, counts).unwrap_or(text))
}

/// The kind of an attribute's value: `{"key": "api_key", "value": ...}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    /// Always a credential.
    Credential,
    /// A credential if its name or its looks say so.
    Secret(Secret),
}

/// Returns the kind of an attribute's value, if the object is an attribute with such a name.
fn attribute(object: &Object) -> Option<Attribute> {
    const MEMBERS_MAX: usize = 8;
    if !(2..=MEMBERS_MAX).contains(&object.len()) || !object.contains_key("value") {
        return None;
    }
    ["key", "name"].iter().find_map(|member| {
        let name = object.get(member)?.as_text()?.as_bytes();
        if name::is_credential(name) {
            return Some(Attribute::Credential);
        }
        name::secret(name).map(Attribute::Secret)
    })
}

fn names_credential(name: &Text, attribute: Option<Attribute>) -> bool {
    name::is_credential(name.as_bytes())
        || (attribute == Some(Attribute::Credential) && *name == "value")
}

/// Renames the members at these indexes. A name that another member already has gets a number
/// appended, so that no member replaces another.
fn rename(object: &mut Object, names: Vec<(usize, Text)>) {
    let mut members: Vec<(Text, Json)> = std::mem::take(object).into_iter().collect();
    let mut taken: HashSet<Text> = members.iter().map(|(name, _)| name.clone()).collect();
    let mut number = 1;
    for (place, name) in names {
        let mut free = name.clone();
        while !taken.insert(free.clone()) {
            number += 1;
            free = text_of([name.as_bytes(), format!(" {number}").as_bytes()].concat());
        }
        members[place].0 = free;
    }
    *object = members.into_iter().collect();
}

/// Converts redacted bytes back to a text. Replaced ranges begin and end next to ASCII, so the rest
/// consists of whole characters.
fn text_of(bytes: Vec<u8>) -> Text {
    Text::from_wtf8(bytes).unwrap_or_else(|| MARKER.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.replace('#', MARKER).as_bytes()).unwrap()
    }

    fn check(value: &str, expected: &str) -> RedactionCounts {
        let mut value = json(value);
        let mut redactor = Redactor::default();
        redactor.json(&mut value);
        assert_eq!(value, json(expected));
        redactor.counts()
    }

    #[test]
    fn a_string_member_named_as_a_credential_is_replaced_entirely() {
        let counts = check(
            r#"{"x-api-key":"hunter2","Authorization":"Bearer qwertyqwertyqwerty","deep":[{"service_api_key":"abc"}],
                "api_key":5,"authorization":{"a":"b"},"apikey":["c"],"other":"hunter2","n":1.10}"#,
            r##"{"x-api-key":"#","Authorization":"Bearer #","deep":[{"service_api_key":"#"}],
                "api_key":5,"authorization":{"a":"b"},"apikey":["c"],"other":"hunter2","n":1.10}"##,
        );
        assert_eq!(counts.structured_credential, 3);
    }

    #[test]
    fn a_clean_text_is_remembered_only_for_the_same_secrets() {
        let clean = "Nothing of any interest stands in this sentence. ".repeat(20);
        let tainted = format!("{clean} operator-operator-operator");
        let redacted = |secrets: &Secrets, text: &str| {
            let mut redactor = Redactor::new(secrets);
            let mut text = text.to_owned();
            redactor.string(&mut text);
            (text, redactor.counts())
        };
        let (one, other) = (
            Secrets::new(["operator-operator-operator"]),
            Secrets::new(["something-else-entirely"]),
        );
        for _ in 0..2 {
            assert_eq!(redacted(&one, &clean).0, clean);
            let (text, counts) = redacted(&one, &tainted);
            assert_eq!(text, format!("{clean} {MARKER}"));
            assert_eq!(counts.configured_secret, 1, "it is counted each time");
            assert_eq!(redacted(&other, &tainted).0, tainted);
        }
    }

    #[test]
    fn the_bearer_prefix_is_kept_only_before_a_complete_token() {
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
                {"key":"x-api-key","value":{"stringValue":"y"}},{"key":"other","value":"z"},{"key":"api_key"},
                {"key":"DB_PASSWORD","value":"hunter2"}]"#,
            r##"[{"key":"api_key","value":"#"},{"name":"Authorization","value":"Bearer #"},
                {"key":"x-api-key","value":{"stringValue":"#"}},{"key":"other","value":"z"},{"key":"api_key"},
                {"key":"DB_PASSWORD","value":"#"}]"##,
        );
        assert_eq!(counts.structured_credential, 3);
    }

    #[test]
    fn other_strings_and_member_names_are_redacted_as_text() {
        check(
            r#"{"token":"a1b2c3d4e5f6a7b8","max_tokens":"100","a sk-abcdefghijklmnopqrst":"sk-abcdefghijklmnopqrst"}"#,
            r##"{"token":"#","max_tokens":"100","a #":"#"}"##,
        );
    }

    #[test]
    fn a_string_member_named_as_a_password_is_replaced_entirely() {
        let counts = check(
            r#"{"password":"letmein","db_password":"monkey","passphrase":"open sesame please",
                "refresh_token":"sesame","access_token":"sesame","headers":{"cookie":"theme=dark"},
                "key":{"name":"DB_PASSWORD","value":"monkey"}}"#,
            r##"{"password":"#","db_password":"#","passphrase":"#",
                "refresh_token":"#","access_token":"#","headers":{"cookie":"#"},
                "key":{"name":"DB_PASSWORD","value":"#"}}"##,
        );
        assert_eq!(counts.secret_assignment, 7);
        for harmless in [
            r#"{"properties":{"password":{"type":"string"}},"required":["password"]}"#,
            r#"{"password":"","passphrase":null,"token":"Hello","pwd":"/srv/app"}"#,
            r#"{"password":"${DB_PASSWORD}","access_token":"<token>","type":"password"}"#,
        ] {
            assert!(check(harmless, harmless).is_empty());
        }
    }

    #[test]
    fn a_list_of_arguments_is_redacted_by_its_options() {
        check(
            r#"["tool","--password","hunter2","--password","--yes","--token","Hello"]"#,
            r##"["tool","--password","#","--password","--yes","--token","Hello"]"##,
        );
        check(
            r#"{"env":{"X_PAT":"a1b2c3d4e5f6a7b8c9d0e1f2","pat":"a-pattern-of-words-2"}}"#,
            r##"{"env":{"X_PAT":"#","pat":"a-pattern-of-words-2"}}"##,
        );
    }

    #[test]
    fn json_inside_a_string_is_redacted_as_json() {
        let body = r#"{"db_password":"monkey","passphrase":"open sesame please"}"#;
        let redacted =
            r#"{"db_password":"[REDACTED_CREDENTIAL]","passphrase":"[REDACTED_CREDENTIAL]"}"#;
        let mut input = body.to_owned();
        let mut expected = redacted.to_owned();
        // As the arguments of a tool, and as one argument among them.
        for _ in 0..3 {
            let mut leaf = Json::from(input.as_str());
            Redactor::default().json(&mut leaf);
            assert_eq!(leaf, Json::from(expected.as_str()));
            let wrapped = |text: &str| {
                let value = Json::from(Object::from_iter([("arguments", text)]));
                String::from_utf8(value.to_canonical()).unwrap()
            };
            (input, expected) = (wrapped(&input), wrapped(&expected));
        }
    }

    #[test]
    fn no_member_is_lost_if_redaction_makes_names_equal() {
        check(
            r##"{"sk-abcdefghijklmnopqrst":1,"x":2,"# 2":3,"sk-bcdefghijklmnopqrstu":4,"#":5}"##,
            r##"{"# 3":1,"x":2,"# 2":3,"# 4":4,"#":5}"##,
        );
    }

    #[test]
    fn references_to_a_credential_are_not_redacted() {
        let value =
            r#"{"api_key":"${API_KEY}","authorization":"Bearer {token}","x-api-key":"<your key>"}"#;
        check(value, value);
    }

    #[test]
    fn configured_secrets_are_replaced_everywhere() {
        let secret = "operator-operator-operator";
        let mut redactor = Redactor::new(&Secrets::new([secret]));
        let mut value = json(
            r#"{"@":["a@b",{"c":"x\n@"}],"d":"{\"e\":\"@\"} sk-abcdefghijklmnopqrst"}"#
                .replace('@', secret)
                .as_str(),
        );
        redactor.json(&mut value);
        let expected = r##"{"#":["a#b",{"c":"x\n#"}],"d":"{\"e\":\"#\"} #"}"##;
        assert_eq!(value, json(expected));
        assert_eq!(redactor.counts().configured_secret, 4);
        assert_eq!(redactor.counts().provider_key, 1);
        let mut url = format!("https://h/?t={secret}&a=1");
        redactor.string(&mut url);
        assert_eq!(url, format!("https://h/?t={MARKER}&a=1"));
        assert!(!format!("{redactor:?}").contains(secret));
    }

    #[test]
    fn a_learnt_secret_is_replaced_where_it_is_a_whole_line() {
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
    fn nul_and_surrogates_around_a_credential_are_kept() {
        check(
            r#"["\u0000 \ud800 sk-abcdefghijklmnopqrst \udfff", {"api_key":"\ud800"}]"#,
            r##"["\u0000 \ud800 # \udfff", {"api_key":"#"}]"##,
        );
    }
}
