//! Reads a request field by field and collects every violation.
//!
//! serde stops at the first error and repeats the input in its messages. The service does neither:
//! a 422 lists all violations, each with a fixed text. So [`Fields`] reads requests, and each type
//! of value defines in [`FromField`] what it accepts.

use std::borrow::Cow;
use std::ops::RangeInclusive;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Object};
use crate::limit::{UNDECLARED_NAME_CHARACTERS_MAX, VIOLATIONS_MAX};

/// The kind of a violation: what is wrong with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldKind {
    /// A required member or parameter is absent.
    Missing,
    /// The object must not have this member.
    ExtraForbidden,
    /// The value is not in the closed set.
    Enum,
    /// The value is not the required constant.
    LiteralError,
    /// The value is not a string.
    StringType,
    /// The value is not an integer.
    IntType,
    /// The text of a parameter is not an integer.
    IntParsing,
    /// The number is below its minimum.
    GreaterThanEqual,
    /// The number is above its maximum.
    LessThanEqual,
    /// The value is not an object.
    DictType,
    /// The value is not a list.
    ListType,
    /// The list has too few items.
    TooShort,
    /// The list has too many items.
    TooLong,
    /// The value is not a string, so it cannot be a UUID.
    UuidType,
    /// The text is not a UUID.
    UuidParsing,
    /// The date-time has no offset.
    TimezoneAware,
    /// The value is neither a string nor a number, so it cannot be a date-time.
    DatetimeType,
    /// The text or number is not a date-time.
    DatetimeParsing,
    /// The body is not JSON.
    JsonInvalid,
    /// The body, or a member of it, is not an object.
    ModelAttributesType,
    /// The value breaks a rule of its type, which the message names.
    ValueError,
}

/// One step of the path to an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Step {
    /// An index of a list, or the byte offset of a syntax error in the body.
    Index(u64),
    /// The name of a member or parameter; as the first step, the part of the request: `body`,
    /// `query`, `path` or `header`.
    Name(Cow<'static, str>),
}

impl From<&'static str> for Step {
    fn from(name: &'static str) -> Self {
        Self::Name(Cow::Borrowed(name))
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index as u64)
    }
}

/// One invalid value of a request. The value itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(not(feature = "service"), non_exhaustive)]
pub struct FieldError {
    /// The kind of the violation.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// The path to the value: first the part of the request, then names and indices.
    pub loc: Vec<Step>,
    /// A fixed message that says what is expected.
    pub msg: Cow<'static, str>,
}

impl FieldError {
    /// Returns a violation of this kind at a path, with a message that says what is expected.
    pub const fn new(kind: FieldKind, loc: Vec<Step>, msg: Cow<'static, str>) -> Self {
        Self { kind, loc, msg }
    }
}

/// What is wrong with one value, without its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    kind: FieldKind,
    message: &'static str,
}

impl Violation {
    /// Returns a violation of this kind with a message that says what is expected.
    pub const fn new(kind: FieldKind, message: &'static str) -> Self {
        Self { kind, message }
    }

    /// Returns a violation of a rule that the type of the value has.
    pub const fn rule(message: &'static str) -> Self {
        Self::new(FieldKind::ValueError, message)
    }

    /// Returns the violation at a path.
    pub fn at(self, loc: Vec<Step>) -> FieldError {
        FieldError {
            kind: self.kind,
            loc,
            msg: Cow::Borrowed(self.message),
        }
    }

    /// Returns the message.
    pub const fn message(self) -> &'static str {
        self.message
    }
}

/// A value that can be read from one JSON field.
pub trait FromField: Sized {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// The violation if the field does not contain a valid value.
    fn from_field(value: &Json) -> Result<Self, Violation>;
}

/// Reads a string that holds no surrogate.
pub(crate) fn scalar_text(value: &Json) -> Result<&str, Violation> {
    let Json::String(text) = value else {
        return Err(Violation::new(FieldKind::StringType, "must be a string"));
    };
    text.as_str()
        .ok_or(Violation::rule("must hold no surrogate"))
}

/// Checks a text that is kept as it is written: not blank, at most `bytes_max` bytes, without NUL.
///
/// # Errors
///
/// What is expected; `too_long` for a text that is too long.
pub(crate) fn kept_text<'t>(
    text: &'t str,
    bytes_max: usize,
    too_long: &'static str,
) -> Result<&'t str, &'static str> {
    if text.trim().is_empty() {
        Err("must not be blank")
    } else if text.len() > bytes_max {
        Err(too_long)
    } else if text.contains('\0') {
        Err("must hold no NUL")
    } else {
        Ok(text)
    }
}

/// Reads a whole number of a range, of which `expected` says what it is.
pub(crate) fn whole_number(
    value: &Json,
    range: RangeInclusive<u64>,
    expected: &'static str,
) -> Result<u64, Violation> {
    let Some(number) = value.as_number().filter(|number| number.is_integer()) else {
        return Err(Violation::new(FieldKind::IntType, "must be an integer"));
    };
    let kind = match number.as_u64() {
        Some(number) if range.contains(&number) => return Ok(number),
        Some(number) if number < *range.start() => FieldKind::GreaterThanEqual,
        None if number.as_str().starts_with('-') => FieldKind::GreaterThanEqual,
        _ => FieldKind::LessThanEqual,
    };
    Err(Violation::new(kind, expected))
}

/// Returns whether a count is 0, in which case it is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How a member that is not declared is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undeclared {
    /// By its own name, unless that is long (ingest routes).
    ByName,
    /// By the object that contains it, so that the name is not repeated (evidence and context
    /// routes).
    ByParent,
}

/// The violations found so far, at most [`VIOLATIONS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<FieldError>);

impl Violations {
    /// Adds a violation, unless there are already [`VIOLATIONS_MAX`].
    pub fn push(&mut self, error: FieldError) {
        if self.0.len() < VIOLATIONS_MAX {
            self.0.push(error);
        }
    }

    /// Returns a list of one violation.
    pub fn one(error: FieldError) -> Self {
        Self(vec![error])
    }

    /// Returns whether there are no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the violations as a list.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// Returns the value that `build` makes, or the violations if there are any.
    ///
    /// # Errors
    ///
    /// `self` if a violation was added, or if `build` finds a field absent.
    pub fn finish<T>(self, build: impl FnOnce() -> Option<T>) -> Result<T, Self> {
        if self.is_empty()
            && let Some(value) = build()
        {
            return Ok(value);
        }
        Err(self)
    }
}

const MISSING: Violation = Violation::new(FieldKind::Missing, "field required");

/// An object that is being read, and its path.
#[derive(Debug)]
pub struct Fields<'a> {
    object: &'a Object,
    place: Vec<Step>,
}

impl<'a> Fields<'a> {
    /// Starts reading the object at this path.
    pub fn new(object: &'a Object, place: Vec<Step>) -> Self {
        Self { object, place }
    }

    /// Returns the path of a member.
    pub fn loc(&self, name: &'static str) -> Vec<Step> {
        let mut loc = self.place.clone();
        loc.push(name.into());
        loc
    }

    /// Returns the path of the object.
    pub fn place(&self) -> Vec<Step> {
        self.place.clone()
    }

    /// Returns the member, unread.
    pub fn get(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name)
    }

    /// Reads a member that must be present.
    pub fn required<T: FromField>(
        &self,
        name: &'static str,
        violations: &mut Violations,
    ) -> Option<T> {
        let Some(value) = self.get(name) else {
            violations.push(MISSING.at(self.loc(name)));
            return None;
        };
        self.read(name, value, violations)
    }

    /// Reads a member that may be absent. If present, even as null, it must be valid.
    pub fn present<T: FromField>(
        &self,
        name: &'static str,
        violations: &mut Violations,
    ) -> Option<T> {
        self.read(name, self.get(name)?, violations)
    }

    /// Reads a member that may be absent or null.
    pub fn nullable<T: FromField>(
        &self,
        name: &'static str,
        violations: &mut Violations,
    ) -> Option<T> {
        match self.get(name)? {
            Json::Null => None,
            value => self.read(name, value, violations),
        }
    }

    fn read<T: FromField>(
        &self,
        name: &'static str,
        value: &Json,
        violations: &mut Violations,
    ) -> Option<T> {
        T::from_field(value)
            .map_err(|violation| violations.push(violation.at(self.loc(name))))
            .ok()
    }

    /// Reads a member that may be absent or null as an object.
    pub fn nullable_object(&self, name: &'static str, violations: &mut Violations) -> Option<Self> {
        match self.get(name)? {
            Json::Null => None,
            value => Self::of(value, self.loc(name), violations),
        }
    }

    /// Reads a member that must be present as an object.
    pub fn required_object(&self, name: &'static str, violations: &mut Violations) -> Option<Self> {
        let Some(value) = self.get(name) else {
            violations.push(MISSING.at(self.loc(name)));
            return None;
        };
        Self::of(value, self.loc(name), violations)
    }

    /// Starts reading a value, which must be an object, at its path.
    fn of(value: &'a Json, place: Vec<Step>, violations: &mut Violations) -> Option<Self> {
        let object = value.as_object();
        if object.is_none() {
            let expected = Violation::new(FieldKind::ModelAttributesType, "must be a JSON object");
            violations.push(expected.at(place.clone()));
        }
        object.map(|object| Self::new(object, place))
    }

    /// Reads a member that must be present as a list of objects. `longest` is how many there may be,
    /// and what to say of a longer list.
    pub fn required_objects(
        &self,
        name: &'static str,
        longest: (usize, &'static str),
        violations: &mut Violations,
    ) -> Option<Vec<Self>> {
        let place = self.loc(name);
        let list = match self.get(name) {
            None => Err(MISSING),
            Some(Json::Array(list)) if list.len() > longest.0 => {
                Err(Violation::new(FieldKind::TooLong, longest.1))
            }
            Some(Json::Array(list)) => Ok(list),
            Some(_) => Err(Violation::new(FieldKind::ListType, "must be a list")),
        };
        let list = list
            .map_err(|violation| violations.push(violation.at(place.clone())))
            .ok()?;
        let items = list.iter().enumerate().map(|(index, item)| {
            let mut place = place.clone();
            place.push(Step::from(index));
            Self::of(item, place, violations)
        });
        // Every item is looked at, so that a reply names every one that is wrong.
        items.collect::<Vec<_>>().into_iter().collect()
    }

    /// Adds a violation for every member that is not declared; if the parent is to be named, one
    /// for all of them.
    pub fn deny_undeclared(
        &self,
        declared: &[&str],
        undeclared: Undeclared,
        violations: &mut Violations,
    ) {
        for (name, _) in self.object {
            if declared.iter().any(|known| name == *known) {
                continue;
            }
            let mut loc = self.place.clone();
            if undeclared == Undeclared::ByName
                && let Some(name) = name.as_str()
                && name.chars().count() <= UNDECLARED_NAME_CHARACTERS_MAX
            {
                loc.push(Step::Name(Cow::Owned(name.to_owned())));
            }
            violations
                .push(Violation::new(FieldKind::ExtraForbidden, "field not declared").at(loc));
            if undeclared == Undeclared::ByParent {
                return;
            }
        }
    }
}

/// Declares a closed set: an enum whose wire names are given once.
///
/// The macro derives the serde names, `as_str`, `ALL`, [`FromField`] (kind `enum`) and `Display`.
/// Behind a wire name stand the words of products that a request may use in its place, in any case.
/// They are stored and answered as the wire name.
macro_rules! closed_set {
    (@message $first:literal $($word:literal)*) => {
        concat!("must be one of: ", $first $(, ", ", $word)*)
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $wire:literal $(| $word:literal)*,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(not(feature = "service"), non_exhaustive)]
        $vis enum $name { $($(#[$doc])* #[serde(rename = $wire)] $variant,)+ }

        impl $name {
            /// Every value, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the value as it is written on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire),+ }
            }

            /// The words of products.
            const WORDS: &'static [(&'static str, Self)] = &[$($(($word, Self::$variant),)*)+];

            /// Returns the value with this wire name.
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $($wire => Some(Self::$variant),)+ _ => None }
            }

            /// Returns the value with this wire name, or with this word of a product.
            pub fn from_word(text: &str) -> Option<Self> {
                let is = |(word, _): &&(&str, Self)| text.eq_ignore_ascii_case(word);
                let of_product = || Self::WORDS.iter().find(is).map(|(_, value)| *value);
                Self::from_wire(text).or_else(of_product)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::parameter::ParameterValue for $name {
            fn to_parameter(&self) -> String {
                self.as_str().to_owned()
            }
        }

        impl $crate::open::Vocabulary for $name {
            fn word(&self) -> &'static str {
                self.as_str()
            }

            fn unknown_word(value: &$crate::json::Json) -> Option<&str> {
                value.as_str().filter(|word| Self::from_wire(word).is_none())
            }
        }

        impl $crate::field::FromField for $name {
            fn from_field(value: &$crate::json::Json) -> Result<Self, $crate::field::Violation> {
                value.as_str().and_then(Self::from_word).ok_or($crate::field::Violation::new(
                    $crate::field::FieldKind::Enum,
                    $crate::closed_set!(@message $($wire $($word)*)+),
                ))
            }
        }
    };
}

pub(crate) use closed_set;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Known;

    impl FromField for Known {
        fn from_field(_: &Json) -> Result<Self, Violation> {
            Ok(Self)
        }
    }

    #[test]
    fn a_closed_set_takes_the_words_of_products_and_lists_its_words() {
        use crate::ingest::{CiProvider, CiResult, GatewayProvider};

        fn read<T: FromField>(word: &str) -> Result<T, Violation> {
            T::from_field(&Json::from(word))
        }
        for (word, provider) in [
            ("ci_a", CiProvider::CiA),
            ("jenkins", CiProvider::CiA),
            ("Jenkins", CiProvider::CiA),
            ("gitlab", CiProvider::CiB),
            ("github_actions", CiProvider::ForgeActions),
            ("buildkite", CiProvider::CiD),
        ] {
            assert_eq!(read(word), Ok(provider), "{word}");
        }
        assert_eq!(read("litellm"), Ok(GatewayProvider::GatewayA));
        assert_eq!(read("SUCCESS"), Ok(CiResult::Passed));
        assert_eq!(read("canceled"), Ok(CiResult::Cancelled));
        // A wire name has one spelling, and is what is written.
        let expected = Violation::new(
            FieldKind::Enum,
            "must be one of: gateway_a, litellm, gateway_b, portkey, gateway_c, helicone, unknown",
        );
        for word in ["GATEWAY_A", "gateway", "", "litellm "] {
            assert_eq!(read::<GatewayProvider>(word), Err(expected), "{word}");
        }
        assert_eq!(GatewayProvider::from_wire("litellm"), None);
        assert_eq!(CiResult::Passed.as_str(), "passed");
    }

    #[test]
    fn the_list_of_violations_is_bounded() {
        let members = (0..VIOLATIONS_MAX * 2).map(|number| (format!("{number}"), Json::Null));
        let object: Object = members.collect();
        let fields = Fields::new(&object, vec!["body".into()]);
        let mut violations = Violations::default();
        assert_eq!(fields.required::<Known>("known", &mut violations), None);
        fields.deny_undeclared(&["known"], Undeclared::ByName, &mut violations);
        let listed = violations.into_vec();
        assert_eq!(listed.len(), VIOLATIONS_MAX);
        assert_eq!(listed[0].kind, FieldKind::Missing, "the first are kept");
    }
}
