//! The body of `POST /v1/logs`: what Claude Code exports every few seconds.
//!
//! Its exporter writes compact OTLP/JSON. A decision is about a kilobyte. The result of its tool is
//! larger, because it contains the tool's input, each value of which Claude Code truncates at 512
//! characters.

use crate::template::{MarkerShape, Source, marker};
use crate::text::{Author, put};

/// The edits in one export. Each is two records.
pub(crate) const EDITS: usize = 5;
/// The records in one export.
pub(crate) const RECORDS: usize = 2 * EDITS;

/// The salt of the marker that is a session's id.
const SESSION_SALT: u32 = 1;
/// The first salt of the markers of an export's calls.
const CALL_SALT: u32 = 100;

/// Writes an export of five edits, each a decision and the result of its tool call.
pub(crate) fn export(seed: u64) -> String {
    let mut author = Author::new(seed, 1_000);
    let mut records = Vec::with_capacity(RECORDS);
    for number in 0..EDITS {
        let salt = CALL_SALT + number as u32;
        let call = format!("toolu_01{}", marker(Source::Call, MarkerShape::Word, salt));
        let sequence = 2 * number as u32;
        let mut decision = common(&mut author, "tool_decision", sequence);
        text(&mut decision, "tool_name", "Edit");
        text(&mut decision, "tool_use_id", &call);
        text(&mut decision, "decision", "accept");
        text(&mut decision, "source", "user_temporary");
        records.push(record("claude_code.tool_decision", sequence, &decision));

        let mut result = common(&mut author, "tool_result", sequence + 1);
        text(&mut result, "tool_name", "Edit");
        text(&mut result, "tool_use_id", &call);
        text(&mut result, "success", "true");
        text(&mut result, "duration_ms", "38");
        text(&mut result, "decision_source", "user_temporary");
        text(&mut result, "decision_type", "accept");
        text(&mut result, "tool_result_size_bytes", "1187");
        text(&mut result, "tool_input", &input(&mut author));
        records.push(record("claude_code.tool_result", sequence + 1, &result));
    }
    let resource = [
        "host.arch",
        "os.type",
        "os.version",
        "service.name",
        "service.version",
        "user.id",
    ];
    let values = [
        "arm64",
        "darwin",
        "25.5.0",
        "claude-code",
        "2.1.185",
        "developer-7",
    ];
    let mut attributes = String::new();
    for (name, value) in resource.into_iter().zip(values) {
        text(&mut attributes, name, value);
    }
    format!(
        "{{\"resourceLogs\":[{{\"resource\":{{\"attributes\":[{attributes}],\"droppedAttributesCount\":0}},\
         \"scopeLogs\":[{{\"scope\":{{\"name\":\"com.anthropic.claude_code.events\",\"version\":\"2.1.185\"}},\
         \"logRecords\":[{}]}}]}}]}}",
        records.join(",")
    )
}

/// Returns the attributes that every event has.
fn common(author: &mut Author, event: &str, sequence: u32) -> String {
    let mut attributes = String::new();
    text(&mut attributes, "user.id", &"7f3a9c51".repeat(8));
    let session = marker(Source::Session, MarkerShape::Uuid, SESSION_SALT);
    text(&mut attributes, "session.id", &session);
    text(
        &mut attributes,
        "organization.id",
        "4a1f6f3c-90a7-4d52-8a6e-2f3b1c9d7e10",
    );
    text(&mut attributes, "user.email", "developer-7@acme.example");
    text(
        &mut attributes,
        "user.account_uuid",
        "0c0f4c1a-5f0e-4a57-9a55-6f4b9ad0f3d2",
    );
    text(&mut attributes, "terminal.type", "iTerm.app");
    text(&mut attributes, "event.name", event);
    let time = marker(Source::Call, MarkerShape::Instant, CALL_SALT + sequence);
    text(&mut attributes, "event.timestamp", &time);
    put(
        &mut attributes,
        format_args!(",{{\"key\":\"event.sequence\",\"value\":{{\"intValue\":{sequence}}}}}"),
    );
    let prompt = author.word();
    text(&mut attributes, "prompt.id", &prompt);
    attributes
}

/// Returns the input of an edit, as JSON.
fn input(author: &mut Author) -> String {
    let path = format!("/home/dev/shop/{}", author.path());
    let old: String = author.code(420).chars().take(512).collect();
    let new: String = author.code(480).chars().take(512).collect();
    serde_json::json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": false})
        .to_string()
}

fn record(body: &str, sequence: u32, attributes: &str) -> String {
    let time = marker(Source::Call, MarkerShape::Nanoseconds, sequence);
    format!(
        "{{\"timeUnixNano\":\"{time}\",\"observedTimeUnixNano\":\"{time}\",\"body\":{{\"stringValue\":\"{body}\"}},\
         \"attributes\":[{attributes}],\"droppedAttributesCount\":0}}"
    )
}

/// Appends an attribute whose value is a string.
fn text(attributes: &mut String, name: &str, value: &str) {
    if !attributes.is_empty() {
        attributes.push(',');
    }
    let value = serde_json::Value::from(value);
    put(
        attributes,
        format_args!("{{\"key\":\"{name}\",\"value\":{{\"stringValue\":{value}}}}}"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;
    use std::collections::HashSet;

    #[test]
    fn every_export_has_records_of_its_own() {
        let mut template = Template::new(export(3));
        let mut seen = HashSet::new();
        for number in 0..20 {
            template.patch_session(number);
            template.patch_call(number);
            let export: serde_json::Value =
                serde_json::from_slice(template.bytes()).expect("exports are JSON");
            let scope = &export["resourceLogs"][0]["scopeLogs"][0];
            let records = scope["logRecords"].as_array().expect("records");
            assert_eq!(records.len(), RECORDS);
            for record in records {
                assert!(seen.insert(record["attributes"].to_string()));
                assert_eq!(record["timeUnixNano"].as_str().map(str::len), Some(19));
            }
        }
    }
}
