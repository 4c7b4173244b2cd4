//! Runs the example from the front page of the documentation.

use svc_client::model::evidence::{EvidenceReadRequest, Part};
use svc_client::model::json;
use svc_client::testing::{Answer, FakeServer};

#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, and run by its parts here"
)]
#[path = "../../examples/resume.rs"]
mod example;

const DISCOVERY: &str = r#"{"schema_version":1,"policy_version":1,"quarantine_revision":0,"capture_completeness":"unknown","commit":null,"status":"matched","coverage":{"authorized_sessions":2,"found_sessions":2,"visible_inference_calls":3,"quarantined_inference_calls":0,"scanned_parts":9,"matched_parts":2,"complete_visible_scan":true},"skipped":{"reasoning_part":1,"non_finite_number":0,"unmatched_part":6,"unmatched_session":1,"candidate_limit":0,"response_budget":0},"items":[{"session_id":"fix/pager","score":2,"matched_parts":2,"preview":null,"commit_match":null}]}"#;

fn place(message: u64) -> String {
    format!(
        r#"{{"inference_call_id":"c-1","side":"input","message_index":{message},"part_index":0}}"#
    )
}

fn item(message: u64, content: &str) -> String {
    format!(
        r#"{{"reference":{},"observed_at":"2026-01-01T00:00:00Z","role":"user","finish_reason":null,"part":{{"type":"text","content":"{content}"}}}}"#,
        place(message)
    )
}

fn script() -> [Answer; 4] {
    let selected = format!(
        r#"{{"schema_version":1,"policy_version":1,"source_session_id":"fix/pager","quarantine_revision":0,"status":"matched","capture_completeness":"unknown","coverage":{{"visible_inference_calls":1,"quarantined_inference_calls":0,"scanned_parts":5,"complete_visible_scan":true}},"skipped":{{"reasoning_part":0,"non_finite_number":0,"no_match":3,"repeated_content":1,"item_limit":0,"response_budget":0}},"items":[{{"score":2,"evidence":{}}}]}}"#,
        item(2, "the pager window is half-open")
    );
    let messages: Vec<_> = (0..5)
        .map(|message| {
            format!(
                r#"{{"side":"input","message_index":{message},"role":"user","finish_reason":null,"parts":[{{"type":"text","reference":{}}}]}}"#,
                place(message)
            )
        })
        .collect();
    let manifest = format!(
        r#"{{"schema_version":1,"session_id":"fix/pager","quarantine_revision":0,"call":{{"inference_call_id":"f8d5f475-40a1-5ebb-9796-b05b24001822","observed_at":"2026-01-01T00:00:00Z","model_provider":null,"model":"m"}},"messages":[{}]}}"#,
        messages.join(",")
    );
    let read = format!(
        r#"{{"schema_version":1,"session_id":"fix/pager","quarantine_revision":0,"items":[{},{},{}]}}"#,
        item(1, "why does it skip a row?"),
        item(2, "the pager window is half-open"),
        item(3, "then fix it")
    );
    [DISCOVERY.to_owned(), selected, manifest, read].map(|body| Answer::text(200, body))
}

#[tokio::test]
async fn an_agent_reads_the_context_of_the_best_match() {
    let server = FakeServer::start(script());
    let items = example::resume(&server.client(), "pager window")
        .await
        .unwrap();
    assert_eq!(items.len(), 3);
    assert!(
        matches!(items[2].part.known(), Some(Part::Text { content }) if *content == "then fix it")
    );

    let received = server.received();
    let targets: Vec<_> = received
        .iter()
        .map(|request| request.target.as_str())
        .collect();
    assert_eq!(
        targets,
        [
            "/query/context/discover",
            "/query/context/selected",
            "/query/context/evidence/manifest?session_id=fix%2Fpager&inference_call_id=c-1&explain=true",
            "/query/context/evidence/read?explain=true",
        ]
    );
    let read: EvidenceReadRequest = json::from_slice(&received[3].body).unwrap();
    let messages: Vec<_> = read
        .references
        .iter()
        .map(|place| place.message_index)
        .collect();
    assert_eq!(messages, [1, 2, 3]);
}

#[tokio::test]
async fn an_agent_without_earlier_work_starts_from_scratch() {
    let nothing = DISCOVERY.split_once(r#""items""#).unwrap().0;
    let server = FakeServer::start([Answer::text(200, format!(r#"{nothing}"items":[]}}"#))]);
    assert!(
        example::resume(&server.client(), "pager")
            .await
            .unwrap()
            .is_empty()
    );
}
