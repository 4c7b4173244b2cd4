//! One JSON value.

use super::number::Number;
use super::object::Object;
use super::text::Text;

/// One JSON value, exactly as captured.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is spelled.
    Number(Number),
    /// A string, lone surrogates included.
    String(Text),
    /// An array.
    Array(Vec<Self>),
    /// An object, its members in order.
    Object(Object),
}

impl Json {
    /// Returns the object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the object, if it is one; it can be changed.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the object, if it is one.
    pub fn into_object(self) -> Option<Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the elements, if it is an array.
    pub fn into_array(self) -> Option<Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the text, if it is a string.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, if it is a string.
    pub fn into_text(self) -> Option<Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, if it is a string without a surrogate.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text()?.as_str()
    }

    /// Returns the truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns whether every number inside is finite; see [`Number::is_finite`].
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::String(_) => true,
            Self::Number(number) => number.is_finite(),
            Self::Array(items) => items.iter().all(Self::is_finite),
            Self::Object(object) => object.iter().all(|(_, value)| value.is_finite()),
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Self {
        i64::from(value).into()
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        u64::from(value).into()
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Json {
    fn from(string: &str) -> Self {
        Self::String(string.into())
    }
}

impl From<String> for Json {
    fn from(string: String) -> Self {
        Self::String(string.into())
    }
}

impl From<Text> for Json {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Self>> for Json {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(items)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

/// `null` for `None`.
impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// An array.
impl<T: Into<Self>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}
