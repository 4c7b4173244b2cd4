//! One item: who made it, and what it says.

use svc_model::json::{Json, Object, Text};

use super::text;
use crate::content::Said;

/// Kinds of blocks in messages.
const BLOCKS: [&str; 8] = [
    "input_audio",
    "input_file",
    "input_image",
    "input_text",
    "output_text",
    "reasoning_text",
    "refusal",
    "text",
];

/// Who made an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Maker {
    Model,
    /// It is the result of a tool.
    Tool,
    /// The user or the client.
    User,
    /// It was not sent.
    Nobody,
    /// Its kind is not known.
    Unknown,
}

/// An item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) maker: Maker,
    pub(super) said: Said,
}

impl Item {
    /// Reads an item.
    pub(super) fn of(item: &Object) -> Self {
        let kind = text(item, "type").unwrap_or_default();
        let (maker, said) = match kind {
            "message" => message(item),
            "reasoning" => (Maker::Model, Said::of(item)),
            "function_call" => (Maker::Model, call(item, name(item), item.get("arguments"))),
            "custom_tool_call" | "local_shell_call" => (Maker::Model, Said::of(&renamed(item))),
            "tool_search_call" => {
                let said = call(item, "tool_search".into(), item.get("arguments"));
                (Maker::Model, said)
            }
            "web_search_call" => (
                Maker::Model,
                call(item, "web_search".into(), item.get("action")),
            ),
            "image_generation_call" => (Maker::Model, Said::unsupported()),
            "function_call_output"
            | "custom_tool_call_output"
            | "local_shell_call_output"
            | "tool_search_output"
            | "web_search_output" => (Maker::Tool, output(item)),
            "agent_message"
            | "compaction"
            | "compaction_summary"
            | "configuration_update"
            | "context_compaction" => (Maker::User, Said::unsupported()),
            "additional_tools" | "compaction_trigger" | "ghost_snapshot" => {
                (Maker::Nobody, Said::default())
            }
            _ => (Maker::Unknown, Said::default()),
        };
        Self { maker, said }
    }
}

fn message(item: &Object) -> (Maker, Said) {
    let Some(role) = text(item, "role") else {
        return (Maker::Unknown, Said::default());
    };
    let content = item.get("content").cloned().unwrap_or_default();
    let maker = if role == "assistant" {
        Maker::Model
    } else {
        Maker::User
    };
    (maker, Said::by(role, content))
}

/// Returns the name of a tool, which may have that of its group before it.
fn name(item: &Object) -> Json {
    match (text(item, "namespace"), text(item, "name")) {
        (Some(group), Some(name)) if !group.is_empty() => format!("{group}.{name}").into(),
        _ => item.get("name").cloned().unwrap_or_default(),
    }
}

fn renamed(item: &Object) -> Object {
    let mut item = item.clone();
    let name = name(&item);
    item.insert("name", name);
    item
}

fn call(item: &Object, name: Json, arguments: Option<&Json>) -> Said {
    let id = item
        .get("call_id")
        .filter(|id| !id.is_null())
        .or_else(|| item.get("id"));
    Said::of(&Object::from_iter([
        ("type", "function_call".into()),
        ("call_id", id.cloned().unwrap_or_default()),
        ("name", name),
        ("arguments", arguments.cloned().unwrap_or_default()),
    ]))
}

fn output(item: &Object) -> Said {
    let output = item.get("output");
    let joined = output.and_then(Json::as_array).and_then(joined);
    let output = joined.map(Json::from).or_else(|| output.cloned());
    Said::of(&Object::from_iter([
        ("type", "function_call_output".into()),
        ("call_id", item.get("call_id").cloned().unwrap_or_default()),
        ("output", output.unwrap_or_default()),
    ]))
}

/// Returns the texts of a list that has nothing else, joined.
fn joined(blocks: &[Json]) -> Option<Text> {
    let mut joined = Vec::new();
    for block in blocks {
        let block = block.as_object()?;
        if !matches!(text(block, "type")?, "input_text" | "output_text" | "text") {
            return None;
        }
        joined.extend_from_slice(block.get("text")?.as_text()?.as_bytes());
    }
    Text::from_wtf8(joined).filter(|_| !blocks.is_empty())
}

/// Returns the kinds of blocks of a message that are not known.
pub(super) fn unknown_blocks(item: &Object) -> impl Iterator<Item = &str> {
    let is_message = text(item, "type") == Some("message");
    let content = item
        .get("content")
        .filter(|_| is_message)
        .and_then(Json::as_array);
    let blocks = content
        .unwrap_or_default()
        .iter()
        .filter_map(Json::as_object);
    let kinds = blocks.map(|block| text(block, "type").unwrap_or_default());
    kinds.filter(|kind| !BLOCKS.contains(kind))
}
