//! Identity strings and ids, each with its own type.
//!
//! Unicode white space and U+001C to U+001F are trimmed from both ends of an identity string. What
//! is left is not empty, contains no NUL and no surrogate, and has at most [`IDENTITY_BYTES_MAX`]
//! bytes. It is compared exactly.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::field::{FieldKind, Violation};
use crate::json::{Json, Text};
use crate::limit::IDENTITY_BYTES_MAX;

/// Why a text is not an identity string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Nothing is left after trimming.
    #[error("must not be blank")]
    Blank,
    /// It contains U+0000 or a surrogate.
    #[error("must hold no NUL and no surrogate")]
    NotScalar,
    /// It is longer than [`IDENTITY_BYTES_MAX`].
    #[error("must have at most 1024 bytes of UTF-8")]
    TooLong,
}

impl IdentityError {
    /// Returns the error as a fixed text, for a violation.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Blank => "must not be blank",
            Self::NotScalar => "must hold no NUL and no surrogate",
            Self::TooLong => "must have at most 1024 bytes of UTF-8",
        }
    }
}

/// Returns whether a character is trimmed from identity strings.
pub fn is_trimmed(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Returns the identity string in `text`: the text, trimmed.
///
/// # Errors
///
/// See [`IdentityError`].
pub fn identity(text: &str) -> Result<&str, IdentityError> {
    let trimmed = text.trim_matches(is_trimmed);
    if trimmed.is_empty() {
        Err(IdentityError::Blank)
    } else if trimmed.contains('\0') {
        Err(IdentityError::NotScalar)
    } else if trimmed.len() > IDENTITY_BYTES_MAX {
        Err(IdentityError::TooLong)
    } else {
        Ok(trimmed)
    }
}

/// Returns the identity string in a captured text.
///
/// # Errors
///
/// See [`IdentityError`]; a surrogate is [`IdentityError::NotScalar`].
pub fn identity_text(text: &Text) -> Result<&str, IdentityError> {
    text.as_str()
        .map_or(Err(IdentityError::NotScalar), identity)
}

/// Reads the identity string of a field.
pub(crate) fn identity_field(value: &Json) -> Result<&str, Violation> {
    let Json::String(text) = value else {
        return Err(Violation::new(FieldKind::StringType, "must be a string"));
    };
    identity_text(text).map_err(|error| Violation::rule(error.message()))
}

/// Declares a type of identity strings.
macro_rules! identity_string {
    ($(#[$meta:meta])* $name:ident) => {
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        $(#[$meta])*
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "schema", schemars(extend("minLength" = 1, "maxLength" = $crate::limit::IDENTITY_BYTES_MAX)))]
        pub struct $name(
            // Thousands of facts in a report have the same identity, so copies share the text.
            std::sync::Arc<str>,
        );

        impl $name {
            /// Returns the identity in `text`, trimmed.
            ///
            /// # Errors
            ///
            /// See [`IdentityError`](crate::id::IdentityError).
            pub fn new(text: &str) -> Result<Self, $crate::id::IdentityError> {
                $crate::id::identity(text).map(|text| Self(text.into()))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::id::IdentityError;
            fn try_from(text: String) -> Result<Self, $crate::id::IdentityError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $crate::parameter::ParameterValue for $name {
            fn to_parameter(&self) -> String {
                self.as_str().to_owned()
            }
        }

        impl $crate::field::FromField for $name {
            fn from_field(value: &$crate::json::Json) -> Result<Self, $crate::field::Violation> {
                $crate::id::identity_field(value).map(|text| Self(text.into()))
            }
        }
    };
}
pub(crate) use identity_string;

identity_string! {
    /// The id of a Session, assigned by the agent or its gateway. Not empty, at most 1,024 bytes of
    /// UTF-8, compared exactly.
    SessionId
}
identity_string! {
    /// The id of a user, as it was captured. Evidence routes never return it.
    UserId
}
identity_string! {
    /// The id of a call: a UUID in lower case with hyphens, assigned by the service. In a request
    /// it is compared exactly, so any other text matches no call.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("examples" = ["531f97ae-8872-41e7-8b99-d5840ab3cd2f"]))
    )]
    InferenceCallId
}
impl From<FactId> for InferenceCallId {
    fn from(id: FactId) -> Self {
        Self(id.to_string().into())
    }
}

identity_string! {
    /// The id of a CI run, assigned by its CI system.
    RunId
}
identity_string! {
    /// An id from another system. The service stores and compares it, and reads nothing from it.
    ForeignId
}

/// The id of a stored fact: a UUID, written in lower case with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct FactId(
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "uuid")))] Uuid,
);

impl FactId {
    /// Returns the fact id with this UUID.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Returns the UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// Parses a fact id in lower case with hyphens.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Uuid::try_parse(text).ok()?;
        let mut buffer = Uuid::encode_buffer();
        (id.hyphenated().encode_lower(&mut buffer) == text).then_some(Self(id))
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The organization of the deployment: 1 to 64 characters, `[a-z0-9][a-z0-9._-]{0,63}`, in lower
/// case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[a-z0-9][a-z0-9._-]{0,63}$")))]
pub struct OrgId(String);

/// The error for a text that is not the id of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an organization is 1 to 64 of a-z, 0-9, '.', '_', '-', starting with a letter or digit")]
pub struct OrgIdError;

impl OrgId {
    /// Returns the id of the organization, in lower case. The text is not trimmed.
    ///
    /// # Errors
    ///
    /// If it is empty or too long, contains another character, or does not start with a letter or a
    /// digit.
    pub fn new(text: &str) -> Result<Self, OrgIdError> {
        let text = text.to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let valid = bytes.len() <= 64
            && bytes.first().copied().is_some_and(plain)
            && bytes
                .iter()
                .all(|byte| plain(*byte) || matches!(byte, b'.' | b'_' | b'-'));
        if valid {
            Ok(Self(text))
        } else {
            Err(OrgIdError)
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for OrgId {
    type Error = OrgIdError;
    fn try_from(text: String) -> Result<Self, OrgIdError> {
        Self::new(&text)
    }
}

impl From<OrgId> for String {
    fn from(org: OrgId) -> Self {
        org.0
    }
}

impl fmt::Display for OrgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_trimmed_and_bounded() {
        assert_eq!(
            SessionId::new(" a b\u{1f}\u{3000}").unwrap().as_str(),
            "a b"
        );
        assert_eq!(SessionId::new(" \t"), Err(IdentityError::Blank));
        assert_eq!(SessionId::new("a\0b"), Err(IdentityError::NotScalar));
        assert!(SessionId::new(&"x".repeat(IDENTITY_BYTES_MAX)).is_ok());
        assert_eq!(
            SessionId::new(&"x".repeat(IDENTITY_BYTES_MAX + 1)),
            Err(IdentityError::TooLong)
        );
    }

    #[test]
    fn a_fact_id_has_one_spelling() {
        let text = "531f97ae-8872-41e7-8b99-d5840ab3cd2f";
        assert_eq!(FactId::parse(text).unwrap().to_string(), text);
        assert_eq!(FactId::parse(&text.to_uppercase()), None);
        assert_eq!(FactId::parse(&text.replace('-', "")), None);
    }

    #[test]
    fn an_organization_is_lower_cased_but_not_trimmed() {
        assert_eq!(OrgId::new("ACME").unwrap().as_str(), "acme");
        for wrong in ["", " acme", "-a", "a b", "\u{e9}", &"a".repeat(65)] {
            assert_eq!(OrgId::new(wrong), Err(OrgIdError));
        }
    }
}
