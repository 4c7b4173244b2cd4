//! Versions in requests and replies.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::field::{FieldKind, FromField, Violation};
use crate::json::Json;
use crate::open::Vocabulary;

/// The version of this service, as `/health` and `/v1/me` report it.
pub const SERVICE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The number 1: the only version of the requests, replies and rules that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version1;

impl Serialize for Version1 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(1)
    }
}

impl<'de> Deserialize<'de> for Version1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            1 => Ok(Self),
            _ => Err(de::Error::custom("the version is not 1")),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Version1 {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Version1".into()
    }
    fn inline_schema() -> bool {
        true
    }
    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "const": 1 })
    }
}

impl Vocabulary for Version1 {
    fn word(&self) -> &'static str {
        "1"
    }

    fn unknown_word(value: &Json) -> Option<&str> {
        match value {
            Json::Number(number) if number.is_integer() && number.as_str() != "1" => {
                Some(number.as_str())
            }
            _ => None,
        }
    }
}

impl FromField for Version1 {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        match value {
            Json::Number(number) if number.as_str() == "1" => Ok(Self),
            _ => Err(Violation::new(
                FieldKind::LiteralError,
                "must be the integer 1",
            )),
        }
    }
}

impl fmt::Display for Version1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1")
    }
}
