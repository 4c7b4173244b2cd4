//! Supports serde and schemars for the exact types.
//!
//! The data model of serde has neither exact numbers nor strings with surrogates. So our serializer
//! and our deserializer represent them as a newtype struct with a private name, which other formats
//! treat as the value inside:
//!
//! - Writing: when our serializer sees the name, it serializes the value inside again, now as a
//!   format that is *not* human readable. The value then writes its exact bytes. Other readable
//!   formats get the nearest value that they have.
//! - Reading: when our deserializer sees the name, it leaves the [`Json`] in a slot of the thread,
//!   and the visitor takes it from there at once. It is moved, not rebuilt. From other formats, a
//!   [`Json`] is built from whatever they visit.

use std::cell::Cell;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::UnitDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use super::number::Number;
use super::object::Object;
use super::text::Text;
use super::value::Json;

/// The name that asks our deserializer for a [`Json`].
pub(super) const EXACT: &str = "$svc_model::json::Exact";
/// The name that marks the spelling of a number for our serializer.
pub(super) const EXACT_NUMBER: &str = "$svc_model::json::ExactNumber";
/// The name that marks generalised UTF-8 for our serializer.
pub(super) const EXACT_TEXT: &str = "$svc_model::json::ExactText";

thread_local! {
    static SLOT: Cell<Option<Json>> = const { Cell::new(None) };
}

/// Hands `value` to the visitor as it is, in answer to [`EXACT`].
pub(super) fn hand_over<'de, V: Visitor<'de>, E: serde::de::Error>(
    value: Json,
    visitor: V,
) -> Result<V::Value, E> {
    SLOT.set(Some(value));
    visitor.visit_newtype_struct(UnitDeserializer::new())
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => text.serialize(serializer),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

/// Formats other than our own get an `i64`, a `u64` or a finite `f64`.
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Inside<'a>(&'a Number);

        impl Serialize for Inside<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let number = self.0;
                if !serializer.is_human_readable() {
                    serializer.serialize_bytes(number.as_str().as_bytes())
                } else if let Some(value) = number.as_i64() {
                    serializer.serialize_i64(value)
                } else if let Some(value) = number.as_u64() {
                    serializer.serialize_u64(value)
                } else if number.as_f64().is_finite() {
                    serializer.serialize_f64(number.as_f64())
                } else {
                    Err(S::Error::custom("number is too large or not finite"))
                }
            }
        }

        serializer.serialize_newtype_struct(EXACT_NUMBER, &Inside(self))
    }
}

/// Formats other than our own refuse a text that contains a surrogate.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Broken<'a>(&'a Text);

        impl Serialize for Broken<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    Err(S::Error::custom("string holds a lone surrogate"))
                } else {
                    serializer.serialize_bytes(self.0.as_bytes())
                }
            }
        }

        match self.as_str() {
            Some(string) => serializer.serialize_str(string),
            None => serializer.serialize_newtype_struct(EXACT_TEXT, &Broken(self)),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(EXACT, JsonVisitor)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Object(object) => Ok(object),
            other => Err(D::Error::invalid_type(unexpected(&other), &"an object")),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::String(text) => Ok(text),
            other => Err(D::Error::invalid_type(unexpected(&other), &"a string")),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Number(number) => Ok(number),
            other => Err(D::Error::invalid_type(unexpected(&other), &"a number")),
        }
    }
}

/// Returns the type of a value in the terms of serde, without the value.
pub(super) fn unexpected(value: &Json) -> Unexpected<'static> {
    match value {
        Json::Null => Unexpected::Unit,
        Json::Bool(_) => Unexpected::Other("boolean"),
        Json::Number(_) => Unexpected::Other("number"),
        Json::String(_) => Unexpected::Other("string"),
        Json::Array(_) => Unexpected::Seq,
        Json::Object(_) => Unexpected::Map,
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        match SLOT.take() {
            Some(value) => Ok(value),
            None => deserializer.deserialize_any(self),
        }
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        Json::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, value: i128) -> Result<Json, E> {
        Ok(Number::from_lexeme(&value.to_string()).into())
    }

    fn visit_u128<E>(self, value: u128) -> Result<Json, E> {
        Ok(Number::from_lexeme(&value.to_string()).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_bytes<E: serde::de::Error>(self, value: &[u8]) -> Result<Json, E> {
        self.visit_byte_buf(value.to_vec())
    }

    fn visit_byte_buf<E: serde::de::Error>(self, value: Vec<u8>) -> Result<Json, E> {
        match Text::from_wtf8(value) {
            Some(text) => Ok(text.into()),
            None => Err(E::invalid_type(Unexpected::Other("bytes"), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element::<Json>()? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some((name, value)) = members.next_entry::<Text, Json>()? {
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

/// Any value.
#[cfg(feature = "schema")]
impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

/// Any object.
#[cfg(feature = "schema")]
impl JsonSchema for Object {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Object".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

/// Any string.
#[cfg(feature = "schema")]
impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// Any number.
#[cfg(feature = "schema")]
impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "schema")]
    use schemars::schema_for;
    use serde_json::json;

    use super::*;
    use crate::json::RawJson;

    #[test]
    fn serde_json_sees_ordinary_values() {
        let text = r#"{"b":[1,-2,0.5,18446744073709551615],"a":"h\u00e9","n":null,"t":true}"#;
        let value = Json::parse(text.as_bytes()).unwrap();
        let theirs = json!({"b": [1, -2, 0.5, u64::MAX], "a": "hé", "n": null, "t": true});
        assert_eq!(serde_json::to_value(&value).unwrap(), theirs);
        assert_eq!(serde_json::to_value(RawJson::from(&value)).unwrap(), theirs);
        let read: Json = serde_json::from_str(text).unwrap();
        assert_eq!(read, value);
        let read: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(read.as_bytes(), text.as_bytes());
        let read: Text = serde_json::from_value(json!("é")).unwrap();
        assert_eq!(read, "é");
        let read: Option<Number> = serde_json::from_value(json!(2.5)).unwrap();
        assert_eq!(read, Number::parse("2.5"));
        assert!(serde_json::from_value::<Text>(json!(1)).is_err());
        assert!(serde_json::from_value::<Number>(json!("1")).is_err());
        assert!(serde_json::from_value::<Object>(json!([])).is_err());
    }

    #[test]
    fn serde_json_refuses_values_that_it_cannot_hold() {
        for document in [r#""\ud800""#, "NaN", "1e400"] {
            let value = Json::parse(document.as_bytes()).unwrap();
            assert!(serde_json::to_value(&value).is_err(), "{document}");
        }
    }

    #[test]
    fn schemas_are_inline() {
        let schema = schema_for!((Json, Text, Number, Object, RawJson));
        let types = json!([true, {"type": "string"}, {"type": "number"}, {"type": "object"}, true]);
        assert_eq!(schema.get("prefixItems"), Some(&types));
        assert_eq!(schema.get("$defs"), None);
    }
}
