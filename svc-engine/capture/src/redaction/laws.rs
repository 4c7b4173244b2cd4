//! Properties that hold for every text and value.

use proptest::prelude::*;
use svc_model::json::{Json, Object, Text};

use super::{Redactor, redact_json, redact_text};

/// Pieces of credentials and of what surrounds them, so that random texts contain many.
fn text() -> impl Strategy<Value = Text> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "Authorization",
            "authorization",
            "Bearer",
            " ",
            "  ",
            ":",
            "=",
            "\"",
            "'",
            "\\",
            "\\\"",
            "\n",
            "api_key",
            "OPENAI_API_KEY",
            "x-api-key",
            "apikey",
            "api key",
            "sk-",
            "ghp_",
            "AKIA",
            "xoxb-",
            "eyJ",
            ".",
            "-----BEGIN ",
            "PRIVATE KEY",
            "-----",
            "-----END ",
            "token",
            "password",
            "Pwd",
            "secret",
            "AccountKey",
            "Basic",
            "://",
            "@",
            "curl",
            " -u ",
            "--user ",
            "sig=",
            "Cookie: ",
            "sid=",
            " -p",
            " -a ",
            " -b ",
            "mysql",
            "redis-cli",
            ":5432:",
            ":app:me:",
            "psk",
            "auth",
            "c3ZjOmh1bnRlcjI=",
            " is ",
            " for ",
            "set ",
            "login me ",
            "variable \"",
            "default",
            "_PAT",
            "_KEY",
            "?key=",
            "-passin pass:",
            "-AsPlainText",
            "PuTTY-User-Key",
            "Private-Lines: 1\n",
            "value=",
            "a1B2c3D4e5F6g7H8i9J0",
            ";",
            "<",
            ">",
            "$",
            "%",
            "hvs.",
            "-us12",
            "hunter2",
            "\\n",
            "abcdefghijklmnop",
            "ABCDEFGHIJKLMNOP",
            "12345678",
            "[REDACTED_CREDENTIAL]",
            "[",
            "]",
            "{",
            "}",
            ",",
            "key",
            "value",
            "name",
            "_",
            "-",
            "\u{e9}",
            "\0",
            "(",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        Just(vec![0xed, 0xa0, 0x80]),
        // With a letter before it, so that two surrogate halves never meet.
        Just(vec![b'x', 0xed, 0xbf, 0xbf]),
        any::<char>().prop_map(|char| char.to_string().into_bytes()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| Text::from_wtf8(pieces.concat()).unwrap())
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::from),
        text().prop_map(Json::String),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "api_key",
            "Authorization",
            "token",
            "password",
            "sk-abcdefghijklmnopqrst",
            "sk-bcdefghijklmnopqrstu",
            "[REDACTED_CREDENTIAL] 2",
            "key",
            "value",
            "name",
            "x"
        ])
        .prop_map(Text::from),
        text(),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect::<Object>())),
        ]
    })
}

/// Returns a value with every string emptied and every name replaced by a number.
fn shape(value: &Json) -> Json {
    match value {
        Json::String(_) => Json::String(Text::default()),
        Json::Array(items) => Json::Array(items.iter().map(shape).collect()),
        Json::Object(object) => Json::Object(
            object
                .iter()
                .enumerate()
                .map(|(place, (_, value))| (place.to_string(), shape(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[test]
fn what_is_left_of_an_address_under_the_name_of_a_secret_is_redacted_at_once() {
    let mut value =
        Json::parse(br#"{"password":"api_key://api_key-----BEGIN "}"#).expect("a value");
    assert!(!redact_json(&mut value).is_empty());
    let mut twice = value.clone();
    assert!(redact_json(&mut twice).is_empty(), "{value:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_a_text_again_changes_nothing(text in text()) {
        let mut once = text.clone();
        let counts = redact_text(&mut once);
        prop_assert_eq!(counts.is_empty(), once == text);
        let mut twice = once.clone();
        prop_assert!(redact_text(&mut twice).is_empty());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn redacting_a_value_again_changes_nothing(value in value()) {
        let mut once = value.clone();
        let counts = redact_json(&mut once);
        prop_assert_eq!(counts.is_empty(), once == value);
        prop_assert_eq!(shape(&once), shape(&value));
        let mut twice = once.clone();
        prop_assert!(redact_json(&mut twice).is_empty());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn no_line_that_is_a_learnt_secret_remains(value in value(), secret in "[a-z]{4,8}", text in text()) {
        let mut redactor = Redactor::default();
        redactor.learn(&Json::from_iter([Json::Object(Object::from_iter([("api_key", secret.as_str())]))]));
        let line = [text.as_bytes(), b"\n", secret.as_bytes()].concat();
        let mut leaf = Json::Array(vec![Json::String(Text::from_wtf8(line).unwrap()), value]);
        redactor.json(&mut leaf);
        let leaf = leaf.into_array().unwrap().swap_remove(0).into_text().unwrap();
        prop_assert!(!leaf.as_bytes().split(|byte| *byte == b'\n').any(|line| line == secret.as_bytes()));
    }
}
