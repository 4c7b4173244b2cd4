//! Messages in the events of a span: all in the event of the call, or one in each event.

use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Object};

use super::super::attribute::Attributes;
use super::super::structured::{copied, structured};
use super::{DETAILS, Dialect, Dialogue, Operation, Reader, attributes, finish_reasons};
use svc_messages::embedded::document;

/// The event with an answer.
const CHOICE: &str = "gen_ai.choice";

/// Returns the messages in the events of a span; `None` if there are none.
pub(super) fn dialogue(
    operation: &Operation<'_>,
    events: &[(&str, Attributes<'_>)],
) -> Result<Option<Dialogue>, LogSkip> {
    let details = events.iter().filter(|(name, _)| *name == DETAILS);
    // Some senders spread the attributes over several events.
    let united = Attributes::united(
        std::iter::once(operation.attributes).chain(details.map(|(_, attributes)| attributes)),
    );
    let united = Operation {
        attributes: &united,
        ..*operation
    };
    if let Some(dialogue) = attributes(&united, Dialect::Convention)? {
        return Ok(Some(dialogue));
    }
    let mut dialogue = Dialogue::default();
    let mut answers = Vec::new();
    let mut reasons = finish_reasons(operation).into_iter();
    for (name, attributes) in events {
        let event = Operation {
            attributes,
            ..*operation
        };
        if *name == CHOICE {
            let other = reasons.next().flatten();
            let own = event.text("finish_reason").cloned();
            answers.push((message(&event, "message", "assistant"), own.or(other)));
        } else if let Some(role) = role(name) {
            dialogue.input.push(message(&event, "content", role).into());
        }
    }
    let mut reader = Reader::new(operation.memory, Dialect::Convention);
    dialogue.input = reader.messages(dialogue.input, "user");
    dialogue.output = answers;
    let is_empty = dialogue.input.is_empty() && dialogue.output.is_empty();
    Ok((!is_empty).then_some(dialogue))
}

/// Returns the role that the name of an event says.
fn role(name: &str) -> Option<&str> {
    let role = name.strip_prefix("gen_ai.")?.strip_suffix(".message")?;
    ["system", "user", "assistant", "tool"]
        .contains(&role)
        .then_some(role)
}

/// Returns the message of an event: text, blocks, or a whole message, structured or as JSON text.
fn message(event: &Operation<'_>, member: &str, role: &str) -> Object {
    let text = event.text(member);
    let read = match text {
        Some(text) => document(text, event.memory),
        None => event
            .attributes
            .get(member)
            .map(|value| structured(value, event.memory)),
    };
    let mut message = match (read, text) {
        (Some(Json::Object(message)), _) if message.contains_key("content") => message,
        (Some(Json::Array(blocks)), _)
            if blocks.iter().all(|block| block.as_object().is_some()) =>
        {
            let blocks: Json = blocks.into_iter().map(block).collect();
            Object::from_iter([("content", blocks)])
        }
        (_, Some(text)) => Object::from_iter([("content", copied(text, event.memory))]),
        (_, None) => Object::new(),
    };
    message.remove("finish_reason");
    message.insert("role", role);
    for (name, other) in [("tool_call_id", "id"), ("tool_calls", "tool_calls")] {
        if let Some(value) = event
            .attributes
            .get(other)
            .filter(|_| !message.contains_key(name))
        {
            message.insert(name, structured(value, event.memory));
        }
    }
    message
}

/// Returns a content block. Those of Amazon Bedrock have no type: each has one member, named after
/// its kind.
fn block(block: Json) -> Json {
    let Json::Object(mut sent) = block else {
        return block;
    };
    if sent.contains_key("type") {
        return sent.into();
    }
    let mut take = |name: &str| sent.get_mut(name).map(std::mem::take);
    if let Some(text) = take("text") {
        return typed("text", [("content", text)]);
    }
    if let Some(Json::Object(mut call)) = take("toolUse") {
        let [id, name, input] = ["toolUseId", "name", "input"].map(|name| member(&mut call, name));
        return typed(
            "tool_call",
            [("id", id), ("name", name), ("arguments", input)],
        );
    }
    if let Some(Json::Object(mut result)) = take("toolResult") {
        let [id, content] = ["toolUseId", "content"].map(|name| member(&mut result, name));
        return typed("tool_call_response", [("id", id), ("result", content)]);
    }
    if let Some(Json::Object(mut reasoning)) = take("reasoningContent") {
        let mut text = member(&mut reasoning, "reasoningText");
        let text = text.as_object_mut().map(|text| member(text, "text"));
        return typed("reasoning", [("content", text.unwrap_or_default())]);
    }
    sent.into()
}

fn member(holder: &mut Object, name: &str) -> Json {
    let value = holder.get_mut(name).map(std::mem::take);
    value.unwrap_or_default()
}

fn typed<const N: usize>(kind: &str, members: [(&'static str, Json); N]) -> Json {
    let kind = [("type", Json::from(kind))];
    kind.into_iter().chain(members).collect::<Object>().into()
}
