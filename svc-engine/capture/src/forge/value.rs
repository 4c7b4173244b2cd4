//! Reads values of a payload: texts, numbers and ids.

use svc_model::id::IdentityError;
use svc_model::json::{Json, Object, Text};
use svc_model::repository::CommitSha;

use crate::value::identity;

/// Returns the object under a name.
pub(super) fn object<'a>(parent: Option<&'a Object>, name: &str) -> Option<&'a Object> {
    parent?.get(name)?.as_object()
}

/// Returns the text under a name.
pub(super) fn text<'a>(parent: Option<&'a Object>, name: &str) -> Option<&'a Text> {
    parent?.get(name)?.as_text()
}

/// Returns the value under a name, unless it is null.
pub(super) fn given<'a>(parent: Option<&'a Object>, name: &str) -> Option<&'a Json> {
    parent?.get(name).filter(|value| !value.is_null())
}

/// Returns the commit id under a name.
pub(super) fn sha(parent: Option<&Object>, name: &str) -> Option<CommitSha> {
    CommitSha::new(text(parent, name)?.as_str()?)
}

/// Returns the integer from 1 to 2^63-1 under a name.
pub(super) fn count(parent: Option<&Object>, name: &str) -> Option<i64> {
    let number = parent?.get(name)?.as_number()?;
    number.as_i64().filter(|count| *count >= 1)
}

/// Returns the text under a name without surrounding blanks; `None` if it is blank.
pub(super) fn content(parent: Option<&Object>, name: &str) -> Option<Text> {
    Some(text(parent, name)?.trimmed()).filter(|content| !content.is_empty())
}

/// Returns the id in a value: a positive number of any size, or a text. Any other value is `None`.
///
/// # Errors
///
/// If a text is not blank but cannot be an identity, or if the number has too many digits.
pub(super) fn id(value: Option<&Json>) -> Result<Option<String>, IdentityError> {
    let id = match value {
        Some(Json::String(text)) => identity(text)?,
        Some(Json::Number(number)) if number.is_integer() && number.as_f64() > 0.0 => {
            Some(svc_model::id::identity(number.as_str())?)
        }
        _ => None,
    };
    Ok(id.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(value: &str) -> Object {
        let text = format!(r#"{{"m":{value}}}"#);
        Json::parse(text.as_bytes()).unwrap().into_object().unwrap()
    }

    #[test]
    fn a_count_is_a_positive_integer() {
        let read = |value: &str| count(Some(&parent(value)), "m");
        assert_eq!(read("1"), Some(1));
        assert_eq!(read("9223372036854775807"), Some(i64::MAX));
        for wrong in [
            "0",
            "-0",
            "-1",
            "1.0",
            "1e3",
            "9223372036854775808",
            "NaN",
            "\"1\"",
            "true",
            "null",
            "[1]",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(count(Some(&Object::new()), "m"), None);
        assert_eq!(count(None, "m"), None);
    }

    #[test]
    fn an_id_is_a_positive_number_or_a_text() {
        let read = |value: &str| id(parent(value).get("m"));
        let long = "9".repeat(400);
        for (value, expected) in [
            ("1", "1"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            (long.as_str(), long.as_str()),
            ("\" a b \"", "a b"),
            ("\"0\"", "0"),
        ] {
            assert_eq!(read(value), Ok(Some(expected.to_owned())), "{value}");
        }
        for none in [
            "0", "-0", "-1", "1.5", "1.0", "1e3", "NaN", "Infinity", "true", "null", "\"\"",
            "\" \"", "[1]", "{}",
        ] {
            assert_eq!(read(none), Ok(None), "{none}");
        }
        assert_eq!(read("\"a\\u0000\""), Err(IdentityError::NotScalar));
        assert_eq!(read("\"\\ud800\""), Err(IdentityError::NotScalar));
        assert_eq!(read(&"9".repeat(1_025)), Err(IdentityError::TooLong));
    }

    #[test]
    fn blank_content_is_absent() {
        let read = |value: &str| content(Some(&parent(value)), "m");
        assert_eq!(read("\" a\\u0000 \""), Some(Text::from("a\0")));
        for none in ["\"\"", "\" \"", "5", "null", "[]"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn a_commit_id_is_hexadecimal_text() {
        let read = |value: &str| sha(Some(&parent(value)), "m");
        let digits = "A".repeat(40);
        let found = read(&format!("\" {digits} \"")).unwrap();
        assert_eq!(found.as_str(), digits.to_lowercase());
        let number = "1".repeat(40);
        for none in [number.as_str(), "\"abc\"", "null", "\"\\ud800\""] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
