//! Attribute lists and the values in them.

use std::borrow::Cow;
use std::sync::LazyLock;

use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Number, Object, Text};

use crate::value::{truncated, whole};

/// The value of an attribute that has none. It replaces an earlier value of the same key.
static VALUELESS: LazyLock<Json> = LazyLock::new(|| Object::new().into());

/// A list of attributes, parsed once.
#[derive(Debug, Default)]
pub(super) struct Attributes<'r> {
    members: Vec<(&'r Text, &'r Json)>,
    /// Whether what was sent is not a list.
    malformed: bool,
}

impl<'r> Attributes<'r> {
    /// Reads the attributes of a record or resource. An element that is not an object or whose key
    /// is not a string is ignored. An element without a value gets an empty one.
    pub(super) fn of(holder: &'r Object) -> Self {
        match holder.get("attributes") {
            None | Some(Json::Null) => Self::default(),
            Some(Json::Array(items)) => {
                let mut members = Vec::with_capacity(items.len());
                members.extend(items.iter().filter_map(|item| {
                    let item = item.as_object()?;
                    let value = item.get("value").unwrap_or(&VALUELESS);
                    Some((item.get("key")?.as_text()?, value))
                }));
                Self {
                    members,
                    malformed: false,
                }
            }
            Some(_) => Self {
                members: Vec::new(),
                malformed: true,
            },
        }
    }

    /// Returns one list of several; of a name in more than one of them, the last value counts.
    pub(super) fn united<'a>(lists: impl Iterator<Item = &'a Self>) -> Self
    where
        'r: 'a,
    {
        Self {
            members: lists
                .flat_map(|list| list.members.iter().copied())
                .collect(),
            malformed: false,
        }
    }

    /// Returns the names and the values, in order.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'r Text, AttributeValue<'r>)> {
        let members = self.members.iter();
        members.map(|(name, value)| (*name, AttributeValue::of(value)))
    }

    /// Returns an error if what was sent is not a list.
    pub(super) fn well_formed(&self) -> Result<&Self, LogSkip> {
        if self.malformed {
            Err(LogSkip::MalformedAttributes)
        } else {
            Ok(self)
        }
    }

    /// Returns the value under a name, or the last one if the name is repeated.
    pub(super) fn get(&self, name: &str) -> Option<AttributeValue<'r>> {
        let (_, value) = self
            .members
            .iter()
            .rfind(|(key, _)| key.as_bytes() == name.as_bytes())?;
        Some(AttributeValue::of(value))
    }

    /// Returns the text under a name, unless it is empty or not a string.
    pub(super) fn text(&self, name: &str) -> Option<&'r Text> {
        self.get(name)?.text().filter(|text| !text.is_empty())
    }
}

/// The value of an `AnyValue`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AttributeValue<'r> {
    /// A JSON value. Lists, maps and bytes keep their wrapper, so they match nothing.
    Json(&'r Json),
    /// An integer, which OTLP/JSON writes as a string.
    Integer(i64),
    /// The digits of an integer that does not fit into 64 bits. It is neither a text nor a count.
    Beyond(&'r str),
}

impl<'r> AttributeValue<'r> {
    /// Reads an `AnyValue`. A bare JSON value is accepted as it is.
    pub(super) fn of(value: &'r Json) -> Self {
        let Some(wrapper) = value.as_object() else {
            return Self::Json(value);
        };
        if let Some(inside) = PLAIN.iter().find_map(|name| wrapper.get(name)) {
            return Self::Json(inside);
        }
        match wrapper.get(INTEGER) {
            Some(inside) => match integer(inside) {
                Some(integer) => Self::Integer(integer),
                None => beyond(inside).map_or(Self::Json(inside), Self::Beyond),
            },
            None => Self::Json(value),
        }
    }

    pub(super) fn text(self) -> Option<&'r Text> {
        match self {
            Self::Json(value) => value.as_text(),
            Self::Integer(_) | Self::Beyond(_) => None,
        }
    }

    /// Returns the string, if it is valid UTF-8.
    pub(super) fn str(self) -> Option<&'r str> {
        self.text()?.as_str()
    }

    pub(super) fn bool(self) -> Option<bool> {
        match self {
            Self::Json(value) => value.as_bool(),
            Self::Integer(_) | Self::Beyond(_) => None,
        }
    }

    /// Returns the integer, if the value is a non-negative one.
    pub(super) fn count(self) -> Option<i64> {
        let integer = match self {
            Self::Integer(value) => value,
            Self::Json(Json::Number(number)) if number.is_integer() => number.as_i64()?,
            Self::Json(_) | Self::Beyond(_) => return None,
        };
        (integer >= 0).then_some(integer)
    }

    /// Returns the number, if the value is one or spells one.
    pub(super) fn number(self) -> Option<Cow<'r, Number>> {
        match self {
            Self::Json(Json::Number(number)) => Some(Cow::Borrowed(number)),
            Self::Json(value) => Number::parse(value.as_text()?.as_str()?.trim()).map(Cow::Owned),
            Self::Integer(value) => Some(Cow::Owned(value.into())),
            Self::Beyond(_) => None,
        }
    }

    /// Returns the integer from 0 that the value is or spells, in whatever type it was sent.
    pub(super) fn amount(self) -> Option<i64> {
        let number = self.number()?;
        if number.is_integer() {
            return number.as_i64().filter(|integer| *integer >= 0);
        }
        let double = number.as_f64();
        whole(double).filter(|integer| *integer >= 0 && double.fract() == 0.0)
    }

    /// Returns the value as a JSON value.
    pub(super) fn to_json(self) -> Json {
        match self {
            Self::Json(value) => value.clone(),
            Self::Integer(value) => value.into(),
            Self::Beyond(digits) => number(digits),
        }
    }
}

/// The wrappers whose content is used as it is, in this order.
const PLAIN: [&str; 3] = ["stringValue", "boolValue", "doubleValue"];
const INTEGER: &str = "intValue";

/// Returns the integer in an `intValue`: a string of decimal digits, or a number, which is
/// truncated.
fn integer(value: &Json) -> Option<i64> {
    match value {
        Json::Number(number) => truncated(number),
        Json::String(text) => {
            let digits = text.as_str()?.trim();
            // The standard library accepts a leading `+`, which is not a digit.
            digits.parse().ok().filter(|_| !digits.starts_with('+'))
        }
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

/// Returns the digits of an `intValue` that does not fit into 64 bits, without surrounding blanks.
fn beyond(value: &Json) -> Option<&str> {
    let spelled = value.as_text()?.as_str()?.trim();
    let digits = spelled.strip_prefix('-').unwrap_or(spelled);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then_some(spelled)
}

/// Returns the number with this spelling. Leading zeros, which JSON does not allow, are dropped; a
/// number with more digits than JSON numbers may have here becomes null.
fn number(spelled: &str) -> Json {
    let digits = spelled.trim_start_matches('-').trim_start_matches('0');
    let sign = if spelled.starts_with('-') { "-" } else { "" };
    Number::parse(&format!("{sign}{digits}")).map_or(Json::Null, Json::Number)
}

/// Attributes that name a person's account. They are not evidence and are never stored.
const ACCOUNT: [&str; 3] = ["user.email", "user.account_id", "user.account_uuid"];

/// Returns whether an element of an attribute list names a person's account.
fn is_account(item: &Json) -> bool {
    let key = item
        .as_object()
        .and_then(|item| item.get("key"))
        .and_then(Json::as_text);
    key.is_some_and(|key| ACCOUNT.iter().any(|name| key == name))
}

/// Removes the attributes that name a person's account from a record.
pub(super) fn without_account(mut record: Object) -> Object {
    if let Some(Json::Array(items)) = record.get_mut("attributes") {
        items.retain(|item| !is_account(item));
    }
    record
}

/// Turns a record into a flat map of its attributes, without those that name a person's account.
pub(super) fn flat(mut record: Object) -> Object {
    let Some(Json::Array(items)) = record.get_mut("attributes").map(std::mem::take) else {
        return Object::new();
    };
    items
        .into_iter()
        .filter(|item| !is_account(item))
        .filter_map(|item| {
            let mut item = item.into_object()?;
            let key = item.get_mut("key")?;
            let key = std::mem::take(key).into_text()?;
            let value = item.get_mut("value").map(std::mem::take);
            Some((
                key,
                unwrapped(value.unwrap_or_else(|| Object::new().into())),
            ))
        })
        .collect()
}

/// Returns the value of an `AnyValue`.
fn unwrapped(value: Json) -> Json {
    let mut value = value;
    if let Some(wrapper) = value.as_object_mut() {
        if let Some(inside) = PLAIN.iter().find(|name| wrapper.contains_key(name)) {
            return wrapper
                .get_mut(inside)
                .map(std::mem::take)
                .unwrap_or_default();
        }
        if let Some(inside) = wrapper.get_mut(INTEGER) {
            let read = integer(inside).map(Json::from);
            return read
                .or_else(|| beyond(inside).map(number))
                .unwrap_or_else(|| std::mem::take(inside));
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_value_is_unwrapped() {
        for (wrapped, read) in [
            (r#"{"stringValue":"a"}"#, r#""a""#),
            (r#"{"stringValue":5}"#, "5"),
            (r#"{"boolValue":false,"stringValue":"a"}"#, r#""a""#),
            (r#"{"doubleValue":1.50,"boolValue":true}"#, "true"),
            (r#"{"doubleValue":1.50,"intValue":"1"}"#, "1.50"),
            (r#"{"stringValue":null}"#, "null"),
            (r#""bare""#, r#""bare""#),
            ("true", "true"),
            ("null", "null"),
            ("[1]", "[1]"),
            ("{}", "{}"),
            (r#"{"intValue":"12"}"#, "12"),
            (r#"{"intValue":" -12 "}"#, "-12"),
            (r#"{"intValue":"007"}"#, "7"),
            (r#"{"intValue":12}"#, "12"),
            (r#"{"intValue":-1.9}"#, "-1"),
            (r#"{"intValue":1e3}"#, "1000"),
            (r#"{"intValue":"x"}"#, r#""x""#),
            (r#"{"intValue":"+1"}"#, r#""+1""#),
            (r#"{"intValue":"1.0"}"#, r#""1.0""#),
            (r#"{"intValue":true}"#, "true"),
            (r#"{"intValue":1e30}"#, "1e30"),
            (r#"{"intValue":NaN}"#, "NaN"),
            (
                r#"{"intValue":99999999999999999999}"#,
                "99999999999999999999",
            ),
            (
                r#"{"intValue":"99999999999999999999"}"#,
                "99999999999999999999",
            ),
            (
                r#"{"intValue":" -0099999999999999999999 "}"#,
                "-99999999999999999999",
            ),
            (
                r#"{"intValue":"-9223372036854775808"}"#,
                "-9223372036854775808",
            ),
            (r#"{"intValue":"-"}"#, r#""-""#),
            (
                r#"{"arrayValue":{"values":[]}}"#,
                r#"{"arrayValue":{"values":[]}}"#,
            ),
            (r#"{"kvlistValue":{}}"#, r#"{"kvlistValue":{}}"#),
            (r#"{"bytesValue":"AA=="}"#, r#"{"bytesValue":"AA=="}"#),
        ] {
            let wrapped = json(wrapped);
            assert_eq!(
                AttributeValue::of(&wrapped).to_json(),
                json(read),
                "{wrapped:?}"
            );
            assert_eq!(unwrapped(wrapped), json(read));
        }
    }

    #[test]
    fn an_integer_of_any_size_is_not_read_as_text() {
        for digits in ["12", "9223372036854775808", "-9223372036854775809"] {
            let wrapped = json(&format!(r#"{{"intValue":"{digits}"}}"#));
            let value = AttributeValue::of(&wrapped);
            assert_eq!((value.text(), value.bool()), (None, None), "{digits}");
            assert_eq!(value.to_json(), json(digits));
        }
        // Digits beyond the limit of a number are neither a number nor a text.
        let wrapped = json(&format!(r#"{{"intValue":"{}"}}"#, "9".repeat(5_000)));
        assert_eq!(AttributeValue::of(&wrapped).text(), None);
        assert_eq!(AttributeValue::of(&wrapped).to_json(), Json::Null);
        assert_eq!(unwrapped(wrapped), Json::Null);
    }

    #[test]
    fn malformed_attributes_are_skipped_and_the_last_of_a_name_wins() {
        let record = json(
            r#"{"attributes":[1,null,{"key":5,"value":"no"},{"value":"no"},{"key":"a","value":"first"},
                {"key":"b"},{"key":"a","value":{"stringValue":"last"}},{"key":"e","value":""},
                {"key":"c","value":"first"},{"key":"c"}]}"#,
        );
        let record = record.as_object().unwrap();
        let attributes = Attributes::of(record);
        assert_eq!(attributes.text("a"), Some(&"last".into()));
        for valueless in ["b", "c"] {
            let value = attributes.get(valueless).unwrap();
            assert_eq!(value.to_json(), json("{}"), "{valueless}");
        }
        assert_eq!(attributes.get("d"), None);
        assert_eq!(attributes.text("e"), None);
        assert!(attributes.get("e").is_some());
        assert!(attributes.well_formed().is_ok());
        assert_eq!(
            Json::Object(flat(record.clone())),
            json(r#"{"a":"last","b":{},"e":"","c":{}}"#)
        );
    }

    #[test]
    fn attributes_must_be_a_list() {
        for (holder, malformed) in [
            ("{}", false),
            (r#"{"attributes":null}"#, false),
            (r#"{"attributes":[]}"#, false),
            (r#"{"attributes":{}}"#, true),
            (r#"{"attributes":"x"}"#, true),
        ] {
            let holder = json(holder);
            let holder = holder.as_object().unwrap();
            assert_eq!(Attributes::of(holder).well_formed().is_err(), malformed);
            assert_eq!(flat(holder.clone()), Object::new());
        }
    }

    #[test]
    fn a_count_is_an_integer_and_not_negative() {
        for (value, expected) in [
            (r#"{"intValue":"0"}"#, Some(0)),
            (r#"{"intValue":"9223372036854775807"}"#, Some(i64::MAX)),
            ("5", Some(5)),
            (r#"{"intValue":"-1"}"#, None),
            (r#"{"intValue":"9223372036854775808"}"#, None),
            (r#"{"doubleValue":5.0}"#, None),
            (r#"{"stringValue":"5"}"#, None),
            (r#"{"boolValue":true}"#, None),
        ] {
            assert_eq!(
                AttributeValue::of(&json(value)).count(),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn attributes_that_name_an_account_are_removed_from_both_forms() {
        let record = json(
            r#"{"body":"x","attributes":[{"key":"user.email","value":"a@b"},{"key":"user.id","value":"u"},
                {"key":"user.account_id","value":"1"},{"key":"user.account_uuid"},7]}"#,
        );
        let record = record.into_object().unwrap();
        assert_eq!(
            Json::Object(flat(record.clone())),
            json(r#"{"user.id":"u"}"#)
        );
        assert_eq!(
            Json::Object(without_account(record)),
            json(r#"{"body":"x","attributes":[{"key":"user.id","value":"u"},7]}"#)
        );
    }
}
