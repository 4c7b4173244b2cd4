//! Numbers and truth values in a query string.

#[cfg(feature = "schema")]
use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::field::{FieldKind, FromField, Violation};
use crate::json::Json;
use crate::parameter::{Declared, DefaultValue, ParameterValue};
use crate::time::Instant;

/// A whole number from 1 to 2^63-1.
pub(super) struct Positive(pub(super) i64);

/// `true` or `false`.
pub(crate) struct Truth(bool);

/// `true`, for parameters that ask for more.
pub(crate) const TRUE: Truth = Truth(true);

/// `false`, for parameters that ask for less.
pub(crate) const FALSE: Truth = Truth(false);

/// Declares a parameter that asks for more by the value `true`.
pub(crate) const fn asks(name: &'static str, description: &'static str) -> Declared<Truth> {
    Declared::optional(name, description).or(DefaultValue::Truth(false))
}

/// Declares the parameter for the boundary of a query.
pub(crate) const fn as_of(description: &'static str) -> Declared<Instant> {
    Declared::optional("as_of", description)
}

impl Truth {
    /// Returns the value.
    pub(crate) const fn get(self) -> bool {
        self.0
    }
}

impl FromField for Truth {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        match value.as_str() {
            Some("true") => Ok(Self(true)),
            Some("false") => Ok(Self(false)),
            _ => Err(Violation::rule("must be true or false")),
        }
    }
}

/// A whole number from 1 to 2^63-1, for other modules.
pub(crate) struct PositiveNumber(u64);

impl PositiveNumber {
    /// Returns the number as a parameter.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

impl FromField for PositiveNumber {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        Positive::from_field(value).map(|number| Self(number.0.unsigned_abs()))
    }
}

impl FromField for Positive {
    fn from_field(value: &Json) -> Result<Self, Violation> {
        match whole(value)? {
            WholeNumber::Number(number) if number >= 1 => Ok(Self(number)),
            WholeNumber::Number(_) | WholeNumber::Below => Err(Violation::new(
                FieldKind::GreaterThanEqual,
                "must be at least 1",
            )),
            WholeNumber::Above => Err(Violation::new(
                FieldKind::LessThanEqual,
                "must be at most 2^63-1",
            )),
        }
    }
}

/// A whole number, clamped to 64 bits.
pub(super) enum WholeNumber {
    Number(i64),
    /// Below the range.
    Below,
    /// Above the range.
    Above,
}

/// Reads decimal digits with an optional minus sign.
pub(super) fn whole(value: &Json) -> Result<WholeNumber, Violation> {
    let expected = Violation::new(FieldKind::IntParsing, "must be a whole number");
    let text = value.as_str().ok_or(expected)?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(expected);
    }
    Ok(match text.parse() {
        Ok(number) => WholeNumber::Number(number),
        Err(_) if text.starts_with('-') => WholeNumber::Below,
        Err(_) => WholeNumber::Above,
    })
}

impl ParameterValue for Truth {
    fn to_parameter(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Truth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Truth".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

impl ParameterValue for Positive {
    fn to_parameter(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Positive {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Positive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": "int64", "minimum": 1 })
    }
}

impl ParameterValue for PositiveNumber {
    fn to_parameter(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for PositiveNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PositiveNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": "int64", "minimum": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_positive_number_fits_the_store() {
        let read = |text: &str| Positive::from_field(&Json::from(text)).map(|read| read.0);
        assert_eq!(read("1"), Ok(1));
        assert_eq!(read("007"), Ok(7));
        assert_eq!(read("9223372036854775807"), Ok(i64::MAX));
        for (text, expected) in [
            ("9223372036854775808", "must be at most 2^63-1"),
            ("0", "must be at least 1"),
            ("-1", "must be at least 1"),
            ("-9223372036854775809", "must be at least 1"),
            ("", "must be a whole number"),
            ("-", "must be a whole number"),
            ("+1", "must be a whole number"),
            ("1.0", "must be a whole number"),
            (" 1", "must be a whole number"),
            ("one", "must be a whole number"),
        ] {
            assert_eq!(
                read(text).map_err(Violation::message),
                Err(expected),
                "{text}"
            );
        }
    }
}
