//! Checks every answer that a test sees against the published schemas, so that the schemas cannot
//! be wrong.
//!
//! The source is `schemas/openapi.json`. The operation is found by the method and path of the
//! request, and the schema by the status of the answer.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use svc_model::json::Json;

use crate::http::{Reply, Request};

/// The published document, or `None` if none is published.
static DOCUMENT: LazyLock<Option<Document>> = LazyLock::new(Document::read);

/// Checks an answer against the schema of its operation and status.
///
/// # Errors
///
/// How the answer differs.
pub fn check(request: &Request, reply: &Reply) -> Result<(), String> {
    DOCUMENT
        .as_ref()
        .map_or(Ok(()), |document| document.check(request, reply))
}

struct Document {
    root: Value,
    /// Path templates by their segments. `None` is a parameter.
    paths: Vec<(Vec<Option<String>>, String)>,
    validators: Mutex<HashMap<String, &'static Validator>>,
}

impl Document {
    fn read() -> Option<Self> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the workspace");
        let text = fs::read(workspace.join("schemas/openapi.json")).ok()?;
        Some(Self::new(
            serde_json::from_slice(&text).expect("the published document is JSON"),
        ))
    }

    fn new(root: Value) -> Self {
        let paths = root["paths"].as_object().expect("the document has paths");
        let segments = |path: &str| {
            path.split('/')
                .map(|part| (!part.starts_with('{')).then(|| part.to_owned()))
                .collect()
        };
        let paths = paths
            .keys()
            .map(|path| (segments(path), path.clone()))
            .collect();
        Self {
            root,
            paths,
            validators: Mutex::default(),
        }
    }

    fn check(&self, request: &Request, reply: &Reply) -> Result<(), String> {
        let path = request.path.split('?').next().unwrap_or_default();
        let Some(operation) = self.operation(&request.method.to_lowercase(), path) else {
            return Ok(());
        };
        let what = format!("{} {path}: {}", request.method, reply.status);
        let response = format!("{operation}/responses/{}", reply.status);
        if self.root.pointer(&response).is_none() {
            return Err(format!("{what} is no documented status: {}", reply.text()));
        }
        let protobuf = "application/x-protobuf";
        if reply.header("content-type") == Some(protobuf) {
            // For a message that others define, only the content type is published.
            let content = format!("{response}/content/{}", protobuf.replace('/', "~1"));
            let published = self.root.pointer(&content).map(drop);
            return published.ok_or_else(|| format!("{what} is not published as protobuf"));
        }
        let schema = format!("{response}/content/application~1json/schema");
        if self.root.pointer(&schema).is_none() {
            return Ok(());
        }
        let body =
            Json::parse(&reply.body).map_err(|error| format!("{what} is not JSON: {error}"))?;
        let violations = self.violations(&schema, &plain(&body));
        if violations.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{what} is not as published: {violations:?}: {}",
                reply.text()
            ))
        }
    }

    /// Returns the JSON Pointer to the operation of a request.
    fn operation(&self, method: &str, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').collect();
        let fits = |template: &[Option<String>]| {
            template.len() == segments.len()
                && template.iter().zip(&segments).all(|(wanted, segment)| {
                    wanted.as_deref().is_none_or(|wanted| wanted == *segment)
                })
        };
        // If several templates match, the one with the fewest parameters.
        let (_, path) = self
            .paths
            .iter()
            .filter(|(template, _)| fits(template))
            .min_by_key(|(template, _)| {
                template.iter().filter(|segment| segment.is_none()).count()
            })?;
        let pointer = format!(
            "/paths/{}/{method}",
            path.replace('~', "~0").replace('/', "~1")
        );
        self.root.pointer(&pointer).map(|_| pointer)
    }

    fn violations(&self, schema: &str, body: &Value) -> Vec<String> {
        let mut validators = self.validators.lock().expect("no test panics in here");
        let validator = *validators.entry(schema.to_owned()).or_insert_with(|| {
            // The schemas refer to `#/components/schemas/..`, which must be in the same document.
            let document = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "components": self.root["components"],
                "allOf": [self.root.pointer(schema).expect("it was found before")],
            });
            let validator = jsonschema::validator_for(&document);
            Box::leak(Box::new(validator.expect("a published schema is a schema")))
        });
        validator
            .iter_errors(body)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .take(5)
            .collect()
    }
}

/// Returns the value as the validator reads it. Surrogates become U+FFFD and large numbers become
/// doubles; no schema is about either.
fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => serde_json::from_str(number.as_str()).unwrap_or(Value::Null),
        Json::String(text) => text.to_string_lossy().into(),
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(object) => object
            .iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), plain(value)))
            .collect::<Map<String, Value>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        Document::new(json!({
            "paths": {
                "/a/{id}": {"get": {"responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                    "404": {},
                }}},
                "/a/fixed": {"get": {"responses": {"200": {}}}},
            },
            "components": {"schemas": {"A": {
                "type": "object",
                "required": ["n"],
                "properties": {"n": {"type": "integer"}},
                "additionalProperties": false,
            }}},
        }))
    }

    fn check(path: &str, status: u16, body: &str) -> Result<(), String> {
        let reply = Reply {
            status,
            headers: Vec::new(),
            body: body.into(),
        };
        document().check(&Request::get(path), &reply)
    }

    #[test]
    fn an_answer_is_checked_against_the_schema_of_its_operation_and_status() {
        assert_eq!(check("/a/1?x=y", 200, r#"{"n":1}"#), Ok(()));
        assert_eq!(check("/a/1", 404, "anything"), Ok(()));
        assert_eq!(check("/a/fixed", 200, "anything"), Ok(()));
        assert_eq!(check("/b/1", 500, "an unknown path"), Ok(()));
        for (status, body, reason) in [
            (200, r#"{"n":"1"}"#, "not as published"),
            (200, r#"{"n":1,"m":2}"#, "not as published"),
            (200, "{}", "not as published"),
            (200, "{", "not JSON"),
            (500, "{}", "no documented status"),
        ] {
            let outcome = check("/a/1", status, body);
            assert!(
                outcome
                    .as_ref()
                    .is_err_and(|message| message.contains(reason)),
                "{body}: {outcome:?}"
            );
        }
    }

    #[test]
    fn every_published_answer_can_be_checked() {
        let document = Document::read().expect("schemas/openapi.json");
        let mut checked = 0;
        for (path, operations) in document.root["paths"].as_object().expect("paths") {
            for (method, operation) in operations.as_object().expect("operations") {
                let path = path.replace('/', "~1");
                for status in operation["responses"]
                    .as_object()
                    .expect("responses")
                    .keys()
                {
                    let content = "content/application~1json/schema";
                    let schema = format!("/paths/{path}/{method}/responses/{status}/{content}");
                    if document.root.pointer(&schema).is_some() {
                        // No answer is a bare number, so a schema that accepts one checks nothing.
                        assert!(
                            !document.violations(&schema, &json!(1)).is_empty(),
                            "{schema}"
                        );
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 50, "only {checked} answers are published");
    }
}
