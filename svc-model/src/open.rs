//! Values that a newer service may return.
//!
//! A closed set is closed for one version of the service: the next version may add a reason, a
//! status or a kind of event. Requests and facts contain only values that both sides know, so they
//! use the set itself. A reply may come from a newer service, so replies use [`Open`], which keeps
//! an unknown value unchanged. Unknown members are ignored. A program can therefore still read
//! replies after the service was updated and the program was not.
//!
//! ```
//! use svc_model::context::ContextStatus;
//! use svc_model::json;
//! use svc_model::open::Open;
//!
//! let known: Open<ContextStatus> = json::from_slice(br#""matched""#)?;
//! assert_eq!(known, ContextStatus::Matched);
//! let newer: Open<ContextStatus> = json::from_slice(br#""deferred""#)?;
//! assert_eq!(newer.known(), None);
//! assert_eq!(newer.to_string(), "deferred");
//! # Ok::<(), svc_model::json::FromSliceError>(())
//! ```
//!
//! An unknown value cannot be constructed: an [`UnknownValue`] only comes from reading a reply, so
//! the service never writes one. An unknown `schema_version` is still an error, because then the
//! other members have another meaning.

use std::cmp::Ordering;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::{self, Json};

/// A value of a set that may have grown since this version; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Open<T> {
    /// A value that this version knows.
    Known(T),
    /// A value that this version does not know, unchanged.
    Unknown(UnknownValue),
}

/// A word or an object that this version does not know. It can only be read, never constructed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UnknownValue {
    word: Box<str>,
    value: Json,
}

/// A set of words or kinds that may grow with new versions of the service.
pub trait Vocabulary {
    /// Returns the value itself if it is a word, and its kind if it is an object.
    fn word(&self) -> &'static str;

    /// Returns the word or kind of a value that is not in this set. Returns nothing for a value in
    /// the set, or for one without a word or kind, which is malformed rather than new.
    fn unknown_word(value: &Json) -> Option<&str>;
}

impl UnknownValue {
    /// Returns the word itself, or the kind of the object.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Returns the whole value, unchanged.
    pub fn value(&self) -> &Json {
        &self.value
    }
}

impl<T> Open<T> {
    /// Returns the value if this version knows it.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the value if this version knows it.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Returns whether this version knows the value and `has` returns true for it.
    pub fn is_known_and(&self, has: impl FnOnce(&T) -> bool) -> bool {
        self.known().is_some_and(has)
    }
}

impl<T: Vocabulary> Open<T> {
    /// Returns the value as it is written on the wire if it is a word, and its kind if it is an
    /// object.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.word(),
            Self::Unknown(unknown) => unknown.word(),
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for Open<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(other)
    }
}

impl<T: fmt::Display> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(unknown) => unknown.fmt(f),
        }
    }
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word comes from outside and may be shown on a terminal.
        self.word.escape_debug().fmt(f)
    }
}

/// Only the word, because the rest may be captured content.
impl fmt::Debug for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownValue")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

impl PartialOrd for UnknownValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UnknownValue {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_word = self.word.cmp(&other.word);
        by_word.then_with(|| self.value.to_canonical().cmp(&other.value.to_canonical()))
    }
}

impl<T: Serialize> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown(unknown) => unknown.value.serialize(serializer),
        }
    }
}

impl<'de, T: Vocabulary + DeserializeOwned> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(deserializer)?;
        if let Some(word) = T::unknown_word(&value) {
            let word = word.into();
            return Ok(Self::Unknown(UnknownValue { word, value }));
        }
        json::from_value(value)
            .map(Self::Known)
            .map_err(de::Error::custom)
    }
}

/// The published schema describes what this version sends.
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Open<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
