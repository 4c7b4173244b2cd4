//! Usage receipts: what clients log of each call of a model, without what was said.

use svc_engine_fact::{CallKey, CallKeyKind, UsageReceipt};
use svc_messages::usage::{ReportedTokens, micro_usd, tier};
use svc_model::id::{FactId, SessionId};
use svc_model::ingest::LogSkip;
use svc_model::json::{Json, Text};
use svc_model::time::Instant;
use svc_model::usage::{TokenCounts, UsageSource};
use uuid::Uuid;

use super::attribute::{AttributeValue, Attributes};
use super::logged::{ExportedRecord, session};
use super::{claude_code, codex};
use crate::Receipt;
use crate::gateway::call_id::CAPTURE_NAMESPACE;

/// The most bytes of the name of an agent and of why a call was made.
const WORD_BYTES_MAX: usize = 256;

/// A receipt, and whether the numbers in it agree.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) receipt: UsageReceipt,
    pub(super) is_consistent: bool,
}

/// The ids that a provider or a client gave a call, told apart by their form: clients write them
/// into attributes of other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallIds {
    pub(crate) request: Option<String>,
    pub(crate) response: Option<String>,
    pub(crate) client_request: Option<String>,
}

impl CallIds {
    /// Sorts the ids that were given as those of the request and of the response.
    pub(crate) fn sorted(request: Option<String>, response: Option<String>) -> Self {
        let mut ids = Self::default();
        for (id, is_of_response) in [(request, false), (response, true)] {
            let Some(id) = id else { continue };
            let is_response = !is_of_request(&id) && (is_of_response || names_response(&id));
            let place = if is_response {
                &mut ids.response
            } else {
                &mut ids.request
            };
            place.get_or_insert(id);
        }
        ids
    }

    /// Returns the ids of the provider as keys, first that of the response.
    pub(crate) fn keys(self) -> Vec<CallKey> {
        let response = self.response.map(|id| (CallKeyKind::Response, id));
        let request = self.request.map(|id| (CallKeyKind::Request, id));
        let ids = response.into_iter().chain(request);
        ids.map(|(kind, id)| CallKey::new(kind, id)).collect()
    }
}

fn is_of_request(id: &str) -> bool {
    id.starts_with("req_")
}

/// Returns whether an id of a response is Anthropic's own, and not of one that offers its models.
fn is_of_anthropic(id: &str) -> bool {
    let own = id.strip_prefix("msg_");
    own.is_some_and(|own| !own.starts_with("bdrk_") && !own.starts_with("vrtx_"))
}

fn names_response(id: &str) -> bool {
    ["msg_", "resp_", "chatcmpl-", "gen-"]
        .iter()
        .any(|start| id.starts_with(start))
}

/// Claude Code's `api_request`: its input excludes the cache.
pub(super) fn of_claude_code(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<Reported, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let count = |name| attributes.get(name).and_then(AttributeValue::amount);
    let ids = CallIds {
        client_request: identity(attributes, "client_request_id"),
        ..CallIds::sorted(identity(attributes, "request_id"), None)
    };
    let model = identity(attributes, "model");
    let reported = ReportedTokens {
        input: count("input_tokens"),
        cache_read: count("cache_read_tokens"),
        cache_write: count("cache_creation_tokens"),
        output: count("output_tokens"),
        ..ReportedTokens::default()
    };
    let (tokens, is_consistent) = reported.beside_cache();
    let is_anthropic = ids.request.as_deref().is_some_and(is_of_request)
        || ids.response.as_deref().is_some_and(is_of_anthropic)
        || model
            .as_deref()
            .is_some_and(|model| model.starts_with("claude-"));
    let mut made = blank(
        UsageSource::ClaudeCode,
        logged.session()?,
        logged.occurred_or_stamped_at()?,
        receipt,
    );
    made.user_id = claude_code::user(logged)?;
    made.agent = word(attributes, "agent.name").or_else(|| word(attributes, "skill.name"));
    made.query_source = word(attributes, "query_source");
    made.model = model;
    made.model_provider = is_anthropic.then(|| "anthropic".to_owned());
    made.cost_usd_micros = count("cost_usd_micros")
        .or_else(|| micro_usd(attributes.get("cost_usd")?.number()?.as_ref()));
    made.duration_ms = count("duration_ms");
    made.tier = attributes
        .text("speed")
        .and_then(Text::as_str)
        .and_then(tier);
    made.sequence = count("event.sequence");
    finish(made, ids, tokens, is_consistent, receipt)
}

/// Codex's `codex.sse_event` of a completed response: its input includes the cache. `None` for other
/// events of its stream.
pub(super) fn of_codex(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<Option<Reported>, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let kind = attributes.text("event.kind").and_then(Text::as_str);
    if kind != Some("response.completed") {
        return Ok(None);
    }
    let count = |name| attributes.get(name).and_then(AttributeValue::amount);
    let reported = ReportedTokens {
        input: count("input_token_count"),
        cache_read: count("cached_token_count"),
        cache_write: count("cache_write_token_count"),
        output: count("output_token_count"),
        reasoning: count("reasoning_token_count"),
        ..ReportedTokens::default()
    };
    let (tokens, is_consistent) = reported.including_cache();
    let mut made = blank(
        UsageSource::Codex,
        session(logged.either(codex::CONVERSATION))?,
        logged.occurred_or_observed_at()?,
        receipt,
    );
    made.user_id = logged.resource_user()?;
    made.model = identity(attributes, "model");
    made.model_provider = Some("openai".to_owned());
    made.duration_ms = count("duration_ms");
    finish(made, CallIds::default(), tokens, is_consistent, receipt).map(Some)
}

/// Gemini CLI's `gemini_cli.api_response`: its input includes what a cache held, and excludes what
/// tools used; its output excludes its thoughts.
pub(super) fn of_gemini_cli(
    logged: &ExportedRecord<'_>,
    receipt: Receipt<'_>,
) -> Result<Reported, LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    let count = |name| attributes.get(name).and_then(AttributeValue::amount);
    let thoughts = count("thoughts_token_count");
    let of_tools = count("tool_token_count").unwrap_or(0);
    let output = count("output_token_count");
    let reported = ReportedTokens {
        input: count("input_token_count").and_then(|input| input.checked_add(of_tools)),
        cache_read: count("cached_content_token_count"),
        output: output.and_then(|output| output.checked_add(thoughts.unwrap_or(0))),
        reasoning: thoughts,
        ..ReportedTokens::default()
    };
    let (tokens, is_consistent) = reported.including_cache();
    let mut made = blank(
        UsageSource::GeminiCli,
        logged.session()?,
        logged.stamped_or_occurred_at()?,
        receipt,
    );
    made.user_id = logged.user()?;
    made.model = identity(attributes, "model");
    made.duration_ms = count("duration_ms");
    finish(made, CallIds::default(), tokens, is_consistent, receipt)
}

/// Returns a receipt of which nothing is known yet but whose it is, and when it was made.
pub(super) fn blank(
    source: UsageSource,
    session_id: SessionId,
    occurred_at: Instant,
    receipt: Receipt<'_>,
) -> UsageReceipt {
    UsageReceipt {
        usage_receipt_id: FactId::new(Uuid::nil()),
        session_id,
        user_id: None,
        source,
        agent: None,
        query_source: None,
        model: None,
        model_provider: None,
        request_id: None,
        response_id: None,
        client_request_id: None,
        tokens: TokenCounts::default(),
        cost_usd_micros: None,
        duration_ms: None,
        tier: None,
        occurred_at,
        captured_at: receipt.received_at,
        trace_id: None,
        span_id: None,
        sequence: None,
    }
}

/// Adds ids and tokens to a receipt, and derives its id.
pub(super) fn finish(
    mut made: UsageReceipt,
    ids: CallIds,
    tokens: TokenCounts,
    is_consistent: bool,
    receipt: Receipt<'_>,
) -> Result<Reported, LogSkip> {
    if tokens.is_empty() && made.cost_usd_micros.is_none() && made.duration_ms.is_none() {
        return Err(LogSkip::EmptyUsage);
    }
    made.request_id = ids.request;
    made.response_id = ids.response;
    made.client_request_id = ids.client_request;
    made.tokens = tokens;
    made.usage_receipt_id = derived_id(&made, receipt);
    Ok(Reported {
        receipt: made,
        is_consistent,
    })
}

/// Returns the id of a receipt: of what tells it from the others of its client. The first of these
/// that it has does.
fn derived_id(made: &UsageReceipt, receipt: Receipt<'_>) -> FactId {
    let text = |text: &Option<String>| Json::from(text.clone());
    let at = || Json::from(made.occurred_at.microseconds());
    let session = || Json::from(made.session_id.as_str());
    let key: Vec<Json> = if made.request_id.is_some() {
        vec!["request".into(), text(&made.request_id)]
    } else if made.response_id.is_some() {
        vec!["response".into(), text(&made.response_id)]
    } else if made.client_request_id.is_some() {
        vec!["client_request".into(), text(&made.client_request_id)]
    } else if made.span_id.is_some() {
        vec!["span".into(), text(&made.trace_id), text(&made.span_id)]
    } else if made.sequence.is_some() {
        vec!["sequence".into(), session(), made.sequence.into(), at()]
    } else {
        let TokenCounts {
            input_tokens_uncached,
            cache_read_tokens,
            cache_write_tokens,
            cache_write_5m_tokens,
            cache_write_1h_tokens,
            output_tokens,
            reasoning_tokens,
            ..
        } = made.tokens;
        let counts = [
            input_tokens_uncached,
            cache_read_tokens,
            cache_write_tokens,
            cache_write_5m_tokens,
            cache_write_1h_tokens,
            output_tokens,
            reasoning_tokens,
        ];
        let mut key = vec!["counts".into(), session(), at(), text(&made.model)];
        key.extend(counts.map(Json::from));
        key
    };
    let whose = [receipt.org_id.as_str(), "usage", made.source.as_str()];
    let name: Json = whose.map(Json::from).into_iter().chain(key).collect();
    FactId::new(Uuid::new_v5(&CAPTURE_NAMESPACE, &name.to_canonical()))
}

/// Returns the identity under a name; absent if it cannot be one.
pub(super) fn identity(attributes: &Attributes<'_>, name: &str) -> Option<String> {
    let identity = crate::value::identity(attributes.text(name)?).ok()?;
    identity.map(str::to_owned)
}

/// Returns a word of the client; absent if it is longer than such words are.
pub(super) fn word(attributes: &Attributes<'_>, name: &str) -> Option<String> {
    identity(attributes, name).filter(|word| word.len() <= WORD_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{captured_records, changed, check_skip, event};
    use super::*;

    const CLAUDE_CODE: &str = r#"{"session.id":"s-1","event.sequence":41,"model":"claude-sonnet-4-5",
        "input_tokens":"12","output_tokens":780,"cache_read_tokens":41200,
        "cache_creation_tokens":3104,"cost_usd":0.035736,"cost_usd_micros":35736,
        "duration_ms":9120,"request_id":"req_011A","speed":"normal",
        "query_source":"repl_main_thread"}"#;
    const CODEX: &str = r#"{"conversation.id":"s-2","event.kind":"response.completed",
        "model":"gpt-5","input_token_count":"1500","cached_token_count":"1024",
        "output_token_count":"64","reasoning_token_count":"32","tool_token_count":"1564"}"#;
    const GEMINI: &str = r#"{"session.id":"s-3","model":"gemini-2.5-pro","duration_ms":900,
        "input_token_count":9400,"cached_content_token_count":6000,"output_token_count":210,
        "thoughts_token_count":590,"tool_token_count":0,"total_token_count":10200,
        "event.timestamp":"2026-07-07T19:00:00.5Z"}"#;

    fn one(name: &str, members: &str) -> UsageReceipt {
        let mut captured = captured_records([event(name, members)]);
        assert_eq!(captured.usage_receipts.len(), 1, "{:?}", captured.report);
        assert_eq!(captured.report.records.translated, 1);
        captured.usage_receipts.remove(0)
    }

    fn of_claude_code(changes: &str) -> UsageReceipt {
        one("claude_code.api_request", &changed(CLAUDE_CODE, changes))
    }

    #[test]
    fn claude_code_reports_what_a_request_used_and_cost() {
        let receipt = of_claude_code("{}");
        assert_eq!(receipt.source, UsageSource::ClaudeCode);
        assert_eq!(receipt.session_id.as_str(), "s-1");
        assert_eq!(receipt.model_provider.as_deref(), Some("anthropic"));
        assert_eq!(receipt.tokens.input_tokens_uncached, Some(12));
        assert_eq!(receipt.tokens.input_tokens(), Some(44_316));
        assert_eq!(receipt.tokens.cache_write_5m_tokens, None);
        assert_eq!(receipt.tokens.output_tokens, Some(780));
        assert_eq!(receipt.cost_usd_micros, Some(35_736));
        assert_eq!(receipt.duration_ms, Some(9_120));
        assert_eq!((receipt.tier, receipt.sequence), (None, Some(41)));
        assert_eq!(receipt.request_id.as_deref(), Some("req_011A"));
        assert_eq!(receipt.query_source.as_deref(), Some("repl_main_thread"));
    }

    #[test]
    fn one_report_has_one_id_however_often_it_is_sent() {
        let id = |changes| of_claude_code(changes).usage_receipt_id;
        let first = id("{}");
        assert_eq!(id(r#"{"event.sequence":90,"output_tokens":1}"#), first);
        let mut seen = vec![first];
        for changes in [
            r#"{"request_id":"req_2"}"#,
            r#"{"request_id":"msg_2"}"#,
            r#"{"request_id":null,"client_request_id":"c"}"#,
            r#"{"request_id":null}"#,
            r#"{"request_id":null,"event.sequence":42}"#,
            r#"{"request_id":null,"event.sequence":null}"#,
            r#"{"request_id":null,"event.sequence":null,"output_tokens":1}"#,
            r#"{"request_id":null,"event.sequence":null,"session.id":"other"}"#,
        ] {
            let id = id(changes);
            assert!(!seen.contains(&id), "{changes}");
            seen.push(id);
        }
    }

    #[test]
    fn an_id_is_sorted_by_its_form() {
        let ids = |changes| {
            let receipt = of_claude_code(changes);
            [receipt.request_id, receipt.response_id].map(Option::unwrap_or_default)
        };
        assert_eq!(ids(r#"{"request_id":"msg_bdrk_1"}"#), ["", "msg_bdrk_1"]);
        assert_eq!(ids(r#"{"request_id":"other"}"#), ["other", ""]);
        assert_eq!(ids(r#"{"request_id":" "}"#), ["", ""]);
        let sorted = CallIds::sorted(Some("chatcmpl-1".into()), Some("req_1".into()));
        assert_eq!(sorted.request.as_deref(), Some("req_1"));
        assert_eq!(sorted.response.as_deref(), Some("chatcmpl-1"));
        let provider = of_claude_code(r#"{"request_id":"msg_bdrk_1","model":"us.anthropic.x"}"#);
        assert_eq!(provider.model_provider, None);
    }

    #[test]
    fn a_cost_in_dollars_counts_if_there_is_none_in_micro_dollars() {
        let cost = |changes| of_claude_code(changes).cost_usd_micros;
        assert_eq!(cost(r#"{"cost_usd_micros":null}"#), Some(35_736));
        assert_eq!(cost(r#"{"cost_usd_micros":"7"}"#), Some(7));
        assert_eq!(
            cost(r#"{"cost_usd_micros":-7,"cost_usd":"0.5"}"#),
            Some(500_000)
        );
        assert_eq!(cost(r#"{"cost_usd_micros":null,"cost_usd":null}"#), None);
    }

    #[test]
    fn a_report_needs_a_session_a_time_and_some_use() {
        let name = "claude_code.api_request";
        let empty = r#"{"session.id":"s","model":"m","request_id":"req_1"}"#;
        for (members, reason) in [
            (empty.to_owned(), "empty_usage"),
            (
                changed(CLAUDE_CODE, r#"{"session.id":null}"#),
                "missing_session",
            ),
        ] {
            check_skip("{}", event(name, &members), &format!("{name}: {reason}"));
        }
        let mut timeless = event(name, CLAUDE_CODE);
        timeless.as_object_mut().unwrap().remove("timeUnixNano");
        check_skip("{}", timeless, &format!("{name}: missing_event_time"));
        let stamped = changed(CLAUDE_CODE, r#"{"event.timestamp":"2026-07-07T19:00:00Z"}"#);
        let mut stamped = event(name, &stamped);
        stamped.as_object_mut().unwrap().remove("timeUnixNano");
        let captured = captured_records([stamped]);
        let at = captured.usage_receipts[0].occurred_at;
        assert_eq!(at.to_string(), "2026-07-07T19:00:00Z");
    }

    #[test]
    fn codex_reports_input_with_what_its_cache_held() {
        let receipt = one("codex.sse_event", CODEX);
        assert_eq!(receipt.source, UsageSource::Codex);
        assert_eq!(receipt.session_id.as_str(), "s-2");
        assert_eq!(receipt.model_provider.as_deref(), Some("openai"));
        assert_eq!(receipt.tokens.input_tokens_uncached, Some(476));
        assert_eq!(receipt.tokens.cache_read_tokens, Some(1_024));
        assert_eq!(receipt.tokens.output_tokens, Some(64));
        assert_eq!(receipt.tokens.reasoning_tokens, Some(32));
    }

    #[test]
    fn other_events_of_the_stream_of_codex_are_no_reports() {
        let other = changed(CODEX, r#"{"event.kind":"response.created"}"#);
        let captured = captured_records([event("codex.sse_event", &other)]);
        assert!(captured.usage_receipts.is_empty() && captured.report.skipped.is_empty());
        assert_eq!(captured.report.records.untranslated, 1);
    }

    #[test]
    fn gemini_reports_its_thoughts_beside_its_output() {
        let receipt = one("gemini_cli.api_response", GEMINI);
        assert_eq!(receipt.source, UsageSource::GeminiCli);
        assert_eq!(receipt.tokens.input_tokens_uncached, Some(3_400));
        assert_eq!(receipt.tokens.cache_read_tokens, Some(6_000));
        assert_eq!(receipt.tokens.output_tokens, Some(800));
        assert_eq!(receipt.tokens.reasoning_tokens, Some(590));
        assert_eq!(
            receipt.occurred_at.to_string(),
            "2026-07-07T19:00:00.500000Z"
        );
        let tools = changed(GEMINI, r#"{"tool_token_count":100}"#);
        let receipt = one("gemini_cli.api_response", &tools);
        assert_eq!(receipt.tokens.input_tokens_uncached, Some(3_500));
    }

    #[test]
    fn numbers_that_contradict_each_other_are_counted_and_the_report_is_kept() {
        let more = changed(GEMINI, r#"{"cached_content_token_count":9500}"#);
        let captured = captured_records([event("gemini_cli.api_response", &more)]);
        let tokens = captured.usage_receipts[0].tokens;
        assert_eq!(tokens.input_tokens_uncached, None);
        assert_eq!(tokens.output_tokens, Some(800));
        let skipped = captured.report.skipped_by_reason();
        assert_eq!(skipped.get(&LogSkip::InconsistentUsage), Some(&1));
        assert_eq!(captured.report.records.translated, 1);
    }
}
