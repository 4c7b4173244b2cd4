//! The OpenAPI document.

use serde_json::{Map, Value, json};

use super::area::AREAS;
use super::catalogue::{Catalogue, DIALECT};
use super::operation::{SECURITY_SCHEME, SIGNATURE_SCHEME, operation};
use crate::version::SERVICE_VERSION;

/// The conventions common to all routes.
const CONVENTIONS: &str = "\
Records evidence of what coding agents did, and returns exact parts of it.

A request body is JSON in any content type. Every body is measured while it is read, before the \
credential is looked at. A refusal has the same shape on all routes, never repeats what was sent, \
and reveals nothing about facts that the caller may not see. Every answer of a path that needs a \
credential carries `Cache-Control: no-store`, whatever its status.

Strings and numbers of captured content are returned as captured: lone surrogates and NUL as \
escapes, numbers in their original spelling and of any size. Use a parser that preserves them.

A \
redelivery is a success with `stored` false. An unknown path is 404; a known path with another \
method is 405.";

/// Describes the service.
pub(super) fn document(catalogue: &Catalogue) -> Value {
    let mut paths = Map::new();
    for route in &catalogue.routes {
        let path = paths
            .entry(route.endpoint.path)
            .or_insert_with(|| json!({}));
        path[route.endpoint.method.as_str().to_ascii_lowercase()] = operation(catalogue, route);
    }
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": DIALECT,
        "info": {
            "title": "Agent-work evidence service",
            "version": SERVICE_VERSION,
            "description": CONVENTIONS,
            "contact": { "name": "The operator of the deployment" },
            "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The deployment that serves this document." }],
        "tags": AREAS
            .iter()
            .map(|area| json!({ "name": area.name, "description": area.description }))
            .collect::<Value>(),
        "paths": paths,
        "components": {
            "schemas": catalogue.components,
            "securitySchemes": {
                SECURITY_SCHEME: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A configured token. Its authority is `ingest`, `operator` or \
                                    `retrieval`; `x-authorities` names those that an operation accepts.",
                },
                SIGNATURE_SCHEME: {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Hub-Signature-256",
                    "description": "`sha256=` and 64 hexadecimal digits in lower case: the \
                                    HMAC-SHA256 of the exact bytes of the body under the webhook \
                                    secret.",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint;

    #[test]
    fn every_route_is_its_own_operation() {
        let document = document(&Catalogue::new());
        for route in endpoint::all() {
            let method = route.method.as_str().to_ascii_lowercase();
            assert_eq!(
                document["paths"][route.path][method]["operationId"],
                route.name
            );
        }
    }

    #[test]
    fn every_reference_has_a_target() {
        let document = document(&Catalogue::new());
        let text = document.to_string();
        for reference in text.split("\"#/").skip(1) {
            let pointer = format!("/{}", reference.split('"').next().unwrap());
            assert!(document.pointer(&pointer).is_some(), "{pointer}");
        }
    }
}
