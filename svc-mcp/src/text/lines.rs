//! Writes a compact answer as lines.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::member::one_line;

/// The members in the order in which they are read. Others follow.
const ORDER: [&str; 27] = [
    "note",
    "sentence",
    "session",
    "call",
    "title",
    "time",
    "user",
    "model",
    "models",
    "agent",
    "side",
    "message_index",
    "role",
    "kind",
    "tool",
    "hit",
    "excerpt",
    "text",
    "begins",
    "hits",
    "sessions",
    "calls",
    "messages",
    "parts",
    "left_out",
    "searched",
    "next",
];
/// The last member.
const LAST: &str = "notice";
/// The members that this service writes as sentences. All other text is captured, and is quoted.
const SENTENCES: [&str; 6] = ["note", "sentence", "left_out", "searched", "next", "notice"];

/// Writes an answer: a line for each member, and for each entry of a list.
pub(crate) fn written(structured: &JsonObject) -> String {
    let mut lines = Vec::new();
    for (name, value) in ordered(structured) {
        match value {
            Value::Array(entries) if entries.is_empty() => lines.push(format!("{name}: none")),
            Value::Array(entries) => {
                lines.push(format!("{name}:"));
                lines.extend(
                    entries
                        .iter()
                        .map(|entry| format!("- {}", line(name, entry))),
                );
            }
            value => lines.push(format!("{name}: {}", line(name, value))),
        }
    }
    lines.join("\n")
}

fn ordered(members: &JsonObject) -> Vec<(&String, &Value)> {
    let place = |name: &str| {
        let place = ORDER.iter().position(|known| *known == name);
        (name == LAST, place.unwrap_or(ORDER.len()))
    };
    let mut members: Vec<(&String, &Value)> = members.iter().collect();
    members.sort_by_key(|(name, _)| place(name));
    members
}

/// Writes a value on one line.
fn line(name: &str, value: &Value) -> String {
    match value {
        Value::String(sentence) if SENTENCES.contains(&name) => one_line(sentence),
        Value::Object(members) if name != "reference" => {
            let members = ordered(members).into_iter();
            let members = members.map(|(name, value)| format!("{name} {}", line(name, value)));
            members.collect::<Vec<_>>().join(", ")
        }
        value => one_line(&value.to_string()),
    }
}
