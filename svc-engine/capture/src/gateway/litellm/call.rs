use svc_engine_fact::{CallKey, CallKeyKind, InferenceCall, RawPayload, Workplace};
use svc_model::ingest::{GatewayIngestRequest, SkipReason};
use svc_model::json::{Json, NodeBudget};
use svc_model::usage::CallSource;
use uuid::Uuid;

use super::metadata::Metadata;
use super::said::Said;
use super::{delivery, kind, scalar, segments, session, usage, user};
use crate::Receipt;
use crate::gateway::call_id::{aliases, derived_id, further_id};
use crate::gateway::{Captured, GatewayError, PayloadNotes, redact};
use crate::redaction::RedactionCounts;
use svc_messages::Normaliser;
use svc_messages::identity::name;

/// Turns a delivery of LiteLLM into an inference call. Its messages take their memory from
/// `memory`.
pub(super) fn capture(
    request: GatewayIngestRequest,
    receipt: Receipt<'_>,
    memory: &NodeBudget,
) -> Result<(Captured, PayloadNotes), GatewayError> {
    let payload = request
        .payload
        .as_object()
        .ok_or(GatewayError::InvalidPayload)?;
    let skipped = |reason| {
        let model_call_id = scalar::model_call_id(payload).unwrap_or_default();
        let skipped = Captured::Skipped {
            reason,
            model_call_id,
        };
        Ok((skipped, PayloadNotes::default()))
    };
    if !kind::is_inference(payload) {
        return skipped(SkipReason::NotAnInferenceCall);
    }
    let metadata = Metadata::new(payload);
    let session_id = match request.session_id {
        Some(given) => Some(given),
        None => session::session(&metadata)?,
    };
    let Some(session_id) = session_id else {
        return skipped(SkipReason::NoSession);
    };
    let user_id = match request.user_id {
        Some(given) => Some(given),
        None => user::user(&metadata)?,
    };
    let mut normaliser = Normaliser::new(memory.rest());
    let said = Said::of(&request.payload, &normaliser.memory);
    let (input_messages, output_messages) = said.messages(&mut normaliser)?;
    memory.settle(&normaliser.memory)?;
    let answer = said.answer.as_deref().and_then(Json::as_object);
    let is_passed_through = kind::is_passed_through(payload);
    let own = payload.get("model");
    // The proxy's word for a model that it does not know.
    let own = own.filter(|model| !is_passed_through || model.as_str() != Some("unknown"));
    let answered = answer.and_then(|answer| answer.get("model"));
    let mut model = None;
    for source in [own, said.model.as_ref(), answered] {
        model = match model {
            Some(model) => Some(model),
            None => name(source)?,
        };
    }
    let used = scalar::usage(payload, answer);
    let mut tokens = scalar::all_tokens(payload, used);
    if is_passed_through && tokens == [Some(0), Some(0)] {
        tokens = [None, None];
    }
    let [input_tokens, output_tokens] = tokens;
    let reported = usage::of(payload, used, input_tokens, output_tokens);
    let response_id = usage::response_id(payload);
    let segments = segments::of(payload, said.member, &normaliser.prompt_places);
    let model_call_id = scalar::model_call_id(payload)?;
    let started_at = delivery::started_at(payload);
    let is_named = |id: &String| {
        let own = Uuid::try_parse(id).ok();
        request
            .capture
            .is_some_and(|capture| Some(capture.id) != own)
    };
    let further = model_call_id
        .as_ref()
        .filter(|id| !is_named(id))
        .zip(started_at);
    let further_id = further.map(|(id, started_at)| further_id(receipt.org_id, id, started_at));
    drop(said);
    let mut call = InferenceCall {
        inference_call_id: match request.capture {
            Some(capture) => derived_id(receipt.org_id, capture.id),
            None => receipt.fresh_id(),
        },
        further_id,
        gateway_provider: request.provider,
        session_id,
        user_id,
        call_aliases: aliases(&output_messages, model_call_id.as_ref()),
        model_call_id,
        started_at,
        model_provider: name(payload.get("custom_llm_provider"))?,
        model,
        input_tokens,
        output_tokens,
        duration_ms: scalar::duration_ms(payload),
        capture_source: CallSource::Gateway,
        usage: reported,
        keys: response_id
            .iter()
            .map(|id| CallKey::new(CallKeyKind::Response, id))
            .collect(),
        response_id,
        request_id: None,
        agent: None,
        workplace: Workplace::default(),
        is_input_unpaired: false,
        observed_at: request
            .capture
            .map_or(receipt.received_at, |capture| capture.observed_at),
        input_messages,
        output_messages,
        left_out: normaliser.degradation.into(),
        raw: RawPayload {
            payload: request.payload,
            segments,
        },
    };
    let redactions = receipt
        .redactor()
        .map_or_else(RedactionCounts::default, |redactor| {
            redact::redact(&mut call, &normaliser.origins, redactor)
        });
    let notes = PayloadNotes {
        degradation: normaliser.degradation,
        redactions,
    };
    Ok((Captured::Call(Box::new(call)), notes))
}

#[cfg(test)]
mod tests {
    use svc_model::evidence::Message;
    use svc_model::id::{FactId, OrgId, SessionId, UserId};
    use svc_model::ingest::{Capture, GatewayProvider};
    use svc_model::time::Instant;

    use super::*;
    use crate::Redaction;
    use crate::gateway::call_id::CAPTURE_NAMESPACE;
    use crate::gateway::testing::{FRESH_ID, call, deliver, deliver_within, request};
    use svc_messages::testing::{json, parts_json};

    const ARRAY: &str =
        include_str!("../../../../../tests/fixtures/litellm/generic_api_json_array.json");
    const LINES: &str = include_str!(
        "../../../../../tests/fixtures/litellm/generic_api_ndjson_correlation_off.ndjson"
    );

    fn parts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(parts_json).collect()
    }

    #[test]
    fn a_payload_with_too_many_parts_is_refused() {
        let captured = |payload: &str, bytes: usize| {
            let request = GatewayIngestRequest {
                session_id: Some(SessionId::new("s").unwrap()),
                ..request(json(payload))
            };
            deliver_within(request, Redaction::On, &NodeBudget::new(bytes)).map(drop)
        };
        let many = |before: &str, item: &str, after: &str| {
            let items = vec![item; 1_000].join(",");
            format!(r#"{{"messages":[{before}{items}{after}]}}"#)
        };
        let result = r#"{"role":"tool","tool_call_id":"t","content":"#;
        for payload in [
            many("", r#"{"role":"user"}"#, ""),
            many(r#"{"role":"user","content":["#, r#""""#, "]}"),
            many(
                r#"{"role":"user","content":["#,
                r#"{"type":"text","text":""}"#,
                "]}",
            ),
            many(r#"{"role":"user","tool_calls":["#, r#"{"id":"t"}"#, "]}"),
            many(
                r#"{"type":"reasoning","summary":["#,
                r#"{"text":"x"}"#,
                "]}",
            ),
            many(
                r#"{"role":"assistant","thinking_blocks":["#,
                r#"{"type":"thinking","thinking":"x"}"#,
                "]}",
            ),
            many(&format!("{result}["), "[]", "]}"),
            many(&format!("{result}\"["), "[]", "]\"}"),
            many(
                r#"{"type":"function_call","call_id":"t","arguments":"{\"a\":["#,
                "[]",
                "]}\"}",
            ),
            many(
                r#"{"type":"function_call","call_id":"t","arguments":{"a":["#,
                "[]",
                "]}}",
            ),
        ] {
            assert_eq!(captured(&payload, 1024 * 1024), Ok(()), "{payload}");
            let refused = captured(&payload, 16 * 1024);
            assert_eq!(refused, Err(GatewayError::TooLarge), "{payload}");
        }
    }

    #[test]
    fn a_chat_completion_in_full() {
        let (call, notes) = call(json(
            r#"{"litellm_call_id":"c","model":"gpt-4o","custom_llm_provider":"openai",
                "messages":[{"role":"system","content":"be brief"},{"role":"user","content":"say hi"}],
                "response":{"id":"r","model":"gpt-4o-2024","choices":[{"index":0,"finish_reason":"tool_calls","message":
                    {"role":"assistant","content":"hi","tool_calls":[{"id":"t2","function":{"name":"f","arguments":"{}"}},
                    {"id":"c","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f"}}]}}],
                    "usage":{"prompt_tokens":11,"completion_tokens":2}},
                "prompt_tokens":99,"completion_tokens":98,"response_time":1.25}"#,
        ));
        assert_eq!(call.inference_call_id, FactId::new(FRESH_ID));
        assert_eq!(call.model_call_id.as_deref(), Some("c"));
        assert_eq!(call.model.as_deref(), Some("gpt-4o"));
        assert_eq!(call.model_provider.as_deref(), Some("openai"));
        assert_eq!((call.input_tokens, call.output_tokens), (Some(11), Some(2)));
        assert_eq!(call.duration_ms, Some(1_250));
        assert_eq!(call.observed_at, Instant::from_microseconds(1).unwrap());
        assert_eq!(call.call_aliases, ["a", "c", "t2"]);
        assert_eq!(
            parts(&call.input_messages),
            [
                r#"system [{"type":"text","content":"be brief"}]"#,
                r#"user [{"type":"text","content":"say hi"}]"#
            ]
        );
        assert_eq!(
            call.output_messages[0].finish_reason,
            Some("tool_calls".into())
        );
        assert_eq!(notes, PayloadNotes::default());
    }

    #[test]
    fn an_empty_payload_is_a_call() {
        let (call, notes) = call(json("{}"));
        assert_eq!(
            (call.model_call_id, call.model, call.model_provider),
            (None, None, None)
        );
        assert_eq!(
            (call.input_tokens, call.output_tokens, call.duration_ms),
            (None, None, None)
        );
        assert_eq!(
            (call.input_messages, call.output_messages),
            (Vec::new(), Vec::new())
        );
        assert!(call.call_aliases.is_empty());
        assert_eq!(notes, PayloadNotes::default());
    }

    #[test]
    fn names_of_models_are_trimmed_and_fall_back() {
        let model = |payload: &str| {
            let (call, _) = call(json(payload));
            (call.model, call.model_provider)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            model(r#"{"model":" openai/x ","custom_llm_provider":" openai "}"#),
            (some("openai/x"), some("openai"))
        );
        let fallback = r#"{"model":" ","custom_llm_provider":"","response":{"model":" r "}}"#;
        assert_eq!(model(fallback), (some("r"), None));
        assert_eq!(
            model(r#"{"model":5,"custom_llm_provider":6}"#),
            (None, None)
        );
    }

    #[test]
    fn a_gateway_without_an_adapter_is_refused() {
        for provider in [
            GatewayProvider::GatewayB,
            GatewayProvider::GatewayC,
            GatewayProvider::Unknown,
        ] {
            let request = GatewayIngestRequest {
                provider,
                ..request(json("{}"))
            };
            let refused = deliver(request, Redaction::On);
            assert_eq!(refused, Err(GatewayError::UnsupportedProvider(provider)));
        }
    }

    #[test]
    fn a_call_without_a_session_is_skipped_even_if_other_members_are_invalid() {
        for (payload, model_call_id) in [
            (
                r#"{"litellm_call_id":" c ","messages":[{"role":"user","content":"x"}]}"#,
                Some("c".to_owned()),
            ),
            (r#"{"litellm_call_id":"c\u0000","model":"\u0000"}"#, None),
            ("{}", None),
        ] {
            let skipped = Captured::Skipped {
                reason: SkipReason::NoSession,
                model_call_id,
            };
            let expected = Ok((skipped, PayloadNotes::default()));
            assert_eq!(
                deliver(request(json(payload)), Redaction::On),
                expected,
                "{payload}"
            );
        }
    }

    #[test]
    fn a_call_with_an_invalid_identity_is_refused() {
        for payload in [
            r#"{"litellm_call_id":"x\u0000"}"#,
            r#"{"response":{"id":"x\ud800"}}"#,
            r#"{"model":"x\u0000"}"#,
            r#"{"response":{"model":"x\u0000"}}"#,
            r#"{"custom_llm_provider":"x\ud800"}"#,
            r#"{"end_user":"x\u0000"}"#,
            r#"{"messages":[{"role":"tool","tool_call_id":"x\u0000","content":"a"}]}"#,
            r#"{"response":{"output":[{"type":"function_call","call_id":"x\u0000"}]}}"#,
        ] {
            let mut request = request(json(payload));
            request.session_id = SessionId::new("s").ok();
            assert_eq!(
                deliver(request, Redaction::On),
                Err(GatewayError::InvalidPayload),
                "{payload}"
            );
        }
        let session = r#"{"metadata":{"session_id":"x\u0000"}}"#;
        assert_eq!(
            deliver(request(json(session)), Redaction::On),
            Err(GatewayError::InvalidPayload)
        );
    }

    #[test]
    fn each_id_of_the_envelope_overrides_its_own_counterpart_in_the_payload() {
        let payload = r#"{"metadata":{"session_id":"meta","user_id":"payload"}}"#;
        let ids = |session: Option<&str>, user: Option<&str>| {
            let mut request = request(json(payload));
            request.session_id = session.map(|id| SessionId::new(id).unwrap());
            request.user_id = user.map(|id| UserId::new(id).unwrap());
            match deliver(request, Redaction::On).unwrap().0 {
                Captured::Call(call) => (
                    call.session_id.to_string(),
                    call.user_id.unwrap().to_string(),
                ),
                Captured::Skipped { .. } => panic!("there is a session"),
            }
        };
        assert_eq!(ids(None, None), ("meta".to_owned(), "payload".to_owned()));
        assert_eq!(
            ids(Some("env"), None),
            ("env".to_owned(), "payload".to_owned())
        );
        assert_eq!(
            ids(None, Some("env")),
            ("meta".to_owned(), "env".to_owned())
        );
    }

    #[test]
    fn a_named_delivery_gets_a_derived_id_and_keeps_its_own_time() {
        let id = |capture: u128| {
            let capture = Capture {
                id: Uuid::from_u128(capture),
                observed_at: Instant::from_microseconds(5).unwrap(),
            };
            let mut request = request(json("{}"));
            request.session_id = SessionId::new("s").ok();
            request.capture = Some(capture);
            match deliver(request, Redaction::On).unwrap().0 {
                Captured::Call(call) => {
                    assert_eq!(call.observed_at, capture.observed_at);
                    call.inference_call_id
                }
                Captured::Skipped { .. } => panic!("there is a session"),
            }
        };
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
        assert_eq!(id(1).uuid().get_version_num(), 5);
        let name = br#"["acme","00000000-0000-0000-0000-000000000001"]"#;
        assert_eq!(id(1).uuid(), Uuid::new_v5(&CAPTURE_NAMESPACE, name));
        let other = OrgId::new("other").unwrap();
        assert_ne!(derived_id(&other, Uuid::from_u128(1)), id(1));
    }

    #[test]
    fn a_learnt_credential_is_redacted_wherever_it_is_a_whole_line_of_the_call() {
        let (call, notes) = call(json(
            r#"{"messages":[{"role":"assistant","content":"first\nhunter2\nnot hunter2 here","tool_calls":[{"id":"t","function":
                {"name":"curl","arguments":"{\"x-api-key\": \"hunter2\", \"Authorization\": \"Bearer qwertyqwertyqwerty\", \"deep\": [{\"service_api_key\": \"abc\"}], \"n\": 5}"}}]},
                {"role":"tool","tool_call_id":"t","content":"{\"echo\":\"hunter2\",\"k\":\"qwertyqwertyqwerty\"}"}]}"#,
        ));
        assert_eq!(
            parts(&call.input_messages),
            [
                r##"assistant [{"type":"text","content":"first\n#\nnot hunter2 here"},{"type":"tool_call","id":"t","name":"curl","arguments":{"x-api-key":"#","Authorization":"Bearer #","deep":[{"service_api_key":"#"}],"n":5}}]"##
                    .replace('#', "[REDACTED_CREDENTIAL]"),
                r##"tool [{"type":"tool_call_response","id":"t","result":{"echo":"#","k":"#"}}]"##
                    .replace('#', "[REDACTED_CREDENTIAL]"),
            ]
        );
        let raw = String::from_utf8(call.raw.payload.to_canonical()).unwrap();
        assert_eq!(
            raw.matches("hunter2").count(),
            1,
            "only in the sentence: {raw}"
        );
        assert!(!raw.contains("qwerty"), "{raw}");
        assert!(notes.redactions.structured_credential >= 6);
    }

    #[test]
    fn identities_and_roles_are_never_redacted() {
        let key = "sk-abcdefghijklmnopqrst";
        let (call, _) = call(json(
            &r#"{"litellm_call_id":"@","model":"@","messages":[{"role":"@","content":"@"}],
                "response":{"output":[{"type":"function_call","call_id":"@","name":"@","arguments":{"@":1}}]}}"#
                .replace('@', key),
        ));
        assert_eq!(call.model_call_id.as_deref(), Some(key));
        assert_eq!(call.model.as_deref(), Some(key));
        let input = format!(r#"{key} [{{"type":"text","content":"[REDACTED_CREDENTIAL]"}}]"#);
        assert_eq!(parts(&call.input_messages), [input]);
        let output = format!(
            r#"assistant [{{"type":"tool_call","id":"{key}","name":"[REDACTED_CREDENTIAL]","arguments":{{"[REDACTED_CREDENTIAL]":1}}}}]"#
        );
        assert_eq!(parts(&call.output_messages), [output]);
    }

    #[test]
    fn redaction_can_be_turned_off() {
        let payload = json(
            r#"{"messages":[{"role":"user","content":"sk-abcdefghijklmnopqrst"}],"api_key":"x"}"#,
        );
        let mut request = request(payload.clone());
        request.session_id = SessionId::new("s").ok();
        let (captured, notes) = deliver(request, Redaction::Off).unwrap();
        let Captured::Call(call) = captured else {
            panic!("there is a session")
        };
        assert_eq!(call.raw.payload, payload);
        assert_eq!(notes.redactions, RedactionCounts::default());
        assert!(parts(&call.input_messages)[0].contains("sk-abcdefghijklmnopqrst"));
    }

    /// What a test reads from a payload of a real proxy.
    fn summary(payload: Json) -> String {
        match deliver(request(payload), Redaction::On).unwrap() {
            (Captured::Call(call), notes) => {
                assert_eq!(
                    notes.redactions,
                    RedactionCounts::default(),
                    "it contains no credential"
                );
                format!(
                    "{} {:?} {:?} {:?}/{:?} {}+{} {:?} ms",
                    call.session_id,
                    call.user_id.map(String::from).unwrap_or_default(),
                    call.model.unwrap_or_default(),
                    call.input_tokens,
                    call.output_tokens,
                    parts(&call.input_messages).join(" "),
                    parts(&call.output_messages).join(" "),
                    call.duration_ms.unwrap_or_default(),
                )
            }
            (Captured::Skipped { reason, .. }, _) => reason.to_string(),
        }
    }

    #[test]
    fn payloads_recorded_from_a_real_proxy_are_captured() {
        const SESSION: &str = "f3d44f28-df57-4c22-b838-d0fd86c323b7";
        let user = |text: &str| format!(r#"user [{{"type":"text","content":"{text}"}}]"#);
        let assistant = |text: &str| format!(r#"assistant [{{"type":"text","content":"{text}"}}]"#);
        let pager = user("fix the pager in src/pager.rs");
        let window = assistant("Use a half-open window so pages never overlap.");
        let payloads = json(ARRAY).into_array().unwrap();
        assert_eq!(
            payloads.into_iter().map(summary).collect::<Vec<_>>(),
            [
                format!(
                    r#"{SESSION} "" "anthropic/claude-sonnet-4-5" Some(10)/Some(20) {pager}+{window} 8 ms"#
                ),
                format!(
                    r#"{SESSION} "" "openai/gpt-5" Some(21)/Some(4) system [{{"type":"text","content":"careful"}}] {pager}+{} 17 ms"#,
                    assistant("ok from the mock")
                ),
                format!(
                    r#"{SESSION} "user_x_account_" "anthropic/claude-sonnet-4-5" Some(2095)/Some(503) {pager}+{window} 3 ms"#
                ),
                // Without its correlation setting, the proxy sends the Session only as the trace
                // id.
                "no_session".to_owned(),
            ]
        );
        assert_eq!(
            LINES
                .lines()
                .map(|line| summary(json(line)))
                .collect::<Vec<_>>(),
            [
                format!(
                    r#"e96634a3-fa28-4083-b354-55542e2dca01 "" "anthropic/claude-sonnet-4-5" Some(10)/Some(20) {}+{} 12 ms"#,
                    user("a"),
                    assistant("Use a half-open window so adjacent pages never overlap.")
                ),
                "no_session".to_owned(),
                "no_session".to_owned(),
                "no_session".to_owned(),
            ]
        );
    }

    #[test]
    fn an_answer_recorded_from_the_responses_api_is_captured() {
        let mut payload = json(ARRAY)
            .into_array()
            .unwrap()
            .swap_remove(3)
            .into_object()
            .unwrap();
        payload.insert("session_id", "0000000a-0000-4000-8000-0123456789ab");
        assert_eq!(
            summary(payload.into()),
            r#"0000000a-0000-4000-8000-0123456789ab "" "openai/gpt-5" Some(36)/Some(87) user [{"type":"text","content":"fix the pager"}]+assistant [{"type":"text","content":"ok from the mock"}] 3 ms"#
        );
    }
}
