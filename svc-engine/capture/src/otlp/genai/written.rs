//! Messages that are written out as JSON text, as older senders do.

use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Object};

use super::message::{Dialect, Reader};
use super::{Dialogue, Operation, finish_reasons};

/// Returns the messages in `gen_ai.prompt` and `gen_ai.completion`.
pub(super) fn dialogue(operation: &Operation<'_>) -> Result<Dialogue, LogSkip> {
    let mut reader = Reader::new(operation.memory, Dialect::Convention);
    let read = |name| match operation.value(name)? {
        Some(value) => messages_in(value).ok_or(LogSkip::MalformedMessages),
        None => Ok(Vec::new()),
    };
    let input = read("gen_ai.prompt")?;
    let output = read("gen_ai.completion")?;
    Ok(Dialogue {
        input: reader.messages(input, "user"),
        output: reader.answers(output, finish_reasons(operation)),
        truncated: 0,
    })
}

/// Returns the messages in a value: a list of them, an object with such a list, or one message.
pub(in crate::otlp) fn messages_in(value: Json) -> Option<Vec<Json>> {
    let mut holder = match value {
        Json::Array(items) => {
            let is_message = |item: &Json| item.as_object().is_some_and(is_message);
            return items.iter().all(is_message).then_some(items);
        }
        Json::Object(holder) => holder,
        _ => return None,
    };
    match holder.get_mut("messages").map(std::mem::take) {
        Some(items @ Json::Array(_)) => messages_in(items),
        Some(_) => None,
        None => is_message(&holder).then(|| vec![holder.into()]),
    }
}

fn is_message(object: &Object) -> bool {
    let members = ["role", "parts", "content", "text", "tool_calls"];
    members.iter().any(|member| object.contains_key(member))
}
