//! Converts requests to messages and back, without an HTTP library.

use crate::field::{FieldKind, Fields, Step, Undeclared, Violation, Violations};
use crate::json::{self, Json, NodeBudget, Object, ParseError, ParseErrorKind};
use crate::parameter::{Parameter, Place};
use crate::problem::{Problem, QueryFault};

/// The parts of a received request.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Path parameters by name, percent-decoded.
    pub path: &'a Object,
    /// Query parameters by name, percent-decoded. If one is repeated, the last one counts.
    pub query: &'a Object,
    /// The declared headers by name in lower case, and `content-type`, if present. If one is
    /// repeated, the first one counts.
    pub headers: &'a Object,
    /// The body, within the cap of the route, decoded if the route supports its `content-encoding`.
    pub body: &'a [u8],
    /// The memory that its values may take.
    pub memory: &'a NodeBudget,
}

impl Incoming<'_> {
    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] or [`Refusal::OverBudget`]; without a body, a violation of the kind
    /// `missing`.
    pub fn json(&self) -> Result<Json, Refusal> {
        if self.body.is_empty() {
            return Err(Refusal::Invalid(Violations::one(
                Violation::new(FieldKind::Missing, "field required").at(vec!["body".into()]),
            )));
        }
        Ok(Json::parse_within(self.body, self.memory)?)
    }

    /// Parses the body as a JSON object.
    ///
    /// # Errors
    ///
    /// As [`Incoming::json`]; for any other value, a violation of the kind `model_attributes_type`.
    pub fn object(&self) -> Result<Object, Refusal> {
        self.json()?.into_object().ok_or_else(|| {
            Refusal::Invalid(Violations::one(
                Violation::new(FieldKind::ModelAttributesType, "must be a JSON object")
                    .at(vec!["body".into()]),
            ))
        })
    }

    /// Parses the body as a JSON object, for a route that answers any other body with 400.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`], also without a body; [`Refusal::OverBudget`] or
    /// [`Refusal::NotAnObject`].
    pub fn document(&self) -> Result<Object, Refusal> {
        Json::parse_within(self.body, self.memory)?
            .into_object()
            .ok_or(Refusal::NotAnObject)
    }

    /// Starts reading the query parameters.
    pub fn query_fields(&self) -> Fields<'_> {
        Fields::new(self.query, vec!["query".into()])
    }

    /// Returns what was read, unless the query has a parameter that the route does not declare.
    ///
    /// # Errors
    ///
    /// As `read`; for each such parameter, a violation of the kind `extra_forbidden`.
    pub fn with_declared_query<T>(
        &self,
        declared: &[Parameter],
        read: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let declared = declared.iter();
        let declared: Vec<&str> = declared
            .filter(|parameter| parameter.place == Place::Query)
            .map(|parameter| parameter.name)
            .collect();
        let mut undeclared = Violations::default();
        self.query_fields()
            .deny_undeclared(&declared, Undeclared::ByName, &mut undeclared);
        match read {
            read if undeclared.is_empty() => read,
            Err(Refusal::Invalid(mut violations)) => {
                for violation in undeclared.into_vec() {
                    violations.push(violation);
                }
                Err(violations.into())
            }
            // A misspelt parameter may be why the others conflict.
            Ok(_) | Err(Refusal::Query(_)) => Err(undeclared.into()),
            read @ Err(_) => read,
        }
    }

    /// Starts reading the declared headers.
    pub fn header_fields(&self) -> Fields<'_> {
        Fields::new(self.headers, vec!["header".into()])
    }

    /// Starts reading the path parameters.
    pub fn path_fields(&self) -> Fields<'_> {
        Fields::new(self.path, vec!["path".into()])
    }
}

/// Why a received request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The body is not JSON.
    Malformed {
        /// The byte offset of the error.
        offset: usize,
    },
    /// The body is a form, but only JSON is accepted.
    Form,
    /// The values of the body take more memory than one request may use.
    OverBudget,
    /// The body is JSON, but not an object.
    NotAnObject,
    /// The body of an export of logs or traces is JSON, but not an object.
    LogsNotAnObject,
    /// Fields are invalid.
    Invalid(Violations),
    /// Each parameter is valid by itself, but they conflict with each other.
    Query(QueryFault),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed { .. } => Self::MalformedJson,
            Refusal::Form => Self::FormBody,
            Refusal::OverBudget => Self::TooManyValues,
            Refusal::NotAnObject => Self::BodyNotObject,
            Refusal::LogsNotAnObject => Self::LogsNotObject,
            Refusal::Invalid(violations) => Self::Invalid(violations),
            Refusal::Query(fault) => Self::Query(fault),
        }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        match error.kind {
            ParseErrorKind::OverBudget => Self::OverBudget,
            _ => Self::Malformed {
                offset: error.offset,
            },
        }
    }
}

impl From<QueryFault> for Refusal {
    fn from(fault: QueryFault) -> Self {
        Self::Query(fault)
    }
}

impl From<Violations> for Refusal {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

impl Refusal {
    /// Returns the refusal for a route that answers malformed JSON with a violation (422).
    #[must_use]
    pub fn malformed_as_violation(self) -> Self {
        match self {
            Self::Malformed { offset } => Self::Invalid(Violations::one(
                Violation::new(FieldKind::JsonInvalid, "must be JSON")
                    .at(vec!["body".into(), Step::from(offset)]),
            )),
            other @ (Self::Form
            | Self::OverBudget
            | Self::NotAnObject
            | Self::LogsNotAnObject
            | Self::Invalid(_)
            | Self::Query(_)) => other,
        }
    }
}

/// The parts of a request to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Path parameters by name, not encoded.
    pub path: Vec<(&'static str, String)>,
    /// Query parameters by name, not encoded.
    pub query: Vec<(&'static str, String)>,
    /// Headers in addition to those of the transport, by name in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

impl Outgoing {
    /// Returns a request with this value as its body.
    ///
    /// # Errors
    ///
    /// If the value exceeds the cap of every route, or contains a number that is not finite.
    pub fn body<T: serde::Serialize>(value: &T) -> Result<Self, json::WriteError> {
        Ok(Self {
            body: Some(json::to_vec(value, crate::limit::BODY_BYTES_MAX)?),
            ..Self::default()
        })
    }

    /// Adds a path parameter.
    #[must_use]
    pub fn with_path(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.path.push((name, value.into()));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }
}

/// A request that the server reads and the client writes.
pub trait Request: Sized {
    /// The parameters in the path, the query and the headers.
    const PARAMETERS: &'static [Parameter] = &[];

    /// Reads the request.
    ///
    /// # Errors
    ///
    /// See [`Refusal`].
    fn read(incoming: &Incoming<'_>) -> Result<Self, Refusal>;

    /// Writes the request.
    ///
    /// # Errors
    ///
    /// See [`Outgoing::body`].
    fn write(&self) -> Result<Outgoing, json::WriteError>;
}

/// A request without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoParameters;

impl Request for NoParameters {
    fn read(_: &Incoming<'_>) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn write(&self) -> Result<Outgoing, json::WriteError> {
        Ok(Outgoing::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;
    use crate::parameter::Declared;

    #[test]
    fn an_undeclared_query_parameter_is_a_violation_like_an_undeclared_member() {
        const DECLARED: &[Parameter] =
            &[
                Declared::<crate::ingest::CiProvider>::optional("provider", "A system.")
                    .parameter(),
            ];
        let query: Object = [("provider", "x"), ("provder", "x")]
            .map(|(name, value)| (json::Text::from(name), Json::from(value)))
            .into_iter()
            .collect();
        let empty = Object::new();
        let memory = NodeBudget::new(1);
        let incoming = |query| Incoming {
            path: &empty,
            query,
            headers: &empty,
            body: b"",
            memory: &memory,
        };
        let misspelt = incoming(&query);
        let extra: FieldError = Violation::new(FieldKind::ExtraForbidden, "field not declared")
            .at(vec!["query".into(), "provder".into()]);
        let with = |first: Option<&FieldError>| {
            let mut violations = Violations::default();
            first
                .into_iter()
                .chain([&extra])
                .cloned()
                .for_each(|error| violations.push(error));
            Err(Refusal::Invalid(violations))
        };
        let missing = Violation::new(FieldKind::Missing, "field required").at(vec!["body".into()]);
        let invalid = Refusal::from(Violations::one(missing.clone()));
        assert_eq!(misspelt.with_declared_query(DECLARED, Ok(())), with(None));
        let fault = Refusal::Query(QueryFault::ALL[0]);
        assert_eq!(
            misspelt.with_declared_query::<()>(DECLARED, Err(fault)),
            with(None)
        );
        assert_eq!(
            misspelt.with_declared_query::<()>(DECLARED, Err(invalid)),
            with(Some(&missing))
        );
        let malformed = Err(Refusal::Malformed { offset: 0 });
        let found = misspelt.with_declared_query::<()>(DECLARED, malformed.clone());
        assert_eq!(found, malformed);
        let none = incoming(&empty);
        assert_eq!(none.with_declared_query(DECLARED, Ok(())), Ok(()));
    }
}
