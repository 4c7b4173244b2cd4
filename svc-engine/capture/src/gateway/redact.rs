//! Redacts a call: its parts and the kept payload.

use svc_engine_fact::InferenceCall;
use svc_model::evidence::{Message, Part};
use svc_model::json::Text;

use crate::redaction::{RedactionCounts, Redactor};
use svc_messages::Origin;

/// Redacts a call in place. `origins` is the origin of each part, input first.
///
/// A credential that stands under its name in a tool's arguments or result is searched for in the
/// whole call. The payload is redacted first: if nothing in it is replaced, the parts that repeat
/// its strings cannot change either, and only the decoded parts remain to be searched.
pub(crate) fn redact(
    call: &mut InferenceCall,
    origins: &[Origin],
    mut redactor: Redactor,
) -> RedactionCounts {
    learn(&mut redactor, &call.input_messages);
    learn(&mut redactor, &call.output_messages);
    redactor.json(&mut call.raw.payload);
    let clean = redactor.counts().is_empty();
    let messages = call
        .input_messages
        .iter_mut()
        .chain(&mut call.output_messages);
    for (part, origin) in messages.flat_map(|message| &mut message.parts).zip(origins) {
        if !clean || *origin == Origin::Decoded {
            redact_part(&mut redactor, part);
        }
    }
    let workplace = &mut call.workplace;
    for text in [
        &mut workplace.cwd,
        &mut workplace.git_branch,
        &mut workplace.subagent,
    ]
    .into_iter()
    .flatten()
    {
        redact_string(&mut redactor, text);
    }
    redactor.counts()
}

/// Redacts a text that has no surrogate, which redaction does not add.
fn redact_string(redactor: &mut Redactor, text: &mut String) {
    let mut redacted = Text::from(text.as_str());
    redactor.text(&mut redacted);
    if let Some(redacted) = redacted.as_str().filter(|redacted| redacted != text) {
        redacted.clone_into(text);
    }
}

/// Learns the credentials that stand under their names in the tool calls and results of messages.
pub(crate) fn learn(redactor: &mut Redactor, messages: &[Message]) {
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::ToolCall { arguments, .. } => redactor.learn_object(arguments),
            Part::ToolCallResponse { result, .. } => redactor.learn(result),
            Part::Text { .. } | Part::Reasoning { .. } => {}
        }
    }
}

fn redact_part(redactor: &mut Redactor, part: &mut Part) {
    match part {
        Part::Text { content } | Part::Reasoning { content } => redactor.text(content),
        Part::ToolCall {
            name,
            arguments,
            sent,
            ..
        } => {
            redactor.text(name);
            redactor.object(arguments);
            if let Some(sent) = sent {
                redactor.text(sent);
            }
        }
        Part::ToolCallResponse { result, .. } => redactor.json(result),
    }
}
