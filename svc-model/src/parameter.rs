//! Parameters in the path, the query and the headers of a request.
//!
//! A parameter is declared once, next to its request: its name, place, type and meaning. The server
//! reads it, the client writes it, and `openapi.json` publishes it from that declaration.

use std::fmt;
use std::marker::PhantomData;

use crate::field::{FromField, Violations};
use crate::request::{Incoming, Outgoing};

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the path, between two slashes.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// The value of a parameter that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// A word of a closed set.
    Word(&'static str),
    /// A number.
    Number(u64),
    /// A truth value.
    Truth(bool),
}

/// One parameter of a route.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its name; for a header, in lower case.
    pub name: &'static str,
    /// Its place.
    pub place: Place,
    /// Whether a request must have it.
    pub required: bool,
    /// Its description, which is published.
    pub description: &'static str,
    /// The value that it has if it is absent; `None` if there is none, or if it cannot be written
    /// as a value.
    pub default: Option<DefaultValue>,
    /// The schema of its values.
    #[cfg(feature = "schema")]
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Parameters are equal if they have the same place and name.
impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        (self.place, self.name) == (other.place, other.name)
    }
}

impl Eq for Parameter {}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameter")
            .field("name", &self.name)
            .field("place", &self.place)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// A value that a parameter can have.
#[cfg(feature = "schema")]
pub(crate) trait ParameterValue: FromField + JsonSchema {
    /// Returns the value as text, not encoded.
    fn to_parameter(&self) -> String;
}

/// A value that a parameter can have.
#[cfg(not(feature = "schema"))]
pub(crate) trait ParameterValue: FromField {
    /// Returns the value as text, not encoded.
    fn to_parameter(&self) -> String;
}

/// The declaration of a parameter with values of the type `T`.
pub(crate) struct Declared<T> {
    parameter: Parameter,
    value: PhantomData<fn() -> T>,
}

impl<T: ParameterValue> Declared<T> {
    /// Declares a path parameter.
    pub(crate) const fn path(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Path, true, description)
    }

    /// Declares a required query parameter.
    pub(crate) const fn required(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Query, true, description)
    }

    /// Declares an optional query parameter.
    pub(crate) const fn optional(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Query, false, description)
    }

    /// Declares an optional header.
    pub(crate) const fn header(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Header, false, description)
    }

    const fn new(
        name: &'static str,
        place: Place,
        required: bool,
        description: &'static str,
    ) -> Self {
        Self {
            parameter: Parameter {
                name,
                place,
                required,
                description,
                default: None,
                #[cfg(feature = "schema")]
                schema: SchemaGenerator::subschema_for::<T>,
            },
            value: PhantomData,
        }
    }

    /// Sets the default.
    pub(crate) const fn or(mut self, default: DefaultValue) -> Self {
        self.parameter.default = Some(default);
        self
    }

    /// Returns the parameter without its type.
    pub(crate) const fn parameter(&self) -> Parameter {
        self.parameter
    }

    /// Returns the name.
    pub(crate) const fn name(&self) -> &'static str {
        self.parameter.name
    }

    /// Reads the value. Adds a violation if it is malformed, or if it is required but absent.
    pub(crate) fn read(&self, incoming: &Incoming<'_>, violations: &mut Violations) -> Option<T> {
        let fields = match self.parameter.place {
            Place::Path => incoming.path_fields(),
            Place::Query => incoming.query_fields(),
            Place::Header => incoming.header_fields(),
        };
        if self.parameter.required {
            fields.required(self.parameter.name, violations)
        } else {
            fields.present(self.parameter.name, violations)
        }
    }

    /// Adds the value to a request.
    pub(crate) fn write(&self, outgoing: Outgoing, value: &T) -> Outgoing {
        let (name, value) = (self.parameter.name, value.to_parameter());
        match self.parameter.place {
            Place::Path => outgoing.with_path(name, value),
            Place::Query => outgoing.with_query(name, value),
            Place::Header => outgoing.with_header(name, value),
        }
    }

    /// Adds the value to a request, if there is one.
    pub(crate) fn write_any(&self, outgoing: Outgoing, value: Option<&T>) -> Outgoing {
        match value {
            Some(value) => self.write(outgoing, value),
            None => outgoing,
        }
    }
}

/// Lists declarations as parameters, for an endpoint.
macro_rules! parameters {
    ($($declared:expr),+ $(,)?) => {
        &[$($declared.parameter()),+]
    };
}

pub(crate) use parameters;
