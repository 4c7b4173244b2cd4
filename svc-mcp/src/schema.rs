//! The schemas of the tools. They are short, because agents read them with every request.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use svc_model::endpoint::{DefaultValue, Parameter};
use svc_model::overview::OverviewOutcome;
use svc_model::spend::SpendBy;

use crate::arguments::SESSIONS_MAX;

/// The published schema with a name.
macro_rules! published {
    ($name:literal) => {
        include_str!(concat!("../../schemas/", $name, ".json"))
    };
}
pub(crate) use published;

/// The member with the version of a request, which the tools fill in.
pub(crate) const VERSION: &str = "schema_version";

/// Returns the members of an object.
fn members(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn input(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = members(json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
    }));
    schema.insert("properties".to_owned(), properties);
    schema
}

/// Returns the schema of a request body, without its version and what only a standalone document
/// needs.
pub(crate) fn body(published: &str) -> JsonObject {
    let mut schema: JsonObject =
        serde_json::from_str(published).expect("a published schema is JSON");
    schema.retain(|keyword, _| keyword != "$schema" && keyword != "$id");
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
    input(properties.into(), &required)
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn moment(description: &str) -> Value {
    let form = "a date, a time with an offset, or an age such as 7d or 24h";
    json!({
        "type": "string",
        "description": format!("{description}: {form}."),
        "examples": ["2026-11-20", "7d"],
    })
}

fn number(description: &str, least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "description": description})
}

/// The conditions that a search and a list of Sessions share.
fn conditions() -> JsonObject {
    members(json!({
        "repo": text("Only Sessions observed at commits of this repository, owner/name."),
        "commit": text("Only Sessions observed at this commit: the full id, as git rev-parse prints it."),
        "file": text("Only Sessions that worked on this file: a path, or the end of one such as svc/pager.rs."),
        "user": text("Only Sessions of this user. Only with an operator's token."),
        "model": text("Only this model, exactly."),
        "agent": text("Only this agent, such as claude-code or codex."),
    }))
}

/// Returns the input schema of a search.
pub(crate) fn search() -> JsonObject {
    let mut properties = members(json!({
        "query": text("Words of the code or the problem: names of functions and files, an error, a question. Any of them may match; rare ones count most. Required unless commit, file or session_id is given."),
        "session_id": text("Only this Session."),
        "role": text("Only messages with this role, such as user or assistant."),
        "kind": {
            "type": "string",
            "enum": ["text", "tool_call", "tool_result", "reasoning"],
            "description": "Only parts of this kind. Reasoning is searched only if it is asked for.",
        },
        "since": moment("Only calls at this moment or later"),
        "until": moment("Only calls before this moment"),
        "limit": number("The maximum number of Sessions; by default 8.", 1, 20),
    }));
    properties.extend(conditions());
    input(properties.into(), &[])
}

/// Returns the input schema of a list of Sessions.
pub(crate) fn listing() -> JsonObject {
    let mut properties = members(json!({
        "since": moment("Only Sessions that were first captured at this moment or later"),
        "until": moment("Only Sessions that were first captured before this moment"),
        "limit": number("The maximum number of Sessions; by default 20.", 1, 100),
        "cursor": text("As next names it, with otherwise the same arguments."),
    }));
    properties.extend(conditions());
    input(properties.into(), &[])
}

fn reference() -> Value {
    json!({
        "type": "object",
        "properties": {
            "inference_call_id": {"type": "string"},
            "side": {"type": "string", "enum": ["input", "output"]},
            "message_index": {"type": "integer", "minimum": 0},
            "part_index": {"type": "integer", "minimum": 0},
        },
        "required": ["inference_call_id", "side", "message_index", "part_index"],
        "additionalProperties": false,
    })
}

/// Returns the input schema for opening evidence: the calls of a Session, the messages of a call, or
/// parts.
pub(crate) fn opening() -> JsonObject {
    let properties = json!({
        "session_id": text("The Session."),
        "inference_call_id": text("The call whose messages to list. Not with references."),
        "references": {
            "type": "array",
            "items": reference(),
            "minItems": 1,
            "maxItems": 32,
            "description": "The parts to read, each as reference of a hit.",
        },
        "around": number("With one reference: also so many messages before and after it in its call, shortened.", 1, 10),
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "With one reference: the byte of its text to begin at, as offset of a hit, or as next names it.",
        },
        "length": number("With one reference: the maximum bytes of its text.", 1, 8_000),
        "limit": number("The maximum number of calls or messages; by default 20.", 1, 100),
        "cursor": text("The last entry of the previous page, as next names it."),
    });
    input(properties, &["session_id"])
}

/// Returns the input schema of an overview.
pub(crate) fn overview() -> JsonObject {
    let outcomes = OverviewOutcome::ALL.iter().map(|outcome| outcome.as_str());
    let properties = json!({
        "days": {"type": "integer", "enum": [1, 7, 31], "description": "The days before as_of; by default 7."},
        "as_of": moment("The end of the days; by default now"),
        "repo": text("Only calls whose work reached this repository, owner/name."),
        "model": text("Only calls of this model, exactly."),
        "user": text("Only calls of this user, exactly."),
        "outcome": {
            "type": "string",
            "enum": outcomes.collect::<Vec<_>>(),
            "description": "List only Sessions with a call that this figure counts.",
        },
        "limit": number("The maximum number of Sessions; by default 5.", 1, SESSIONS_MAX),
    });
    input(properties, &[])
}

/// Returns the input schema of a report.
pub(crate) fn report() -> JsonObject {
    input(period(), &[])
}

/// Returns the input schema of a spend report.
pub(crate) fn spend() -> JsonObject {
    let mut properties = period();
    properties["by"] = json!({
        "type": "string",
        "enum": SpendBy::ALL.iter().map(|by| by.as_str()).collect::<Vec<_>>(),
        "description": "What a row stands for; by default model.",
    });
    properties["limit"] = number(
        "The rows; by default 20. The others are summed up.",
        1,
        1_000,
    );
    input(properties, &[])
}

fn period() -> Value {
    let moment = |description: &str| {
        json!({
            "type": "string",
            "format": "date-time",
            "description": description,
            "examples": ["2026-11-20T00:00:00Z"],
        })
    };
    json!({
        "since_days": number("The calls of so many days before cohort_end; by default 30. Not with cohort_start.", 1, 31),
        "cohort_start": moment("The first moment of the calls; at most 31 days before cohort_end."),
        "cohort_end": moment("The end of the calls, not included; by default as_of."),
        "as_of": moment("Count what was known at this moment; by default now."),
    })
}

fn list() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

fn output(description: &str, lists: &[&str]) -> JsonObject {
    let mut properties: JsonObject = ["next", "notice", "note"]
        .map(|name| (name.to_owned(), json!({"type": "string"})))
        .into_iter()
        .collect();
    properties.extend(lists.iter().map(|name| ((*name).to_owned(), list())));
    members(json!({
        "type": "object",
        "description": description,
        "properties": properties,
    }))
}

/// Returns the output schema of a search.
pub(crate) fn hits() -> JsonObject {
    output(
        "hits, best first: each with an excerpt around the match, and the reference that \
         open_evidence takes. Without a query: sessions, or the calls of one.",
        &["hits", "sessions", "calls"],
    )
}

/// Returns the output schema of a list of Sessions.
pub(crate) fn sessions() -> JsonObject {
    output("sessions, latest first.", &["sessions"])
}

/// Returns the output schema of an overview.
pub(crate) fn overview_answer() -> JsonObject {
    output(
        "sentence says it all; figures count calls, and counts that are absent are 0. A cost that is \
         absent is unknown, and unpriced counts the calls without one.",
        &["by_repository", "by_model", "attention", "sessions"],
    )
}

/// Returns the output schema for opening evidence.
pub(crate) fn opened() -> JsonObject {
    output(
        "The calls of a Session, the messages of a call, or parts with their text; a piece of a \
         longer text has start, end and total in bytes.",
        &["calls", "messages", "parts"],
    )
}

/// Returns the output schema of a dossier or a report, which the HTTP route describes.
pub(crate) fn dossier(name: &str) -> JsonObject {
    members(json!({
        "type": "object",
        "description": format!("{name}, as the HTTP route returns it."),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_body_is_the_published_one_without_the_version() {
        let schema = body(published!("ContextDiscoveryRequest"));
        assert_eq!(schema["required"], json!(["query"]));
        assert!(schema["properties"].get("commit").is_some());
        assert!(schema["properties"].get(VERSION).is_none());
    }
}
