//! OpenInference, as of Arize Phoenix.

use svc_messages::usage::ReportedTokens;
use svc_model::json::Json;
use svc_model::usage::UsageSource;

use super::super::genai::indexed::{self, OPEN_INFERENCE};
use super::super::genai::{Dialect, Reader, messages_in};
use super::super::operation::{CallReport, Dialogue, Operation};
use super::super::usage::CallIds;
use super::SpanView;

pub(super) fn recognises(view: &SpanView<'_>) -> bool {
    view.operation().str("openinference.span.kind") == Some("LLM")
}

pub(super) fn read<'r>(view: &SpanView<'r>) -> CallReport<'r> {
    let operation = view.operation();
    let amount = |name| operation.amount(&[name]);
    let tokens = ReportedTokens {
        input: amount("llm.token_count.prompt"),
        cache_read: amount("llm.token_count.prompt_details.cache_read"),
        cache_write: amount("llm.token_count.prompt_details.cache_write"),
        output: amount("llm.token_count.completion"),
        reasoning: amount("llm.token_count.completion_details.reasoning"),
        ..ReportedTokens::default()
    };
    CallReport {
        source: UsageSource::Other,
        session: operation.either(&["session.id"]),
        ids: CallIds::default(),
        model: operation.identity(&["llm.model_name"]),
        model_provider: operation.identity(&["llm.provider"]),
        tokens: tokens.including_cache(),
        tier: None,
        dialogue: dialogue(&operation),
    }
}

/// Returns the messages: in numbered attributes, or else written out.
fn dialogue(operation: &Operation<'_>) -> Dialogue {
    let mut dialogue = indexed::dialogue(operation, &OPEN_INFERENCE);
    let mut reader = Reader::new(operation.memory, Dialect::Convention);
    if dialogue.input.is_empty() {
        dialogue.input = reader.messages(written(operation, "input.value"), "user");
    }
    if dialogue.output.is_empty() {
        dialogue.output = reader.answers(written(operation, "output.value"), Vec::new());
    }
    dialogue
}

/// Returns the messages in a value, which may also be anything else.
fn written(operation: &Operation<'_>, name: &str) -> Vec<Json> {
    let value = operation.value(name).ok().flatten();
    value.and_then(messages_in).unwrap_or_default()
}
