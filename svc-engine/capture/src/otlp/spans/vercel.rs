//! The Vercel AI SDK, whose steps have attributes of their own.

use svc_messages::usage::{ReportedTokens, tier};
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Object, Text};
use svc_model::usage::UsageSource;

use super::super::genai::{self, SESSIONS};
use super::super::operation::{CallReport, Dialogue, Operation};
use super::super::structured::copied;
use super::super::usage::CallIds;
use super::SpanView;

/// The operations of the SDK.
const OPERATIONS: [&str; 4] = [
    "ai.generateText",
    "ai.streamText",
    "ai.generateObject",
    "ai.streamObject",
];
/// What makes a step of an operation a call of a model.
const STEPS: [&str; 2] = [".doGenerate", ".doStream"];

pub(super) fn recognises(view: &SpanView<'_>) -> bool {
    step(view).is_some()
}

/// Returns what follows the name of the operation.
fn step<'r>(view: &SpanView<'r>) -> Option<&'r str> {
    let names = [view.span.name, view.operation().str("operation.name")];
    let mut names = names.into_iter().flatten();
    names.find_map(|name| OPERATIONS.iter().find_map(|start| name.strip_prefix(start)))
}

pub(super) fn read<'r>(view: &SpanView<'r>) -> Result<CallReport<'r>, LogSkip> {
    let operation = view.operation();
    let is_step = |step: &str| STEPS.iter().any(|name| step.starts_with(name));
    if !step(view).is_some_and(is_step) {
        // The outer operation repeats its steps.
        return Err(LogSkip::NotAModelCall);
    }
    let dialogue = Dialogue {
        input: messages(operation.list("ai.prompt.messages")?.unwrap_or_default()),
        output: answer(&operation)?.into_iter().collect(),
        truncated: 0,
    };
    let own = "ai.telemetry.metadata.sessionId";
    let model = ["ai.response.model", "gen_ai.response.model", "ai.model.id"];
    let response = ["ai.response.id", "gen_ai.response.id"];
    Ok(CallReport {
        source: UsageSource::Other,
        session: operation.either(&[own, SESSIONS[0], SESSIONS[1], SESSIONS[2]]),
        ids: CallIds::sorted(None, operation.identity(&response)),
        model: operation.identity(&model),
        model_provider: operation
            .identity(&["ai.model.provider"])
            .or_else(|| genai::provider(&operation)),
        tokens: tokens(&operation).including_cache(),
        tier: service_tier(&operation),
        dialogue,
    })
}

fn tokens(operation: &Operation<'_>) -> ReportedTokens {
    let named = genai::tokens(operation);
    let amount = |names: [&str; 2]| operation.amount(&names);
    ReportedTokens {
        input: amount(["ai.usage.promptTokens", "ai.usage.inputTokens"]).or(named.input),
        output: amount(["ai.usage.completionTokens", "ai.usage.outputTokens"]).or(named.output),
        cache_read: operation
            .amount(&["ai.usage.cachedInputTokens"])
            .or(named.cache_read),
        reasoning: operation
            .amount(&["ai.usage.reasoningTokens"])
            .or(named.reasoning),
        ..named
    }
}

fn service_tier(operation: &Operation<'_>) -> Option<String> {
    let metadata = operation.value("ai.response.providerMetadata").ok()??;
    let of_provider = metadata.as_object()?.get("openai")?.as_object()?;
    tier(of_provider.get("serviceTier")?.as_str()?)
}

/// Returns the message of the answer, if there is one.
fn answer(operation: &Operation<'_>) -> Result<Option<(Object, Option<Text>)>, LogSkip> {
    let mut content = Vec::new();
    for (name, kind) in [
        ("ai.response.reasoning", "reasoning"),
        ("ai.response.text", "text"),
        ("ai.response.object", "text"),
    ] {
        if let Some(text) = operation.text(name) {
            let text = copied(text, operation.memory);
            content.push(block([("type", kind.into()), ("content", text)]));
        }
    }
    let calls = operation.list("ai.response.toolCalls")?;
    content.extend(calls.unwrap_or_default().into_iter().map(called));
    if content.is_empty() {
        return Ok(None);
    }
    let reason = operation.text("ai.response.finishReason").cloned();
    let reason = reason.or_else(|| {
        genai::finish_reasons(operation)
            .into_iter()
            .next()
            .flatten()
    });
    let message = Object::from_iter([
        ("role", "assistant".into()),
        ("content", Json::Array(content)),
    ]);
    Ok(Some((message, reason)))
}

fn messages(mut messages: Vec<Json>) -> Vec<Json> {
    for message in messages.iter_mut().filter_map(Json::as_object_mut) {
        if let Some(Json::Array(parts)) = message.get_mut("content") {
            for part in parts {
                *part = self::part(std::mem::take(part));
            }
        }
    }
    messages
}

fn part(part: Json) -> Json {
    let kind = part.as_object().and_then(|part| part.get("type"));
    match kind.and_then(Json::as_str) {
        Some("tool-call") => called(part),
        Some("tool-result") => answered(part),
        _ => part,
    }
}

fn called(call: Json) -> Json {
    let mut call = call.into_object().unwrap_or_default();
    block([
        ("type", "tool_call".into()),
        ("id", first(&mut call, &["toolCallId"])),
        ("name", first(&mut call, &["toolName"])),
        ("arguments", first(&mut call, &["input", "args"])),
    ])
}

fn answered(result: Json) -> Json {
    let mut result = result.into_object().unwrap_or_default();
    let mut output = first(&mut result, &["output", "result"]);
    let typed = output
        .as_object_mut()
        .filter(|output| output.contains_key("type"));
    let value = typed
        .and_then(|output| output.get_mut("value"))
        .map(std::mem::take);
    block([
        ("type", "tool_call_response".into()),
        ("id", first(&mut result, &["toolCallId"])),
        ("result", value.unwrap_or(output)),
    ])
}

fn first(holder: &mut Object, names: &[&str]) -> Json {
    let mut values = names
        .iter()
        .filter_map(|name| holder.get_mut(name).map(std::mem::take));
    values.find(|value| !value.is_null()).unwrap_or_default()
}

fn block<const N: usize>(members: [(&'static str, Json); N]) -> Json {
    Object::from_iter(members).into()
}
