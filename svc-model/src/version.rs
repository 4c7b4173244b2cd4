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

/// Declares a version: one number.
macro_rules! version {
    ($(#[$doc:meta])* $name:ident, $number:literal, $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name;

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u8($number)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match u64::deserialize(deserializer)? {
                    $number => Ok(Self),
                    _ => Err(de::Error::custom(concat!("the version is not ", $text))),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "integer", "const": $number })
            }
        }

        impl Vocabulary for $name {
            fn word(&self) -> &'static str {
                $text
            }

            fn unknown_word(value: &Json) -> Option<&str> {
                match value {
                    Json::Number(number) if number.is_integer() && number.as_str() != $text => {
                        Some(number.as_str())
                    }
                    _ => None,
                }
            }
        }

        impl FromField for $name {
            fn from_field(value: &Json) -> Result<Self, Violation> {
                match value {
                    Json::Number(number) if number.as_str() == $text => Ok(Self),
                    _ => Err(Violation::new(
                        FieldKind::LiteralError,
                        concat!("must be the integer ", $text),
                    )),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }
    };
}

version! {
    /// The number 1: the only version of the requests and replies that have one, and the first of
    /// the rules for matching and ranking.
    Version1, 1, "1"
}
version! {
    /// The number 2: the version of the rules for matching and ranking of a search.
    Version2, 2, "2"
}
