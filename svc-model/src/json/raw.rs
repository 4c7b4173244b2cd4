//! Embeds canonical text without parsing it.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};

use super::value::Json;

/// The name that marks canonical text for our serializer.
pub(super) const EXACT_RAW: &str = "$svc_model::json::ExactRaw";

/// One JSON value as canonical text, embedded verbatim in a reply.
///
/// Stored evidence is sent this way without being parsed. The writer does not check it: the caller
/// ensures that the text is canonical and contains no non-finite number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Box<[u8]>);

impl RawJson {
    /// Takes text as [`Json::write_canonical`] writes it.
    pub fn from_canonical(text: impl Into<Box<[u8]>>) -> Self {
        let text = text.into();
        debug_assert!(text.is_ascii(), "canonical text is ASCII");
        Self(text)
    }

    /// Returns the canonical text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the value that the text spells; an error if the text is not canonical after all.
    pub fn parse(&self) -> Result<Json, super::ParseError> {
        Json::parse(&self.0)
    }
}

impl From<&Json> for RawJson {
    fn from(value: &Json) -> Self {
        Self(value.to_canonical().into())
    }
}

/// The text.
impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Inside<'a>(&'a RawJson);

        impl Serialize for Inside<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    self.0
                        .parse()
                        .map_err(S::Error::custom)?
                        .serialize(serializer)
                } else {
                    serializer.serialize_bytes(self.0.as_bytes())
                }
            }
        }

        serializer.serialize_newtype_struct(EXACT_RAW, &Inside(self))
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(|value| Self::from(&value))
    }
}

/// Any value.
#[cfg(feature = "schema")]
impl JsonSchema for RawJson {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RawJson".into()
    }

    #[cfg(feature = "schema")]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}
