//! One route as an operation of OpenAPI.

use schemars::Schema;
use serde_json::{Map, Value, json};

use super::area::area_of;
use super::catalogue::Catalogue;
use super::example::Example;
use super::refusal::DocumentedStatus;
use super::route::Route;
use crate::endpoint::{
    Access, DefaultValue, Endpoint as _, Grant, IngestGatewayBatch, Logs, Parameter, Place, Traces,
};
use crate::ingest::PROTOBUF;
use crate::problem::Problem;

/// The name of the security scheme of tokens.
pub(super) const SECURITY_SCHEME: &str = "bearer";
/// The name of the security scheme of the forge.
pub(super) const SIGNATURE_SCHEME: &str = "forgeSignature";

/// Describes one route.
pub(super) fn operation(catalogue: &Catalogue, route: &Route) -> Value {
    let endpoint = &route.endpoint;
    let example = Example::of(endpoint.name);
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": required_authority(endpoint.access),
        "security": security(endpoint.access),
        "responses": responses(catalogue, route),
        "x-reply-bytes-max": endpoint.reply_bytes_max,
    });
    if !authorities(endpoint.access).is_empty() {
        operation["x-authorities"] = json!(authorities(endpoint.access));
    }
    if let Some(area) = area_of(endpoint.path) {
        operation["tags"] = json!([area.name]);
    }
    if !endpoint.parameters.is_empty() {
        let parameters = endpoint.parameters.iter().zip(&route.parameters);
        operation["parameters"] = parameters
            .map(|(declared, schema)| parameter(declared, schema, example))
            .collect();
    }
    if let Some(body) = request_body(route) {
        operation["requestBody"] = body;
        operation["x-body-bytes-max"] = endpoint.body_bytes_max.into();
        if !endpoint.content_encodings.is_empty() {
            operation["x-content-encodings"] = endpoint
                .content_encodings
                .iter()
                .map(|encoding| encoding.as_str())
                .collect();
        }
    }
    operation
}

/// Describes in one sentence who may call a route.
fn required_authority(access: Access) -> &'static str {
    match access {
        Access::Open => "Open: no credential is required.",
        Access::Any => "Any configured bearer token is accepted.",
        Access::Ingest => "Requires an ingest token or the operator token.",
        Access::Signature => "Requires the forge's signature of the body. Tokens are ignored.",
        Access::Operator => "Requires the operator token.",
        Access::Context(Grant::Single) => {
            "Requires the retrieval token or the operator token, and a grant of exactly one \
             configured Session. Named retrieval tokens are not accepted."
        }
        Access::Context(Grant::Configured) => {
            "Requires a retrieval token or the operator token, and reads only the Sessions of the \
             configured grant; a named retrieval token reads those granted to it."
        }
        Access::Search => {
            "Requires a retrieval token, which reads the Sessions that are granted to it, or the \
             operator token, which reads all."
        }
    }
}

/// Returns the credential that a caller needs. Bearer tokens have no scopes in OpenAPI, so the
/// authorities are listed separately by [`authorities`].
fn security(access: Access) -> Value {
    match access {
        Access::Open => json!([]),
        Access::Signature => json!([{ SIGNATURE_SCHEME: [] }]),
        Access::Any | Access::Ingest | Access::Operator | Access::Context(_) | Access::Search => {
            json!([{ SECURITY_SCHEME: [] }])
        }
    }
}

/// Lists the authorities, one of which a token needs.
fn authorities(access: Access) -> &'static [&'static str] {
    match access {
        Access::Open | Access::Signature => &[],
        Access::Any => &["ingest", "retrieval", "operator"],
        Access::Ingest => &["ingest", "operator"],
        Access::Operator => &["operator"],
        Access::Context(_) | Access::Search => &["retrieval", "operator"],
    }
}

fn parameter(parameter: &Parameter, schema: &Schema, example: Option<&Example>) -> Value {
    let mut schema = json!(schema);
    match parameter.default {
        None => {}
        Some(DefaultValue::Word(word)) => schema["default"] = word.into(),
        Some(DefaultValue::Number(number)) => schema["default"] = number.into(),
        Some(DefaultValue::Truth(truth)) => schema["default"] = truth.into(),
    }
    let mut described = json!({
        "name": parameter.name,
        "in": match parameter.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        },
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
    });
    if let Some(example) = example.and_then(|example| example.parameter(parameter)) {
        described["example"] = example.clone();
    }
    described
}

fn request_body(route: &Route) -> Option<Value> {
    let schema = route.request.as_ref()?;
    let mut content = json!({ "application/json": { "schema": schema } });
    if let Some(examples) = Example::of(route.endpoint.name).and_then(Example::request) {
        content["application/json"]["examples"] = examples;
    }
    if route.endpoint.name == IngestGatewayBatch::NAME {
        content["application/x-ndjson"] = json!({
            "schema": { "type": "string", "description": "One payload per line, each a JSON object." },
        });
    }
    if let Some(messages) = messages_of(route) {
        content[PROTOBUF] = protobuf(messages.request);
    }
    Some(json!({ "required": true, "content": content }))
}

/// The protobuf messages of a route.
struct ProtobufMessages {
    request: &'static str,
    reply: &'static str,
}

fn messages_of(route: &Route) -> Option<ProtobufMessages> {
    match route.endpoint.name {
        Logs::NAME => Some(ProtobufMessages {
            request: "ExportLogsServiceRequest",
            reply: "ExportLogsServiceResponse, to a protobuf request",
        }),
        Traces::NAME => Some(ProtobufMessages {
            request: "ExportTraceServiceRequest",
            reply: "ExportTraceServiceResponse, to a protobuf request",
        }),
        _ => None,
    }
}

/// Describes a protobuf message of a foreign protocol by its name.
fn protobuf(message: &str) -> Value {
    json!({ "schema": { "type": "string", "format": "binary", "description": message } })
}

fn responses(catalogue: &Catalogue, route: &Route) -> Value {
    let messages = messages_of(route);
    let mut responses = Map::new();
    let mut reply = json!({
        "description": "The reply.",
        "content": { "application/json": { "schema": route.reply } },
    });
    if let Some(example) = Example::of(route.endpoint.name) {
        reply["content"]["application/json"]["examples"] = example.reply();
    }
    if let Some(messages) = &messages {
        reply["content"][PROTOBUF] = protobuf(messages.reply);
    }
    responses.insert("200".into(), reply);
    for status in route.endpoint.statuses {
        let Some(refusal) = DocumentedStatus::of(catalogue, route, *status) else {
            continue;
        };
        let mut content = json!({ "schema": catalogue.problem });
        let examples = refusal.examples();
        if !examples.is_empty() {
            content["examples"] = examples.into();
        }
        let mut response = json!({
            "description": refusal.description,
            "content": { "application/json": content },
        });
        if messages.is_some() {
            response["content"][PROTOBUF] = protobuf("google.rpc.Status, to a protobuf request");
        }
        if let Some(challenge) = refusal.challenge() {
            response["headers"] = json!({
                "WWW-Authenticate": {
                    "description": "The scheme of the credential.",
                    "required": true,
                    "schema": { "const": challenge },
                },
            });
        }
        responses.insert(status.to_string(), response);
    }
    if route.endpoint.access == Access::Open {
        // An open route has no other errors.
        responses.insert("400".into(), unreadable(catalogue));
    }
    responses.into()
}

/// Describes the answer to an invalid HTTP request.
fn unreadable(catalogue: &Catalogue) -> Value {
    let example = Problem::MalformedRequest.body();
    json!({
        "description": "The request is not HTTP.",
        "content": { "application/json": {
            "schema": catalogue.problem,
            "examples": { "malformed": { "value": example } },
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_status_is_described() {
        let catalogue = Catalogue::new();
        for route in &catalogue.routes {
            let responses = responses(&catalogue, route);
            for status in route.endpoint.statuses {
                let response = responses.get(status.to_string());
                assert!(response.is_some(), "{} {status}", route.endpoint.path);
            }
        }
    }

    #[test]
    fn a_refused_credential_names_its_scheme() {
        let catalogue = Catalogue::new();
        for route in &catalogue.routes {
            let scheme = responses(&catalogue, route)["401"]["headers"]["WWW-Authenticate"].clone();
            assert_eq!(scheme.is_object(), route.endpoint.access != Access::Open);
        }
    }
}
