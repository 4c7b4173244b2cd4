//! Reads strings of a payload according to their purpose.

use svc_model::id::{IdentityError, identity_text, is_trimmed};
use svc_model::json::{Json, Text};

use crate::MessagesError;

/// Returns a string that is not blank.
pub fn usable(value: Option<&Json>) -> Option<&Text> {
    value?.as_text().filter(|text| !text.is_blank())
}

/// Returns an identity, trimmed; `None` if the value is not a string or is blank.
pub fn identity(json: Option<&Json>) -> Result<Option<&str>, MessagesError> {
    let Some(text) = json.and_then(Json::as_text) else {
        return Ok(None);
    };
    match identity_text(text) {
        Ok(identity) => Ok(Some(identity)),
        Err(IdentityError::Blank) => Ok(None),
        Err(IdentityError::NotScalar | IdentityError::TooLong) => {
            Err(MessagesError::InvalidIdentity)
        }
    }
}

/// Returns the name of a model or of its provider, trimmed; `None` if the value is not a string or
/// is blank. The name may have any length, because nothing is looked up by it.
pub fn name(value: Option<&Json>) -> Result<Option<String>, MessagesError> {
    let Some(text) = usable(value) else {
        return Ok(None);
    };
    match text.as_str().map(|text| text.trim_matches(is_trimmed)) {
        Some(name) if !name.contains('\0') => Ok(Some(name.to_owned())),
        _ => Err(MessagesError::InvalidIdentity),
    }
}

/// Returns whether a text is a UUID with hyphens, in any case.
pub fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_a_non_blank_string_is_usable() {
        for value in [
            "null",
            "5",
            "true",
            "[\"x\"]",
            "{}",
            "\"\"",
            "\" \\t\\u001f\\u3000\"",
        ] {
            assert_eq!(usable(Some(&json(value))), None, "{value}");
            assert_eq!(identity(Some(&json(value))), Ok(None), "{value}");
            assert_eq!(name(Some(&json(value))), Ok(None), "{value}");
        }
        assert_eq!(usable(None), None);
        assert_eq!(usable(Some(&json("\" a\""))), Some(&" a".into()));
    }

    #[test]
    fn an_identity_is_trimmed_and_must_be_well_formed_and_short_enough() {
        assert_eq!(identity(Some(&json("\" a b\\n\""))), Ok(Some("a b")));
        let long = |length| Json::from("x".repeat(length));
        assert!(identity(Some(&long(1_024))).is_ok());
        for refused in [json("\"a\\u0000\""), json("\"\\ud800\""), long(1_025)] {
            assert_eq!(
                identity(Some(&refused)),
                Err(MessagesError::InvalidIdentity)
            );
        }
    }

    #[test]
    fn a_name_is_trimmed_and_must_be_well_formed() {
        assert_eq!(
            name(Some(&json("\" openai/x \""))),
            Ok(Some("openai/x".to_owned()))
        );
        assert!(
            name(Some(&Json::from("x".repeat(100_000))))
                .unwrap()
                .is_some()
        );
        for refused in ["\"a\\u0000\"", "\"\\ud800\""] {
            assert_eq!(
                name(Some(&json(refused))),
                Err(MessagesError::InvalidIdentity),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_uuid_needs_hyphens_in_the_right_places() {
        assert!(is_uuid(b"00000003-0000-4000-8000-0123456789aB"));
        for text in [
            "",
            "00000003-0000-4000-8000-0123456789a",
            "00000003-0000-4000-8000-0123456789abc",
            "00000003000040008000-0123456789ab----",
            "00000003-0000-4000-8000-0123456789ag",
        ] {
            assert!(!is_uuid(text.as_bytes()), "{text}");
        }
    }
}
