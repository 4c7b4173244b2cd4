//! Pages of a list: how many items a page has, and where the next one begins.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter::{WholeNumber, whole};
use crate::field::{FieldKind, FromField, Violation};
use crate::json::Json;
use crate::limit::{CI_PAGE_DEFAULT, CI_PAGE_MAX, SESSION_PAGE_DEFAULT, SESSION_PAGE_MAX};
use crate::parameter::ParameterValue;

/// Declares the maximum number of rows of one list.
macro_rules! row_limit {
    ($(#[$limit_doc:meta])+ $limit:ident, $default:expr, $max:expr, $rule:literal;) => {
        $(#[$limit_doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $limit(u64);

        impl $limit {
            /// Returns the limit if it is in range.
            pub const fn new(limit: u64) -> Option<Self> {
                if limit >= 1 && limit <= $max {
                    Some(Self(limit))
                } else {
                    None
                }
            }

            /// Returns the number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl Default for $limit {
            fn default() -> Self {
                Self($default)
            }
        }

        impl $crate::parameter::ParameterValue for $limit {
            fn to_parameter(&self) -> String {
                self.0.to_string()
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $limit {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($limit).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": $max })
            }
        }

        impl $crate::field::FromField for $limit {
            fn from_field(
                value: &$crate::json::Json,
            ) -> Result<Self, $crate::field::Violation> {
                let kind = match $crate::query::from_one(value)? {
                    Ok(number) => match Self::new(number) {
                        Some(limit) => return Ok(limit),
                        None => $crate::field::FieldKind::LessThanEqual,
                    },
                    Err(kind) => kind,
                };
                Err($crate::field::Violation::new(kind, $rule))
            }
        }
    };
}
pub(crate) use row_limit;

/// Declares the limit and the cursor of the pages of one list.
macro_rules! pages {
    (
        $(#[$limit_doc:meta])+ $limit:ident, $default:ident, $max:ident, $rule:literal;
        $(#[$cursor_doc:meta])+ $cursor:ident;
    ) => {
        row_limit! {
            $(#[$limit_doc])+ $limit, $default, $max, $rule;
        }

        $(#[$cursor_doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(transparent)]
        pub struct $cursor(String);

        impl $cursor {
            /// Returns a cursor with this text. Only the service can tell whether it is valid.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ParameterValue for $cursor {
            fn to_parameter(&self) -> String {
                self.0.clone()
            }
        }

        impl FromField for $cursor {
            fn from_field(value: &Json) -> Result<Self, Violation> {
                let expected = Violation::new(FieldKind::StringType, "must be a string");
                value.as_str().map(Self::new).ok_or(expected)
            }
        }
    };
}

pages! {
    /// The maximum number of outcomes on a page: 1 to 100, by default 50.
    PageLimit, CI_PAGE_DEFAULT, CI_PAGE_MAX, "must be from 1 to 100";
    /// The end of a page of outcomes, as text that only the service can interpret. It is valid only
    /// for the same query, and until facts are quarantined or released.
    CiCursor;
}

pages! {
    /// The maximum number of Sessions on a page: 1 to 100, by default 50.
    SessionPageLimit, SESSION_PAGE_DEFAULT, SESSION_PAGE_MAX, "must be from 1 to 100";
    /// The end of a page of Sessions, as text that only the service can interpret. It is valid only
    /// for the same query, and until facts are quarantined or released.
    SessionCursor;
}

/// Reads a whole number from 1 on. For another number, returns on which side of the range it is.
pub(crate) fn from_one(value: &Json) -> Result<Result<u64, FieldKind>, Violation> {
    Ok(match whole(value)? {
        WholeNumber::Number(number) => match u64::try_from(number) {
            Ok(0) | Err(_) => Err(FieldKind::GreaterThanEqual),
            Ok(number) => Ok(number),
        },
        WholeNumber::Below => Err(FieldKind::GreaterThanEqual),
        WholeNumber::Above => Err(FieldKind::LessThanEqual),
    })
}
