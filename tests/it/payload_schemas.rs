//! The published schemas of what is inside a body or a note: they accept what programs really
//! write, and reject what the service ignores.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};
use svc_engine::capture::notes::{Stamp, addition};
use svc_model::facts::AgentHarness;
use svc_model::id::{ForeignId, SessionId};
use svc_model::ingest::LogsRequest;
use svc_model::ingest::event::{
    EditObservation, EditText, Event, EventKind, FilePath, RejectedEdit, RetriedTool, RetryLinkage,
    ToolDecision,
};
use svc_model::request::Request as _;
use svc_model::time::Instant;

pub(crate) fn schema(name: &str) -> Validator {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = workspace.expect("the workspace").join("schemas");
    let text = std::fs::read(path.join(format!("{name}.json"))).expect("a published schema");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(document["$id"], format!("/schemas/1/{name}.json"));
    assert_eq!(document["title"], name);
    jsonschema::validator_for(&document).expect("a schema")
}

fn moment() -> Instant {
    Instant::parse("2026-11-20T12:00:00Z").expect("a moment")
}

fn record(kind: EventKind) -> Value {
    let event = Event {
        agent: AgentHarness::Pi,
        session_id: SessionId::new("fix-the-pager").expect("a Session"),
        user_id: None,
        occurred_at: moment().try_into().expect("after 1970"),
        kind,
    };
    let written = LogsRequest::from(&event).write().expect("a request");
    let body: Value = serde_json::from_slice(&written.body.expect("a body")).expect("JSON");
    body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].clone()
}

#[test]
fn every_own_event_satisfies_its_published_schema() {
    let schema = schema("OwnLogRecord");
    let call = |id| ForeignId::new(id).expect("an id");
    let file_path = FilePath::new("src/pager.rs").expect("a path");
    let text = |text| EditText::new(text).expect("a text");
    let linkage = RetryLinkage::new(RetriedTool::Edit, &file_path, call("t1"), call("t2"));
    let kinds: [EventKind; 4] = [
        ToolDecision {
            call_id: call("t1"),
            file_path: None,
            accepted: false,
            explicit: true,
            tool_name: None,
        }
        .into(),
        EditObservation {
            call_id: call("t1"),
            file_path: file_path.clone(),
            applied_text: text("a"),
            observed_file_text: text(""),
            external_lines_added: Some(1),
            external_lines_removed: None,
            tool_name: Some("Edit".to_owned()),
        }
        .into(),
        RejectedEdit {
            call_id: call("t1"),
            file_path: file_path.clone(),
            proposed: text("b"),
            tool_name: None,
        }
        .into(),
        linkage.expect("two calls").into(),
    ];
    for kind in kinds {
        let record = record(kind);
        assert!(schema.is_valid(&record), "{record}");
        for (index, attribute) in record["attributes"]
            .as_array()
            .expect("a list")
            .iter()
            .enumerate()
        {
            let optional = ["session.id", "tool_name", "external_lines_added"];
            let name = attribute["key"].as_str().expect("a name");
            if optional.contains(&name) {
                continue;
            }
            let mut lacking = record.clone();
            lacking["attributes"]
                .as_array_mut()
                .expect("a list")
                .remove(index);
            assert!(!schema.is_valid(&lacking), "without {name}: {lacking}");
        }
    }
}

#[test]
fn a_stamped_note_satisfies_its_published_schema() {
    let schema = schema("CommitNote");
    let stamp = Stamp {
        tool: "claude-code".to_owned(),
        session_id: SessionId::new("fix-the-pager").expect("a Session"),
    };
    let note = addition(None, &[stamp], moment()).expect("a note");
    let note: Value = serde_json::from_str(&note.expect("a line")).expect("JSON");
    assert!(schema.is_valid(&note), "{note}");
    for ignored in [
        json!({ "v": 2, "sessions": [] }),
        json!({ "v": 1, "sessions": [{ "tool": "t", "session_id": "s" }] }),
        json!({ "v": 1, "sessions": [], "prompt": "why?" }),
    ] {
        assert!(!schema.is_valid(&ignored), "{ignored}");
    }
}

#[test]
fn each_kind_of_part_satisfies_its_published_schema() {
    let schema = schema("Part");
    for part in [
        json!({ "type": "text", "content": "" }),
        json!({ "type": "reasoning", "content": "hm" }),
        json!({ "type": "tool_call", "id": "t", "name": "f", "arguments": { "n": 1 } }),
        json!({ "type": "tool_call_response", "id": "t", "result": null }),
    ] {
        assert!(schema.is_valid(&part), "{part}");
        let mut other = part.clone();
        other["type"] = json!("image");
        assert!(!schema.is_valid(&other), "{other}");
    }
}
