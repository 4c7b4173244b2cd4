//! A route with its schemas, and how these refer to each other.

use schemars::Schema;

use crate::endpoint::Description;

/// The path of schemas in an OpenAPI document.
pub(super) const COMPONENTS: &str = "#/components/schemas/";

/// One route with the schemas of its bodies.
#[derive(Debug)]
pub(super) struct Route {
    /// The route.
    pub(super) endpoint: Description,
    /// The schema of the request body, if it has one.
    pub(super) request: Option<Schema>,
    /// The schema of the reply.
    pub(super) reply: Schema,
    /// The schemas of its parameters, in order.
    pub(super) parameters: Vec<Schema>,
}

/// Returns the name of the type that a schema refers to, if it is a bare reference.
pub(super) fn type_name(schema: &Schema) -> Option<&str> {
    component_name(schema.get("$ref")?.as_str()?)
}

pub(super) fn component_name(reference: &str) -> Option<&str> {
    reference.strip_prefix(COMPONENTS)
}
