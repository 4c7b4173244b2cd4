//! OpenTelemetry's conventions for generative AI: the attributes of one call of a model, in the
//! current form and in older ones.

pub(super) mod events;
pub(super) mod indexed;
pub(super) mod logged;
mod message;
#[cfg(test)]
mod tests;
mod written;

pub(super) use message::{Dialect, Reader};
pub(super) use written::messages_in;

use svc_messages::usage::ReportedTokens;
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Text};
use svc_model::usage::{TokenCounts, UsageSource};

use super::attribute::Attributes;
use super::operation::{CallReport, Dialogue, Operation};
use super::usage::CallIds;

/// The event in which a program logs a call, also inside a span.
pub(super) const DETAILS: &str = "gen_ai.client.inference.operation.details";
/// The name of the attribute with the kind of an operation.
pub(super) const OPERATION: &str = "gen_ai.operation.name";
/// The names of the attributes with the Session, the most specific first.
pub(super) const SESSIONS: [&str; 3] = [
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
];
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// Returns an error unless an operation is a call of a model.
pub(super) fn is_model_call(operation: &Operation<'_>) -> Result<(), LogSkip> {
    match operation.text(OPERATION).map(Text::as_str) {
        None | Some(Some("chat" | "generate_content" | "text_completion")) => Ok(()),
        Some(_) => Err(LogSkip::NotAModelCall),
    }
}

/// Returns what an operation reports, by the conventions, with these messages.
pub(super) fn report<'r>(operation: &Operation<'r>, dialogue: Dialogue) -> CallReport<'r> {
    CallReport {
        source: UsageSource::GenAi,
        session: operation.either(&SESSIONS),
        ids: CallIds::sorted(None, operation.identity(&["gen_ai.response.id"])),
        model: model(operation),
        model_provider: provider(operation),
        tokens: tokens(operation).including_cache(),
        tier: None,
        dialogue,
    }
}

pub(super) fn model(operation: &Operation<'_>) -> Option<String> {
    operation.identity(&["gen_ai.response.model", "gen_ai.request.model"])
}

pub(super) fn provider(operation: &Operation<'_>) -> Option<String> {
    operation.identity(&["gen_ai.provider.name", "gen_ai.system"])
}

pub(super) fn tokens(operation: &Operation<'_>) -> ReportedTokens {
    ReportedTokens {
        input: operation.amount(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
        cache_read: operation.amount(&["gen_ai.usage.cache_read.input_tokens"]),
        cache_write: operation.amount(&[
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation.input_tokens",
        ]),
        output: operation.amount(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
        ]),
        reasoning: operation.amount(&["gen_ai.usage.reasoning.output_tokens"]),
        ..ReportedTokens::default()
    }
}

/// Returns the tokens of Strands, whose input excludes the cache.
pub(super) fn tokens_beside_cache(operation: &Operation<'_>) -> (TokenCounts, bool) {
    let named = tokens(operation);
    let amount = |name| operation.amount(&[name]);
    let reported = ReportedTokens {
        cache_read: amount("gen_ai.usage.cache_read_input_tokens").or(named.cache_read),
        cache_write: amount("gen_ai.usage.cache_write_input_tokens").or(named.cache_write),
        ..named
    };
    reported.beside_cache()
}

/// Returns the reasons why the answers ended.
pub(super) fn finish_reasons(operation: &Operation<'_>) -> Vec<Option<Text>> {
    operation.words(FINISH_REASONS)
}

/// Returns the messages in an operation's attributes; `None` if it has no member for them.
pub(super) fn attributes(
    operation: &Operation<'_>,
    dialect: Dialect,
) -> Result<Option<Dialogue>, LogSkip> {
    let input = operation.list("gen_ai.input.messages")?;
    let output = operation.list("gen_ai.output.messages")?;
    if input.is_none() && output.is_none() {
        return Ok(None);
    }
    let mut reader = Reader::new(operation.memory, dialect);
    let mut dialogue = Dialogue {
        input: reader.messages(input.unwrap_or_default(), "user"),
        output: reader.answers(output.unwrap_or_default(), finish_reasons(operation)),
        truncated: 0,
    };
    if let Some(instructions) = instructions(operation)? {
        reader.instruct(&mut dialogue.input, instructions);
    }
    dialogue.truncated = reader.truncated;
    Ok(Some(dialogue))
}

/// Returns the parts of the instructions, which some senders write as plain text.
fn instructions(operation: &Operation<'_>) -> Result<Option<Vec<Json>>, LogSkip> {
    const NAME: &str = "gen_ai.system_instructions";
    let plain = operation.text(NAME).filter(|text| !text.is_blank());
    match (operation.list(NAME), plain) {
        (Err(_), Some(text)) => Ok(Some(vec![super::structured::copied(
            text,
            operation.memory,
        )])),
        (list, _) => list,
    }
}

/// Returns the messages of a span: in its attributes, in its events, or in older attributes.
pub(super) fn dialogue(
    operation: &Operation<'_>,
    events: &[(&str, Attributes<'_>)],
) -> Result<Dialogue, LogSkip> {
    if let Some(dialogue) = attributes(operation, Dialect::Convention)? {
        return Ok(dialogue);
    }
    if let Some(dialogue) = events::dialogue(operation, events)? {
        return Ok(dialogue);
    }
    let flat = indexed::dialogue(operation, &indexed::OPEN_LLMETRY);
    if !flat.input.is_empty() || !flat.output.is_empty() {
        return Ok(flat);
    }
    written::dialogue(operation)
}
