//! Messages that are spread over numbered attributes, such as `llm.input_messages.0.message.role`.

use std::collections::BTreeMap;

use svc_model::json::{Json, Object, Text};

use super::super::attribute::AttributeValue;
use super::super::structured::{copied, structured};
use super::{Dialogue, Operation, finish_reasons};

/// The memory of a message, block or call until it is read, in bytes.
const ENTRY_BYTES: usize = 512;

/// The prefixes of the names of such attributes.
#[derive(Debug)]
pub(in crate::otlp) struct Prefixes {
    input: &'static str,
    output: &'static str,
}

pub(in crate::otlp) const OPEN_INFERENCE: Prefixes = Prefixes {
    input: "llm.input_messages.",
    output: "llm.output_messages.",
};

pub(in crate::otlp) const OPEN_LLMETRY: Prefixes = Prefixes {
    input: "gen_ai.prompt.",
    output: "gen_ai.completion.",
};

/// Returns the messages in numbered attributes.
pub(in crate::otlp) fn dialogue(operation: &Operation<'_>, prefixes: &Prefixes) -> Dialogue {
    let input = messages(operation, prefixes.input);
    let input = input
        .into_values()
        .map(|message| message.written(operation, "user"));
    let others = finish_reasons(operation)
        .into_iter()
        .chain(std::iter::repeat(None));
    let output = messages(operation, prefixes.output)
        .into_values()
        .zip(others);
    let answer = |(message, other): (Numbered<'_>, Option<Text>)| {
        let reason = message.finish_reason.and_then(AttributeValue::text);
        let reason = reason.cloned().or(other);
        (message.written(operation, "assistant"), reason)
    };
    Dialogue {
        input: input.map(Json::Object).collect(),
        output: output.map(answer).collect(),
        truncated: 0,
    }
}

fn messages<'r>(operation: &Operation<'r>, prefix: &str) -> BTreeMap<u32, Numbered<'r>> {
    let mut messages = BTreeMap::<u32, Numbered<'r>>::new();
    for (name, value) in operation.attributes.members() {
        let rest = name.as_str().and_then(|name| name.strip_prefix(prefix));
        let Some((number, rest)) = rest.and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        // An exhausted budget refuses the whole request in the end.
        if operation.memory.take(ENTRY_BYTES).is_err() {
            break;
        }
        let path = rest.strip_prefix("message.").unwrap_or(rest);
        messages.entry(number).or_default().set(path, value);
    }
    messages
}

/// A message in numbered attributes.
#[derive(Debug, Default)]
struct Numbered<'r> {
    role: Option<AttributeValue<'r>>,
    content: Option<AttributeValue<'r>>,
    finish_reason: Option<AttributeValue<'r>>,
    result_of: Option<AttributeValue<'r>>,
    blocks: BTreeMap<u32, NumberedBlock<'r>>,
    calls: BTreeMap<u32, NumberedCall<'r>>,
}

#[derive(Debug, Default)]
struct NumberedBlock<'r> {
    kind: Option<AttributeValue<'r>>,
    text: Option<AttributeValue<'r>>,
}

#[derive(Debug, Default)]
struct NumberedCall<'r> {
    id: Option<AttributeValue<'r>>,
    name: Option<AttributeValue<'r>>,
    arguments: Option<AttributeValue<'r>>,
}

impl<'r> Numbered<'r> {
    fn set(&mut self, path: &str, value: AttributeValue<'r>) {
        match path {
            "role" => self.role = Some(value),
            "content" => self.content = Some(value),
            "finish_reason" => self.finish_reason = Some(value),
            "tool_call_id" => self.result_of = Some(value),
            _ => self.set_nested(path, value),
        }
    }

    fn set_nested(&mut self, path: &str, value: AttributeValue<'r>) {
        let mut steps = path.splitn(3, '.');
        let (Some(list), Some(number), Some(rest)) = (steps.next(), steps.next(), steps.next())
        else {
            return;
        };
        let Ok(number) = number.parse() else { return };
        match list {
            "contents" => self.blocks.entry(number).or_default().set(rest, value),
            "tool_calls" => self.calls.entry(number).or_default().set(rest, value),
            _ => {}
        }
    }

    /// Returns the message in the form of a chat; one without a role gets this one.
    fn written(self, operation: &Operation<'_>, role: &str) -> Object {
        let json = |value: Option<AttributeValue<'_>>| {
            value.map(|value| match value.text() {
                Some(text) => copied(text, operation.memory),
                None => structured(value, operation.memory),
            })
        };
        let block = |block: NumberedBlock<'_>| {
            let members = [("type", json(block.kind)), ("text", json(block.text))];
            Json::Object(present(members))
        };
        let call = |call: NumberedCall<'_>| {
            let function = [
                ("name", json(call.name)),
                ("arguments", json(call.arguments)),
            ];
            let members = [
                ("id", json(call.id)),
                ("function", Some(present(function).into())),
            ];
            Json::Object(present(members))
        };
        let content = if self.blocks.is_empty() {
            json(self.content)
        } else {
            Some(self.blocks.into_values().map(block).collect())
        };
        let calls = !self.calls.is_empty();
        let calls = calls.then(|| self.calls.into_values().map(call).collect());
        present([
            ("role", json(self.role).or_else(|| Some(role.into()))),
            ("content", content),
            ("tool_calls", calls),
            ("tool_call_id", json(self.result_of)),
        ])
    }
}

impl<'r> NumberedBlock<'r> {
    fn set(&mut self, path: &str, value: AttributeValue<'r>) {
        match path {
            "message_content.type" => self.kind = Some(value),
            "message_content.text" => self.text = Some(value),
            _ => {}
        }
    }
}

impl<'r> NumberedCall<'r> {
    fn set(&mut self, path: &str, value: AttributeValue<'r>) {
        match path {
            "tool_call.id" | "id" => self.id = Some(value),
            "tool_call.function.name" | "name" => self.name = Some(value),
            "tool_call.function.arguments" | "arguments" => self.arguments = Some(value),
            _ => {}
        }
    }
}

fn present<const N: usize>(members: [(&'static str, Option<Json>); N]) -> Object {
    let present = members.into_iter();
    present
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}
