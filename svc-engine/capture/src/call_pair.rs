//! A call whose request and response a client logged apart, in the form of Anthropic's interface.

use svc_engine_fact::{CallHalf, InferenceCall, RawPayload, Repeats, Segment, Workplace};
use svc_messages::usage::{ReportedTokens, tier};
use svc_model::json::{Json, NodeBudget, Object, Text};
use svc_model::usage::CallSource;

use crate::Receipt;
use crate::gateway::Degradation;
use crate::gateway::litellm::scalar::integer;
use crate::model_call::ModelCall;
use crate::otlp::usage::CallIds;
use crate::redaction::RedactionCounts;
use svc_messages::identity::{identity, name, usable};

/// A call, and what to log and count about it.
#[derive(Debug)]
pub struct PairedCall {
    /// The call.
    pub call: InferenceCall,
    /// What was left out.
    pub degradation: Degradation,
    /// What was redacted, besides what the halves lost when they arrived.
    pub redactions: RedactionCounts,
    /// Whether its numbers agree.
    pub is_consistent: bool,
}

/// Makes the call of a response and of its request, if that ever arrived. Its messages take their
/// memory from `memory`. `None` if they need more, or if an identity cannot be kept.
pub fn paired_call(
    request: Option<CallHalf>,
    response: CallHalf,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Option<PairedCall> {
    let (asked, request) = request.map(|half| (half.outline, half.body)).unzip();
    let CallHalf {
        outline,
        body: response,
    } = response;
    let (tokens, is_consistent) = reported(&response).beside_cache();
    let id = identity(response.get("id")).ok().flatten();
    let ids = CallIds::sorted(outline.request_id, id.map(str::to_owned));
    let model = |body: &Object| name(body.get("model")).ok().flatten();
    let model = model(&response).or_else(|| model(request.as_ref()?));
    let asked_at = asked.as_ref().map(|asked| asked.occurred_at.microseconds());
    let duration = asked_at.map(|asked_at| outline.occurred_at.microseconds() - asked_at);
    let user_id = outline.user_id.or_else(|| asked?.user_id);
    let input = request.as_ref().map(input).unwrap_or_default();
    let call = ModelCall {
        source: CallSource::Telemetry,
        session_id: outline.session_id,
        user_id,
        model_provider: Some(provider(ids.response.as_deref()).to_owned()),
        keys: ids.keys(),
        model,
        tokens,
        cost_usd_micros: None,
        tier: service_tier(&response),
        duration_ms: duration.map(|microseconds| microseconds / 1_000),
        observed_at: outline.occurred_at,
        agent: None,
        workplace: Workplace::default(),
        is_input_unpaired: request.is_none(),
        input,
        output: vec![answer(&response)],
        raw: raw(request, response),
        is_verbatim: true,
        truncated: 0,
    };
    let captured = call.capture(receipt, memory).ok()?;
    Some(PairedCall {
        call: captured.call,
        degradation: captured.degradation,
        redactions: captured.redactions,
        is_consistent,
    })
}

/// Returns the system prompt of a request as a message.
pub(crate) fn system_prompt(request: &Object) -> Option<Json> {
    let system = match request.get("system")? {
        Json::String(text) if !text.is_empty() => request.get("system"),
        Json::Array(blocks) if !blocks.is_empty() => request.get("system"),
        _ => None,
    }?;
    let message = [("role", Json::from("system")), ("content", system.clone())];
    Some(Object::from_iter(message).into())
}

/// Returns the message of a response, and why it ended.
pub(crate) fn answer(response: &Object) -> (Object, Option<Text>) {
    let mut content = response.get("content").cloned().unwrap_or_default();
    mark_redacted(&mut content);
    let message = Object::from_iter([("role", Json::from("assistant")), ("content", content)]);
    let finish_reason = usable(response.get("stop_reason")).map(Text::trimmed);
    (message, finish_reason)
}

/// Returns the items of the input: the system prompt, then the messages.
fn input(request: &Object) -> Vec<Json> {
    let messages = request.get("messages").and_then(Json::as_array);
    let messages = messages.unwrap_or_default().iter().cloned();
    let messages = messages.map(|mut message| {
        let content = message
            .as_object_mut()
            .and_then(|message| message.get_mut("content"));
        content.into_iter().for_each(mark_redacted);
        message
    });
    system_prompt(request).into_iter().chain(messages).collect()
}

/// The text that Claude Code logs in place of reasoning.
const REDACTED: &str = "<REDACTED>";

/// Marks the reasoning that the client left out, so that it is counted instead of being read as
/// content.
fn mark_redacted(content: &mut Json) {
    let Json::Array(blocks) = content else {
        return;
    };
    for block in blocks.iter_mut().filter_map(Json::as_object_mut) {
        let is_redacted = block.get("type").and_then(Json::as_str) == Some("thinking")
            && block.get("thinking").and_then(Json::as_str) == Some(REDACTED);
        if is_redacted {
            *block = Object::from_iter([("type", "redacted_thinking")]);
        }
    }
}

fn provider(response_id: Option<&str>) -> &'static str {
    match response_id {
        Some(id) if id.starts_with("msg_bdrk_") => "bedrock",
        Some(id) if id.starts_with("msg_vrtx_") => "vertex_ai",
        _ => "anthropic",
    }
}

fn reported(response: &Object) -> ReportedTokens {
    let usage = response.get("usage").and_then(Json::as_object);
    let count = |name| integer(usage?.get(name));
    let lifetimes = usage.and_then(|usage| usage.get("cache_creation")?.as_object());
    let lifetime = |name| integer(lifetimes?.get(name));
    ReportedTokens {
        input: count("input_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        cache_write_by_lifetime: lifetime("ephemeral_5m_input_tokens")
            .zip(lifetime("ephemeral_1h_input_tokens")),
        output: count("output_tokens"),
        reasoning: None,
    }
}

fn service_tier(response: &Object) -> Option<String> {
    let usage = response.get("usage")?.as_object()?;
    ["speed", "service_tier"]
        .into_iter()
        .find_map(|name| usage.get(name)?.as_str().and_then(tier))
}

/// Returns both bodies, and what of them repeats from call to call.
fn raw(request: Option<Object>, response: Object) -> RawPayload {
    let segments = request.as_ref().map(segments).unwrap_or_default();
    let members = [
        ("request", Json::from(request)),
        ("response", response.into()),
    ];
    RawPayload {
        payload: Object::from_iter(members).into(),
        segments,
    }
}

/// The place of the request in the payload.
const REQUEST: usize = 0;

fn segments(request: &Object) -> Vec<Segment> {
    let before = usize::from(system_prompt(request).is_some());
    let mut segments = Vec::new();
    for (place, (name, value)) in request.iter().enumerate() {
        let mut add = |item: Option<usize>, repeats, message| {
            let place = [REQUEST, place].into_iter().chain(item).collect();
            segments.push(Segment {
                place,
                repeats,
                message,
            });
        };
        match (name.as_str(), value) {
            (Some("messages"), Json::Array(items)) => {
                for item in 0..items.len() {
                    add(Some(item), Repeats::InSession, Some(before + item));
                }
            }
            (Some("system"), Json::Array(items)) => {
                for item in 0..items.len() {
                    add(Some(item), Repeats::Everywhere, None);
                }
            }
            (Some("system"), Json::String(_)) | (Some("tools"), Json::Array(_)) => {
                add(None, Repeats::Everywhere, None);
            }
            _ => {}
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::clock::Ids;
    use svc_engine_fact::{HalfOutline, HalfSide};
    use svc_model::evidence::Message;
    use svc_model::id::{OrgId, SessionId, UserId};
    use svc_model::time::Instant;

    use super::*;
    use crate::Redaction;
    use crate::gateway::testing::call;
    use crate::redaction::Secrets;
    use svc_messages::testing::{json, parts_json};

    const MESSAGES: &str = r#"[{"role":"user","content":[{"type":"text","text":"fix it","cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},
            {"type":"text","text":"I look"},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/w/a.py"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"a\": 1}"}]},
            {"type":"image","source":{"type":"base64","data":"AA=="}}]}]"#;
    const CONTENT: &str = r#"[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"done"},
        {"type":"tool_use","id":"toolu_2","name":"Edit","input":{"file_path":"/w/a.py","new_string":"b"}}]"#;

    fn half(side: HalfSide, seconds: i64, body: &str) -> CallHalf {
        let moment = |seconds| Instant::from_microseconds(seconds * 1_000_000).unwrap();
        let is_response = side == HalfSide::Response;
        CallHalf {
            outline: HalfOutline {
                key: [0; 16],
                side,
                session_id: SessionId::new("s").unwrap(),
                query_source: String::new(),
                model: None,
                prompt_id: None,
                user_id: (!is_response).then(|| UserId::new("dev").unwrap()),
                occurred_at: moment(seconds),
                sequence: None,
                request_id: is_response.then(|| "req_1".to_owned()),
                captured_at: moment(100),
                messages: [0; 16],
                input: [0; 16],
                called_tools: Vec::new(),
            },
            body: json(body).into_object().unwrap(),
        }
    }

    fn paired(request: Option<&str>, response: &str) -> PairedCall {
        let receipt = Receipt {
            org_id: &OrgId::new("acme").unwrap(),
            received_at: Instant::from_microseconds(1).unwrap(),
            ids: &Ids::counting(),
            redaction: Redaction::On,
            secrets: &Secrets::default(),
        };
        let request = request.map(|body| half(HalfSide::Request, 10, body));
        let response = half(HalfSide::Response, 12, response);
        paired_call(request, response, receipt, &NodeBudget::unlimited()).unwrap()
    }

    #[test]
    fn reasoning_that_the_client_left_out_is_counted() {
        let thought = r#"{"type":"thinking","thinking":"<REDACTED>","signature":"x"}"#;
        let request = format!(
            r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{thought},{{"type":"text","text":"<REDACTED>"}}]}}]}}"#
        );
        let response =
            format!(r#"{{"id":"msg_1","content":[{thought},{{"type":"text","text":"b"}}]}}"#);
        let call = paired(Some(&request), &response).call;
        assert_eq!(call.left_out.opaque_reasoning, 2);
        let parts: Vec<String> = call.input_messages.iter().map(parts_json).collect();
        assert_eq!(
            parts[1],
            r#"assistant [{"type":"text","content":"<REDACTED>"}]"#
        );
        assert_eq!(
            parts_json(&call.output_messages[0]),
            r#"assistant [{"type":"text","content":"b"}]"#
        );
    }

    fn response(usage: &str) -> String {
        format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":{CONTENT},
                "stop_reason":"tool_use","usage":{usage}}}"#
        )
    }

    fn parts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(parts_json).collect()
    }

    #[test]
    fn a_call_of_two_halves_equals_the_call_that_a_gateway_copies() {
        let (copied, _) = call(json(&format!(
            r#"{{"id":"msg_1","call_type":"anthropic_messages","model":"claude-sonnet-4-5","messages":{MESSAGES},
                "response":{{"id":"msg_1","role":"assistant","type":"message","content":{CONTENT},"stop_reason":"tool_use"}}}}"#
        )));
        let system = r#"[{"type":"text","text":"be brief"},{"type":"text","text":"be kind"}]"#;
        let request = format!(
            r#"{{"model":"claude-sonnet-4-5","system":{system},"messages":{MESSAGES},"tools":[{{"name":"Read"}}]}}"#
        );
        let PairedCall {
            call, degradation, ..
        } = paired(Some(&request), &response("{}"));
        let system =
            r#"system [{"type":"text","content":"be brief"},{"type":"text","content":"be kind"}]"#;
        assert_eq!(parts(&call.input_messages[..1]), [system]);
        assert_eq!(call.input_messages[1..], copied.input_messages);
        assert_eq!(call.output_messages, copied.output_messages);
        assert_eq!(
            call.output_messages[0].finish_reason,
            Some("tool_use".into())
        );
        assert_eq!(call.left_out, copied.left_out);
        assert_eq!(
            (
                degradation.opaque_reasoning,
                degradation.unsupported_content
            ),
            (2, 1)
        );
        assert_eq!(call.call_aliases, ["msg_1", "toolu_2"]);
        let places: Vec<_> = call
            .raw
            .segments
            .iter()
            .map(|segment| (&*segment.place, segment.message))
            .collect();
        assert_eq!(
            places,
            [
                (&[0, 1, 0][..], None),
                (&[0, 1, 1], None),
                (&[0, 2, 0], Some(1)),
                (&[0, 2, 1], Some(2)),
                (&[0, 2, 2], Some(3)),
                (&[0, 3], None),
            ]
        );
    }

    #[test]
    fn what_a_response_reports_is_read() {
        let usage = r#"{"input_tokens":12,"cache_read_input_tokens":41200,"cache_creation_input_tokens":3104,
            "cache_creation":{"ephemeral_5m_input_tokens":3000,"ephemeral_1h_input_tokens":104},
            "output_tokens":780,"service_tier":"priority","speed":"fast"}"#;
        let PairedCall {
            call,
            is_consistent,
            ..
        } = paired(Some(r#"{"messages":[]}"#), &response(usage));
        assert!(is_consistent);
        assert_eq!(
            (call.input_tokens, call.output_tokens),
            (Some(44_316), Some(780))
        );
        assert_eq!(call.usage.cache_write_5m_tokens, Some(3_000));
        assert_eq!(call.usage.tier.as_deref(), Some("fast"));
        assert_eq!(call.duration_ms, Some(2_000));
        assert_eq!(call.observed_at.microseconds(), 12_000_000);
        assert_eq!(call.model.as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!(call.user_id.unwrap().as_str(), "dev");
        let keys: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["response:msg_1", "request:req_1"]);
        assert_eq!(call.model_call_id.as_deref(), Some("msg_1"));
        assert!(!call.is_input_unpaired);
        for (id, expected) in [
            ("msg_1", "anthropic"),
            ("msg_bdrk_1", "bedrock"),
            ("msg_vrtx_1", "vertex_ai"),
        ] {
            let body = format!(r#"{{"id":"{id}","content":"x"}}"#);
            let request = r#"{"model":"claude-opus-4-1","messages":[]}"#;
            let call = paired(Some(request), &body).call;
            assert_eq!(call.model_provider.as_deref(), Some(expected));
            assert_eq!(call.model.as_deref(), Some("claude-opus-4-1"));
        }
    }

    #[test]
    fn a_response_without_its_request_has_no_input() {
        let call = paired(None, &response("{}")).call;
        assert!(call.is_input_unpaired && call.input_messages.is_empty());
        assert_eq!(call.duration_ms, None);
        assert_eq!(call.raw.segments, []);
        let whole = paired(Some(r#"{"messages":[]}"#), &response("{}")).call;
        assert_eq!(call.inference_call_id, whole.inference_call_id);
    }
}
