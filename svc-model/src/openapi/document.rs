//! The OpenAPI document.

use serde_json::{Map, Value, json};

use super::catalogue::{Catalogue, DIALECT};
use super::operation::operation;
use crate::version::SERVICE_VERSION;

/// The name of the security scheme of tokens.
pub(super) const SECURITY_SCHEME: &str = "bearer";
/// The name of the security scheme of the forge.
pub(super) const SIGNATURE_SCHEME: &str = "forgeSignature";

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

/// A group of routes.
#[derive(Debug)]
pub(super) struct Area {
    /// The prefixes of the paths.
    prefixes: &'static [&'static str],
    /// The name.
    pub(super) name: &'static str,
    /// The purpose of the routes.
    description: &'static str,
}

/// The groups, in the order of the document.
const AREAS: &[Area] = &[
    Area {
        prefixes: &["/ingest/", "/v1/logs"],
        name: "ingest",
        description: "Sending evidence: model calls of a gateway, logs of agents, results of CI runs and the \
                      events of a forge.",
    },
    Area {
        prefixes: &["/query/context"],
        name: "context",
        description: "Resuming earlier work: exact parts of the Sessions that are granted to a token.",
    },
    Area {
        prefixes: &["/query/evidence"],
        name: "evidence",
        description: "Exact parts of any Session, for the operator.",
    },
    Area {
        prefixes: &["/v1/reports/"],
        name: "reports",
        description: "What became of the agents' work, computed from facts for each answer.",
    },
    Area {
        prefixes: &[
            "/query/ci/",
            "/v1/sessions",
            "/query/session/",
            "/query/commit/",
        ],
        name: "investigation",
        description: "From a failed run to its commit, and from a commit to the Sessions that made it; and the list of Sessions.",
    },
    Area {
        prefixes: &["/v1/capture"],
        name: "capture",
        description: "What arrives from each source, and why something was not stored.",
    },
    Area {
        prefixes: &["/v1/quarantine", "/v1/release"],
        name: "quarantine",
        description: "Hiding facts from every answer and showing them again, and the log of both.",
    },
    Area {
        prefixes: &["/v1/grants"],
        name: "grants",
        description: "What the named retrieval tokens may read, and the log of who changed it, when and why.",
    },
    Area {
        prefixes: &["/v1/facts"],
        name: "facts",
        description: "Counts of what is stored, and the metadata of a Session.",
    },
    Area {
        prefixes: &["/health", "/v1/me"],
        name: "identity",
        description: "The health of the service, and the authority of a token.",
    },
];

/// Returns the group of a path.
pub(super) fn area_of(path: &str) -> Option<&'static Area> {
    AREAS
        .iter()
        .find(|area| area.prefixes.iter().any(|prefix| path.starts_with(prefix)))
}

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
    use std::collections::BTreeSet;

    use super::*;
    use crate::endpoint;

    #[test]
    fn every_route_belongs_to_a_group_and_every_group_has_a_route() {
        let mut used = BTreeSet::new();
        for route in endpoint::all() {
            let area = area_of(route.path);
            assert!(area.is_some(), "{} belongs to no group", route.path);
            used.extend(area.map(|area| area.name));
        }
        assert_eq!(used.len(), AREAS.len());
    }

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
