//! Parameters in the path, the query and the headers of a request.
//!
//! A parameter is declared once, beside the request that has it: its name, its place, its type, and
//! what it means. The server reads it by that declaration, the client writes it, and `openapi.json`
//! publishes it.

use std::fmt;
use std::marker::PhantomData;

use crate::field::{FromField, Violations};
use crate::request::{Incoming, Outgoing};

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the path, between two slashes.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// What is meant when a parameter is absent.
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
    /// Its name; of a header in lower case.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// Whether a request without it is refused.
    pub required: bool,
    /// What it is.
    pub description: &'static str,
    /// What is meant without it, when that can be said as a value.
    pub default: Option<DefaultValue>,
    /// The schema of its values.
    #[cfg(feature = "schema")]
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Two parameters of a route are the same when they stand in the same place under the same name.
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
    /// Returns the value as it is written, not encoded.
    fn to_parameter(&self) -> String;
}

/// A value that a parameter can have.
#[cfg(not(feature = "schema"))]
pub(crate) trait ParameterValue: FromField {
    /// Returns the value as it is written, not encoded.
    fn to_parameter(&self) -> String;
}

/// The declaration of a parameter whose values are of the type `T`.
pub(crate) struct Declared<T> {
    parameter: Parameter,
    value: PhantomData<fn() -> T>,
}

impl<T: ParameterValue> Declared<T> {
    /// Declares a parameter of the path.
    pub(crate) const fn path(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Path, true, description)
    }

    /// Declares a parameter of the query that a request must have.
    pub(crate) const fn required(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Query, true, description)
    }

    /// Declares a parameter of the query that may be absent.
    pub(crate) const fn optional(name: &'static str, description: &'static str) -> Self {
        Self::new(name, Place::Query, false, description)
    }

    /// Declares a header that may be absent.
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

    /// Says what is meant without it.
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

    /// Reads the value. A violation is added when it is malformed, and when it is absent and required.
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

    /// Adds the value to a request when there is one.
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
