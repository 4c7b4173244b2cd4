//! Senders that follow the conventions, with what each does in another way.

use svc_model::ingest::LogSkip;
use svc_model::json::Text;

use super::super::copilot_span;
use super::super::genai::{self, OPERATION, tokens_beside_cache};
use super::super::operation::CallReport;
use super::SpanView;

/// The scope of Strands.
const STRANDS: &str = "strands.telemetry.tracer";

/// Copilot Chat.
pub(super) fn is_of_copilot(view: &SpanView<'_>) -> bool {
    let operation = view.operation();
    operation.has(OPERATION) && copilot_span::is_of_copilot(operation.attributes)
}

pub(super) fn copilot<'r>(view: &SpanView<'r>) -> Result<CallReport<'r>, LogSkip> {
    let mut report = convention(view)?;
    let session = std::iter::once(view.operation())
        .chain(view.ancestors())
        .find_map(|operation| copilot_span::session(&operation));
    copilot_span::claim(&mut report, session);
    Ok(report)
}

/// Strands Agents.
pub(super) fn is_of_strands(view: &SpanView<'_>) -> bool {
    view.span.scope.is_some_and(|scope| *scope == *STRANDS) && view.span.name == Some("chat")
}

pub(super) fn strands<'r>(view: &SpanView<'r>) -> Result<CallReport<'r>, LogSkip> {
    let operation = view.operation();
    let mut report = convention(view)?;
    report.session = operation.either(&["session.id"]).or(report.session);
    report.tokens = tokens_beside_cache(&operation);
    Ok(report)
}

/// The conventions themselves, and OpenLLMetry.
pub(super) fn follows(view: &SpanView<'_>) -> bool {
    let operation = view.operation();
    let kind = operation.str("llm.request.type");
    operation.text(OPERATION).is_some() || matches!(kind, Some("chat" | "completion"))
}

pub(super) fn convention<'r>(view: &SpanView<'r>) -> Result<CallReport<'r>, LogSkip> {
    let operation = view.operation();
    genai::is_model_call(&operation)?;
    let dialogue = genai::dialogue(&operation, &view.span.events())?;
    Ok(genai::report(&operation, dialogue))
}

/// Claude Code, whose logs say the same with more.
pub(super) fn is_of_claude_code(view: &SpanView<'_>) -> bool {
    view.span
        .name
        .is_some_and(|name| name.starts_with("claude_code."))
}

/// Codex, whose spans are of whole turns.
pub(super) fn is_of_codex(view: &SpanView<'_>) -> bool {
    let operation = view.operation();
    let starts =
        |text: Option<&Text>| text.is_some_and(|text| text.as_bytes().starts_with(b"codex"));
    let is_named = starts(view.span.scope) || starts(operation.resource.text("service.name"));
    let is_turn = |(name, _): (&Text, _)| name.as_bytes().starts_with(b"codex.turn.");
    is_named && operation.attributes.members().any(is_turn)
}
