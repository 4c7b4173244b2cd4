//! Turns calls that a program sends itself, or that a transcript has, into inference calls.

use svc_engine_fact::{
    CallKey, CallKeyKind, ContinuedInput, InferenceCall, SessionContinuation, Workplace,
};
use svc_messages::Origin;
use svc_messages::usage::tier;
use svc_model::evidence::{LeftOut, Message};
use svc_model::id::{SessionId, UserId};
use svc_model::ingest::{CallInput, CallOrigin, CallsRequest, SentCall};
use svc_model::json::{Json, Object, Text};
use svc_model::time::Instant;

use super::Receipt;
use super::model_call::{ModelCall, Said};
use super::otlp::usage::CallIds;
use super::redaction::RedactionCounts;

/// What a request with calls becomes.
#[derive(Debug)]
pub struct CapturedCalls {
    /// The calls in order, each with the call that its input continues.
    pub calls: Vec<(InferenceCall, Option<ContinuedInput>)>,
    /// The Session that the Session of the calls continues, as the sender says it.
    pub continuation: Option<SessionContinuation>,
    /// What was redacted.
    pub redactions: RedactionCounts,
}

/// Turns calls into inference calls. What was said is redacted.
pub fn capture(request: CallsRequest, receipt: Receipt<'_>) -> CapturedCalls {
    let CallsRequest {
        source,
        session_id,
        user_id,
        continues,
        calls,
        ..
    } = request;
    let continued = continues
        .as_ref()
        .map(|continued| continued.session_id.clone());
    let last_end = calls.last().map(|call| call.ended_at);
    let continuation = continues.map(|continued| {
        let last = continued.response_id.map(String::from);
        SessionContinuation {
            session_id: session_id.clone(),
            continues_session_id: continued.session_id,
            last: last.and_then(|id| CallIds::sorted(None, Some(id)).keys().into_iter().next()),
            observed_at: last_end.unwrap_or(receipt.received_at),
            received_at: receipt.received_at,
        }
    });
    let whose = Whose {
        source,
        session_id,
        user_id,
        continued,
    };
    let mut redactions = RedactionCounts::default();
    let calls = calls.into_iter().map(|sent| {
        let (call, after, redacted) = one(sent, &whose, receipt);
        redactions += redacted;
        (call, after)
    });
    let calls = calls.collect();
    CapturedCalls {
        calls,
        continuation,
        redactions,
    }
}

/// What the calls of a request have in common.
struct Whose {
    source: CallOrigin,
    session_id: SessionId,
    user_id: Option<UserId>,
    /// The Session that theirs continues.
    continued: Option<SessionId>,
}

fn one(
    sent: SentCall,
    whose: &Whose,
    receipt: Receipt<'_>,
) -> (InferenceCall, Option<ContinuedInput>, RedactionCounts) {
    let agent = whose.source.agent.as_str();
    let CallInput { after, messages } = sent.input;
    let after = after.map(|id| ContinuedInput {
        id: id.into(),
        agent: agent.to_owned(),
        session_ids: [&whose.session_id]
            .into_iter()
            .chain(&whose.continued)
            .cloned()
            .collect(),
    });
    let said = said(messages, sent.output, sent.stop_reason, sent.left_out);
    let own = sent.call_id;
    let own = own.map(|id| CallKey::client(agent, &whose.session_id, id.as_str()));
    let ids = CallIds::sorted(
        sent.request_id.map(String::from),
        sent.response_id.map(String::from),
    );
    let mut keys: Vec<CallKey> = ids.keys().into_iter().chain(own).collect();
    // The id of the response comes first, and that of the request last.
    keys.sort_by_key(|key| match key.kind {
        CallKeyKind::Response => 0,
        CallKeyKind::Request => 2,
        _ => 1,
    });
    let call = ModelCall {
        source: whose.source.kind.into(),
        agent: Some(agent.to_owned()),
        workplace: Workplace {
            cwd: sent.cwd,
            git_branch: sent.git_branch,
            subagent: sent.subagent.map(String::from),
        },
        session_id: whose.session_id.clone(),
        user_id: whose.user_id.clone(),
        keys,
        model: sent.model.map(String::from),
        model_provider: sent.model_provider.map(String::from),
        tokens: sent.usage.unwrap_or_default(),
        cost_usd_micros: sent.cost_usd_micros,
        tier: sent.tier.as_deref().and_then(tier),
        duration_ms: sent
            .started_at
            .and_then(|started_at| duration(started_at, sent.ended_at)),
        observed_at: sent.ended_at,
        input: Vec::new(),
        output: Vec::new(),
        raw: Json::Object(Object::new()).into(),
        is_verbatim: false,
        is_input_unpaired: false,
        truncated: 0,
    };
    let (call, redactions) = call.with(said, receipt);
    (call, after, redactions)
}

fn duration(started_at: Instant, ended_at: Instant) -> Option<i64> {
    let microseconds = ended_at
        .microseconds()
        .checked_sub(started_at.microseconds())?;
    (microseconds >= 0).then_some(microseconds / 1_000)
}

fn said(
    mut input: Vec<Message>,
    mut output: Vec<Message>,
    stop_reason: Option<String>,
    left_out: Option<LeftOut>,
) -> Said {
    for message in &mut input {
        message.finish_reason = None;
    }
    let unexplained = output.last_mut();
    let unexplained = unexplained.filter(|message| message.finish_reason.is_none());
    if let Some(message) = unexplained {
        message.finish_reason = stop_reason.map(Text::from);
    }
    let parts = input.iter().chain(&output);
    let parts = parts.map(|message| message.parts.len()).sum();
    Said {
        input,
        output,
        origins: vec![Origin::Decoded; parts],
        left_out: left_out.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use svc_engine_fact::clock::Ids;
    use svc_model::id::OrgId;
    use svc_model::json;
    use svc_model::usage::CallSource;

    use super::*;
    use crate::Redaction;
    use crate::redaction::{MARKER, Secrets};

    fn captured(request: &str) -> CapturedCalls {
        let receipt = Receipt {
            org_id: &OrgId::new("acme").unwrap(),
            received_at: Instant::from_microseconds(1).unwrap(),
            ids: &Ids::counting(),
            redaction: Redaction::On,
            secrets: &Secrets::default(),
        };
        capture(json::from_slice(request.as_bytes()).unwrap(), receipt)
    }

    fn of_one(call: &str) -> InferenceCall {
        let request = format!(
            r#"{{"source":{{"kind":"sdk","agent":"a"}},"session_id":"s","calls":[{call}]}}"#
        );
        captured(&request).calls.remove(0).0
    }

    #[test]
    fn a_call_has_the_keys_of_all_its_ids_and_what_it_continues() {
        let captured = captured(
            r#"{"source":{"kind":"transcript","agent":"pi"},"session_id":"s","user_id":"u",
            "continues":{"session_id":"r","response_id":"resp_0"},"calls":[
            {"response_id":"resp_1","call_id":"e1","request_id":"req_1","ended_at":"2026-11-02T10:00:04Z",
             "started_at":"2026-11-02T10:00:01.5Z","tier":"Priority","cwd":"/w","git_branch":"main","subagent":"x",
             "input":{"after":"resp_0","messages":[]},"output":[{"role":"assistant","parts":[]}],
             "stop_reason":"stop","usage":{"input_tokens_uncached":4,"cache_read_tokens":900,"output_tokens":6}}]}"#,
        );
        let (call, after) = &captured.calls[0];
        let keys: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["response:resp_1", "call:pi/s/e1", "request:req_1"]);
        assert_eq!(call.model_call_id.as_deref(), Some("resp_1"));
        assert_eq!(call.capture_source, CallSource::Transcript);
        assert_eq!(call.agent.as_deref(), Some("pi"));
        assert_eq!(
            (call.input_tokens, call.output_tokens, call.duration_ms),
            (Some(904), Some(6), Some(2_500))
        );
        assert_eq!(call.usage.tier.as_deref(), Some("priority"));
        assert_eq!(call.workplace.subagent.as_deref(), Some("x"));
        assert_eq!(
            call.output_messages[0].finish_reason,
            Some(Text::from("stop"))
        );
        assert_eq!(after.as_ref().unwrap().id, "resp_0");
        let continuation = captured.continuation.unwrap();
        assert_eq!(continuation.continues_session_id.as_str(), "r");
        assert_eq!(continuation.last.unwrap().to_string(), "response:resp_0");
        assert_eq!(continuation.observed_at, call.observed_at);
    }

    #[test]
    fn a_call_without_a_response_is_known_by_its_own_id() {
        let call = of_one(
            r#"{"call_id":"e1","request_id":"r1","ended_at":"2026-11-02T10:00:04Z",
            "started_at":"2026-11-02T10:00:05Z","input":{"messages":[]},"output":[]}"#,
        );
        let keys: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["call:a/s/e1", "request:r1"]);
        assert_eq!((call.model_call_id, call.duration_ms), (None, None));
    }

    #[test]
    fn only_the_last_message_of_the_answer_gets_the_stop_reason_and_input_has_none() {
        let call = of_one(
            r#"{"call_id":"e1","ended_at":"2026-11-02T10:00:04Z","stop_reason":"stop",
            "input":{"messages":[{"role":"user","parts":[],"finish_reason":"x"}]},
            "output":[{"role":"assistant","parts":[]},{"role":"assistant","parts":[],"finish_reason":"length"}]}"#,
        );
        assert_eq!(call.input_messages[0].finish_reason, None);
        let reasons: Vec<Option<&str>> = call
            .output_messages
            .iter()
            .map(|message| message.finish_reason.as_ref()?.as_str())
            .collect();
        assert_eq!(reasons, [None, Some("length")]);
    }

    #[test]
    fn credentials_are_redacted_in_what_was_said_and_where() {
        let key = "sk-abcdefghijklmnopqrst";
        let call = of_one(&format!(
            r#"{{"call_id":"e1","ended_at":"2026-11-02T10:00:04Z","cwd":"/w/{key}","subagent":"{key}",
            "input":{{"messages":[{{"role":"tool","parts":[{{"type":"tool_call_response","id":"c","result":"{key}"}}]}}]}},
            "output":[{{"role":"assistant","parts":[{{"type":"text","content":"{key}"}}]}}]}}"#
        ));
        let text = format!("{call:?}");
        assert!(!text.contains(key), "{text}");
        assert_eq!(call.workplace.cwd.unwrap(), format!("/w/{MARKER}"));
    }
}
