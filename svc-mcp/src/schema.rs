//! The schemas of the tools, derived from the published ones.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use svc_model::endpoint::{DefaultValue, Parameter};

use crate::page::NEXT_OF_PAGE;

/// The published schema with a name.
macro_rules! published {
    ($name:literal) => {
        include_str!(concat!("../../schemas/", $name, ".json"))
    };
}
pub(crate) use published;

/// The member with the version of a request, which the tools fill in.
pub(crate) const VERSION: &str = "schema_version";

/// Reads a published schema, without the members that only a standalone document needs.
fn read(published: &str) -> JsonObject {
    let mut schema: JsonObject =
        serde_json::from_str(published).expect("a published schema is JSON");
    schema.retain(|keyword, _| keyword != "$schema" && keyword != "$id");
    schema.values_mut().for_each(plain);
    schema
}

/// Removes number formats, which JSON Schema does not define and some clients warn about.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| {
                name != "format" || !matches!(value.as_str(), Some(format) if is_of_number(format))
            });
            members.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_of_number(format: &str) -> bool {
    matches!(format, "double" | "float") || format.trim_start_matches('u').starts_with("int")
}

/// Returns the schema of a reply. The protocol requires its type to be object.
pub(crate) fn reply(published: &str) -> JsonObject {
    let mut schema = read(published);
    schema.insert("type".to_owned(), "object".into());
    schema
}

/// Returns the schema of a request body, without its version.
pub(crate) fn body(published: &str) -> JsonObject {
    let mut schema = read(published);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| name != VERSION);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != VERSION);
    }
    schema
}

/// Returns the schema of the parameters of a route.
pub(crate) fn parameters(parameters: &[Parameter]) -> JsonObject {
    let properties: JsonObject = parameters
        .iter()
        .map(|parameter| {
            let kind = match parameter.default {
                Some(DefaultValue::Truth(_)) => "boolean",
                _ => "string",
            };
            let schema = json!({"type": kind, "description": parameter.description});
            (parameter.name.to_owned(), schema)
        })
        .collect();
    let required = parameters.iter().filter(|parameter| parameter.required);
    let required: Vec<&str> = required.map(|parameter| parameter.name).collect();
    members(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

/// Returns the members of an object.
fn members(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// Returns the input schema for opening evidence: the calls of a Session, the parts of a call, or
/// exact parts.
pub(crate) fn opening() -> JsonObject {
    let mut schema = body(published!("EvidenceReadRequest"));
    schema.extend(members(json!({
        "title": "OpenEvidence",
        "description": "Asks for the calls of a Session, the parts of a call, or exact parts.",
        "required": ["session_id"],
    })));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.extend(members(json!({
            "inference_call_id": {
                "$ref": "#/$defs/InferenceCallId",
                "description": "The call whose messages and parts to list. Cannot be used with references.",
            },
            "explain": {
                "type": "boolean",
                "description": "Whether to include what the capture left out of the call. Only with inference_call_id.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": "The maximum number of calls or messages to list; by default all. Cannot be used with references.",
            },
            "cursor": {
                "type": "string",
                "description": "The last entry of the previous page: the inference_call_id of a call, or SIDE:MESSAGE_INDEX of a message, such as input:4. Cannot be used with references.",
            },
        })));
    }
    schema
}

/// Returns the output schema for opening evidence: one of three replies.
pub(crate) fn opened() -> JsonObject {
    let mut definitions = JsonObject::new();
    let mut alternatives = Vec::new();
    for (name, published, has_pages) in [
        ("Inventory", published!("Inventory"), true),
        ("Manifest", published!("Manifest"), true),
        ("EvidenceRead", published!("EvidenceRead"), false),
    ] {
        let mut schema = read(published);
        if let Some(Value::Object(theirs)) = schema.remove("$defs") {
            definitions.extend(theirs);
        }
        if has_pages && let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert(
                NEXT_OF_PAGE.to_owned(),
                json!({
                    "type": "string",
                    "description": "Only on a page that `limit` cut: the cursor of the next one.",
                }),
            );
        }
        definitions.insert(name.to_owned(), schema.into());
        alternatives.push(json!({"$ref": format!("#/$defs/{name}")}));
    }
    members(json!({"type": "object", "anyOf": alternatives, "$defs": definitions}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_schemas_are_the_published_ones_without_the_version() {
        let schema = body(published!("ContextDiscoveryRequest"));
        assert_eq!(schema["required"], json!(["query"]));
        assert!(schema["properties"].get("commit").is_some());
        assert!(schema["properties"].get(VERSION).is_none());
        assert_eq!(reply(published!("SessionAnswer"))["type"], "object");
    }

    #[test]
    fn number_formats_are_removed_and_other_formats_are_kept() {
        assert!(published!("Inventory").contains("\"int64\""));
        let text = Value::from(opened()).to_string();
        assert!(!text.contains("int64") && text.contains("\"date-time\""));
        assert!(
            ["uint", "uint64", "int32", "double"]
                .map(is_of_number)
                .iter()
                .all(|is_number| *is_number)
        );
        assert!(
            !["uri", "uuid", "date-time"]
                .map(is_of_number)
                .iter()
                .any(|is_number| *is_number)
        );
    }

    #[test]
    fn definitions_with_the_same_name_are_equal() {
        let definitions = |published: &str| match read(published).remove("$defs") {
            Some(Value::Object(definitions)) => definitions,
            _ => JsonObject::new(),
        };
        let all = [
            published!("Inventory"),
            published!("Manifest"),
            published!("EvidenceRead"),
        ]
        .map(definitions);
        for (name, schema) in all.iter().flatten() {
            for other in &all {
                assert!(
                    other.get(name).is_none_or(|other| other == schema),
                    "{name}"
                );
            }
        }
    }
}
