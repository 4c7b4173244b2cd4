//! Why a value does not have the shape of a type, and where.

use serde::de::{self, Expected, Unexpected};

use super::error::ParseError;
use super::text::Text;

/// Why bytes could not be read as a type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FromSliceError {
    /// The document is not JSON.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The document is not a value of the type.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Why a value does not have the shape of a type.
///
/// The message does not repeat the value, but the names in the path come from the document.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}")]
pub struct ShapeError {
    kind: ShapeErrorKind,
    /// The innermost step comes first.
    path: Vec<PathSegment>,
}

/// In what way a value does not have the shape of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeErrorKind {
    /// The value has another JSON type, or is not an integer where one is expected.
    #[error("value of the wrong type")]
    Type,
    /// The value has the right type, but is not accepted.
    #[error("value out of range or malformed")]
    Value,
    /// A string contains a lone surrogate, which the type cannot represent.
    #[error("string with a lone surrogate")]
    Surrogate,
    /// The name is not in the closed set.
    #[error("value outside the closed set")]
    Variant,
    /// A required member is absent.
    #[error("missing member `{0}`")]
    MissingMember(&'static str),
    /// A member is not declared. The path ends with it.
    #[error("undeclared member")]
    UnknownMember,
    /// A member is given twice, under different names.
    #[error("member `{0}` given twice")]
    DuplicateMember(&'static str),
}

/// One step from a value to a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathSegment {
    /// To the member of this name.
    Member(Text),
    /// To the element at this index.
    Index(usize),
}

impl ShapeError {
    /// Returns in what way the value fails.
    pub fn kind(&self) -> ShapeErrorKind {
        self.kind
    }

    /// Returns where the value fails, outermost step first.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = &PathSegment> + ExactSizeIterator {
        self.path.iter().rev()
    }

    /// Adds the step that leads to the part of a value that fails.
    pub(super) fn within(mut self, segment: PathSegment) -> Self {
        self.path.push(segment);
        self
    }
}

impl From<ShapeErrorKind> for ShapeError {
    fn from(kind: ShapeErrorKind) -> Self {
        Self {
            kind,
            path: Vec::new(),
        }
    }
}

/// Keeps the kind and drops the message, because messages of serde and other crates repeat the
/// input.
impl de::Error for ShapeError {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        ShapeErrorKind::Value.into()
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        ShapeErrorKind::Type.into()
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        ShapeErrorKind::Value.into()
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        ShapeErrorKind::Value.into()
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        ShapeErrorKind::Variant.into()
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        ShapeErrorKind::UnknownMember.into()
    }

    fn missing_field(name: &'static str) -> Self {
        ShapeErrorKind::MissingMember(name).into()
    }

    fn duplicate_field(name: &'static str) -> Self {
        ShapeErrorKind::DuplicateMember(name).into()
    }
}
