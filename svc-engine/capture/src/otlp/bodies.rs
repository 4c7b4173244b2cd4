//! The bodies of requests and responses that Claude Code logs: each is half of a call.
//!
//! What tells which halves belong together is read here, from the messages as every source's are
//! read: `cache_control` and the like take no part. It is read before credentials are redacted,
//! because a credential may be found in one request and not in the next.

use sha2::{Digest as _, Sha256};
use svc_engine_fact::{CallHalf, CalledTools, HalfKey, HalfOutline, HalfSide, MessagesDigest};
use svc_model::evidence::{Message, Part};
use svc_model::id::SessionId;
use svc_model::ingest::LogSkip;
use svc_model::json::{self, Json, NodeBudget, Object};
use svc_model::time::Instant;

use super::attribute::{AttributeValue, Attributes};
use super::claude_code;
use super::logged::ExportedRecord;
use super::usage::{identity, word};
use crate::Receipt;
use crate::call_pair::{answer, system_prompt};
use crate::gateway::redact;
use crate::redaction::{RedactionCounts, Redactor};
use svc_messages::identity::identity as member_identity;
use svc_messages::{MessagesError, Normaliser, embedded};

/// Returns the half of a call in a record, and what was redacted in it.
pub(super) fn half(
    logged: &ExportedRecord<'_>,
    side: HalfSide,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<(CallHalf, RedactionCounts), LogSkip> {
    let attributes = logged.attributes.well_formed()?;
    check_inline(attributes)?;
    let (session_id, occurred_at) = (logged.session()?, logged.occurred_or_stamped_at()?);
    let user_id = claude_code::user(logged)?;
    let mut body = body(attributes, side, memory)?;
    let mut redactor = receipt.redactor();
    let read = MessagesOutline::read(&body, side, memory, redactor.as_mut());
    let read = read.map_err(|_| LogSkip::MalformedBody)?;
    if let Some(redactor) = &mut redactor {
        redactor.object(&mut body);
    }
    let sequence = attributes
        .get("event.sequence")
        .and_then(AttributeValue::amount);
    let outline = HalfOutline {
        key: key(receipt, &session_id, side, (occurred_at, sequence)),
        side,
        session_id,
        query_source: word(attributes, "query_source").unwrap_or_default(),
        model: identity(attributes, "model"),
        prompt_id: identity(attributes, "prompt.id"),
        user_id,
        occurred_at,
        sequence,
        request_id: identity(attributes, "request_id").filter(|_| side == HalfSide::Response),
        captured_at: receipt.received_at,
        messages: read.messages,
        input: read.input,
        called_tools: read.called_tools,
    };
    let redactions = redactor.map_or_else(RedactionCounts::default, |redactor| redactor.counts());
    Ok((CallHalf { outline, body }, redactions))
}

/// Refuses a body that is elsewhere or was cut.
fn check_inline(attributes: &Attributes<'_>) -> Result<(), LogSkip> {
    if attributes.get("body_ref").is_some() {
        return Err(LogSkip::BodyNotInline);
    }
    let is_true =
        |value: AttributeValue<'_>| value.bool() == Some(true) || value.str() == Some("true");
    match attributes.get("body_truncated") {
        Some(value) if is_true(value) => Err(LogSkip::BodyTruncated),
        _ => Ok(()),
    }
}

/// Returns the body. Its memory is taken from `memory`, unless it does not fit.
fn body(
    attributes: &Attributes<'_>,
    side: HalfSide,
    memory: &NodeBudget,
) -> Result<Object, LogSkip> {
    let own = memory.rest();
    let text = attributes.text("body").ok_or(LogSkip::MalformedBody)?;
    let body = embedded::object_within(text, &own);
    let body = body.filter(|body| is_whole(body, side));
    let body = body.ok_or(LogSkip::MalformedBody)?;
    memory.settle(&own).map_err(|_| LogSkip::MalformedBody)?;
    Ok(body)
}

/// Returns whether a body has what a request or a response always has.
fn is_whole(body: &Object, side: HalfSide) -> bool {
    match side {
        HalfSide::Request => body.get("messages").and_then(Json::as_array).is_some(),
        HalfSide::Response => {
            let content = body.get("content");
            matches!(member_identity(body.get("id")), Ok(Some(_)))
                && matches!(content, Some(Json::Array(_) | Json::String(_)))
        }
    }
}

fn key(
    receipt: Receipt<'_>,
    session_id: &SessionId,
    side: HalfSide,
    (occurred_at, sequence): (Instant, Option<i64>),
) -> HalfKey {
    let key = Json::Array(vec![
        receipt.org_id.as_str().into(),
        session_id.as_str().into(),
        match side {
            HalfSide::Request => "request".into(),
            HalfSide::Response => "response".into(),
        },
        occurred_at.microseconds().into(),
        sequence.into(),
    ]);
    digest(Sha256::new_with_prefix(key.to_canonical()))
}

fn digest(hash: Sha256) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// What tells which halves belong together.
#[derive(Debug, Default)]
struct MessagesOutline {
    messages: MessagesDigest,
    input: MessagesDigest,
    called_tools: Vec<CalledTools>,
}

impl MessagesOutline {
    /// Reads the messages of a body, one after another, and has a redactor learn from them.
    fn read(
        body: &Object,
        side: HalfSide,
        memory: &NodeBudget,
        mut redactor: Option<&mut Redactor>,
    ) -> Result<Self, MessagesError> {
        let mut normaliser = Normaliser::new(memory.rest());
        let mut learn = |messages: &[Message]| {
            if let Some(redactor) = &mut redactor {
                redact::learn(redactor, messages);
            }
        };
        if side == HalfSide::Response {
            let (message, finish_reason) = answer(body);
            let answered = normaliser.object(&message, finish_reason)?;
            learn(answered.as_slice());
            return Ok(Self {
                called_tools: called(answered.as_ref(), MessagesDigest::default()),
                ..Self::default()
            });
        }
        let mut outline = Self::default();
        let mut messages = Sha256::new();
        let items = body.get("messages").and_then(Json::as_array);
        for item in items.unwrap_or_default() {
            for message in normaliser.items(std::slice::from_ref(item))? {
                let before = digest(messages.clone());
                outline.called_tools.extend(called(Some(&message), before));
                messages.update(digest_of(&message));
                learn(&[message]);
            }
        }
        outline.messages = digest(messages);
        let mut input = Sha256::new_with_prefix(outline.messages);
        if let Some(system) = system_prompt(body) {
            for message in normaliser.items(&[system])? {
                input.update(digest_of(&message));
                learn(&[message]);
            }
        }
        outline.input = digest(input);
        Ok(outline)
    }
}

fn digest_of(message: &Message) -> MessagesDigest {
    let text = json::to_vec(message, usize::MAX).unwrap_or_default();
    digest(Sha256::new_with_prefix(text))
}

/// Returns the tool calls of a message of an assistant, if it has any.
fn called(message: Option<&Message>, before: MessagesDigest) -> Vec<CalledTools> {
    let message = message.filter(|message| message.role == *"assistant");
    let parts = message.into_iter().flat_map(|message| &message.parts);
    let ids: Vec<String> = parts
        .filter_map(|part| match part {
            Part::ToolCall { id, .. } => Some(id.clone()),
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCallResponse { .. } => None,
        })
        .collect();
    if ids.is_empty() {
        return Vec::new();
    }
    vec![CalledTools { before, ids }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        captured, captured_as, captured_records, changed, check_skip, event, export, skips, written,
    };
    use super::*;
    use crate::Redaction;
    use crate::redaction::MARKER;

    const REQUEST: &str = "claude_code.api_request_body";
    const RESPONSE: &str = "claude_code.api_response_body";
    const ABOUT: &str = r#"{"session.id":"s-1","event.sequence":7,"query_source":"Explore",
        "model":"claude-sonnet-4-5","prompt.id":"p-1","request_id":"req_1"}"#;

    /// Returns the attributes of a body, replaced by those of `changes`.
    fn attributes(body: &str, changes: &str) -> String {
        let body = Object::from_iter([("body", body)]);
        changed(&changed(ABOUT, &written(&body.into())), changes)
    }

    fn record(name: &str, body: &str) -> Json {
        event(name, &attributes(body, "{}"))
    }

    fn read(name: &str, body: &str) -> CallHalf {
        let mut captured = captured_records([record(name, body)]);
        assert_eq!(captured.halves.len(), 1, "{:?}", captured.report);
        assert_eq!(captured.report.records.translated, 1);
        captured.halves.remove(0)
    }

    fn request(messages: &str) -> HalfOutline {
        read(REQUEST, &format!(r#"{{"messages":{messages}}}"#)).outline
    }

    #[test]
    fn a_body_is_half_of_a_call() {
        let half = read(
            REQUEST,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
        );
        let outline = half.outline;
        assert_eq!(outline.side, HalfSide::Request);
        assert_eq!(outline.session_id.as_str(), "s-1");
        assert_eq!(outline.query_source, "Explore");
        assert_eq!(outline.model.as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!(outline.prompt_id.as_deref(), Some("p-1"));
        assert_eq!(outline.sequence, Some(7));
        assert_eq!(outline.request_id, None);
        assert_eq!(
            outline.occurred_at.to_string(),
            "2026-07-07T19:57:35.424000Z"
        );
        assert!(half.body.contains_key("messages"));
        let half = read(RESPONSE, r#"{"id":"msg_1","content":[]}"#);
        assert_eq!(half.outline.side, HalfSide::Response);
        assert_eq!(half.outline.request_id.as_deref(), Some("req_1"));
        assert_ne!(half.outline.key, outline.key);
        let bare = r#"{"query_source":null,"prompt.id":null,"model":null,"event.sequence":null}"#;
        let bare = attributes(r#"{"messages":[]}"#, bare);
        let half = captured_records([event(REQUEST, &bare)]).halves.remove(0);
        assert_eq!(half.outline.query_source, "");
        assert_eq!(half.outline.prompt_id, None);
        assert_eq!(half.outline.sequence, None);
    }

    #[test]
    fn a_body_that_is_not_there_or_cut_or_no_body_is_refused() {
        let request = r#"{"messages":[]}"#;
        let check = |name: &str, body: &str, changes: &str, reason: &str| {
            let record = event(name, &attributes(body, changes));
            check_skip("{}", record, &format!("{name}: {reason}"));
        };
        let reference = r#"{"body_ref":"/tmp/body.json"}"#;
        check(REQUEST, request, reference, "body_not_inline");
        check(RESPONSE, request, reference, "body_not_inline");
        check(
            REQUEST,
            request,
            r#"{"body_truncated":true}"#,
            "body_truncated",
        );
        check(
            REQUEST,
            request,
            r#"{"body_truncated":"true"}"#,
            "body_truncated",
        );
        check(
            REQUEST,
            request,
            r#"{"session.id":null}"#,
            "missing_session",
        );
        for body in [
            "",
            "{",
            "[]",
            "5",
            "{}",
            r#"{"messages":{}}"#,
            r#"{"messages":"x"}"#,
        ] {
            check(REQUEST, body, "{}", "malformed_body");
        }
        let id =
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"\u0000"}]}]}"#;
        check(REQUEST, id, "{}", "malformed_body");
        for body in [
            r#"{"content":[]}"#,
            r#"{"id":" ","content":[]}"#,
            r#"{"id":5,"content":[]}"#,
            r#"{"id":"msg_1"}"#,
            r#"{"id":"msg_1","content":{}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
        ] {
            check(RESPONSE, body, "{}", "malformed_body");
        }
        let uncut = attributes(request, r#"{"body_truncated":"false"}"#);
        assert_eq!(captured_records([event(REQUEST, &uncut)]).halves.len(), 1);
    }

    #[test]
    fn a_body_needs_a_time_and_a_bad_record_costs_no_other() {
        let mut untimed = record(REQUEST, r#"{"messages":[]}"#);
        untimed.as_object_mut().unwrap().remove("timeUnixNano");
        let export = export(
            "{}",
            [untimed, record(RESPONSE, r#"{"id":"m","content":"x"}"#)],
        );
        let captured = captured(export);
        assert_eq!(captured.halves.len(), 1);
        assert_eq!(captured.report.records.untranslated, 1);
        let [(_, skipped)] = captured
            .report
            .skipped
            .iter()
            .next_back()
            .into_iter()
            .collect::<Vec<_>>()[..]
        else {
            panic!("{:?}", captured.report);
        };
        assert_eq!(*skipped, 1);
        let mut stamped = record(REQUEST, r#"{"messages":[]}"#);
        stamped.as_object_mut().unwrap().remove("timeUnixNano");
        let skipped = captured_records([stamped]);
        assert_eq!(
            skips(&skipped),
            [(format!("{REQUEST}: missing_event_time"), 1)]
        );
    }

    #[test]
    fn only_what_was_said_takes_part_in_the_digest_of_messages() {
        let plain = request(r#"[{"role":"user","content":"hi"}]"#);
        let marked = request(
            r#"[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]"#,
        );
        assert_eq!(plain.messages, marked.messages);
        assert_eq!(plain.input, marked.input);
        assert_ne!(
            plain.messages,
            request(r#"[{"role":"user","content":"ho"}]"#).messages
        );
        let body = |system: &str| {
            let body =
                format!(r#"{{"system":{system},"messages":[{{"role":"user","content":"hi"}}]}}"#);
            read(REQUEST, &body).outline
        };
        let (text, blocks) = (body(r#""be""#), body(r#"[{"type":"text","text":"be"}]"#));
        assert_eq!(text.input, blocks.input);
        assert_ne!(text.input, plain.input);
        assert_eq!(text.messages, plain.messages, "the system prompt is apart");
        assert_eq!(body(r#""""#).input, plain.input);
    }

    #[test]
    fn tool_calls_are_known_with_the_messages_before_them() {
        let first = request(r#"[{"role":"user","content":"right"}]"#);
        let later = request(
            r#"[{"role":"user","content":"right"},
                {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}},
                    {"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]"#,
        );
        let expected = CalledTools {
            before: first.messages,
            ids: vec!["toolu_1".to_owned(), "toolu_2".to_owned()],
        };
        assert_eq!(later.called_tools, [expected]);
        let answer = r#"{"id":"msg_1","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}]}"#;
        let answer = read(RESPONSE, answer).outline;
        assert_eq!(answer.called_tools[0].ids, ["toolu_1"]);
    }

    #[test]
    fn credentials_are_redacted_before_a_half_is_kept() {
        let secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd";
        let body = format!(r#"{{"messages":[{{"role":"user","content":"use {secret}"}}]}}"#);
        let kept = |redaction| {
            let export = export("{}", [record(REQUEST, &body)]);
            let captured = captured_as(svc_model::ingest::LogsRequest::Json(export), redaction);
            let half = &captured.halves[0];
            (
                written(&half.body.clone().into()),
                half.outline.messages,
                captured.report.redactions,
            )
        };
        let (redacted, digest, counts) = kept(Redaction::On);
        assert!(redacted.contains(MARKER) && !redacted.contains(secret));
        assert!(!counts.is_empty());
        let (plain, same, counts) = kept(Redaction::Off);
        assert!(plain.contains(secret) && counts.is_empty());
        assert_eq!(
            digest, same,
            "what belongs together does not depend on what was redacted"
        );
    }
}
