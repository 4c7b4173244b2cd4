//! Model calls of any program: the published form of a payload, and what the SDK makes of it.

use harness::pattern::dig;
use harness::server::{Backend, Configuration, INGEST_TOKEN, OPERATOR_TOKEN, Server};
use serde_json::{Value, json};
use svc_client::Client;
use svc_client::model::evidence::{LeftOut, Message, Part};
use svc_client::model::id::{InferenceCallId, SessionId};
use svc_client::model::ingest::{
    AgentName, CallsReceipt, Conversation, GatewayCall, IngestReceipt, SentCall,
};
use svc_client::model::json::Json;
use svc_client::model::open::Open;
use svc_client::model::time::Instant;

use crate::cli::{done, svc};

#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../svc-client/examples/call.rs"]
mod example;

#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../svc-client/examples/conversation.rs"]
mod conversation;

on_both_backends! {
    the_first_example_of_the_sdk_is_stored_and_read_back,
    a_conversation_sends_each_message_once,
    a_conversation_goes_on_if_the_service_lost_its_beginning,
    every_kind_of_part_is_read_back_unchanged,
    the_examples_of_the_published_schema_are_read,
    each_skipped_payload_is_logged_once_with_its_reason,
}

fn start(backend: Backend) -> Option<Server> {
    Server::start(backend, &Configuration::default())
}

fn client(server: &Server, token: &str) -> Client {
    let builder = Client::builder(server.base_url()).token(token);
    builder.build().expect("a client")
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

fn stored(receipt: &Open<IngestReceipt>) -> (String, bool) {
    match receipt {
        Open::Known(IngestReceipt::Fact(fact)) => (fact.fact_id.to_string(), fact.stored),
        other => panic!("{other:?}"),
    }
}

fn the_first_example_of_the_sdk_is_stored_and_read_back(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let sender = client(&server, INGEST_TOKEN);
    let deliver = || run(example::deliver(&sender, "fix-the-pager")).expect("an answer");
    let (first, is_new) = stored(&deliver());
    assert!(is_new);
    assert_eq!(stored(&deliver()), (first, false), "it has its own name");
    let transcript = done(&svc(&server, &["transcript", "fix-the-pager"]));
    for text in [
        "openai/gpt-5",
        "    Why does the pager fire at night?\n",
        "  assistant, stop\n    A cron job restarts the queue.\n",
    ] {
        assert!(transcript.contains(text), "{text}\n{transcript}");
    }
}

fn a_conversation_sends_each_message_once(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let sender = client(&server, INGEST_TOKEN);
    let deliver = || run(conversation::deliver(&sender, "fix-the-pager")).expect("receipts");
    let stored = |receipts: &[CallsReceipt]| -> Vec<(u64, u64)> {
        let counts = receipts
            .iter()
            .map(|receipt| (receipt.stored, receipt.duplicates));
        counts.collect()
    };
    assert_eq!(stored(&deliver()), [(1, 0), (1, 0)]);
    assert_eq!(stored(&deliver()), [(0, 1), (0, 1)], "each has its own id");
    let transcript = done(&svc(&server, &["transcript", "fix-the-pager"]));
    for text in [
        "Why does the pager fire at night?",
        "A cron job restarts the queue.",
        "At what time?",
        "At three.",
    ] {
        assert_eq!(transcript.matches(text).count(), 1, "{text}\n{transcript}");
    }
}

fn a_conversation_goes_on_if_the_service_lost_its_beginning(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let sender = client(&server, INGEST_TOKEN);
    let session = SessionId::new("s").expect("an id");
    let agent = AgentName::new("bot").expect("a name");
    let mut conversation = Conversation::new(session, agent);
    let ended = Instant::parse("2026-01-02T03:04:07Z").expect("a time");
    let call = |id: &str, texts: &[&str]| {
        let call = SentCall::builder().id(id).ended(ended).answered_text("yes");
        let call = texts
            .iter()
            .fold(call, |call, text| call.text_message("user", text));
        call.build().expect("a call")
    };
    // The service never got this one.
    conversation.remember(call("1", &["a"]));
    let call = SentCall::builder()
        .id("2")
        .ended(ended)
        .text_message("user", "a")
        .text_message("assistant", "yes")
        .text_message("user", "b")
        .answered_text("yes");
    let call = call.build().expect("a call");
    assert_eq!(conversation.next(&call).calls[0].input.messages.len(), 1);
    let receipt = run(sender.ingest_next_call(&mut conversation, call));
    assert_eq!(receipt.expect("a receipt").stored, 1);
    let facts = server.read_json("/v1/facts/session/s/inference-calls");
    let calls = dig(&facts, "inference_calls").and_then(Json::as_array);
    assert_eq!(calls.map(<[Json]>::len), Some(1));
}

fn every_kind_of_part_is_read_back_unchanged(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let session = SessionId::new("s").expect("an id");
    let exact = |text: &[u8]| Json::parse(text).expect("JSON");
    let arguments = exact(br#"{"n":1.10,"big":12345678901234567890123,"s":"\ud800"}"#);
    let parts = vec![
        Part::Text {
            content: "a\u{0}b\n".into(),
        },
        Part::Reasoning {
            content: " hm ".into(),
        },
        Part::ToolCall {
            id: "t".to_owned(),
            name: "edit".into(),
            arguments: arguments.into_object().expect("an object"),
            sent: None,
        },
        Part::ToolCallResponse {
            id: "t".to_owned(),
            result: exact(br#"{"ok":[true,null,1e5]}"#),
        },
    ];
    let mut builder = GatewayCall::builder()
        .session(session.clone())
        .id("any id")
        .message(Message {
            role: "tool".into(),
            parts: parts.clone(),
            finish_reason: None,
        });
    for part in &parts[..3] {
        builder = builder.answered(part.clone());
    }
    let call = builder.build().expect("a call");
    let expected: Vec<Part> = parts.iter().chain(&parts[..3]).cloned().collect();
    run(async {
        let receipt = client(&server, INGEST_TOKEN).ingest_call(&call).await;
        let (fact, _) = stored(&receipt.expect("an answer"));
        let operator = client(&server, OPERATOR_TOKEN);
        let evidence = operator.evidence();
        let call = InferenceCallId::new(&fact).expect("an id");
        let manifest = evidence
            .manifest(&session, &call)
            .await
            .expect("a manifest");
        let left_out = manifest.left_out.expect("it was asked for");
        assert_eq!(left_out, LeftOut::default(), "nothing was left out");
        let items = evidence.parts(&session, manifest.references());
        let items = items.collect_all().await.expect("all parts");
        let found = items.into_iter().filter_map(|item| item.part.into_known());
        let found: Vec<Part> = found.collect();
        assert_eq!(found, expected);
    });
}

fn the_examples_of_the_published_schema_are_read(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let schema = include_str!("../../schemas/GatewayPayload.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let examples = schema["examples"].as_array().expect("examples");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for example in examples {
        assert!(validator.is_valid(example), "{example}");
    }
    let reply = server.deliver("/ingest/gateway/litellm", json!(examples).to_string());
    let stored = dig(&reply.json(), "stored").cloned();
    assert_eq!(
        stored,
        Some(Json::from(examples.len() as u64)),
        "{}",
        reply.text()
    );
    // The id is not a UUID, and the call has the date in its payload.
    let inventory = server.read_json("/query/evidence?session_id=fix-the-pager");
    assert_eq!(
        dig(&inventory, "calls.0.observed_at").and_then(Json::as_str),
        Some("2026-11-20T12:19:49.500000Z")
    );
    let first = examples[0].clone();
    let envelope =
        json!({"provider": "gateway_a", "session_id": "fix-the-pager", "payload": first});
    let again = server.deliver("/ingest/gateway", envelope.to_string());
    assert_eq!(dig(&again.json(), "stored"), Some(&Json::from(false)));
}

fn each_skipped_payload_is_logged_once_with_its_reason(backend: Backend) {
    let Some(server) = start(backend) else { return };
    let batch = json!([
        {"litellm_call_id": "sessionless", "model": "m"},
        5,
        {"litellm_call_id": "\u{0}", "metadata": {"session_id": "s"}},
    ]);
    let reply = server.deliver("/ingest/gateway/litellm", batch.to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let lines = |event: &str, reason: &str| {
        let log = server.log();
        let of = log
            .lines()
            .filter(|line| line.contains(event) && line.contains(reason));
        of.count()
    };
    assert_eq!(lines("gateway_ingest_skipped_no_session", "no_session"), 1);
    assert_eq!(lines("gateway_ingest_invalid_payload", "not_an_object"), 1);
    // The words of the third are also in the name of the event.
    assert_eq!(lines("gateway_ingest_invalid_payload", "reason"), 2);
}
