//! The published schema of an own event, which is one log record.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::facts::AgentHarness;
use crate::ingest::LogEvent;
use crate::limit::EDIT_TEXT_BYTES_MAX;

/// One own event as a log record of OTLP in JSON.
#[derive(Clone, Copy, Debug)]
pub enum OwnLogRecord {}

impl JsonSchema for OwnLogRecord {
    fn schema_name() -> Cow<'static, str> {
        "OwnLogRecord".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agent = generator.subschema_for::<AgentHarness>();
        let agent = attribute("agent", "stringValue", &json!(agent));
        let call = attribute("tool_use_id", "stringValue", &json!({ "type": "string" }));
        let path = attribute(
            "file_path",
            "stringValue",
            &json!({ "type": "string", "minLength": 1 }),
        );
        let text = |key| {
            let text = json!({ "type": "string", "maxLength": EDIT_TEXT_BYTES_MAX });
            attribute(key, "stringValue", &text)
        };
        let id = |key| {
            attribute(
                key,
                "stringValue",
                &json!({ "type": "string", "minLength": 1 }),
            )
        };
        let words = |key, words: &[&str]| attribute(key, "stringValue", &json!({ "enum": words }));
        let explicit = attribute("explicit", "boolValue", &json!({ "type": "boolean" }));
        let kinds = [
            record(
                LogEvent::OwnToolDecision,
                "A person or a rule accepted or refused a tool call.",
                &[
                    &agent,
                    &call,
                    &words("decision", &["accept", "reject"]),
                    &explicit,
                ],
            ),
            record(
                LogEvent::OwnEditObservation,
                "What became of the file of an applied edit.",
                &[
                    &agent,
                    &call,
                    &path,
                    &text("applied_text"),
                    &text("observed_file_text"),
                ],
            ),
            record(
                LogEvent::OwnRejectedEdit,
                "The text of an edit that a person refused.",
                &[&agent, &call, &path, &text("proposed")],
            ),
            record(
                LogEvent::OwnRetryLinkage,
                "A refused edit, a correction, and the accepted edit that followed.",
                &[
                    &agent,
                    &path,
                    &words("tool_name", &["Edit", "Write"]),
                    &id("rejected_call_id"),
                    &id("accepted_call_id"),
                ],
            ),
        ];
        json_schema!({
            "description": "An own event of `POST /v1/logs`: one log record of OTLP in JSON, an item of \
                            `resourceLogs[].scopeLogs[].logRecords`. The Session is the attribute \
                            `session.id` of the record or else of its resource, the user `user.id` of the \
                            resource or else of the record. Other attributes and members are \
                            allowed.",
            "oneOf": kinds,
        })
    }
}

/// Describes an attribute list that has this attribute.
fn attribute(key: &str, kind: &str, value: &Value) -> Value {
    json!({ "contains": {
        "type": "object",
        "required": ["key", "value"],
        "properties": {
            "key": { "const": key },
            "value": { "type": "object", "required": [kind], "properties": { kind: value } },
        },
    } })
}

fn record(event: LogEvent, what: &str, attributes: &[&Value]) -> Value {
    json!({
        "type": "object",
        "description": what,
        "required": ["timeUnixNano", "body", "attributes"],
        "properties": {
            "timeUnixNano": {
                "description": "When it happened, in nanoseconds since 1970.",
                "anyOf": [{ "type": "string", "pattern": "^[0-9]+$" }, { "type": "integer" }],
            },
            "body": {
                "type": "object",
                "description": "The name of the event.",
                "required": ["stringValue"],
                "properties": { "stringValue": { "const": event.as_str() } },
            },
            "attributes": {
                "type": "array",
                "description": "The attributes.",
                "items": { "type": "object" },
                "allOf": attributes,
            },
        },
    })
}
