//! The events of a Session.

use svc_model::open::Open;
use svc_model::query::TimelineEvent;
use svc_model::usage::UsageSource;

use crate::product::{model_or, product};
use crate::spend::dollars;
use crate::surface::Surface;

impl Surface {
    /// Returns the source and the description of an event.
    pub fn describe(self, event: &TimelineEvent) -> (String, String) {
        let escape = |text: &str| self.escape(text);
        match event {
            TimelineEvent::InferenceCall {
                gateway_provider,
                model_provider,
                model,
                input_tokens,
                output_tokens,
                duration_ms,
                capture_source,
                agent,
                ..
            } => {
                let [provider, name] = [model_provider, model]
                    .map(|name| name.as_deref().filter(|name| !name.is_empty()));
                let model = escape(&model_or(provider, name, self.none));
                let tokens = used(*input_tokens, *output_tokens);
                let what = listed([Some(model), tokens, lasted(*duration_ms)]);
                let from = match (agent, capture_source) {
                    (Some(agent), _) => agent,
                    (None, Some(source)) => source.as_str(),
                    (None, None) => product(gateway_provider),
                };
                (escape(from), what)
            }
            TimelineEvent::DeveloperDecision {
                agent_harness,
                accepted,
                explicit,
                interaction_mode,
                call_id,
                ..
            } => {
                let verdict = if *accepted { "accepted" } else { "rejected" };
                let who = if *explicit { "a person" } else { "a rule" };
                let call_id = call_id.as_ref();
                let call_id = call_id.map_or_else(String::new, |id| format!(", {}", escape(id)));
                let mode = escape(interaction_mode.as_str());
                let what = format!("{verdict} by {who}, {mode}{call_id}");
                (escape(agent_harness.as_str()), what)
            }
            TimelineEvent::EditObservation {
                agent_harness,
                call_id,
                external_lines_added,
                external_lines_removed,
                ..
            } => {
                let lines = |sign: char, lines: &Option<i64>| match lines {
                    Some(lines) => format!("{sign}{lines}"),
                    None => format!("{sign}?"),
                };
                let what = format!(
                    "{}, by others {} {}",
                    escape(call_id),
                    lines('+', external_lines_added),
                    lines(self.minus, external_lines_removed)
                );
                (escape(agent_harness.as_str()), what)
            }
            TimelineEvent::RejectedEdit {
                agent_harness,
                call_id,
                ..
            } => (escape(agent_harness.as_str()), escape(call_id)),
            TimelineEvent::RetryLinkage {
                agent_harness,
                tool_name,
                rejected_call_id,
                accepted_call_id,
                ..
            } => {
                let what = format!(
                    "{} {}, accepted as {}",
                    escape(tool_name.as_str()),
                    escape(rejected_call_id),
                    escape(accepted_call_id)
                );
                (escape(agent_harness.as_str()), what)
            }
            TimelineEvent::UsageReceipt {
                source,
                model,
                query_source,
                tokens,
                cost_usd_micros,
                duration_ms,
                ..
            } => {
                let model = escape(model.as_deref().unwrap_or(self.none));
                let tokens = used(tokens.input_tokens(), tokens.output_tokens);
                let why = query_source.as_ref().map(|why| escape(why));
                let what = [
                    Some(model),
                    tokens,
                    cost_usd_micros.map(dollars),
                    lasted(*duration_ms),
                    why,
                ];
                (escape(client(source)), listed(what))
            }
        }
    }
}

/// Returns the tokens of a call, if both sides are known.
fn used(input: Option<i64>, output: Option<i64>) -> Option<String> {
    let (input, output) = input.zip(output)?;
    Some(format!("{input} tokens in, {output} out"))
}

fn lasted(duration_ms: Option<i64>) -> Option<String> {
    duration_ms.map(|duration| format!("{duration} ms"))
}

fn listed<const ITEMS: usize>(items: [Option<String>; ITEMS]) -> String {
    let items: Vec<String> = items.into_iter().flatten().collect();
    items.join(", ")
}

/// Returns the name of the product behind a client that reports usage.
fn client(source: &Open<UsageSource>) -> &str {
    match source {
        Open::Known(UsageSource::ClaudeCode) => "claude-code",
        Open::Known(UsageSource::GeminiCli) => "gemini-cli",
        Open::Known(UsageSource::GenAi) => "opentelemetry",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use svc_model::id::FactId;
    use svc_model::ingest::GatewayProvider;
    use svc_model::time::Instant;
    use svc_model::usage::{CallSource, CallUsage};
    use uuid::Uuid;

    use super::*;
    use crate::{CONSOLE, SHELL};

    #[test]
    fn an_event_without_a_model_has_the_placeholder_of_its_surface() {
        let event = TimelineEvent::InferenceCall {
            fact_id: FactId::new(Uuid::nil()),
            occurred_at: Instant::parse("2026-01-31T09:30:00Z").unwrap(),
            gateway_provider: GatewayProvider::GatewayA.into(),
            input_tokens: Some(3),
            output_tokens: Some(5),
            duration_ms: None,
            model_call_id: None,
            model_provider: Some("openai".to_owned()),
            model: None,
            capture_source: None,
            agent: None,
            usage: CallUsage::default(),
            usage_receipt_ids: Vec::new(),
            joined_by: None,
        };
        let said = |model: &str| ("litellm".to_owned(), format!("{model}, 3 tokens in, 5 out"));
        assert_eq!(SHELL.describe(&event), said("openai/-"));
        assert_eq!(CONSOLE.describe(&event), said("openai/–"));
        let mut logged = event;
        if let TimelineEvent::InferenceCall { capture_source, .. } = &mut logged {
            *capture_source = Some(CallSource::Telemetry.into());
        }
        assert_eq!(SHELL.describe(&logged).0, "telemetry");
    }
}
